"""The tools about shared values: the contract's answers, and refusals that say so."""

from __future__ import annotations

import pytest
from support.fixtures import Ground
from support.toolbox import Hands

from swarm_mcp.store.values import LONGEST_KEY, LONGEST_VALUE

FOREIGN = {"error": "KV key is owned by another identity"}


@pytest.fixture
def hands(ground: Ground) -> tuple[Hands, Hands, Hands]:
    """Sessions of identity p, of identity q, and without identity."""
    labels = (("1", "identity:p one"), ("2", "identity:q two"), ("3", "three"))
    return tuple(Hands(ground, ground.session(name, label)) for name, label in labels)


def test_set_get_append_list_delete(hands):
    mine, *_ = hands
    assert mine.text("kv_get", key="k") == 'Key "k" not found'
    assert mine.text("kv_set", key="k", value="v") == 'Set "k"'
    found = mine.value("kv_get", key="k")
    assert list(found) == ["value", "updated_at", "owner_identity"]
    assert (found["value"], found["owner_identity"]) == ("v", "identity:p")
    assert mine.text("kv_append", key="l", value="1") == 'Appended to "l" (1 items)'
    assert mine.text("kv_append", key="l", value='{"a": 2.50}') == 'Appended to "l" (2 items)'
    assert mine.value("kv_get", key="l")["value"] == '[1,{"a":2.50}]'
    assert mine.text("kv_append", key="k", value="3") == 'Appended to "k" (2 items)'
    listed = mine.value("kv_list")
    assert [row["key"] for row in listed] == ["k", "l"] and list(listed[0]) == ["key", "updated_at"]
    assert [row["key"] for row in mine.value("kv_list", prefix="k")] == ["k"]
    assert mine.value("kv_list", prefix="K") == mine.value("kv_list", prefix="%") == []
    assert mine.text("kv_delete", key="k") == 'Deleted "k"'
    missing = mine.text("kv_delete", key="k")
    assert missing.startswith('Deleted "k"') and "not there" in missing


def test_what_is_no_json_is_said_plainly_and_changes_nothing(hands):
    mine, *_ = hands
    mine.text("kv_set", key="l", value="[1]")
    for wrong in ("not json", "", "NaN", "[1"):
        assert mine.text("kv_append", key="l", value=wrong).startswith("Value must be valid JSON")
    assert mine.value("kv_get", key="l")["value"] == "[1]"


def test_another_identitys_key_is_hidden_and_every_write_to_it_is_refused(ground: Ground, hands):
    mine, theirs, nobody = hands
    mine.text("kv_set", key="k", value="v")
    for other in (theirs, nobody):
        assert other.text("kv_get", key="k") == 'Key "k" not found'
        assert other.value("kv_list") == []
        assert other.value("kv_set", key="k", value="w") == FOREIGN
        assert other.value("kv_append", key="k", value="1") == FOREIGN
        assert other.value("kv_delete", key="k") == FOREIGN
    assert mine.value("kv_get", key="k")["value"] == "v"
    assert ground.sql("SELECT type FROM events WHERE type LIKE 'kv.%'") == [{"type": "kv.set"}]


def test_a_blank_key_is_an_error(hands):
    mine, *_ = hands
    for name, more in (("kv_set", {"value": "v"}), ("kv_append", {"value": "1"})):
        assert mine.answer(name, key=" ", **more).is_error


def test_keys_and_values_have_an_end(ground: Ground, hands):
    mine, *_ = hands
    assert mine.text("kv_set", key="k", value="ä" * (LONGEST_VALUE // 2)) == 'Set "k"'
    item = f'"{"x" * (LONGEST_VALUE // 2)}"'
    assert mine.text("kv_append", key="list", value=item) == 'Appended to "list" (1 items)'
    too_much = (
        ("kv_set", "k", "ä" * LONGEST_VALUE),
        ("kv_append", "list", item),
        ("kv_append", "l", f"[{item},{item}]"),
    )
    for name, key, value in too_much:
        answer = mine.answer(name, key=key, value=value)
        assert answer.is_error and f"at most {LONGEST_VALUE} bytes" in answer.value["error"] and len(str(answer)) < 600
    assert mine.value("kv_get", key="k")["value"].endswith("ä") and mine.text("kv_get", key="l").endswith("not found")
    assert mine.answer("kv_set", key="k" * (LONGEST_KEY + 1), value="v").is_error

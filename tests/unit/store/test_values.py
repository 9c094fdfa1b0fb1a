"""Shared values: owned by the first identity, appended without loss, every change told to its waiters."""

import json

import pytest
from hypothesis import strategies as st
from support.fixtures import Ground

from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


def value(ground: Ground, key: str):
    rows = ground.sql("SELECT value FROM kv WHERE key = ?", key)
    return rows[0]["value"] if rows else None


@pytest.fixture
def actors(ground: Ground) -> tuple[str, str, str]:
    """Ids of sessions of identity a, identity b and no identity."""
    return tuple(
        ground.session(name, label)["id"] for name, label in (("1", "identity:a"), ("2", "identity:b"), ("3", ""))
    )


def test_a_key_belongs_to_the_identity_that_first_set_it(ground: Ground, actors: tuple[str, str, str]):
    a, b, nobody = actors
    ground.swarm("kv", "set", "k", "1", "--as", a)
    for other in (b, nobody):
        for attempt in (["set", "k", "2"], ["append", "k", "2"], ["del", "k"]):
            done = ground.swarm("kv", *attempt, "--as", other, "--json")
            assert (done.code, done.json, done.err) == (1, {"error": "KV key is owned by another identity"}, ""), done
            told = ground.swarm("kv", *attempt, "--as", other)
            assert (told.code, told.out) == (1, "") and told.err.count("\n") == 1, told
            assert told.err.startswith("kv failed: ") and "another identity" in told.err
            assert told.err.rstrip().endswith("k")
    assert value(ground, "k") == "1"
    assert ground.swarm("kv", "set", "k", "3", "--as", a).code == 0


def test_a_key_without_owner_goes_to_the_first_identity_that_sets_it(ground: Ground, actors: tuple[str, str, str]):
    a, b, nobody = actors
    ground.swarm("kv", "set", "k", "1", "--as", nobody)
    assert ground.swarm("kv", "set", "k", "2", "--as", a).code == 0
    assert ground.swarm("kv", "get", "k", "--json").json["owner_identity"] == "identity:a"
    assert ground.swarm("kv", "set", "k", "3", "--as", b).code == 1


def test_values_of_another_identity_are_open_where_that_is_allowed(ground: Ground, actors, monkeypatch):
    a, b, _ = actors
    ground.swarm("kv", "set", "k", "1", "--as", a)
    for setting, code in (("", 1), ("0", 1), ("no", 1), ("1", 0), ("true", 0)):
        monkeypatch.setenv("SWARM_MCP_ALLOW_CROSS_IDENTITY", setting)
        assert ground.swarm("kv", "get", "k", "--as", b).code == code, setting
        assert ground.swarm("kv", "set", "k", "2", "--as", b).code == code, setting
    assert ground.sql("SELECT owner_identity FROM kv")[0]["owner_identity"] == "identity:a", (
        "the first one stays the owner"
    )


def test_a_listing_shows_what_its_reader_could_get(ground: Ground, actors: tuple[str, str, str], monkeypatch):
    a, b, nobody = actors
    ground.swarm("kv", "set", "mine", "1", "--as", a)
    ground.swarm("kv", "set", "open", "2", "--as", nobody)

    def keys(*argv: str) -> list[str]:
        return [row["key"] for row in ground.swarm("kv", "list", "--json", *argv).json]

    assert keys("--as", a) == ["mine", "open"] and keys("--as", b) == ["open"]
    assert keys() == ["mine", "open"], "an onlooker without an identity may look at everything"
    monkeypatch.setenv("AGENT_IDENTITY", "b")
    assert keys() == ["open"] and ground.swarm("kv", "get", "mine").code == 1


@pytest.mark.parametrize(
    ("before", "appended", "after"),
    [
        (None, "1", "[1]"), ("[1]", "2", "[1,2]"), ('{"a": 1}', "[2]", '[{"a":1},[2]]'), ("plain text", '"x"', '["plain text","x"]'),
        ("", "null", '["",null]'), ("[]", "true", "[true]"), ("7", "8", "[7,8]"), ("[1", "2", '["[1",2]'),
        (None, '{"b": "ü☃\\u0000"}', '[{"b":"ü☃\\u0000"}]'), (None, str(2**80), f"[{2**80}]"), (None, " 1 ", "[1]"),
        # Digit for digit, in contrast to parsed numbers.
        ("[1.50]", "1e400", "[1.50,1e400]"), ("[ 1.0 , -0.0 ]", "1E+2", "[1.0,-0.0,1E+2]"), (None, "9" * 5000, f"[{'9' * 5000}]"),
        # Blanks, commas and quotes inside a text are text.
        ('[ "a , b\\"  c" ]', '{ "x  y" : "\\\\" }', '["a , b\\"  c",{"x  y":"\\\\"}]'), ("[ ]", "[ ]", "[[]]"),
        # Invalid JSON that programs accept is plain text.
        ("[NaN]", "1", '["[NaN]",1]'), ("\ufeff[1]", "2", '["\ufeff[1]",2]'),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_append_makes_a_list_of_whatever_was_there(ground: Ground, actors, before, appended: str, after: str):
    if before is not None:
        ground.swarm("kv", "set", "--as", actors[0], "--", "k", before)
    done = ground.swarm("kv", "append", "--as", actors[0], "--json", "--", "k", appended)
    assert done.json == {"ok": True, "key": "k", "length": len(json.loads(after, parse_int=str))}
    assert value(ground, "k") == after


def test_bytes_that_another_program_stored_are_kept_as_they_can_be(ground: Ground, actors: tuple[str, str, str]):
    ground.sql("INSERT INTO kv (scope, key, value) VALUES (?, 'k', CAST(x'ff41' AS TEXT))", ground.scope)
    assert ground.swarm("kv", "append", "k", "1", "--as", actors[0]).code == 0
    assert json.loads(value(ground, "k"))[0].endswith("A") and json.loads(value(ground, "k"))[1] == 1


@pytest.mark.parametrize("key", ["", "  "])
def test_a_key_has_a_name(store: Store, actors: tuple[str, str, str], key: str):
    row = store.instances.get(actors[0])
    for change in (store.kv.put, store.kv.append):
        with pytest.raises(SwarmError):
            change(row, key, "1")


@pytest.mark.parametrize(
    "text", ["bad", "", "NaN", "[Infinity]", "-Infinity", "1 2", "{'a': 1}", "[" * 50_000, '"\\ud800"']
)
def test_append_takes_json_alone(ground: Ground, actors: tuple[str, str, str], text: str):
    ground.swarm("kv", "set", "k", "[0]", "--as", actors[0])
    done = ground.swarm("kv", "append", "--as", actors[0], "--", "k", text)
    if '"' in text and done.code == 0:  # a lone surrogate is JSON; it may be kept if the stored text stays JSON
        assert json.loads(value(ground, "k"))[0] == 0
    else:
        code = 2 - bool(text)  # without a value the command line is wrong
        assert (done.code, done.out) == (code, "") and done.err.count("\n") == 1, done
        assert value(ground, "k") == "[0]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


def test_prefixes_are_exact(ground: Ground, actors: tuple[str, str, str]):
    for key in ("a/1", "A/2", "a_1", "a%1", "ab", "b/a/1", "a\U0010ffff", "ü/1"):
        ground.swarm("kv", "set", key, "x", "--as", actors[2])

    def keys(*prefix: str) -> list[str]:
        return [row["key"] for row in ground.swarm("kv", "list", *prefix, "--json").json]

    assert keys("--prefix", "a/") == ["a/1"]
    assert keys("--prefix", "a_") == ["a_1"]
    assert keys("--prefix", "a") == ["a%1", "a/1", "a_1", "ab", "a\U0010ffff"]
    assert keys("--prefix", "ü") == ["ü/1"]
    assert keys("--prefix", "a%") == ["a%1"]
    assert keys("--prefix", "zz") == []
    assert keys() == keys("--prefix", "") == ["A/2", "a%1", "a/1", "a_1", "ab", "a\U0010ffff", "b/a/1", "ü/1"]
    assert list(ground.swarm("kv", "list", "--json").json[0]) == ["key", "updated_at"]
    assert [row["key"] for row in ground.swarm("kv", "--json").json] == keys()


def test_every_change_moves_the_scopes_clock_forward(ground: Ground, actors: tuple[str, str, str]):
    a = actors[0]
    clock = []
    steps = (["set", "k", "1"], ["set", "k", "1"], ["append", "k", "2"], ["append", "l", "2"], ["del", "k"])
    for step in steps:
        ground.swarm("kv", *step, "--as", a)
        clock.append(
            ground.sql("SELECT changed_at FROM kv_scope_updates WHERE scope = ?", ground.scope)[0]["changed_at"]
        )
    assert clock == sorted(set(clock)) and clock[0] > 10**12  # milliseconds
    ahead = clock[-1] + 10**9
    ground.sql("UPDATE kv_scope_updates SET changed_at = ?", ahead)
    ground.swarm("kv", "set", "k", "1", "--as", a)
    assert ground.sql("SELECT changed_at FROM kv_scope_updates")[0]["changed_at"] == ahead + 1


def test_every_change_has_its_event(ground: Ground, actors: tuple[str, str, str]):
    a = actors[0]
    for step in (["set", "k", "v"], ["append", "k", "[1]"], ["del", "k"], ["del", "k"]):
        ground.swarm("kv", *step, "--as", a)
    rows = ground.sql("SELECT type, actor, subject, payload FROM events WHERE type LIKE 'kv.%' ORDER BY id")
    assert [(row["type"], row["actor"], row["subject"]) for row in rows] == [
        ("kv.set", a, "k"), ("kv.appended", a, "k"), ("kv.deleted", a, "k"),
    ]  # fmt: skip
    payloads = [json.loads(row["payload"]) for row in rows]
    assert payloads[0] == {"value": "v", "length": 1}
    assert payloads[1] == {"appended": [1], "length": 2}
    assert payloads[2] == {"prior_value": '["v",[1]]', "prior_length": 9}


def test_an_actor_is_needed_to_write_and_not_to_read(ground: Ground):
    for step in (["set", "k", "1"], ["append", "k", "1"], ["del", "k"]):
        assert ground.swarm("kv", *step).code == 1
    assert ground.swarm("kv", "list").out == "(no kv entries)\n"


def test_a_refusal_changes_neither_clock_nor_events(ground: Ground, actors: tuple[str, str, str]):
    a, b, _ = actors
    ground.swarm("kv", "set", "k", "1", "--as", a)
    before = ground.sql("SELECT * FROM events"), ground.sql("SELECT * FROM kv_scope_updates")
    with ground.store() as store, pytest.raises(SwarmError):
        store.kv.put(store.instances.get(b), "k", "2")
    assert before == (ground.sql("SELECT * FROM events"), ground.sql("SELECT * FROM kv_scope_updates"))

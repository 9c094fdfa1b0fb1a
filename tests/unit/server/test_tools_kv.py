"""The tools about shared values: how much they take. Their answers are in test_conformance_mcp."""

from support.fixtures import Ground
from support.toolbox import Hands

from swarm_mcp.store.values import LONGEST_KEY, LONGEST_VALUE


def test_keys_and_values_have_an_end(ground: Ground):
    mine = Hands(ground, ground.session("1", "identity:p one"))
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

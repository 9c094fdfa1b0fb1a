"""The whole parts of JSON that was cut short are read correctly, for every place of the cut."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core.cut_json import loads_cut
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.opaque_calls import effects_of

TEXTS = st.text(st.sampled_from('a"\\{}[],: \n\x01é\u1234\U0001f600'), max_size=8)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def begins(found: Any, meant: Any, partly: bool = False) -> bool:
    """Return True if `found` is `meant` without some members, or without some last items; `partly`: or part of a text."""
    if isinstance(meant, dict):
        return isinstance(found, dict) and all(
            key in meant and begins(value, meant[key], key == "command") for key, value in found.items()
        )
    if isinstance(meant, list):
        return isinstance(found, list) and len(found) <= len(meant) and all(map(begins, found, meant))
    if partly and isinstance(meant, str) and isinstance(found, str):
        return meant.startswith((found, found[:-1]))  # the last may be half of a pair
    return bool(found == meant)


@given(st.dictionaries(TEXTS | st.just("command"), VALUES, max_size=4), st.booleans(), st.integers(min_value=0))
def test_wherever_the_cut_is_nothing_is_read_that_was_not_said(meant: dict, ascii_only: bool, cut: int) -> None:
    text = json.dumps(meant, ensure_ascii=ascii_only)
    assert begins(loads_cut(text[: cut % (len(text) + 1)], ("command",)), meant)
    assert loads_cut(text) == meant


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"path": "/x", "content": "abc', {"path": "/x"}),
        ('{"path": "/x", "n": {"a": 1, "b": [2, 3', {"path": "/x", "n": {"a": 1, "b": [2]}}),
        ('{"content": "abc', {}),
        ('{"path": "/x"', {"path": "/x"}),
        ('{"pa', {}),
        ('{"command": "echo \\"a', {"command": 'echo "a'}),
        ('{"command": "a\\\\', {"command": "a\\"}),
        ('{"command": "a\\', {"command": "a"}),
        ('{"command": "a\\u00e', {"command": "a"}),
        ("", {}),
        ("[1, 2", {}),
        ("no JSON", {}),
    ],
)
def test_what_is_whole(text: str, found: dict) -> None:
    assert loads_cut(text, ("command",)) == found


def test_a_long_text_is_read_in_time() -> None:
    begun = time.monotonic()
    assert loads_cut('{"path": "p", "content": "' + 'ab\\"c\\n' * 20_000) == {"path": "p"}
    assert time.monotonic() - begun < 30


def test_the_rest_of_a_command_that_was_cut_may_write(tmp_path: Path) -> None:
    def guesses(tool: str, tool_input: object, is_cut: bool) -> list[str]:
        effects = effects_of(ToolCall(tool, tool_input, cwd=str(tmp_path), is_cut=is_cut))
        return [guess.why for guess in effects.guesses] if effects else []

    command = {"command": "cat > f <<EOF\nabc"}
    assert guesses("Bash", command, False) == []
    assert guesses("Bash", command, True) == guesses("Bash", None, True) == ["the rest of a long Bash call"]
    assert guesses("mcp__files__write_file", {"path": "f"}, True) != []

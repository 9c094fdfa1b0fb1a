"""Reading and writing JSON without the json package, and the whole parts of JSON that was cut short."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core.config import plain_denial
from swarm_hook_core.hooks import ToolCall, answer, read, session_event, tool_call
from swarm_hook_core.json_text import NotJson, dumps, loads, loads_cut, loads_object
from swarm_hook_core.opaque_calls import effects_of

texts = st.text(st.characters(exclude_categories=[]))  # lone surrogates too
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@given(values, st.booleans(), st.sampled_from([None, 1, 4]), st.sampled_from(["", " ", "\n\t\r "]))
def test_what_json_writes_is_read_alike(value: Any, ascii_only: bool, indent: int | None, blank: str) -> None:
    text = blank + json.dumps(value, ensure_ascii=ascii_only, indent=indent) + blank
    assert loads(text) == json.loads(text) == value


@given(st.text('{}[]",:0123456789.eE+-\\ \n\ttrufalsn"ua', max_size=30))
def test_what_json_refuses_is_refused(text: str) -> None:
    # The one leniency is deliberate: control characters inside strings are let through.
    try:
        expected = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError):
            loads(text)
    else:
        assert loads(text) == expected


@pytest.mark.parametrize("text", ["NaN", "[1e999, -1e999]", "Infinity", "-0.0", "1E5", '"\\ud800"', '{"a": 1, "a": 2}'])
def test_oddities_are_read_as_json_reads_them(text: str) -> None:
    assert repr(loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ['{"a": "b\n\t\x00c"}', '\ufeff{"a": 1}'])
def test_control_characters_and_a_byte_order_mark_are_let_through(text: str) -> None:
    assert loads(text) == json.loads(text.lstrip("\ufeff"), strict=False)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("depth", [50_000, 100_000, 1_000_000])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_ends_in_one_of_two_errors(opening: str, depth: int, closed: bool) -> None:
    closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(opening) if c in "[{")
    with pytest.raises((RecursionError, ValueError)):
        loads(opening * depth + "1" + (closing * depth if closed else ""))


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a"', "null", "[]", "3", '"x"', "true", "{} {}", "{}x", "{'a': 1}", "\x00{}", "not json"]
)
def test_only_an_object_is_a_payload(text: str) -> None:
    with pytest.raises(NotJson if text in ("null", "[]", "3", '"x"', "true", "not json") else ValueError):
        loads_object(text)


@given(values, st.sampled_from([1, 2, 4]))
def test_the_layout_is_that_of_json(value: Any, indent: int) -> None:
    assert dumps(value, indent=indent) == json.dumps(value, indent=indent)
    assert dumps(value) == json.dumps(value)


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), {"a": [b"x"]}])
def test_what_is_no_json_value_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps(value)


@pytest.mark.parametrize("indent", [0, 2])
def test_numbers_that_json_does_not_have_are_null(indent: int) -> None:
    value = {"a": float("inf"), "b": [1.5, float("nan"), {"c": (-float("inf"), True)}], "d": 10**400}
    finite = {"a": None, "b": [1.5, None, {"c": [None, True]}], "d": 10**400}
    assert dumps(value, indent) == json.dumps(finite, indent=indent or None)


@given(st.binary())
def test_any_bytes_can_be_read_and_written_back(data: bytes) -> None:
    text = read(io.BytesIO(data))
    assert text.encode("utf-8", "surrogateescape") == data
    assert read(io.TextIOWrapper(io.BytesIO(data), "ascii")) == text, "whatever encoding the locale chose"


def test_text_streams_without_bytes_are_read_too() -> None:
    assert read(io.StringIO('{"a": "ü"}')) == '{"a": "ü"}'


@pytest.mark.parametrize("value", [None, 3, True, [], {}, ["x"]])
def test_a_field_of_another_type_counts_as_missing(value: Any) -> None:
    fields = {"session_id": "s", "cwd": "/r", "hook_event_name": "PreToolUse", "agent_id": "a", "source": "startup"}
    told, nothing = session_event(fields), session_event(dict.fromkeys(fields, value))
    assert (told.session_id, told.cwd, told.name, told.agent, told.source) == tuple(fields.values())
    assert [getattr(nothing, name) for name in nothing.__slots__] == [""] * len(nothing.__slots__)
    call = tool_call({**dict.fromkeys(fields, value), "tool_name": value, "tool_use_id": value, "tool_input": value})
    assert (call.tool, call.id, call.session_id, call.input, call.goes_on) == ("", "", "", value, False)


@given(texts, texts)
def test_an_answer_is_one_object_on_one_line(event: str, reason: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        answer(plain_denial(event, reason))
    line = out.getvalue()
    assert line.endswith("\n") and line.count("\n") == 1 and line.isascii()
    inner = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
    assert json.loads(line) == {"hookSpecificOutput": inner}


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

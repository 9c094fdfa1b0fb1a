"""Events as classes: every kind has one, in a table of the page; their JSON is that of plain events."""

import json
import re
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harness_fixtures import Scripted, run_of
from support.python_page import PAGE

from swarm_mcp.agents.harness import events, typed_events
from swarm_mcp.agents.harness.outcome import Changes, Cost
from swarm_mcp.agents.harness.record import events_in
from swarm_mcp.harness import (
    AnyEvent,
    Custom,
    Error,
    Event,
    Line,
    LockDenied,
    Message,
    PermissionAsked,
    Result,
    Retry,
    SessionStarted,
    TextDelta,
    ToolEnd,
    ToolStart,
    Usage,
    typed,
)

CLASSES = typing.get_args(AnyEvent)
GIVEN = [
    (events.session_init("s", model="m", tools=["Read"]), SessionStarted),
    (events.message("assistant", "hi", parent_tool_call_id="c"), Message),
    (events.tool_start("c", "Bash", {"command": "ls"}), ToolStart),
    (events.tool_end("c", "Bash", "a", True), ToolEnd),
    (events.custom("pi.text_delta", {"delta": "hel"}), TextDelta),
    (Event("context_usage", {"context_used_tokens": 5, "context_percent": 2}), Usage),
    (Event("compaction", {"compact_trigger": "auto"}), typed_events.Compaction),
    (events.permission_asked("c", "Bash", {"command": "ls"}, "why", "not now"), PermissionAsked),
    (events.retry("codex.retry", {}, "busy", "rate_limited", 12.5), Retry),
    (events.custom("lock_denied", {"message": "held", "call": "Edit"}), LockDenied),
    (events.error("no", "timeout"), Error),
    (events.result("yes", cost=Cost(0.5, 1, 2).to_dict(), changes={"files": ["a"], "commits": []}), Result),
    (Event("raw_log", {"content": "x"}), Line),
    (events.custom("pi.other", {"a": 1}), Custom),
]


@pytest.mark.parametrize(("plain", "kind"), GIVEN, ids=[kind.__name__ for _, kind in GIVEN])
def test_each_kind_has_its_class_and_the_same_json(plain: Event, kind: type) -> None:
    made = typed(plain._replace(at=7.5))
    assert type(made) is kind and made == plain._replace(at=7.5)
    assert json.dumps(made.to_dict()) == json.dumps(plain._replace(at=7.5).to_dict())
    assert type(made._replace(at=1.0)) is kind
    with pytest.raises(AttributeError):
        made.anything = 1  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        made.kind = "message"  # type: ignore[misc]


def test_every_class_was_tried() -> None:
    assert {kind for _, kind in GIVEN} == set(CLASSES)


def test_attributes() -> None:
    start, said, _, end, piece, usage, _, asked, again, denied, error, done, line, other = (
        typed(plain) for plain, _ in GIVEN
    )
    match start:
        case SessionStarted(name, model=model, tools=tools):
            assert (name, model, tools) == ("s", "m", ("Read",))
        case _:
            raise AssertionError(start)
    match asked:
        case PermissionAsked("Bash", {"command": "ls"}, False, tool_call_id="c", reason="why", answer="not now"):
            pass
        case _:
            raise AssertionError(asked)
    match end:
        case ToolEnd(name, text, is_error=True):
            assert (name, text) == ("Bash", "a")
        case _:
            raise AssertionError(end)
    assert isinstance(said, Message) and (said.content, said.parent, said.thinking) == ("hi", "c", False)
    assert isinstance(piece, TextDelta) and piece.text == "hel"
    assert isinstance(usage, Usage) and (usage.context_used_tokens, usage.context_percent) == (5, 2.0)
    assert usage.cost_usd is None
    assert isinstance(again, Retry) and (again.category, again.not_before) == ("rate_limited", 12.5)
    assert isinstance(denied, LockDenied) and (denied.message, denied.call) == ("held", "Edit")
    assert isinstance(error, Error) and error.category == "timeout"
    assert isinstance(done, Result) and done.cost == Cost(0.5, 1, 2) and done.changes == Changes(("a",))
    assert isinstance(line, Line) and not line.is_stderr
    assert isinstance(other, Custom) and (other.name, other.value) == ("pi.other", {"a": 1})
    assert isinstance(typed(Event("later_kind", {"a": 1})), Custom)


JUNK = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.none()), st.dictionaries(st.text(), st.none()))
KEYS = sorted({"name", "data", "delta", *(key for plain, _ in GIVEN for key in plain.data)})


@given(st.sampled_from([*events.KINDS, "later"]), st.dictionaries(st.sampled_from(KEYS), JUNK))
def test_no_data_of_a_harness_breaks_an_attribute(kind: str, data: dict) -> None:
    made = typed(Event(kind, data))
    for name in dir(type(made)):
        if not name.startswith("_"):
            getattr(made, name)


def test_runs_and_records_give_classes(tmp_path: Path) -> None:
    run = run_of(Scripted("tell('init', 's-1'); tell('say', 'hello'); tell('result', 'done')"), tmp_path)
    seen = [event for event in run.events() if not isinstance(event, Line)]
    assert [type(event) for event in seen] == [SessionStarted, Message, Result]
    assert [type(event) for event in events_in(run.record) if not isinstance(event, Line)] == [
        SessionStarted, Message, Result,
    ]  # fmt: skip


def test_the_page_has_every_class_with_its_attributes() -> None:
    rows = dict(re.findall(r"^\|`(\w+)`\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for kind in CLASSES:
        told = rows[kind.__name__]
        own = {name for name, value in vars(kind).items() if not name.startswith("_")}
        assert set(re.findall(r"`(\w+)`", told)) == own, kind
        assert tuple(re.findall(r"\*\*`(\w+)`\*\*", told)) == kind.__match_args__, kind

"""Events of recorded streams: as a transcript, as envelopes, as classes, and read back from records."""

import json
import re
import threading
import typing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.harness_fixtures import Scripted, run_of
from support.python_page import PAGE
from support.recordings import Recordings, data_of, named
from support.requirement import requirement
from support.sessions import ROOT

from swarm_mcp.agents.harness import events, outcome, registry
from swarm_mcp.agents.harness.events import Event, to_envelope
from swarm_mcp.agents.harness.narration import KINDS, to_transcript, transcript
from swarm_mcp.agents.harness.outcome import Changes, Cost
from swarm_mcp.agents.harness.record import Record, event_of, events_in, files_of
from swarm_mcp.harness import (
    AnyEvent,
    Custom,
    Error,
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

GOLDEN = ROOT / "tests/data/golden"
STREAMS = sorted(
    path for name in ("claude", "codex", "pi", "gemini", "opencode") for path in (GOLDEN / name).glob("*.jsonl")
)
FIELDS = {
    "init": {"session_id", "model"},
    "assistant": {"text"},
    "thinking": {"text"},
    "user": {"text"},
    "tool_call": {"id", "name", "input"},
    "tool_result": {"id", "name", "content", "is_error"},
    "result": {
        "text", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "subtype", "is_error", "errors",
    },
    "stderr": {"text"},
    "system": {"name", "text"},
    "stdout": {"text"},
}  # fmt: skip


def replayed(path: Path) -> list[Event]:
    """Return the events of a harness's stream: each line as it came, then its events."""
    adapter, state, told = registry.get(path.parent.name), {}, []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        told.append(Event(events.RAW_LOG, {"content": line}, 1.0))
        told += [event._replace(at=1.0) for event in adapter.parse(line, state)]
    return told + adapter.finish(state)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
@requirement("C-29")
def test_every_recorded_stream_has_a_transcript(path: Path) -> None:
    told = replayed(path)
    entries = list(transcript(told))
    for entry in entries:
        assert set(entry) == {"kind", "ts", *FIELDS[entry["kind"]]}
    json.dumps(entries)
    calls = [entry["id"] for entry in entries if entry["kind"] == "tool_call"]
    assert len(calls) == sum(event.kind == events.TOOL_START for event in told)
    spoken = [event.data["content"] for event in told if event.kind == events.MESSAGE and event.data["content"]]
    shown = [entry["text"] for entry in entries if entry["kind"] in ("assistant", "user", "thinking")]
    assert [text for text in shown if text in spoken] == spoken
    json.dumps([to_envelope(event) for event in told])


def test_the_recorded_streams_are_there() -> None:
    assert len(STREAMS) > 40 and set(FIELDS) == set(KINDS)


@pytest.mark.parametrize(("event", "entry"), [
    (events.session_init("s", model="m"), {"kind": "init", "session_id": "s", "model": "m"}),
    (events.message("assistant", "hi"), {"kind": "assistant", "text": "hi"}),
    (events.message("assistant", "hm", thinking=True), {"kind": "thinking", "text": "hm"}),
    (events.message("user", "do"), {"kind": "user", "text": "do"}),
    (events.tool_start("1", "Bash", {"a": 1}), {"kind": "tool_call", "id": "1", "name": "Bash", "input": {"a": 1}}),
    (events.tool_end("1", "Bash", "no", True),
     {"kind": "tool_result", "id": "1", "name": "Bash", "content": "no", "is_error": True}),
    (events.error("slow down", "rate_limited"), {"kind": "system", "name": "error", "text": "rate_limited: slow down"}),
    (events.custom("claude.x", {"a": 1}), {"kind": "system", "name": "claude.x", "text": '{"a": 1}'}),
    (Event("raw_stderr", {"content": "oops"}), {"kind": "stderr", "text": "oops"}),
    (Event("raw_log", {"content": "plain"}), {"kind": "stdout", "text": "plain"}),
    (Event("raw_log", {"content": "{broken"}), {"kind": "stdout", "text": "{broken"}),
    (Event("compaction", {"pre_compact_tokens": 9, "compact_trigger": "manual"}),
     {"kind": "system", "name": "compaction", "text": "manual at 9 tokens"}),
    (Event("context_usage", {"context_used_tokens": 5, "context_total_tokens": 10}),
     {"kind": "system", "name": "context_usage", "text": "5 of 10 tokens"}),
    (Event("later_kind", {"a": 1}), {"kind": "system", "name": "later_kind", "text": '{"a": 1}'}),
])  # fmt: skip
@requirement("C-29", "C-30")
def test_each_kind(event: Event, entry: dict) -> None:
    assert to_transcript(event._replace(at=2.0)) == [{**entry, "ts": 2.0}]


def test_a_line_that_was_understood_is_told_by_its_events() -> None:
    assert to_transcript(Event("raw_log", {"content": '{"type": "x"}'})) == []
    assert to_transcript(Event("raw_log", {"content": "  "})) == []
    assert to_transcript(Event("context_usage", {"context_used_tokens": None})) == []


@requirement("C-30")
def test_a_result_says_what_it_took_and_never_nought_for_unknown() -> None:
    (entry,) = to_transcript(events.result("ok", cost=Cost(0.5, 10, 2, 3)))
    assert (entry["cost_usd"], entry["input_tokens"], entry["output_tokens"], entry["cached_tokens"]) == (0.5, 10, 2, 3)
    assert entry["subtype"] == "success" and entry["errors"] == []
    (entry,) = to_transcript(events.result("", True, "timeout", error_message="too long"))
    assert entry["cost_usd"] is None and entry["subtype"] == "timeout" and entry["errors"] == ["too long"]


VALUE = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
NAMES = st.sampled_from(
    ["content", "role", "session_id", "cost", "tool_name", "args", "result", "name", "data", "message"]
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*events.KINDS, "new"]), st.dictionaries(NAMES, VALUE, max_size=4))
@requirement("A-24")
def test_no_data_breaks_it(kind: str, data: dict) -> None:
    for entry in to_transcript(Event(kind, data)):
        assert set(entry) == {"kind", "ts", *FIELDS[entry["kind"]]}
    to_envelope(Event(kind, data))


@pytest.mark.parametrize(("event", "made"), [
    (Event("raw_log", {"content": '{"a": 1}'}), {"type": "message", "message": {"a": 1}}),
    (Event("raw_log", {"content": "x"}), {"type": "message", "message": "x"}),
    (events.session_init("s"), {"type": "session_started", "session_id": "s"}),
    (events.result("o", True, "budget", cost={"input_tokens": 1}),
     {"type": "complete", "output": "o", "is_error": True, "code": "budget", "usage": {"input_tokens": 1}}),
    (events.error("m", "timeout"), {"type": "error", "error": "m", "code": "timeout"}),
    (Event("raw_stderr", {"content": "e"}), {"type": "stderr", "data": "e"}),
])  # fmt: skip
@requirement("D-03")
def test_envelopes(event: Event, made: dict) -> None:
    assert to_envelope(event._replace(at=3.0)) == {**made, "timestamp": 3.0}


@requirement("D-03")
def test_what_the_native_lines_have_said_has_no_envelope() -> None:
    assert to_envelope(events.message("assistant", "x")) is None
    assert to_envelope(events.tool_start("1", "x", {})) is None


TOLD = [
    events.session_init("s")._replace(at=1.5), Event("raw_stderr", {"content": "e\u2028é"}, 2.0),
    events.tool_start("1", "Bash", {"x": [1, None]})._replace(at=3.0), events.result("ok")._replace(at=4.0),
]  # fmt: skip


def recorded(folder: Path, run_id: str, told: list[Event]) -> Record:
    record = Record(str(folder), run_id, "task")
    getattr(record, "open", lambda: None)()
    record.metadata({"run_id": run_id})
    for event in told:
        record.event(event)
    record.flush()
    return record


@requirement("A-24")
def test_a_record_gives_back_what_was_told(tmp_path: Path) -> None:
    record = recorded(tmp_path, "r1", TOLD)
    record.close()
    assert list(events_in(record.path)) == TOLD
    with open(record.path, "a") as file:
        file.write("garbage\n[1]\n" + "{" * 5 + '\n{"type": 3}\n{"type": "message", "content": "last"}')
    assert list(events_in(record.path))[len(TOLD) :] == [Event("message", {"content": "last"}, 0.0)]
    assert event_of({"type": "metadata"}) is None and list(events_in("/none/such/r.jsonl")) == []


def test_it_is_followed_into_the_next_attempt_until_the_run_is_over(tmp_path: Path) -> None:
    record = recorded(tmp_path, "r1", TOLD[:1])
    alive, seen = threading.Event(), []
    alive.set()
    reader = threading.Thread(target=lambda: seen.extend(events_in(record.path, alive.is_set)))
    reader.start()
    record.event(TOLD[1])
    record.close()
    second = recorded(tmp_path, "r1", TOLD[2:3])
    second.event(TOLD[3])
    second.close()
    alive.clear()
    reader.join(60)
    assert not reader.is_alive() and seen == TOLD
    assert files_of(record.path) == [record.path, second.path]


def test_attempts_of_one_second_stay_in_order(tmp_path: Path) -> None:
    made = ["1Z-task", "1Z-task-2", "1Z-task-10", "2Z-task"]
    for name in made:
        (tmp_path / f"{name}.jsonl").touch()
    assert [Path(path).stem for path in files_of(str(tmp_path / "any.jsonl"))] == made


ALL = {name: Recordings(name) for name in ("claude", "codex", "pi", "gemini", "opencode")}


@requirement("A-59", "C-71")
def test_every_recording_is_expected() -> None:
    assert {name: sorted(found.expected) for name, found in ALL.items()} == {name: r.cases for name, r in ALL.items()}
    counted = {"claude": 41, "codex": 39, "pi": 14, "gemini": 5, "opencode": 6}
    assert {name: len(found.cases) for name, found in ALL.items()} == counted


@pytest.mark.parametrize(("harness", "case"), [(name, case) for name, found in ALL.items() for case in found.cases])
@requirement("A-07", "A-14", "A-15", "A-18", "A-22", "A-23", "A-48", "A-55", "A-59", "C-22", "C-56", "D-08", "D-09")
def test_a_recording_becomes_what_is_expected(harness: str, case: str) -> None:
    recordings = ALL[harness]
    events, ending = recordings.replayed(case)
    error = recordings.adapter.error_of(ending)
    result = ending.result or {}
    closed = {data["tool_call_id"] for data in data_of(events, "tool_end")}
    calls = [data["tool_call_id"] for data in data_of(events, "tool_start")]
    shown = {
        "events": [named(event) for event in events],
        "tools": [[data["tool_name"], data["is_error"]] for data in data_of(events, "tool_end")],
        "unclosed": [call for call in calls if call not in closed],
        "output": result.get("output"),
        "cost": result.get("cost"),
        "input_tokens": (result.get("cost") or {}).get("input_tokens"),
        "code": error and error[0],
        "error": list(error or []),
        "unknown_session": recordings.adapter.unknown_session(ending),
    }
    expected = recordings.expected[case]
    assert {name: shown[name] for name in expected} == expected
    assert error is None or (error[1] and "\n" not in error[1])
    assert closed <= set(calls) and shown["events"].count("session_init") <= 1
    for event in events:
        assert json.loads(json.dumps(event.to_dict()))["type"] == event.kind


@pytest.mark.parametrize("harness", ALL)
@requirement("C-23")
def test_a_session_that_is_gone_is_known_by_the_general_rules(harness: str) -> None:
    """Each client's own words are enough: an adapter needs no rule of its own."""
    _, ending = ALL[harness].replayed("resume_unknown")
    code, words = outcome.error_of(ending) or ("", "")
    assert code == outcome.SESSION_NOT_FOUND and "\x1b" not in words, (code, words)


CLASSES = typing.get_args(AnyEvent)
GIVEN = [
    (events.session_init("s", model="m", tools=["Read"]), SessionStarted),
    (events.message("assistant", "hi", parent_tool_call_id="c"), Message),
    (events.tool_start("c", "Bash", {"command": "ls"}), ToolStart),
    (events.tool_end("c", "Bash", "a", True), ToolEnd),
    (events.custom("pi.text_delta", {"delta": "hel"}), TextDelta),
    (Event("context_usage", {"context_used_tokens": 5, "context_percent": 2}), Usage),
    (Event("compaction", {"compact_trigger": "auto"}), events.Compaction),
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

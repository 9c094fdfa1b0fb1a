"""Streams recorded from real clients become the events, costs and errors that are written down beside them."""

import json

import pytest
from support.recordings import Recordings, data_of, named
from support.requirement import requirement

from swarm_mcp.agents.harness import outcome

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

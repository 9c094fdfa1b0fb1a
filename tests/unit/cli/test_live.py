"""A run on a screen, and the end of a worker's task in words: lines, colours, totals, changes and cost."""

import io
import json
import re
import time

import pytest
from support.requirement import requirement

from swarm_mcp.agents.commands.run import MOST_LINES, Live, report_lines, run_lines
from swarm_mcp.agents.harness import events, registry
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.narration import MOST_NAMED, changes_in_words
from swarm_mcp.agents.harness.outcome import Cost
from swarm_mcp.domain import Run

DENIAL = 'PreToolUse:Edit hook error: swarm lock blocked Edit for /src/shop/notes.md: held by lead (note: "mine until \
noon"; locked 7 s ago, until it is released or that session ends). Do not write this file another way: ask.'
TOLD = [
    events.session_init("abc", model="m-1"),
    events.message("assistant", "I will look.\nThen write."),
    events.message("assistant", "hmm", thinking=True),
    events.tool_start("1", "Bash", {"command": "/bin/bash -lc 'cd /src/shop && ls'", "description": "look"}),
    events.tool_start("2", "Edit", {"file_path": "/src/shop/notes.md", "old_string": "a\n", "new_string": "b\nc\n"}),
    events.tool_end("1", "Bash", "/src/shop/a\nb"),
    events.tool_end("2", "Edit", DENIAL, True),
    events.custom("lock_denied", {"message": DENIAL[DENIAL.index("swarm") :], "call": "Edit"}),
    events.tool_start("3", "Read", {"path": "/src/shop/lib/x.py", "limit": 2}),
    events.tool_end("3", "Read", "no such file", True),
    events.custom("claude.unheard_of", {"x": 1}),
    Event("raw_stderr", {"content": "careful"}),
    Event("raw_stderr", {"content": "said by an event", "told": True}),
    events.error("slow", "rate_limited"),
    events.result("done it", cost=Cost(0.0123, 1200, 30, 5, model="m-1"), duration_ms=65_000),
]
LINES = """\
session abc with m-1
I will look.
Then write.
thinking: hmm
#1 $ ls
#2 Edit notes.md
-a
+b
+c
<- #1 a
      b
denied: notes.md, held by lead (mine until noon)
#3 Read lib/x.py limit=2
<- failed: no such file
stderr: careful
rate_limited: slow
done in 1m05s: 3 tools, 1 denied, in 1.2k, out 30, cached 5, $0.0123, m-1
"""


def shown(told: list[Event], **more) -> str:
    stream = io.StringIO()
    live = Live(stream, **{"colour": False, "folder": "/src/shop", **more})
    for event in told:
        live.show(event)
    live.close()
    return stream.getvalue()


def indented(lines: str) -> str:
    """Lines as they stand behind a time that is not known."""
    return "".join(f"          {line}\n" for line in lines.splitlines())


@requirement("C-33")
def test_without_colours() -> None:
    assert shown(TOLD) == indented(LINES)


@requirement("C-33")
def test_colours_and_what_only_debugging_shows() -> None:
    text = shown(TOLD, colour=True, debug=True)
    for piece in (
        "\x1b[34msession abc", "\x1b[32mI will look.", "\x1b[33m#1 $ ls", "\x1b[90m<- #1 a", "\x1b[31mdenied: notes.md",
        "\x1b[31m-a", "\x1b[32m+b", "\x1b[31m<- failed", '\x1b[90mclaude.unheard_of: {"x": 1}', "\x1b[34mdone",
    ):  # fmt: skip
        assert piece in text
    assert "unheard" not in shown(TOLD, colour=True)
    assert text.count("\x1b[0m") == len(re.findall(r"\x1b\[\d+m", text)) - text.count("\x1b[0m")


def test_the_time_stands_before_each_event_and_the_day_where_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    noon = 1_790_000_000 - 1_790_000_000 % 86400 + 12 * 3600.0
    told = [events.message("assistant", "one\ntwo")._replace(at=noon), events.message("assistant", "x")._replace(at=noon + 1),
            events.message("assistant", "next")._replace(at=noon + 86400)]  # fmt: skip
    assert shown(told) == "2026-09-21\n12:00:00  one\n          two\n12:00:01  x\n2026-09-22\n12:00:00  next\n"


def test_a_refusal_is_told_once_whoever_else_tells_it() -> None:
    """Gemini CLI prints it on standard error behind the call's result; a command may print it there alone."""
    reason = DENIAL[DENIAL.index("swarm") :]
    result, line = events.tool_end("1", "Edit", DENIAL, True), Event("raw_stderr", {"content": f"Error: {reason}"})
    event = events.custom("lock_denied", {"message": reason})
    for told, times in (
        ([result, line], 1), ([line, result], 1), ([line], 1), ([result, event, line], 1), ([result, result, line], 2),
        ([event, event, line, line, line], 3), ([result, line, result, line], 2), ([event, result, event], 2),
    ):  # fmt: skip
        starts = [events.tool_start("1", "Edit", {"path": "notes.md"}) for _ in told]
        assert shown([*starts, *told]).count("denied: notes.md, held by lead (mine until noon)\n") == times, (
            told,
            times,
        )
        assert "swarm lock blocked" not in shown([*starts, *told])


def test_a_refusal_that_only_standard_error_and_an_event_tell_is_one_line() -> None:
    """Codex prints it on standard error, with the whole patch; the adapter makes an event of it."""
    codex, state = registry.get("codex"), {}
    line = (
        f"2026-11-24T01:01:58Z ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: {DENIAL[26:]}"
    )
    printed = [f"{line}. Command: *** Begin Patch", "*** Update File: notes.md", "-a", "+b", "*** End Patch", ""]
    told: list[Event] = []
    for text in [*printed, *printed, "2026-11-24T01:02:00Z ERROR codex_core::x: another thing"]:
        seen = codex.parse_stderr(text, state)
        told += [Event("raw_stderr", {"content": text, "told": bool(seen)}), *seen]
    assert shown(told) == indented(
        "denied: notes.md, held by lead (mine until noon)\n" * 2
        + "stderr: 2026-11-24T01:02:00Z ERROR codex_core::x: another thing\n"
    )


def test_a_failure_is_told_once() -> None:
    failed = events.result("", True, "timeout", error_message="too long")
    assert shown([failed]) == indented("failed: too long\nended")
    assert shown([events.error("too long", "timeout"), failed]) == indented("timeout: too long\nended")


@requirement("C-27")
def test_nothing_that_is_said_reaches_the_terminal_as_a_command() -> None:
    evil = "\x1b[2J\x07\r\u202eabc\nmore"
    told = [
        events.session_init(evil, model=evil), events.message("assistant", evil),
        events.tool_start("1", evil, {evil: evil}),
        events.tool_end("1", evil, evil), events.custom("claude.api_retry", evil),
        Event("raw_stderr", {"content": evil}),
        events.error(evil, "unknown"), Event("raw_log", {"content": evil}), events.result(evil, True, evil),
    ]  # fmt: skip
    text = shown(told, debug=True)
    assert text.replace("\n", "").isprintable()
    assert len(text.splitlines()) == 13  # line ends stay only in texts of several lines


def test_long_results_are_cut_and_counted() -> None:
    text = shown([events.tool_end("1", "Bash", "\n".join(map(str, range(100))) + "x" * 9999)])
    assert len(text.splitlines()) == MOST_LINES + 1 and f"{100 - MOST_LINES} lines more" in text
    assert len(shown([events.tool_end("1", "Bash", "x" * 9999)])) < 500
    assert len(shown([events.tool_start("1", "Bash", {"a": "x" * 9999})])) < 300
    text = shown([events.tool_start("1", "Write", {"path": "x", "content": "line\n" * 1000})])
    assert len(text.splitlines()) == MOST_LINES + 2 and f"{1000 - MOST_LINES} lines more" in text


def test_an_answer_that_was_shown_line_by_line_is_not_shown_again() -> None:
    lines = [Event("raw_log", {"content": line}) for line in ("one", "two words")]
    assert shown([*lines, events.message("assistant", "one\ntwo words")]) == indented("one\ntwo words")
    assert shown([*lines, events.message("assistant", "three")]).endswith("three\n")


def test_the_line_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("swarm_mcp.agents.commands.run.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    live = Live(stream, colour=False, progress=True)
    assert live.status() == "0s  0 tools"
    clock[0] += 75
    live.show(events.tool_start("1", "Bash", {}))
    assert live.status() == "1m15s  1 tool"
    live.show(Event("context_usage", {"context_used_tokens": 34567, "cost_usd": 0.1}))
    assert live.status() == "1m15s  1 tool  34.6k tokens  $0.1000"
    live.show(events.result("", cost=Cost(0.25, 1_000_000, 500_000, model="m-1")))
    assert live.status() == "1m15s  1 tool  1.5M tokens  $0.2500  m-1"
    before = stream.getvalue()
    live.tick()
    assert stream.getvalue() == before  # nothing new, nothing written
    live.close()
    assert stream.getvalue().endswith("\r") and "\x1b" not in stream.getvalue()
    live.show(events.message("assistant", "late"))
    assert "late" not in stream.getvalue()


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_who_stops_watching_disturbs_nothing() -> None:
    live = Live(Gone(), colour=False)
    live.show(TOLD[0])
    assert live.is_closed
    live.show(TOLD[1])


def test_an_encoding_that_lacks_characters_is_no_failure() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Live(stream, colour=False).show(events.message("assistant", "naïve"))
    stream.flush()
    assert raw.getvalue() == b"          na\\xefve\n"


def test_a_report_is_told_part_by_part() -> None:
    report = {
        "summary": "Renumbered.\nTwo files.", "files_changed": ["/src/a", "b"], "followups": ["run it again"],
        "tests": [{"status": "passed", "command": "make check"}, {"status": "skipped", "notes": "no server"}, "odd"],
    }  # fmt: skip
    assert report_lines(json.dumps(report)) == [
        "Renumbered.", "Two files.", "files it names: /src/a, b", "tests passed: make check",
        "tests skipped: (unknown command) (no server)", "left to do: run it again",
    ]  # fmt: skip


def test_other_results_are_told_as_they_are() -> None:
    for text, lines in (("done", ["done"]), ("a\nb\n", ["a", "b"]), ('{"a": 1}', ['{"a": 1}']), ("", []), (None, [])):
        assert report_lines(text) == lines


def test_what_a_run_changed_and_took() -> None:
    changes = {"files": ["a", "b"], "commits": ["1234567 as told"], "more_files": 3}
    row = Run({"id": "12ab34cd-1", "state": "ended", "harness": "codex", "model": "m-1", "cost_usd": 0.25, "usage": {"input": 7, "output": 2},
               "result": {"changes": changes, "duration_ms": 65_000}})  # fmt: skip
    assert run_lines(row) == [
        "changed a, b and 3 more", "commit 1234567 as told",
        "took 1m05s, m-1, 7 tokens in, 2 tokens out, cost $0.2500; swarm-mcp worker logs 12ab34cd",
    ]  # fmt: skip
    row = Run({"id": "12ab34cd-1", "state": "ended"})
    assert run_lines(row) == ["cost unknown; swarm-mcp worker logs 12ab34cd"]
    assert run_lines(Run({**row, "state": "running"})) == [
        "its worker has not ended yet; swarm-mcp worker logs 12ab34cd -f"
    ]


def test_of_many_changes_the_first_are_named() -> None:
    names = [f"n{number}" for number in range(MOST_NAMED + 4)]
    first, *commits = changes_in_words({"files": names, "commits": names, "more_files": 10})
    assert first.endswith(f"n{MOST_NAMED - 1} and 14 more")
    assert len(commits) == MOST_NAMED + 1 and commits[-1] == "and 4 commits more"
    assert changes_in_words(None) == changes_in_words({}) == changes_in_words({"files": [], "commits": None}) == []

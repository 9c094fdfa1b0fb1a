"""What somebody sees who watches a run: lines, colours, the line that counts, and never a terminal's commands."""

from __future__ import annotations

import io
import re

import pytest

from swarm_mcp.cli.live import MOST_LINES, Live
from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import Cost

TOLD = [
    events.session_init("abc", model="m-1"),
    events.message("assistant", "I will look.\nThen write."),
    events.message("assistant", "hmm", thinking=True),
    events.tool_start("1", "Bash", {"command": "ls", "n": 2}),
    events.tool_end("1", "Bash", "a\nb"),
    events.tool_start("2", "Write", {"file_path": "/x"}),
    events.tool_end("2", "Write", "swarm lock blocked Write", True),
    events.custom("claude.unheard_of", {"x": 1}),
    Event("raw_stderr", {"content": "careful"}),
    events.error("slow", "rate_limited"),
    events.result("done it", cost=Cost(0.0123, 1200, 30, 5)),
]


def shown(told: list[Event], **more) -> str:
    stream = io.StringIO()
    live = Live(stream, **{"colour": False, **more})
    for event in told:
        live.show(event)
    live.close()
    return stream.getvalue()


def test_without_colours() -> None:
    assert shown(TOLD) == (
        "session abc with m-1\nI will look.\nThen write.\nthinking: hmm\n-> Bash command=ls n=2\n<- a\n   b\n"
        "-> Write file_path=/x\n<- error: swarm lock blocked Write\nstderr: careful\nrate_limited: slow\n"
        "done: in 1.2k, out 30, cached 5, $0.0123\n"
    )


def test_colours_and_what_only_debugging_shows() -> None:
    text = shown(TOLD, colour=True, debug=True)
    for piece in (
        "\x1b[34msession abc", "\x1b[32mI will look.", "\x1b[33m-> Bash", "\x1b[33m<- a", "\x1b[31m<- error",
        '\x1b[90mclaude.unheard_of: {"x": 1}', "\x1b[34mdone",
    ):  # fmt: skip
        assert piece in text
    assert "unheard" not in shown(TOLD, colour=True)
    assert text.count("\x1b[0m") == len(re.findall(r"\x1b\[\d+m", text)) - text.count("\x1b[0m")


def test_a_failure_is_told_once() -> None:
    failed = events.result("", True, "timeout", error_message="too long")
    assert shown([failed]) == "failed: too long\n"
    assert shown([events.error("too long", "timeout"), failed]) == "timeout: too long\n"


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
    assert len(text.splitlines()) == 12  # line ends stay only in texts of several lines


def test_long_results_are_cut_and_counted() -> None:
    text = shown([events.tool_end("1", "Bash", "\n".join(map(str, range(100))) + "x" * 9999)])
    assert len(text.splitlines()) == MOST_LINES + 1 and f"{100 - MOST_LINES} lines more" in text
    assert len(shown([events.tool_end("1", "Bash", "x" * 9999)])) < 500
    assert len(shown([events.tool_start("1", "Bash", {"a": "x" * 9999})])) < 300


def test_an_answer_that_was_shown_line_by_line_is_not_shown_again() -> None:
    lines = [Event("raw_log", {"content": line}) for line in ("one", "two words")]
    assert shown([*lines, events.message("assistant", "one\ntwo words")]) == "one\ntwo words\n"
    assert shown([*lines, events.message("assistant", "three")]).endswith("three\n")


def test_the_line_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("swarm_mcp.cli.live.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    live = Live(stream, colour=False, progress=True)
    assert live.status() == "0s  0 tools"
    clock[0] += 75
    live.show(events.tool_start("1", "Bash", {}))
    assert live.status() == "1m15s  1 tool"
    live.show(Event("context_usage", {"context_used_tokens": 34567}))
    live.show(events.result("", cost=Cost(0.25, 1_000_000, 500_000)))
    assert live.status() == "1m15s  1 tool  1.5M tokens  $0.2500"
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
    assert raw.getvalue() == b"na\\xefve\n"

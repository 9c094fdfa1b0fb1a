"""A run as somebody watches it: entries of the transcript as lines in colour, and one line that counts below them."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import TextIO

from swarm_mcp.cli.output import encodable, one_line, safe
from swarm_mcp.cli.progress import span
from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.transcript import to_transcript

BLUE, GREEN, YELLOW, RED, GRAY = "34", "32", "33", "31", "90"
MOST_LINES, MOST_CHARACTERS = 12, 400  # of a tool's result, and of a line of it
ARGUMENT = 160  # characters of a call's arguments
QUIET = ("context_usage",)  # what the line below has
ERASE = "\r\x1b[K"


class Counts:
    """What can be counted of a run while it goes on: tools called, tokens, and what it has cost."""

    def __init__(self) -> None:
        self.tools = 0
        self.tokens: int | None = None
        self.cost: float | None = None

    def add(self, event: Event) -> None:
        """Count one event more."""
        data = event.data
        if event.kind == events.TOOL_START:
            self.tools += 1
        elif event.kind == events.CONTEXT_USAGE and isinstance(data.get("context_used_tokens"), int):
            self.tokens = data["context_used_tokens"]
        elif event.kind == events.RESULT:
            cost = data.get("cost")
            if cost is not None and hasattr(cost, "_asdict"):
                cost = cost._asdict()
            cost = cost if isinstance(cost, dict) else {}
            if isinstance(cost.get("total_cost_usd"), (int, float)):
                self.cost = cost["total_cost_usd"]
            counts = [cost.get(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")]
            if any(isinstance(count, int) for count in counts):
                self.tokens = sum(count for count in counts if isinstance(count, int))

    def words(self) -> list[str]:
        """Tools called, tokens and US dollars so far; what is not known is left out."""
        parts = [f"{self.tools} tool{'' if self.tools == 1 else 's'}"]
        parts += [f"{_amount(self.tokens)} tokens"] if self.tokens is not None else []
        return [*parts, *([f"${self.cost:.4f}"] if self.cost is not None else [])]


class Live:
    """Writes what happens to `stream`. Every method may be called from any thread.

    With `colour` off (``NO_COLOR``) no escape sequence is written; `progress` keeps a line at the end of a terminal
    that `tick` brings up to date. With `debug` also entries of unknown kinds are shown.
    """

    def __init__(self, stream: TextIO, *, colour: bool, progress: bool = False, debug: bool = False):
        self.stream, self.colour, self.debug = stream, colour, debug
        self.progress = progress
        self.counts = Counts()
        self._began = time.monotonic()
        self._below = self._error = ""
        self._said = _digest("")  # of all words of standard output
        self._has_said = False
        self._guard = threading.RLock()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether nothing is shown any more: `close` was called, or the stream has gone."""
        return self._closed

    def show(self, event: Event) -> None:
        """One event. Never raises for a stream that has gone."""
        with self._guard:
            self.counts.add(event)
            if event.kind == events.ERROR:
                self._error = event.data.get("message") or ""
            for entry in to_transcript(event):
                text = "" if self._is_echo(entry) else self.line(entry)
                if text:
                    self._write(self._cleared() + text + "\n")
            self.tick()

    def line(self, entry: dict) -> str:
        """The text for an entry, without its line end; empty for one that is not shown."""
        kind = entry["kind"]
        if kind == "init":
            if not entry["session_id"]:
                return ""
            model = f" with {entry['model']}" if entry["model"] else ""
            return self._paint(one_line(f"session {entry['session_id']}{model}"), BLUE)
        if kind == "assistant":
            return self._paint(safe(entry["text"]).rstrip(), GREEN)
        if kind == "user":
            return self._paint(_indented("user: ", entry["text"]), BLUE)
        if kind == "thinking":
            return self._paint(_indented("thinking: ", entry["text"]), GRAY)
        if kind == "tool_call":
            return self._paint(one_line(f"-> {entry['name']} {_arguments(entry['input'])}").rstrip(), YELLOW)
        if kind == "tool_result":
            mark = "<- error: " if entry["is_error"] else "<- "
            return self._paint(_indented(mark, entry["content"] or "(nothing)"), RED if entry["is_error"] else YELLOW)
        if kind == "result":
            return self._result(entry)
        if kind in ("stderr", "stdout"):
            return self._paint(_indented("stderr: " if kind == "stderr" else "", entry["text"]), GRAY)
        return self._system(entry)

    def tick(self) -> None:
        """Bring the line below up to date."""
        with self._guard:
            if not self.progress or self._closed:
                return
            shown = self.status()
            if shown != self._below:
                self._write(ERASE + shown if self.colour else f"\r{shown:<{len(self._below)}}")
                self._below = shown

    def status(self) -> str:
        """Seconds since the start, and what has been counted so far."""
        return "  ".join([span(time.monotonic() - self._began), *self.counts.words()])

    def close(self) -> None:
        """Take the line below away; nothing is written any more."""
        with self._guard:
            self._write(self._cleared())
            self._closed = True

    # ------------------------------------------------------------------------------------------ innards

    def _is_echo(self, entry: dict) -> bool:
        """Whether it repeats what has been shown as plain standard output (the answer of the harness `process`)."""
        if entry["kind"] == "stdout":
            _add_words(self._said, entry["text"])
            self._has_said = True
            return False
        if entry["kind"] != "assistant" or not self._has_said:
            return False
        return _digest(entry["text"]).digest() == self._said.digest()

    def _result(self, entry: dict) -> str:
        if entry["is_error"]:
            if self._error and self._error in entry["errors"]:
                return ""  # it was told a moment ago
            return self._paint(one_line(f"failed: {'; '.join(entry['errors']) or entry['subtype']}"), RED)
        counts = [f"{name} {_amount(entry[key])}" for name, key in
                  (("in", "input_tokens"), ("out", "output_tokens"), ("cached", "cached_tokens"))
                  if isinstance(entry[key], int)]  # fmt: skip
        counts += [f"${entry['cost_usd']:.4f}"] if isinstance(entry["cost_usd"], (int, float)) else []
        return self._paint("done" + (f": {', '.join(counts)}" if counts else ""), BLUE)

    def _system(self, entry: dict) -> str:
        name, text = entry["name"], one_line(entry["text"])[:MOST_CHARACTERS]
        if name in QUIET:
            return ""
        if name == "error":
            return self._paint(text, RED)
        if name in (events.COMPACTION, *_TELLING):
            return self._paint(f"{name}: {text}", BLUE)
        return self._paint(one_line(f"{name}: ") + text, GRAY) if self.debug else ""

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and text else text

    def _cleared(self) -> str:
        below, self._below = self._below, ""
        if not below:
            return ""
        return ERASE if self.colour else f"\r{' ' * len(below)}\r"

    def _write(self, text: str) -> None:
        if self._closed or not text:
            return
        try:
            self.stream.write(encodable(text, self.stream))
            self.stream.flush()
        except (OSError, ValueError):
            self._closed = True  # nobody watches any more; the run goes on


_TELLING = ("lock_denied", "claude.api_retry", "warning")


def _digest(text: str):
    """What tells the words of `text` from others, however many there are."""
    found = hashlib.blake2b()
    _add_words(found, text)
    return found


def _add_words(digest, text: str) -> None:
    digest.update("".join(f"{word}\n" for word in text.split()).encode("utf-8", "surrogatepass"))


def _indented(mark: str, text: str) -> str:
    """`text` behind `mark`, its further lines below its first; too much of it is left out, and counted."""
    text = text.rstrip()
    lines = text.split("\n", MOST_LINES)  # it may be megabytes: what is not shown is not looked at
    ends = ["..." if len(line) > MOST_CHARACTERS else "" for line in lines[:MOST_LINES]]
    shown = [safe(line[:MOST_CHARACTERS]) + end for line, end in zip(lines, ends)]
    if len(lines) > MOST_LINES:
        shown.append(f"... {text.count(chr(10)) + 1 - MOST_LINES} lines more")
    return mark + ("\n" + " " * len(mark)).join(shown)


def _arguments(value: object) -> str:
    """The arguments of a call, short: a lone text as it stands, names before values, else JSON."""
    if isinstance(value, dict):
        value = " ".join(f"{name}={one if isinstance(one, str) else _json(one)}" for name, one in value.items())
    text = value if isinstance(value, str) else "" if value is None else _json(value)
    return text if len(text) <= ARGUMENT else text[:ARGUMENT] + "..."


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return str(value)


def _amount(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"

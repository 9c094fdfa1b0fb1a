"""A run on a screen: its events in colour with the time of day, and a line of totals below."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

from swarm_hook_core.untrusted_text import one_line, safe
from swarm_mcp.cli.output import encodable
from swarm_mcp.cli.words import span
from swarm_mcp.harness import events, narration
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.narration import Narrator, Told
from swarm_mcp.harness.outcome import Cost

BLUE, GREEN, YELLOW, RED, GRAY = "34", "32", "33", "31", "90"
MOST_LINES, MOST_CHARACTERS = 12, 400  # of a command, a patch or a result, and of a line of it
SHORT_CALL = 160  # characters of a call's first line
ERASE = "\r\x1b[K"
TIME_WIDTH = len("12:34:56  ")
PATCH = {"+": GREEN, "-": RED}
COLOURS = {
    narration.BEGINS: BLUE, narration.SAYS: GREEN, narration.IS_TOLD: BLUE, narration.CALLS: YELLOW,
    narration.FAILS: RED, narration.DENIED: RED, narration.ERROR: RED, narration.WARNS: YELLOW, narration.NOTES: BLUE,
    narration.ENDS: BLUE,
}  # fmt: skip
MARKS = {
    narration.THINKS: "thinking: ", narration.IS_TOLD: "user: ", narration.GETS: "<- ", narration.FAILS: "<- failed: ",
    narration.COMPLAINS: "stderr: ", narration.PRINTS: "",
}  # fmt: skip


class Counts:
    """Totals of a run so far: tool calls, tokens, cost; and its model."""

    def __init__(self) -> None:
        self.tools = 0
        self.tokens: int | None = None
        self.cost: float | None = None
        self.model = ""

    def add(self, event: Event) -> None:
        """Count one event more."""
        data = event.data
        if event.kind == events.SESSION_INIT:
            self.model = str(data.get("model") or self.model)
        elif event.kind == events.TOOL_START:
            self.tools += 1
        elif event.kind == events.CONTEXT_USAGE:
            used, cost = data.get("context_used_tokens"), data.get("cost_usd")
            self.tokens = used if isinstance(used, int) else self.tokens
            self.cost = float(cost) if isinstance(cost, (int, float)) else self.cost
        elif event.kind == events.RESULT:
            cost = data.get("cost")
            cost = cost.to_dict() if isinstance(cost, Cost) else cost if isinstance(cost, dict) else {}
            if isinstance(cost.get("total_cost_usd"), (int, float)):
                self.cost = cost["total_cost_usd"]
            self.model = str(cost.get("model") or self.model)
            counts = [cost.get(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")]
            if any(isinstance(count, int) for count in counts):
                self.tokens = sum(count for count in counts if isinstance(count, int))

    def words(self) -> list[str]:
        """Tool calls, tokens and US dollars so far, and the model; unknown parts are left out."""
        parts = [f"{self.tools} tool{'' if self.tools == 1 else 's'}"]
        parts += [f"{_amount(self.tokens)} tokens"] if self.tokens is not None else []
        parts += [f"${self.cost:.4f}"] if self.cost is not None else []
        return [*parts, *([one_line(self.model)] if self.model else [])]


class Live:
    """Writes the events of a run to `stream`. Every method may be called from any thread.

    Without `colour` (``NO_COLOR``) no escape sequence is written. `progress` keeps a line at the end of a terminal,
    which `tick` updates. `debug` also shows events without a meaning to people. The run works in `folder`, with `model`
    if that is known beforehand, and began at `began` (Unix seconds; 0: now).
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool,
        progress: bool = False,
        debug: bool = False,
        folder: str = "",
        model: str = "",
        began: float = 0.0,
    ):
        self.stream, self.colour, self.debug = stream, colour, debug
        self.progress = progress
        self.counts = Counts()
        self.counts.model = model
        self._narrator = Narrator(folder)
        self._before = max(0.0, time.time() - began) if began else 0.0  # seconds that it had run when this began
        self._began = time.monotonic()
        self._day = time.strftime("%Y-%m-%d")
        self._last_call = 0
        self._ended: dict[str, Any] = {}
        self._below = ""
        self._guard = threading.RLock()
        self._closed = False

    @classmethod
    def at_terminal(cls, stream: TextIO, *, counts: bool = True, **more: Any) -> Live:
        """Return one for `stream`: in colour and with the line that `counts` where it is a terminal that has both."""
        from swarm_mcp.cli import terminal

        shown = stream.isatty()
        colour = terminal.wanted() if stream is sys.stdout else shown and not os.environ.get("NO_COLOR")
        moves = counts and shown and os.environ.get("TERM") != "dumb"
        return cls(stream, colour=colour, progress=moves, debug=bool(os.environ.get("SWARM_DEBUG")), **more)

    @property
    def is_closed(self) -> bool:
        """True after `close`, and after the stream has failed."""
        return self._closed

    def show(self, event: Event) -> None:
        """One event. Never raises for a stream that has gone."""
        with self._guard:
            self.counts.add(event)
            if event.kind == events.RESULT:
                self._ended = event.data
            for told in self._narrator.tell(event):
                text = self.text(told)
                if text:
                    self._write(self._cleared() + text)
            self.tick()

    def text(self, told: Told) -> str:
        """The lines for one part of the narration, with their ends; empty if it is not shown."""
        if told.kind == narration.UNKNOWN and not self.debug:
            return ""
        colour = COLOURS.get(told.kind, GRAY)
        lines = [self._paint(line, colour) for line in self._lines(told)]
        lines += [self._paint(line, PATCH.get(line[:1], GRAY)) for line in _cut(told.patch)]
        time_of_day = self._time_of_day(told.at)
        return "".join(
            f"{line}\n" for line in (time_of_day + lines[0], *(" " * TIME_WIDTH + line for line in lines[1:]))
        )

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
        """Seconds since the start, and the totals so far."""
        return "  ".join([span(self._before + time.monotonic() - self._began), *self.counts.words()])

    def close(self) -> None:
        """Take the line below away; nothing is written any more."""
        with self._guard:
            self._write(self._cleared())
            self._closed = True

    # ------------------------------------------------------------------------------------------ innards

    def _lines(self, told: Told) -> list[str]:
        """The lines of one part of the narration, cut if they are too long; the agent's own words stay whole."""
        if told.kind == narration.SAYS:
            return safe(told.text).rstrip().split("\n")
        if told.kind == narration.ENDS:
            return [f"{told.text}{self._sum()}"]
        if told.kind == narration.CALLS:
            self._last_call = told.number
            first, *more = told.text.split("\n", 1)
            first = first if len(first) <= SHORT_CALL else first[:SHORT_CALL] + "..."
            return [one_line(f"#{told.number} {first}"), *_cut(more[0].split("\n") if more else ())]
        if told.kind not in MARKS:
            return [one_line(told.text)]
        mark = MARKS[told.kind]
        if told.number and told.number != self._last_call:
            mark = mark.replace("<-", f"<- #{told.number}")  # another call has begun since
        first, *more = _cut(told.text.rstrip().split("\n"))
        return [mark + first, *(" " * len(mark) + line for line in more)]

    def _sum(self) -> str:
        """The duration and the totals of the run, for its last line."""
        found = self._ended.get("cost")
        cost = found.to_dict() if isinstance(found, Cost) else found if isinstance(found, dict) else {}
        took, denials = self._ended.get("duration_ms"), self._narrator.denials
        counts = [f"{self.counts.tools} tool{'' if self.counts.tools == 1 else 's'}"] if self.counts.tools else []
        counts += [f"{denials} denied"] if denials else []
        counts += [f"{name} {_amount(cost[key])}" for name, key in
                   (("in", "input_tokens"), ("out", "output_tokens"), ("cached", "cache_read_tokens"))
                   if isinstance(cost.get(key), int)]  # fmt: skip
        counts += [f"${self.counts.cost:.4f}"] if self.counts.cost is not None else []
        counts += [one_line(self.counts.model)] if self.counts.model else []
        length = f" in {span(took / 1000)}" if isinstance(took, (int, float)) else ""
        return f"{length}{': ' if counts else ''}{', '.join(counts)}"

    def _time_of_day(self, at: float) -> str:
        """The time in front of a line; before it the day, in a line of its own, where that is another."""
        if not at:
            return " " * TIME_WIDTH
        then = time.localtime(at)
        day, before = time.strftime("%Y-%m-%d", then), self._day
        self._day = day
        return f"{'' if day == before else f'{day}{chr(10)}'}{self._paint(time.strftime('%H:%M:%S', then), GRAY)}  "

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
            self._closed = True  # the terminal is gone; the run goes on


def _cut(lines: Sequence[str]) -> list[str]:
    """The first lines, each cut where it is too long, and how many there are besides."""
    ends = ["..." if len(line) > MOST_CHARACTERS else "" for line in lines[:MOST_LINES]]
    shown = [safe(line[:MOST_CHARACTERS]) + end for line, end in zip(lines, ends)]
    return [*shown, f"... {len(lines) - MOST_LINES} lines more"] if len(lines) > MOST_LINES else shown


def _amount(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"

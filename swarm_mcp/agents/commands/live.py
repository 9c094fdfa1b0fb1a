"""A run on a screen: its events in colour with the time of day, and a line of totals below."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, TextIO

from swarm_hook_core.untrusted_text import one_line, safe
from swarm_mcp.agents.harness import events, narration
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.narration import Narrator, Told
from swarm_mcp.agents.harness.outcome import Cost
from swarm_mcp.cli import terminal
from swarm_mcp.cli.output import encodable
from swarm_mcp.cli.words import clause, count, dollars, span

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
            if isinstance(used, int):
                self.tokens = used
            if isinstance(cost, (int, float)):
                self.cost = float(cost)
        elif event.kind == events.RESULT:
            cost = _cost(data)
            if isinstance(cost.get("total_cost_usd"), (int, float)):
                self.cost = cost["total_cost_usd"]
            self.model = str(cost.get("model") or self.model)
            counts = [cost.get(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")]
            if any(isinstance(count, int) for count in counts):
                self.tokens = sum(count for count in counts if isinstance(count, int))

    def words(self) -> list[str]:
        """Tool calls, tokens and US dollars so far, and the model; unknown parts are left out."""
        parts = [count(self.tools, "tool")]
        if self.tokens is not None:
            parts.append(f"{_amount(self.tokens)} tokens")
        return parts + self.price()

    def price(self) -> list[str]:
        """The cost in US dollars and the model; unknown parts are left out."""
        parts = []
        if self.cost is not None:
            parts.append(dollars(self.cost))
        if self.model:
            parts.append(one_line(self.model))
        return parts


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
        self._began = time.monotonic()
        if began:
            self._began -= max(0.0, time.time() - began)
        self._day = time.strftime("%Y-%m-%d")
        self._last_call = 0
        self._ended: dict[str, Any] = {}
        self._below = ""
        self._guard = threading.RLock()
        self._closed = False

    @classmethod
    def at_terminal(cls, stream: TextIO, *, counts: bool = True, **more: Any) -> Live:
        """Return one for `stream`: in colour and with the line that `counts` where it is a terminal that has both."""
        shown = stream.isatty()
        colour = shown and not os.environ.get("NO_COLOR")
        if stream is sys.stdout:
            colour = terminal.wanted()
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
            if shown == self._below:
                return
            if self.colour:
                self._write(ERASE + shown)
            else:
                self._write(f"\r{shown:<{len(self._below)}}")
            self._below = shown

    def status(self) -> str:
        """Seconds since the start, and the totals so far."""
        return "  ".join([span(time.monotonic() - self._began), *self.counts.words()])

    def close(self) -> None:
        """Take the line below away; nothing is written any more."""
        with self._guard:
            self._write(self._cleared())
            self._closed = True

    # -- lines ----------------------------------------------------------------------------------------------

    def _lines(self, told: Told) -> list[str]:
        """The lines of one part of the narration, cut if they are too long; the agent's own words stay whole."""
        if told.kind == narration.SAYS:
            return safe(told.text).rstrip().split("\n")
        if told.kind == narration.ENDS:
            return [f"{told.text}{self._sum()}"]
        if told.kind == narration.CALLS:
            self._last_call = told.number
            first, _, rest = told.text.partition("\n")
            if len(first) > SHORT_CALL:
                first = first[:SHORT_CALL] + "..."
            return [one_line(f"#{told.number} {first}"), *_cut(rest.split("\n") * bool(rest))]
        if told.kind not in MARKS:
            return [one_line(told.text)]
        mark = MARKS[told.kind]
        if told.number and told.number != self._last_call:
            mark = mark.replace("<-", f"<- #{told.number}")  # another call has begun since
        first, *more = _cut(told.text.rstrip().split("\n"))
        return [mark + first, *(" " * len(mark) + line for line in more)]

    def _sum(self) -> str:
        """The duration and the totals of the run, for its last line."""
        cost, took = _cost(self._ended), self._ended.get("duration_ms")
        counts: list[str] = []
        if self.counts.tools:
            counts.append(count(self.counts.tools, "tool"))
        if self._narrator.denials:
            counts.append(f"{self._narrator.denials} denied")
        for name, key in (("in", "input_tokens"), ("out", "output_tokens"), ("cached", "cache_read_tokens")):
            if isinstance(cost.get(key), int):
                counts.append(f"{name} {_amount(cost[key])}")
        line = ""
        if isinstance(took, (int, float)):
            line = f" in {span(took / 1000)}"
        return line + clause(": {}", ", ".join(counts + self.counts.price()))

    def _time_of_day(self, at: float) -> str:
        """The time in front of a line; before it the day, in a line of its own, where that is another."""
        if not at:
            return " " * TIME_WIDTH
        then = time.localtime(at)
        day, before = time.strftime("%Y-%m-%d", then), self._day
        self._day = day
        line = f"{self._paint(time.strftime('%H:%M:%S', then), GRAY)}  "
        if day != before:
            line = f"{day}\n{line}"
        return line

    def _paint(self, text: str, colour: str) -> str:
        if self.colour and text:
            return f"\x1b[{colour}m{text}\x1b[0m"
        return text

    def _cleared(self) -> str:
        below, self._below = self._below, ""
        if not below:
            return ""
        if self.colour:
            return ERASE
        return f"\r{' ' * len(below)}\r"

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
    shown = [safe(line[:MOST_CHARACTERS]) + "..." * (len(line) > MOST_CHARACTERS) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... {len(lines) - MOST_LINES} lines more")
    return shown


def _amount(number: int) -> str:
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.1f}k"
    return f"{number / 1e6:.1f}M"


def _cost(data: dict[str, Any]) -> dict[str, Any]:
    """Return the cost in the data of an event; empty if it has none."""
    cost = data.get("cost")
    if isinstance(cost, Cost):
        return cost.to_dict()
    if isinstance(cost, dict):
        return cost
    return {}

"""Progress of longer commands: each step is shown when it begins and when it ends.

At a terminal the running steps stand below the other output with their seconds, and go when they end. In a pipe a step
is one line when it begins and one when it ends, each written at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.cli import output
from swarm_mcp.cli.output import complain, encodable, flush, say
from swarm_mcp.cli.words import span
from swarm_mcp.text_width import clipped

TICK_SECONDS = 0.1
SHOWN_FROM = 1.0  # seconds; a shorter step says nothing of how long it took
FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


class Step:
    """A running step: the client it is done for in `who` (may be empty), the work in `doing`, and its start."""

    def __init__(self, who: str, doing: str):
        self.who, self.doing, self.begun = who, doing, time.monotonic()

    def words(self, frame: str) -> str:
        """The step as it stands below the rest, `frame` showing that it moves."""
        whose = f"{self.who}: " if self.who else ""
        return f"{frame} {span(time.monotonic() - self.begun):>4}  {whose}{self.doing}"


class Progress:
    """The progress of one command, from entering the ``with`` block to leaving it.

    `as_json`: standard output is for JSON alone. Running steps are shown on standard error if that is a terminal, and
    nothing else is printed. `aside`: standard output is for something else, such as a command's own output; everything
    goes to standard error. `margin` stands before the line of a step in a pipe.
    """

    def __init__(self, as_json: bool = False, aside: bool = False, margin: str = ""):
        self._margin = margin
        self._speaks = not as_json
        self._line = complain if aside else _say_now
        stream = sys.stderr if as_json or aside else sys.stdout
        self._stream: TextIO | None = stream if stream is not None and _can_move(stream) else None
        self._steps: dict[str, Step] = {}
        self._rows = self._turn = 0
        self._guard = threading.RLock()
        self._left = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._stream:
            output.cover(self)
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._left.set()
        if self._ticker:
            self._ticker.join()
            with self._guard:
                self._hide()
            output.cover(None)

    def begin(self, doing: str, who: str = "") -> None:
        """Begin the step `doing` of `who`, in place of the earlier step of `who`."""
        with self._guard:
            self._steps[who] = Step(who, doing)
        if self._stream:
            self._show()
        elif self._speaks:
            self._line(self._margin + (f"{who}: {doing} ..." if who else f"{doing} ..."))

    def note(self, doing: str, who: str = "") -> None:
        """Show `doing` at a terminal only. A running step gets these words."""
        with self._guard:
            if who in self._steps:
                self._steps[who].doing = doing
            else:
                self._steps[who] = Step(who, doing)

    def end(self, done: str = "", who: str = "") -> None:
        """End the step of `who`; print `done` if it is not empty."""
        with self._guard:
            step = self._steps.pop(who, None)
        took = time.monotonic() - step.begun if step else 0.0
        if done and self._speaks:
            length = f" ({span(took)})" if self._stream and took >= SHOWN_FROM else ""
            self._line((f"{who}: {done}" if who else done) + length)
        elif self._stream:
            self._show()

    def say(self, line: str = "") -> None:
        """Print lines that are not a step; nothing if standard output is for JSON."""
        for part in line.split("\n") if self._speaks else ():
            self._line(part)

    def write_above(self, stream: TextIO, text: str) -> None:
        """Write `text`, whole lines, to standard output or error; the steps below are shown again at the next tick."""
        with self._guard:
            self._hide()
            stream.write(text)
            stream.flush()

    def _hide(self) -> None:
        if self._rows:
            up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
            self._write(f"\r{up}\x1b[J")
            self._rows = 0

    def _show(self) -> None:
        """Show the steps that are under way, below all that has been written."""
        from swarm_mcp.cli.terminal import terminal_width

        with self._guard:
            if self._stream is None or self._left.is_set():
                return
            frames = FRAMES if encodable(FRAMES, self._stream) == FRAMES else PLAIN_FRAMES
            frame = frames[self._turn % len(frames)]
            room = terminal_width(self._stream) - 1
            rows = [clipped(one_line(step.words(frame)), room) for step in self._steps.values()]
            self._hide()
            self._write("\n".join(rows))
            self._rows = len(rows)

    def _tick(self) -> None:
        while not self._left.wait(TICK_SECONDS):
            self._turn += 1
            self._show()

    def _write(self, text: str) -> None:
        if not self._stream or not text:
            return
        try:
            self._stream.write(encodable(text, self._stream))
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # the terminal is gone; the command goes on


def _say_now(line: str) -> None:
    say(line)
    flush()


def _can_move(stream: TextIO) -> bool:
    """Return True if `stream` goes to a terminal that can erase lines."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")

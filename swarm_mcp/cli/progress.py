"""What a longer command is doing while it does it: each step is said as it begins and as it ends.

At a terminal the steps under way stand below what has been said, with the seconds that they have taken, and are gone
when they end. In a pipe a step is a line when it begins and one when it ends, each handed over at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

from swarm_mcp.cli import output
from swarm_mcp.cli.output import complain, encodable, flush, one_line, say
from swarm_mcp.text_width import clipped

TICK_SECONDS = 0.1
SHOWN_FROM = 1.0  # seconds; a shorter step says nothing of how long it took
FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


class Step:
    """A step under way: `who` it is done for (empty for nobody in particular), what is being done, and since when."""

    def __init__(self, who: str, doing: str):
        self.who, self.doing, self.begun = who, doing, time.monotonic()

    def words(self, frame: str) -> str:
        """The step as it stands below the rest, `frame` showing that it moves."""
        whose = f"{self.who}: " if self.who else ""
        return f"{frame} {span(time.monotonic() - self.begun):>4}  {whose}{self.doing}"


class Progress:
    """The progress of one command, from entering the ``with`` block to leaving it.

    With `as_json` standard output is for JSON alone: steps under way are shown on standard error, where that is a
    terminal, and nothing is said. `aside` is for commands whose output is for something else: all of it is said on
    standard error. `margin` stands before the line of a step in a pipe.
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
        """Say what is being done from now on, for `who`; it takes the place of their step before."""
        with self._guard:
            self._steps[who] = Step(who, doing)
        if self._stream:
            self._show()
        elif self._speaks:
            self._line(self._margin + (f"{who}: {doing} ..." if who else f"{doing} ..."))

    def note(self, doing: str, who: str = "") -> None:
        """Show at a terminal that this is being done; nobody else is told. A step under way is put into other words."""
        with self._guard:
            if who in self._steps:
                self._steps[who].doing = doing
            else:
                self._steps[who] = Step(who, doing)

    def end(self, done: str = "", who: str = "") -> None:
        """The step of `who` has ended; say that this is `done`, where that is worth a line."""
        with self._guard:
            step = self._steps.pop(who, None)
        took = time.monotonic() - step.begun if step else 0.0
        if done and self._speaks:
            length = f" ({span(took)})" if self._stream and took >= SHOWN_FROM else ""
            self._line((f"{who}: {done}" if who else done) + length)
        elif self._stream:
            self._show()

    def say(self, line: str = "") -> None:
        """Say what is no step, in one line or several; nothing where standard output is for something else."""
        for part in line.split("\n") if self._speaks else ():
            self._line(part)

    def write_above(self, stream: TextIO, text: str) -> None:
        """Write `text`, which is whole lines, to standard output or error; the steps below come back soon."""
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
            self._stream = None  # nobody watches any more; the command goes on


def span(seconds: float) -> str:
    """Seconds as people write them where they count: ``4s``, ``1m05s``."""
    whole = int(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02d}s"


def _say_now(line: str) -> None:
    say(line)
    flush()


def _can_move(stream: TextIO) -> bool:
    """Whether `stream` goes to a terminal on which a line can be taken back."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")

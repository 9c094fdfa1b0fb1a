"""Progress of longer commands: each step is shown when it begins and when it ends.

At a terminal the running steps stand below the other output with their seconds, and go when they end. In a pipe a step
is one line when it begins and one when it ends, each written at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.cli.output import complain, encodable, flush, say
from swarm_mcp.cli.words import clause, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.live import Live

SHOWN_FROM = 1.0  # seconds; the duration of a shorter step is not shown


class Step:
    """A running step: the client it is done for in `who` (may be empty), the work in `doing`, and its start."""

    def __init__(self, who: str, doing: str):
        self.who, self.doing, self.begun = who, doing, time.monotonic()

    @property
    def words(self) -> str:
        """The step with its duration, as it stands below the other output."""
        return f"{span(time.monotonic() - self.begun):>4}  {clause('{}: ', self.who)}{self.doing}"


class Progress:
    """The progress of one command, from entering the ``with`` block to leaving it.

    `as_json`: standard output is for JSON alone. Running steps are shown on standard error if that is a terminal, and
    nothing else is printed. `aside`: standard output is for something else, such as a command's own output; everything
    goes to standard error. `margin` stands before the line of a step in a pipe.
    """

    def __init__(self, as_json: bool = False, aside: bool = False, margin: str = ""):
        self._margin, self._speaks = margin, not as_json
        self._line: Callable[[str], None] = _say_now
        self._stream = sys.stdout
        if aside:
            self._line = complain
        if as_json or aside:
            self._stream = sys.stderr
        self._moves = (
            self._stream is not None and self._stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        )
        self._steps: dict[str, Step] = {}
        self._live: Live | None = None  # from the first step on

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._live:
            with suppress(OSError, ValueError):  # the terminal is gone
                self._live.stop()

    def begin(self, doing: str, who: str = "") -> None:
        """Begin the step `doing` of `who`, in place of the earlier step of `who`."""
        self._steps[who] = Step(who, doing)
        self._show()
        if not self._live and self._speaks:
            self._line(f"{self._margin}{clause('{}: ', who)}{doing} ...")

    def note(self, doing: str, who: str = "") -> None:
        """Show `doing` at a terminal only. A running step gets these words."""
        self._steps.setdefault(who, Step(who, doing)).doing = doing
        if not self._live:
            self._show()

    def end(self, done: str = "", who: str = "") -> None:
        """End the step of `who`; print `done` if it is not empty."""
        step, took = self._steps.pop(who, None), 0.0
        if step:
            took = time.monotonic() - step.begun
        if done and self._speaks:
            if self._live and took >= SHOWN_FROM:
                done += f" ({span(took)})"
            self._line(clause("{}: ", who) + done)
        else:
            self._show()

    def say(self, text: str = "") -> None:
        """Print lines that are not a step; nothing if standard output is for JSON."""
        if self._speaks:
            for line in text.split("\n"):
                self._line(line)

    def _show(self) -> None:
        """Update the steps at a terminal."""
        if self._moves and self._live is None:
            self._start()
        if self._live:
            with suppress(OSError, ValueError):  # the terminal is gone; the command goes on
                self._live.refresh()

    def _start(self) -> None:
        """Show the steps below all output from now on, or not at all without rich."""
        try:
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner
            from rich.text import Text
        except ImportError:  # doctor runs without libraries, to find broken ones
            self._moves = False
            return
        stream = self._stream
        is_plain = encodable("…", stream) != "…"
        spinner = Spinner("dots")
        overflow: OverflowMethod = "ellipsis"
        if is_plain:
            spinner, overflow = Spinner("line"), "crop"

        def rows() -> Text:
            frame = spinner.render(time.monotonic())
            lines = [f"{frame} {one_line(step.words)}" for step in list(self._steps.values())]
            return Text(encodable("\n".join(lines), stream), no_wrap=True, overflow=overflow)

        console = Console(file=stream, force_terminal=True, soft_wrap=True, markup=False, highlight=False, emoji=False)
        self._live = Live(
            console=console, get_renderable=rows, transient=True, refresh_per_second=10,
            redirect_stdout=_is_terminal(sys.stdout), redirect_stderr=_is_terminal(sys.stderr),
        )  # fmt: skip
        self._live.start()


def _say_now(line: str) -> None:
    say(line)
    flush()


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()

"""Pages over the panes: a command's output, a question, the list of keys."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen, Screen
from textual.widgets import RichLog, Static

from swarm_hook_core.untrusted_text import cut
from swarm_mcp.view.top import commands

MOST_LINES = 5000  # of a page: the newest are kept
LEAVE: list[Binding | tuple[str, str] | tuple[str, str, str]] = [Binding("escape,q,enter", "dismiss", priority=True)]


class Log(RichLog):
    """Lines that scroll with the keys of a pane."""

    BINDINGS = [Binding("k", "scroll_up"), Binding("j", "scroll_down")]

    def say(self, line: str) -> None:
        """Add one line, as it is: no markup in it means anything."""
        self.write(Text(line), scroll_end=self.is_vertical_scroll_end)


class Printed(Screen[None]):
    """The output of a command of swarm-mcp, from its first line; a command that goes on is followed."""

    BINDINGS = LEAVE

    def __init__(self, title: str, words: list[str], from_the_end: bool = False):
        super().__init__()
        self._shown, self.words = title, words  # the command in short, to type it elsewhere; the command as run
        self._process: asyncio.subprocess.Process | None = None
        self._follows = from_the_end

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        yield Static(cut(f"swarm-mcp {self._shown}", 300), id="command", markup=False)
        yield Log(max_lines=MOST_LINES, wrap=True, markup=False, highlight=False, auto_scroll=self._follows)
        yield Static("Esc back   Up Down PgUp PgDn scroll", classes="keys", markup=False)

    def on_mount(self) -> None:
        """Start the command."""
        self.query_one(Log).focus()
        self.run_worker(self._read())

    async def _read(self) -> None:
        log = self.query_one(Log)
        self._process = process = await commands.started(self.words)
        try:
            async for line in commands.lines_of(process):
                if self._follows:
                    log.say(line)
                else:
                    log.write(Text(line), scroll_end=False)
            await process.wait()
        finally:
            commands.end(process)


class Question(ModalScreen[bool]):
    """A question before an action. Any answer but a clear yes is a no."""

    BINDINGS = [
        Binding("y", "dismiss(True)", priority=True),
        Binding("n,escape,enter,q", "dismiss(False)", priority=True),
    ]

    def __init__(self, words: str):
        super().__init__()
        self.words = words

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        yield Static(f"{self.words}\n\ny yes   n no", id="question", markup=False)


class Keys(ModalScreen[None]):
    """The keys that there are."""

    BINDINGS = [*LEAVE, Binding("question_mark", "dismiss", priority=True)]

    def __init__(self, words: str):
        super().__init__()
        self.words = words

    def compose(self) -> ComposeResult:
        """Lay out the list."""
        yield Static(self.words, id="question", markup=False)

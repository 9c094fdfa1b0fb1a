"""Panes of the screen, pages over them, their styles, and commands that keys start.

It draws its lines itself, from text that is text and never markup: no more of them than the screen shows.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import RichLog, Static

from swarm_hook_core.untrusted_text import cut, one_line
from swarm_mcp.answers.size import clipped
from swarm_mcp.view.top import reading
from swarm_mcp.view.top.picture import Row, Table

# The styles: the terminal's own colours, beside attributes with the same meaning for a terminal without colours.

STYLES = {
    "": Style(),
    "good": Style(color="green"),
    "busy": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "held": Style(color="magenta"),
    "faint": Style(dim=True),
    "name": Style(color="cyan"),
    "own": Style(bold=True),
    "heading": Style(bold=True, underline=True),
    "cursor": Style(reverse=True),
}
# The meaning of a word in a column of states.
MEANINGS = {
    "working": "good", "live": "good", "done": "good",
    "claimed": "busy", "in_progress": "busy", "running": "busy", "starting": "busy", "queued": "busy", "waits": "busy",
    "failed": "bad", "stale": "bad", "abandoned": "bad",
    "blocked": "held", "approval_required": "held", "paused": "held",
    "idle": "faint", "cancelled": "faint", "open": "",
}  # fmt: skip


def style_of(name: str, text: str = "") -> Style:
    """The style called `name`; of a ``state`` the one that the first word of `text` means."""
    if name == "state":
        name = MEANINGS.get(text.strip().partition(" ")[0].rstrip(":,"), "")
    return STYLES[name]


class Pane(ScrollView, can_focus=True):
    """One table: its title and headings stay, its rows scroll below."""

    def __init__(self, table: Table, name: str):
        super().__init__(id=name)
        self.table = table
        self._at = 0

    @property
    def row(self) -> Row | None:
        """The chosen row, or None."""
        if self.table.rows:
            return self.table.rows[self._at]
        return None

    @property
    def lines_wanted(self) -> int:
        """The lines it takes to show all of it: an empty table says so beside its title."""
        return 1 + len(self.table.rows)

    def show(self, table: Table) -> None:
        """Show `table`. The chosen row stays chosen if it is still there.

        An unfocused pane that shows its first row goes on showing the first one.
        """
        if table == self.table:
            return
        if self.row and (self.has_focus or self._at):
            chosen = self.row.key
        else:
            chosen = ""
        self.table = table
        found = [at for at, row in enumerate(table.rows) if row.key == chosen]
        if found:
            self._at = found[0]
        else:
            self._at = min(self._at, max(0, len(table.rows) - 1))
        self.virtual_size = Size(self.size.width, self.lines_wanted)
        self._keep_in_sight()
        self.refresh()

    def choose(self, key: str) -> None:
        """Choose the row with this key, where there is one."""
        for at, row in enumerate(self.table.rows):
            if row.key == key:
                self._go(at)

    # --------------------------------------------------------------- called by Textual

    def render_line(self, y: int) -> Strip:
        """Draw line `y` of the visible part."""
        room = self.size.width
        sizes = reading.widths(self.table, room - 1)
        if y == 0:
            mark, look = " ", "own"
            if self.has_focus:
                mark, look = ">", "heading"
            if not self.table.rows:
                title = Segment(mark + self.table.title, style_of(look))
                left = max(0, room - len(title.text))
                return self._strip([title, Segment(clipped(f"  {self.table.empty}", left), style_of("faint"))])
            text = mark + reading.heading(self.table, sizes)
            return self._strip([Segment(clipped(text, room), style_of(look))])
        at = y - 1 + int(self.scroll_offset.y)
        if at >= len(self.table.rows):
            return self._strip([])
        row = self.table.rows[at]
        chosen = self.has_focus and at == self._at
        if chosen:
            base = style_of("cursor")
        else:
            base = style_of(row.style)
        parts = [Segment(">" if chosen else " ", base)]
        for text, column in reading.line(row, self.table.columns, sizes):
            if chosen or row.style == "faint":
                style = base
            else:
                style = base + style_of(column.style, text)
            parts += [Segment(text, style), Segment(" " * reading.GAP, base)]
        return self._strip(parts)

    def on_resize(self, _event: events.Resize) -> None:
        """Follow the terminal's size."""
        self.virtual_size = Size(self.size.width, self.lines_wanted)
        self._keep_in_sight()

    def on_click(self, event: events.Click) -> None:
        """Choose the row that was clicked."""
        if event.y > 0 and self.table.rows:
            self._go(event.y - 1 + int(self.scroll_offset.y))

    def move(self, by: int) -> None:
        """Choose the row that is `by` rows further down."""
        self._go(self._at + by)

    def leaf(self, by: int) -> None:
        """Choose the row that is `by` screens further down."""
        self._go(self._at + by * max(1, self.size.height - 2))

    # ------------------------------------------------------------------------ innards

    def _strip(self, segments: list[Segment]) -> Strip:
        room = self.size.width
        return Strip(segments).adjust_cell_length(room, style_of("")).crop(0, room)

    def _go(self, at: int) -> None:
        self._at = max(0, min(at, len(self.table.rows) - 1))
        self._keep_in_sight()
        self.refresh()

    def _keep_in_sight(self) -> None:
        """Scroll the chosen row into view, below the heading, since that covers the first line."""
        seen = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if self._at < top:
            top = self._at
        elif self._at >= top + seen:
            top = self._at - seen + 1
        top = max(0, min(top, max(0, len(self.table.rows) - seen)))
        if top != int(self.scroll_offset.y):
            self.scroll_to(y=top, animate=False, immediate=True)


# Other commands of swarm-mcp, each in a process of its own, for keys that ask or change the store.
#
# So `why`, transcripts and unlocking exist once, and a reading process never blocks a writer.

LAST_SECONDS = 3.0  # that a command is given to end by itself
LONGEST = 64 * 1024  # bytes of a line that are kept together
_running: set[asyncio.subprocess.Process] = set()  # those that may not have ended yet


def command_line(words: list[str]) -> list[str]:
    """Return the command line that starts this very copy of swarm-mcp with `words`."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from swarm_mcp.cli.main import main; sys.exit(main())"
    return [sys.executable, "-c", code, *words]


async def started(words: list[str]) -> asyncio.subprocess.Process:
    """Start a command: it reads nothing, and prints without colours, errors among the rest."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    process = await asyncio.create_subprocess_exec(
        *command_line(words), env=environment, limit=LONGEST,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    _running.difference_update([one for one in _running if one.returncode is not None])
    _running.add(process)
    return process


async def lines_of(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
    """Yield a command's output line by line as it comes, made harmless to a terminal."""
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            line = await process.stdout.readexactly(error.consumed)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                yield _shown(error.partial)
            return
        yield _shown(line)


async def done(words: list[str]) -> tuple[int, str]:
    """Run a command to its end: its exit code, and the last line that it printed."""
    process, last = await started(words), ""
    async for line in lines_of(process):
        last = line or last
    return await process.wait(), last


def end(process: asyncio.subprocess.Process) -> None:
    """End a command whose output is not read any more."""
    if process.returncode is None:
        try:
            process.terminate()
        except ProcessLookupError:  # it has ended
            pass


async def all_gone() -> None:
    """Wait for the end of each command, so that its change is complete; kill it after `LAST_SECONDS`."""
    while _running:
        process = _running.pop()
        try:
            await asyncio.wait_for(process.wait(), LAST_SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()


def _shown(line: bytes) -> str:
    return "    ".join(map(one_line, line.decode("utf-8", "replace").rstrip("\n").split("\t")))


# Pages over the panes: a command's output, a question, the list of keys.

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
        self._process = process = await started(self.words)
        try:
            async for line in lines_of(process):
                if self._follows:
                    log.say(line)
                else:
                    log.write(Text(line), scroll_end=False)
            await process.wait()
        finally:
            end(process)


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

"""The full screen: four panes, the keys, and what the keys do."""

from __future__ import annotations

import asyncio
import signal

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input, Static

from swarm_hook_core.untrusted_text import named, one_line
from swarm_mcp.top import commands
from swarm_mcp.top.following import Follower
from swarm_mcp.top.pages import Keys, Printed, Question
from swarm_mcp.top.pane import Pane
from swarm_mcp.top.picture import Picture, Row, Table, Trouble, Wish
from swarm_mcp.top.room import shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = " q quit  / filter  Enter open  w why  l log  u unlock  Tab next  z zoom  ? keys"
ASKED = "words that a row must have; Enter keeps, Esc shows all"
ALL_KEYS = """\
Tab, 1 to 4   the next pane, or that one
Up, Down      the row; also j and k, PgUp and PgDn, Home and End
Enter         more of it: why a file can or cannot be written, a worker's
              transcript, a task, what a session holds
w             why of the row's file        l   the log of its locks
u             unlock: one's own lock, asked first
/             show only rows with these words; Esc shows all again
a             all scopes of this machine, or only this one
z             this pane alone, or all again
q, Ctrl-C     quit"""


class Shown(Message):
    """There is a new picture, or trouble."""

    def __init__(self, told: Picture | Trouble | Exception):
        super().__init__()
        self.told = told


class Top(App[None]):
    """Shows what `read` returns, anew whenever the store has changed."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [
        Binding("q", "quit"),
        Binding("ctrl+c", "quit", priority=True),
        Binding("slash", "filter"),
        Binding("escape", "all_rows"),
        Binding("w", "why"),
        Binding("l", "log"),
        Binding("u", "unlock"),
        Binding("z", "zoom"),
        Binding("a", "everywhere"),
        Binding("question_mark", "keys"),
        *(Binding(str(at + 1), f"pane({at})") for at in range(4)),
    ]

    def __init__(self, tables: tuple[Table, ...], read: Callable[[Wish], Picture], acting: list[str], wish: Wish):
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.wish = wish
        self.failure: Exception | None = None
        self._tables = tables
        self._acting = acting  # words that have a command act as the session that `top` acts as
        self._zoomed = False
        self._where = ""
        self._follower = Follower(read, lambda told: self.post_message(Shown(told)))

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("reading the store", id="where", markup=False)
        yield Static("", id="trouble", markup=False)
        for table in self._tables:
            yield Pane(table, table.name.lower())
        yield Input(
            id="words", placeholder="words that a row must have; Enter keeps, Esc shows all", select_on_focus=False
        )
        yield Static(KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to follow the store, and to listen to signals."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, self.exit)
            except (NotImplementedError, RuntimeError, ValueError):
                pass  # not the main thread, or not this system's way
        self._last_pane = self.panes[0]
        self._last_pane.focus()
        self._share()
        self._follower.wish(self.wish)
        self._follower.start()

    def on_unmount(self) -> None:
        """Let go of the store."""
        self._follower.stop()

    @property
    def panes(self) -> list[Pane]:
        """The panes, from top to bottom."""
        return list(self.screen_stack[0].query(Pane))

    @property
    def pane(self) -> Pane:
        """The pane that keys go to, or went to before words were typed."""
        self._last_pane = next((pane for pane in self.panes if pane.has_focus), self._last_pane)
        return self._last_pane

    # ---------------------------------------------------------------------- what is shown

    def on_shown(self, message: Shown) -> None:
        """Show what has been read, or why there is nothing new."""
        told = message.told
        if isinstance(told, Exception):
            self.failure = told
            self.exit()
            return
        if isinstance(told, Trouble):
            self._trouble(f"the store cannot be read, trying again: {told.reason}")
            return
        self._trouble("")
        self._where = told.where
        self._say_where()
        for pane, table in zip(self.panes, told.tables):
            pane.show(table)
        self._share()

    def on_resize(self, _event: events.Resize) -> None:
        """Share the lines anew."""
        self.call_after_refresh(self._share)

    def on_descendant_focus(self) -> None:
        """A pane that is alone on the screen is the one with the focus."""
        if self._last_pane is not self.pane and self._zoomed:
            self._share()

    def _say_where(self) -> None:
        words = f'rows with "{one_line(self.wish.words)}" of ' if self.wish.words else ""
        self.screen_stack[0].query_one("#where", Static).update(f"{words}{one_line(self._where)}")

    def _trouble(self, words: str) -> None:
        bar = self.screen_stack[0].query_one("#trouble", Static)
        bar.update(one_line(words))
        bar.display = bool(words)
        self._share()

    def _share(self) -> None:
        """Give each pane its lines."""
        screen = self.screen_stack[0]
        taken = 2 + sum(1 for name in ("#trouble", "#words") if screen.query_one(name).display)
        panes, lines = self.panes, max(4, self.size.height - taken)
        alone = self.pane if self._zoomed else None
        given = shared([pane.lines_wanted for pane in panes], lines)
        for pane, share in zip(panes, given):
            pane.display = alone in (None, pane)
            pane.styles.height = lines if alone else share

    # ---------------------------------------------------------------------------- keys

    def action_pane(self, at: int) -> None:
        """Give the keys to a pane."""
        pane = self.panes[at]
        pane.display = True
        pane.focus()

    def action_zoom(self) -> None:
        """Show the chosen pane alone, or all again."""
        self._zoomed = not self._zoomed
        self._share()

    def action_everywhere(self) -> None:
        """Show all scopes, or only this one again."""
        self._wish(self.wish._replace(everywhere=not self.wish.everywhere))

    def action_filter(self) -> None:
        """Ask for the words that a row must have."""
        self._words.display = True
        self._words.focus()
        self._share()

    def action_all_rows(self) -> None:
        """Show all rows again."""
        self._words.value = ""
        self._leave_words()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows with what has been typed so far."""
        if event.value != self.wish.words:
            self._wish(self.wish._replace(words=event.value))

    def on_input_submitted(self) -> None:
        """Keep the words, and go back to the rows."""
        self._leave_words()

    @property
    def _words(self) -> Input:
        return self.screen_stack[0].query_one("#words", Input)

    def _leave_words(self) -> None:
        if self._words.display:
            self._words.display = False
            self._last_pane.focus()
            self._share()

    def _wish(self, wish: Wish) -> None:
        self.wish = wish
        self._say_where()
        self._follower.wish(wish)

    def action_keys(self) -> None:
        """Show what the keys do."""
        self.push_screen(Keys(ALL_KEYS))

    def action_why(self) -> None:
        """Show why the row's file can or cannot be written."""
        self._of_file("why")

    def action_log(self) -> None:
        """Show what has happened to the locks on the row's file."""
        self._of_file("log")

    def _of_file(self, verb: str) -> None:
        row = self.pane.row
        if row is None or not row.file:
            self._say("choose a row with a file first")
        else:
            self.push_screen(Printed([verb, *self._acting, "--", row.file]))

    def on_pane_opened(self, message: Pane.Opened) -> None:
        """Show more of a row: a worker's transcript, a task, a file, what a session holds."""
        row = message.row
        if row.run:
            self.push_screen(Printed(["logs", row.run, "--follow"], from_the_end=True))
        elif row.task:
            self.push_screen(Printed(["task", row.task]))
        elif row.file:
            self.action_why()
        elif row.session:
            self._words.value = row.session

    def action_unlock(self) -> None:
        """Give back one's own lock, once that has been confirmed."""
        row = self.pane.row
        if row is None or row.held is None:
            self._say(
                "not your lock: u gives back only your own" if row and row.file else "choose a lock of yours first"
            )
            return
        self.push_screen(Question(f"Unlock {named(row.file)}?"), lambda yes: self._unlock(row) if yes else None)

    def _unlock(self, row: Row) -> None:
        held = row.held
        assert held is not None
        words = ["unlock", "--as", held.holder]
        words += ["--agent", held.agent] if held.agent else []
        words += ["--fence", str(held.fence)] if held.fence is not None else []
        self.run_worker(self._told([*words, "--", row.file]))

    async def _told(self, words: list[str]) -> None:
        """Run a command, and say what it said last."""
        code, last = await commands.done(words)
        self._say(last or f"exit code {code}", bad=code != 0)

    def _say(self, words: str, bad: bool = False) -> None:
        self.notify(one_line(words), severity="error" if bad else "information", timeout=5, markup=False)

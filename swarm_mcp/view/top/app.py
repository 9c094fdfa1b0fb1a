"""The full screen: four panes, and the actions of the keys."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input, Static

from swarm_hook_core.untrusted_text import named, one_line
from swarm_mcp import folders
from swarm_mcp.view.top.pane import Keys, Pane, Printed, Question, all_gone, done
from swarm_mcp.view.top.picture import Follower, Picture, Row, Table, Trouble, Wish
from swarm_mcp.view.top.reading import Places, shared

# The keys, their actions while the panes are visible, and their names.

# While words are typed, or a page covers the panes, these keys belong to that.
KEYS = {
    "tab": "next_pane(1)", "shift+tab": "next_pane(-1)", **{str(at + 1): f"pane({at})" for at in range(6)},
    "up,k": "move(-1)", "down,j": "move(1)", "pageup": "leaf(-1)", "pagedown": "leaf(1)", "home": "move(-1000000)",
    "end": "move(1000000)", "enter": "open", "w": "why", "f": "ask('file')", "l": "log", "b": "blame", "t": "today",
    "u": "unlock", "x": "stop", "slash": "ask('words')", "escape": "all_rows", "a": "everywhere", "z": "zoom",
    "question_mark": "keys", "q": "leave",
}  # fmt: skip
TYPED = {  # The label below the input line, by kind of input.
    "words": " only rows with these words; Enter keeps them, Esc shows all",
    "file": " who holds this file? its path, then Enter; Esc leaves",
}
LINE = " ? keys  / filter  Enter open  w why  f file  t today  u unlock  x stop  q quit"
PAGE = """\
Who holds a file?          w on its row, or f and its path
Why was I refused?         3, its row, Enter
Which message is unread?   6
Who waits, and for what?   2: they stand below the lock, in order
What has been done here?   t; to one file: l on its row
Whose lines are not committed?  5; b on a row of it, or a session's
What is a worker doing?    4, its row, Enter: it is followed
How do I stop it?          x ends the row's worker or task,
                           u gives back your own lock; asked first

Tab, 1 to 6        next pane, or that one     z   this pane alone
Up, Down, j, k     the row                    a   all checkouts
PgUp, PgDn         a screen of rows           Esc       all rows
Enter              more of the row            Ctrl-Z    to the shell
/                  only rows with words       q, Ctrl-C quit"""


class Shown(Message):
    """There is a new picture, or trouble."""

    def __init__(self, told: Picture | Trouble | Exception):
        super().__init__()
        self.told = told


class Top(App[None]):
    """The application that shows the result of `read`, anew after each change of the store."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    # All keys belong to the app, none to a pane, so that fast typing keeps its order.
    BINDINGS = [
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
        *(Binding(key, action, priority=True) for key, action in KEYS.items()),
    ]

    def __init__(
        self, tables: tuple[Table, ...], read: Callable[[Wish], Picture], acting: list[str], here: list[str], wish: Wish
    ):
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.wish = wish
        self.failure: Exception | None = None
        self._tables = tables
        # Words that have a command act as the session that `top` acts as, and in the place where it does.
        self._acting, self._here = acting, here
        self._files = Places(folders.here())
        self._zoomed = False
        self._typed = "words"  # the last typed input: one of ``keys.TYPED``
        self._where = ""
        self._scope = ""
        self._follower = Follower(read, lambda told: self.post_message(Shown(told)))

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("reading the store", id="where", markup=False)
        yield Static("", id="news", markup=False)
        yield Static("", id="trouble", markup=False)
        for table in self._tables:
            yield Pane(table, table.name.lower())
        yield Input(id="words", select_on_focus=False)
        yield Static(LINE, id="line", classes="keys", markup=False)

    def on_load(self) -> None:
        """Listen to signals before the terminal is changed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, self.exit)
            except (NotImplementedError, RuntimeError, ValueError):
                pass  # not the main thread, or not this system's way

    def on_mount(self) -> None:
        """Begin to follow the store."""
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh(layout=True))
        self._last_pane = self.panes[0]
        self._focus(self._last_pane)
        self._share()
        self._follower.start(self.wish)

    async def on_unmount(self) -> None:
        """Close the store, and wait for the started commands."""
        self._follower.stop()
        await all_gone()

    def _handle_exception(self, error: Exception) -> None:
        """Keep an internal fault for the command line to report once the terminal is restored.

        Textual's own report shows local variables, and with them sessions' texts unescaped.
        """
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self.panic()

    @property
    def panes(self) -> list[Pane]:
        """The panes, from top to bottom."""
        return list(self.screen_stack[0].query(Pane))

    @property
    def pane(self) -> Pane:
        """The pane that keys go to, or went to before words were typed."""
        # the focused pane learns of its focus later
        focused = self.screen_stack[0].focused
        if isinstance(focused, Pane):
            self._last_pane = focused
        return self._last_pane

    # ---------------------------------------------------------------------- display

    def on_shown(self, message: Shown) -> None:
        """Show the new picture, or the reason for its absence."""
        told = message.told
        if not self._is_laid_out:
            return
        if isinstance(told, Exception):
            self.failure = told
            self.exit()
            return
        if isinstance(told, Trouble):
            self._bar("#trouble", f"the store cannot be read, trying again: {told.reason}")
            return
        self._bar("#news", told.news)
        self._bar("#trouble", "")
        self._where, self._scope = told.where, told.scope
        self._say_where()
        for pane, table in zip(self.panes, told.tables):
            pane.show(table)
        self._share()

    @property
    def _is_laid_out(self) -> bool:
        """Return True if all parts of the screen exist: at the end they are removed while news may still arrive."""
        if not self.screen_stack:
            return False
        found = self.screen_stack[0].query("#where, #news, #trouble, Pane, #words, #line")
        return len(found) == len(self._tables) + 5

    def on_resize(self, _event: events.Resize) -> None:
        """Share the lines anew."""
        self.call_after_refresh(self._share)

    def _say_where(self) -> None:
        if self.wish.words:
            words = f'rows with "{one_line(self.wish.words)}" of '
        else:
            words = ""
        self.screen_stack[0].query_one("#where", Static).update(f"{words}{one_line(self._where)}")

    def _bar(self, name: str, words: str) -> None:
        """Show a line that is there only where there is something to say in it."""
        bar = self.screen_stack[0].query_one(name, Static)
        bar.update(one_line(words))
        bar.display = bool(words)
        self._share()

    def _share(self) -> None:
        """Give each pane its lines, and an empty one between them where there is room."""
        if not self._is_laid_out:
            return
        screen = self.screen_stack[0]
        taken = 2 + sum(1 for name in ("#news", "#trouble", "#words") if screen.query_one(name).display)
        panes, lines = self.panes, max(4, self.size.height - taken)
        if self._zoomed:
            alone = self.pane
        else:
            alone = None
        needs = [pane.lines_wanted for pane in panes]
        if sum(needs) + len(needs) - 1 <= lines:
            needs = [*(need + 1 for need in needs[:-1]), needs[-1]]
        for pane, share in zip(panes, shared(needs, lines)):
            pane.display = alone in (None, pane)
            if alone:
                pane.styles.height = lines
            else:
                pane.styles.height = share

    # ---------------------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave keys to the page that covers the panes, and to the input line."""
        if action in ("quit", "suspend_process"):
            return True
        return len(self.screen_stack) == 1 and (action == "all_rows" or not self._is_typing)

    def action_leave(self) -> None:
        """Quit."""
        self.exit()

    def action_pane(self, at: int) -> None:
        """Give the keys to a pane."""
        pane = self.panes[at]
        pane.display = True
        self._focus(pane)
        if self._zoomed:
            self._share()

    def action_next_pane(self, by: int) -> None:
        """Give the keys to the next pane."""
        self.action_pane((self.panes.index(self.pane) + by) % len(self.panes))

    def action_move(self, by: int) -> None:
        """Choose the row that is `by` rows further down."""
        self.pane.move(by)

    def action_leaf(self, by: int) -> None:
        """Choose the row that is `by` screens further down."""
        self.pane.leaf(by)

    def action_zoom(self) -> None:
        """Show the chosen pane alone, or all again."""
        self._zoomed = not self._zoomed
        self._share()

    def action_everywhere(self) -> None:
        """Show all checkouts, or only this one again."""
        self._wish(self.wish._replace(everywhere=not self.wish.everywhere))

    def action_keys(self) -> None:
        """Show the list of keys."""
        self.push_screen(Keys(PAGE))

    def _focus(self, widget: Pane | Input) -> None:
        self.screen_stack[0].set_focus(widget)

    # ------------------------------------------------------------------- input

    def action_ask(self, what: str) -> None:
        """Ask for the words that a row must have, or for a file's path."""
        self._last_pane = self.pane
        self._typed = what
        self._line.update(TYPED[what])
        if what == "words":
            self._words.value = self.wish.words
        else:
            self._words.value = ""
        self._words.display = True
        self._focus(self._words)
        self._share()

    def action_all_rows(self) -> None:
        """Show all rows again; where a path was typed, only leave it."""
        if not self._is_typing or self._typed == "words":
            self._wish(self.wish._replace(words=""))
        self._leave_words()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows that match the input so far."""
        if self._typed == "words" and self._is_typing and event.value != self.wish.words:
            self._wish(self.wish._replace(words=event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the words, or tell of the file, and go back to the rows."""
        self._leave_words()
        if self._typed == "file" and event.value.strip():
            self._ask_about("why", os.path.expanduser(event.value.strip()), self._here)

    @property
    def _line(self) -> Static:
        return self.screen_stack[0].query_one("#line", Static)

    @property
    def _is_typing(self) -> bool:
        return self.screen_stack[0].focused is self._words

    @property
    def _words(self) -> Input:
        return self.screen_stack[0].query_one("#words", Input)

    def _leave_words(self) -> None:
        if self._words.display:
            self._words.display = False
            self._line.update(LINE)
            self._focus(self._last_pane)
            self._share()

    def _wish(self, wish: Wish) -> None:
        if wish != self.wish:
            self.wish = wish
            self._say_where()
            self._follower.wish(wish)

    # ----------------------------------------------------------------- more about a row

    def action_open(self) -> None:
        """Show more of the chosen row: a worker's transcript, a task, a file, or a session's locks."""
        row = self.pane.row
        if row is None:
            return
        if row.run:
            words = ["worker", "logs", "--follow", *self._place(row), "--", row.run]
            self.push_screen(Printed(f"worker logs {row.run} --follow", words, from_the_end=True))
        elif row.task:
            self.push_screen(Printed(f"task {row.task}", ["task", *self._acting, *self._place(row), "--", row.task]))
        elif row.file:
            self.action_why()
        elif row.session:
            self._wish(self.wish._replace(words=row.session))

    def action_why(self) -> None:
        """Show the holders of the row's file, and the reason why it can or cannot be written."""
        self._of_file("why")

    def action_log(self) -> None:
        """Show the history of the locks on the row's file."""
        self._of_file("log")

    def action_blame(self) -> None:
        """Show the uncommitted lines of the row's file by author, or those of the row's session by file."""
        row = self.pane.row
        if row is not None and row.session:
            words = ["diff", "--stat", "--session", row.key, *self._place(row), "--", row.scope or self._scope]
            self.push_screen(Printed(f"diff --stat --session {row.key[:8]}", words))
        elif row is not None and row.file:
            words = ["blame", "--uncommitted", *self._place(row), "--", row.file]
            self.push_screen(Printed(f"blame {self._files.shown(row.file)} --uncommitted", words))
        else:
            self._say("choose a row with a file or a session first")

    def action_today(self) -> None:
        """Show the history of this checkout."""
        words = ["log", *self._acting, *self._here, "--limit", "1000"]
        self.push_screen(Printed("log --limit 1000", words, from_the_end=True))

    def _of_file(self, verb: str) -> None:
        row = self.pane.row
        if row is None or not row.file:
            self._say("choose a row with a file first, or type its path with f")
        else:
            self._ask_about(verb, row.file, self._place(row))

    def _ask_about(self, verb: str, path: str, place: list[str]) -> None:
        self.push_screen(Printed(f"{verb} {self._files.shown(path)}", [verb, *self._acting, *place, "--", path]))

    def _place(self, row: Row) -> list[str]:
        """The words that have a command work where the row is from."""
        if row.scope not in ("", self._scope):
            return ["--scope", row.scope]
        return self._here

    # --------------------------------------------------------------- changes

    def action_unlock(self) -> None:
        """Give back one's own lock, once that has been confirmed."""
        row = self.pane.row
        if row is None or row.held is None:
            self._say(
                "not your lock: u gives back only your own" if row and row.file else "choose a lock of yours first"
            )
            return
        held = row.held
        words = ["unlock", "--as", held.holder]
        words += ["--agent", held.agent] if held.agent else []
        self._confirm(f"Unlock {named(row.cells[0])}?", [*words, *self._place(row), "--", row.file])

    def action_stop(self) -> None:
        """End the row's worker, or call its task off, once that has been confirmed."""
        row = self.pane.row
        if row is None or not (row.run or row.task):
            self._say("choose a worker or a task first")
            return
        if row.task:
            what = "Call off this task, and end its worker?"
        else:
            what = "End this worker?"
        words = ["cancel", *self._acting, *self._place(row), "--", row.task or row.run]
        self._confirm(f"{what}\n{row.cells[0]}", words)

    def _confirm(self, question: str, words: list[str]) -> None:
        """Run a command if the answer is yes."""
        self.push_screen(Question(question), lambda yes: self._run(words) if yes else None)

    def _run(self, words: list[str]) -> None:
        self.run_worker(self._told(words))

    async def _told(self, words: list[str]) -> None:
        """Run a command, and show its last line."""
        code, last = await done(words)
        self._say(last or f"exit code {code}", bad=code != 0)

    def _say(self, words: str, bad: bool = False) -> None:
        self.notify(one_line(words), severity="error" if bad else "information", timeout=5, markup=False)

"""The content of one screen: tables of plain text, and the facts for the commands on a row."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from swarm_mcp.errors import SwarmError
from swarm_mcp.store.changes import Changes


class Column(NamedTuple):
    """A column: its heading, its largest width in cells, and its style.

    A long text loses its end; with `keep_end` its beginning; with `tail` the part before its last `tail` characters,
    since a session's number tells it from others. `style` is one of ``styles.STYLES``, or ``state`` if the cell's word
    decides.
    """

    heading: str
    most: int
    style: str = ""
    keep_end: bool = False
    tail: int = 0


class Held(NamedTuple):
    """The grant behind a row, as needed to release it."""

    holder: str
    agent: str = ""


class Row(NamedTuple):
    """A row: `key` identifies it from one picture to the next; the other fields serve the commands on it.

    `scope` is the folder of its checkout. A row that `is_below` another belongs to that one, and does not count.
    """

    key: str
    cells: tuple[str, ...]
    style: str = ""
    file: str = ""
    held: Held | None = None
    run: str = ""
    task: str = ""
    session: str = ""
    scope: str = ""
    is_below: bool = False


class Table(NamedTuple):
    """A titled table with its first rows and their total `number`; `empty` is its text without rows.

    `searched`: the number of rows that were searched for words, if there are more; `number` counts within these.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    number: int = 0
    empty: str = "none"
    searched: int = 0

    @property
    def title(self) -> str:
        """The table's name, how many rows it has, and how many of them are not shown."""
        more = self.number - len([row for row in self.rows if not row.is_below])
        words = f"{self.name} {self.number:,}"
        if self.searched:
            words += f" of the newest {self.searched:,}"
        return words + (f", {more:,} not shown" if more > 0 else "")


class Picture(NamedTuple):
    """All tables of a moment, under a line that names their subject; `scope` is the folder that `top` was started in.

    `news`: one line about a lowered protection, and about the machines that share the checkout; may be empty.
    """

    where: str
    tables: tuple[Table, ...]
    scope: str = ""
    news: str = ""


class Wish(NamedTuple):
    """The wanted rows: only those with these `words`, of one scope or of all."""

    words: str = ""
    everywhere: bool = False


class Trouble(NamedTuple):
    """The reason for a missing picture, in a line."""

    reason: str


# A new picture after every commit: read at once, at a rate that the machine can spare, and only after changes.
#
# One thread sleeps until a process commits to the store; the other reads and hands over. The end waits for neither, so
# a store that is locked for long does not delay leaving.

REST_SECONDS = 10.0  # between readings without a commit: sessions die and leases lapse without one
LEAST_PAUSE = 0.1  # between two readings of a busy store
REST_FACTOR = 100  # while nothing happens at most a hundredth of the time goes into readings
PAUSE_FACTOR = 5  # a reading that takes long is done more seldom: at most a sixth of the time goes into them


class Follower:
    """Calls `tell` with a new picture, or with the trouble there is, from a thread of its own."""

    def __init__(self, read: Callable[[Wish], Picture], tell: Callable[[Picture | Trouble | Exception], object]):
        self._read, self._tell = read, tell
        self._wish = Wish()
        self._due = threading.Event()
        self._asked = threading.Event()  # a key was typed, or the app quits: no pause before that
        self._stopped = threading.Event()
        self._changes: Changes | None = None
        self._changes_guard = threading.Lock()  # held while it is closed, or stopped

    def start(self, wish: Wish) -> None:
        """Begin, with a first picture."""
        self._wish = wish
        for work in (self._listen, self._follow):
            threading.Thread(target=work, name=f"top {work.__name__}", daemon=True).start()

    def wish(self, wish: Wish) -> None:
        """Show this from now on."""
        self._wish = wish
        self._due.set()
        self._asked.set()

    def stop(self) -> None:
        """Tell nothing any more."""
        self._stopped.set()
        self._due.set()
        self._asked.set()
        with self._changes_guard:
            if self._changes is not None:
                self._changes.stop()

    def _listen(self) -> None:
        try:
            changes = Changes()
        finally:
            self._due.set()  # only now, so that no commit falls between the first reading and the first look
        with self._changes_guard:
            if self._stopped.is_set():
                self._changes = None
            else:
                self._changes = changes
        while not self._stopped.is_set() and changes.wait():
            self._due.set()
        with self._changes_guard:
            self._changes = None
            changes.close()

    def _follow(self) -> None:
        took = 0.0
        while True:
            self._due.wait(max(REST_SECONDS, REST_FACTOR * took))
            self._due.clear()
            self._asked.clear()
            if self._stopped.is_set():
                return
            began = time.thread_time()  # of the processor: where others keep that busy, this is no reason to be late
            try:
                told: Picture | Trouble | Exception = self._read(self._wish)
            except SwarmError as error:
                told = Trouble(" ".join(str(error).split()))
            except Exception as error:  # a bug: the caller reports it after restoring the terminal
                told = error
            if self._stopped.is_set():
                return
            self._tell(told)
            took = time.thread_time() - began
            self._asked.wait(max(LEAST_PAUSE, PAUSE_FACTOR * took))

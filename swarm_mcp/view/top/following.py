"""A new picture after every commit: read at once, at a rate that the machine can spare, and only after changes.

One thread sleeps until a process commits to the store; the other reads and hands over. The end waits for neither, so a
store that is locked for long does not delay leaving.
"""

from __future__ import annotations

import threading
import time

from swarm_mcp.errors import SwarmError
from swarm_mcp.store.changes import Changes
from swarm_mcp.view.top.picture import Picture, Trouble, Wish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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

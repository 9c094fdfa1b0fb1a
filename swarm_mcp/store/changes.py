"""Knowing when any process has committed to a store, at once and at no cost while nothing happens."""

from __future__ import annotations

import os
import threading
import time

from swarm_mcp.store import driver as drivers
from swarm_mcp.store.file_events import FileEvents, events_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTLE_SECONDS = 1.0  # how long after a write its commit may become visible
FIRST_LOOK_SECONDS = 0.0005
LONGEST_LOOK_SECONDS = 0.016
GAP_SECONDS = 0.01  # between two answers: a busy store is one piece of news, not a thousand a second


class Changes:
    """Commits to the store at `path`, by any process, this one's own included.

    The store need not exist yet, and may be replaced. One thread waits; `stop` may come from another.
    """

    def __init__(self, path: str, events=events_of):
        self.path = path
        self.driver = drivers.load()
        self._events: FileEvents = events(path)
        self._stopped = threading.Event()
        self._connection: Any = None
        self._file: tuple[int, int] | None = None
        self._answered = 0.0
        self._seen: tuple | None = None
        self._seen = self._version()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until some process has committed since the last True, or since this object was made.

        False when `seconds` (None: for ever) have passed, or after `stop`.
        """
        end = None if seconds is None else time.monotonic() + seconds
        self._events.pause(self._left(end, self._answered + GAP_SECONDS - time.monotonic()))
        # Frames are written and synced before a commit can be seen, so a look right after an event is
        # often too early: look again, ever more slowly, for as long as a sync may take.
        pause, settled = FIRST_LOOK_SECONDS, 0.0
        touched = self._events.wait(0)
        while not self._stopped.is_set():
            if self._moved():
                return True
            now = time.monotonic()
            if end is not None and now >= end:
                return False
            if touched:
                settled = now + SETTLE_SECONDS
                pause = FIRST_LOOK_SECONDS
            if now < settled:
                self._events.pause(self._left(end, pause))
                pause = min(pause * 2, LONGEST_LOOK_SECONDS)
                touched = time.monotonic() >= settled and self._events.wait(0)
            else:
                touched = self._events.wait(self._left(end, self._events.rest))
        return False

    @property
    def stopped(self) -> bool:
        """Whether `stop` has been called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End the present `wait` and every later one. From any thread."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._events.interrupt()

    def close(self) -> None:
        """Let go of the store. Not while another thread still waits."""
        self._stopped.set()
        self._disconnect()
        self._events.close()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    # -------------------------------------------------------------- innards

    def _left(self, end: float | None, seconds: float) -> float:
        return seconds if end is None else min(seconds, end - time.monotonic())

    def _moved(self) -> bool:
        version = self._version()
        if version == self._seen:
            return False
        self._seen = version
        self._answered = time.monotonic()
        return True

    def _version(self) -> tuple | None:
        """What differs after every commit, None where there is no store; as last seen while one is on its way."""
        try:
            found = os.stat(self.path)
            file = (found.st_dev, found.st_ino)
        except OSError:
            file = None
        try:
            if file != self._file:
                self._disconnect()
                if file:
                    self._connection = self._connect()
                self._file = file
                self._events.renew()
            if self._connection is None or file is None:
                return None
            return (*file, *self._connection.execute("PRAGMA data_version").fetchone())
        except self.driver.Error:
            return self._seen  # locked for the blink of a commit, or only half there yet

    def _connect(self):
        # No waiting for a writer: the next look is soon enough. And no reading of the bare file where there
        # is no leave to make the log's index: somebody who writes will make it.
        uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
        return self.driver.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._file = None, None

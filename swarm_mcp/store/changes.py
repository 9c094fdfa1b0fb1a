"""Waiting for commits of any process to a store, at once and at no cost while nothing happens.

`FileEvents` tells of writes to the store's files; `Changes` then looks for a commit. A store is its file with ``-wal``
or ``-journal`` beside it. Those come and go, so the folder is watched. `FileEvents` never opens the database file
itself: closing any handle on it would drop the locks that SQLite holds on it for this whole process
(https://sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core.state import store_path
from swarm_mcp.store import driver as drivers

SETTLE_SECONDS = 1.0  # how long after a write its commit may become visible
FIRST_LOOK_SECONDS = 0.0005
LONGEST_LOOK_SECONDS = 0.016
GAP_SECONDS = 0.01  # between two answers: a busy store is one piece of news, not a thousand a second
POLL_SECONDS = 0.025  # between looks where the system cannot tell
REST_SECONDS = 1.0  # between looks where it can: a file system may be written to from another machine
_kernel: Any = select  # not every system has `kqueue`


class FileEvents:
    """Events of a store's files. This class gets no events and only keeps time, for systems that offer none."""

    def __init__(self, path: str):
        self.path = path
        self.folder, self.name = os.path.split(os.path.realpath(path))
        self._wake_read, self._wake_write = os.pipe()
        for handle in (self._wake_read, self._wake_write):
            os.set_blocking(handle, False)

    @property
    def rest(self) -> float:
        """Seconds after which to look, with or without an event."""
        return POLL_SECONDS

    def wait(self, seconds: float) -> bool:
        """Wait for an event or `interrupt`, for at most `seconds`; return True if a file of the store was touched."""
        self.pause(seconds)
        return False

    def pause(self, seconds: float) -> None:
        """Wait `seconds`, or until `interrupt`. Events keep."""
        self._ready(seconds, self._wake_read)

    def renew(self) -> None:
        """Watch the place where the store is now: it has come, or has been replaced."""
        self.folder, self.name = os.path.split(os.path.realpath(self.path))

    def interrupt(self) -> None:
        """End the present wait and all later ones. From any thread."""
        os.write(self._wake_write, b"x")

    def close(self) -> None:
        """Let go of everything. Once."""
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _ready(self, seconds: float, *handles: int) -> list[int]:
        """Return those of `handles` that can be read, after at most `seconds`. Their numbers may be of any size."""
        poll = select.poll()
        for handle in handles:
            poll.register(handle, select.POLLIN)
        # Rounded up: a wait that ends early would be a busy one.
        return [handle for handle, _event in poll.poll(max(0, math.ceil(seconds * 1000)))]

    def _is_ours(self, name: str) -> bool:
        return name.startswith(self.name) and name[len(self.name) :] in ("", "-wal", "-journal")


class Inotify(FileEvents):
    """Linux. Raises OSError where the system gives out no more of these."""

    # linux/inotify.h
    _TOUCHED = 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x800  # MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE, MOVE_SELF
    _ONLY_FOLDER = 0x01000000
    _MOVE_SELF, _OVERFLOW, _IGNORED = 0x800, 0x4000, 0x8000

    def __init__(self, path: str):
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        super().__init__(path)
        self._watches = self._watch()

    @property
    def rest(self) -> float:
        if self._watches:
            return REST_SECONDS
        return POLL_SECONDS

    def wait(self, seconds: float) -> bool:
        if not self._watches:  # the folder was not there, or has been replaced
            self._watches = self._watch()
            if self._watches:
                return True
            self.pause(seconds)
            return False
        return self._handle in self._ready(seconds, self._handle, self._wake_read) and self._touched()

    def renew(self) -> None:
        super().renew()
        self._watches = self._watch()

    def close(self) -> None:
        os.close(self._handle)
        super().close()

    def _watch(self) -> bool:
        folder = os.fsencode(self.folder)
        return bool(self._libc.inotify_add_watch(self._handle, folder, self._TOUCHED | self._ONLY_FOLDER) >= 0)

    def _touched(self) -> bool:
        """Read all pending events; return True if one is about our files."""
        touched = False
        while True:
            try:
                data = os.read(self._handle, 65536)
            except BlockingIOError:  # nothing more is pending
                return touched
            at = 0
            while at < len(data):  # struct inotify_event: wd, mask, cookie, len; then the name
                mask = int.from_bytes(data[at + 4 : at + 8], sys.byteorder)
                size = int.from_bytes(data[at + 12 : at + 16], sys.byteorder)
                name = os.fsdecode(data[at + 16 : at + 16 + size].rstrip(b"\0"))
                at += 16 + size
                if mask & (self._IGNORED | self._MOVE_SELF):
                    self._watches = False
                if mask & (self._IGNORED | self._MOVE_SELF | self._OVERFLOW) or self._is_ours(name):
                    touched = True


class Kqueue(FileEvents):
    """macOS and BSD: the folder, for files that come and go, and the log, for writes to it.

    With a rollback journal each commit removes the journal, which changes the folder.
    """

    def __init__(self, path: str):
        super().__init__(path)
        self._queue = _kernel.kqueue()
        self._queue.control([self._event(self._wake_read, _kernel.KQ_FILTER_READ, _kernel.KQ_EV_ADD)], 0)
        self._watched: dict[str, tuple[int, int]] = {}  # path -> handle, inode
        self._watch()

    @property
    def rest(self) -> float:
        if self.folder in self._watched:
            return REST_SECONDS
        return POLL_SECONDS

    def wait(self, seconds: float) -> bool:
        if self._watch():
            return True
        events = self._queue.control(None, 8, max(0.0, seconds))
        touched = any(event.ident != self._wake_read for event in events)
        return self._watch() or touched

    def close(self) -> None:
        for handle, _inode in self._watched.values():
            os.close(handle)
        self._queue.close()
        super().close()

    def _watch(self) -> bool:
        """Watch all files that are there now; return True if there is a new one."""
        news = False
        for path in (self.folder, os.path.join(self.folder, self.name + "-wal")):
            try:
                inode = os.stat(path).st_ino
            except OSError:  # the file is not there now
                inode = 0
            handle, known = self._watched.get(path, (-1, 0))
            if inode == known:
                continue
            news = True
            if handle >= 0:
                os.close(handle)
                del self._watched[path]
            if inode:
                news = self._add(path) or news
        return news

    def _add(self, path: str) -> bool:
        try:
            handle = os.open(path, getattr(os, "O_EVTONLY", os.O_RDONLY) | os.O_CLOEXEC)
        except OSError:
            return False  # gone again, or not ours to read; the next look tries anew
        notes = _kernel.KQ_NOTE_WRITE | _kernel.KQ_NOTE_EXTEND | _kernel.KQ_NOTE_DELETE | _kernel.KQ_NOTE_RENAME
        event = self._event(handle, _kernel.KQ_FILTER_VNODE, _kernel.KQ_EV_ADD | _kernel.KQ_EV_CLEAR, notes)
        self._queue.control([event], 0)
        self._watched[path] = (handle, os.fstat(handle).st_ino)
        return True

    def _event(self, handle: int, kind: int, flags: int, notes: int = 0) -> Any:
        return _kernel.kevent(handle, filter=kind, flags=flags, fflags=notes)


def events_of(path: str) -> FileEvents:
    """Return the best kind of events that this system has for the store at `path`."""
    try:
        system: str = sys.platform  # type checkers would take it for the one they run on
        if system.startswith("linux"):
            return Inotify(path)
        if hasattr(select, "kqueue"):
            return Kqueue(path)
    except (OSError, AttributeError):
        pass  # no more watches to be had, or a C library without them
    return FileEvents(path)


class Changes:
    """Commits to the store, by any process, this one's own included; to the user's, where no `path` is given.

    The store need not exist yet, and may be replaced. One thread waits; `stop` may come from another.
    """

    def __init__(self, path: str | None = None, events: Callable[[str], FileEvents] = events_of):
        self.path = path or store_path()
        self.driver = drivers.load()
        self._events: FileEvents = events(self.path)
        self._stopped = threading.Event()
        self._connection: Any = None
        self._file: tuple[int, int] | None = None
        self._answered = 0.0
        self._seen: tuple[Any, ...] | None = None
        self._seen = self._version()

    def wait(self, seconds: float | None = None) -> bool:
        if seconds is None:
            end = None
        else:
            end = time.monotonic() + seconds
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
        return self._stopped.is_set()

    def stop(self) -> None:
        if not self._stopped.is_set():
            self._stopped.set()
            self._events.interrupt()

    def close(self) -> None:
        self._stopped.set()
        self._disconnect()
        self._events.close()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -------------------------------------------------------------- innards

    def _left(self, end: float | None, seconds: float) -> float:
        if end is None:
            return seconds
        return min(seconds, end - time.monotonic())

    def _moved(self) -> bool:
        version = self._version()
        if version == self._seen:
            return False
        self._seen = version
        self._answered = time.monotonic()
        return True

    def _version(self) -> tuple[Any, ...] | None:
        """Return a value that differs after every commit, None without a store. While a commit is on its way: the last
        value.
        """
        try:
            found = os.stat(self.path)
            file = (found.st_dev, found.st_ino)
        except OSError:  # there is no store yet
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

    def _connect(self) -> Any:
        # Do not wait for a writer: the next look is soon enough. Do not read the bare file without the right to make
        # the log's index: a writer will make it.
        uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
        return self.driver.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._file = None, None

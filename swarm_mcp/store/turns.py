"""Taking turns at the store: one transaction at a time, and a fair wait for it.

SQLite's own waiting asks again after 1 to 100 ms: the longest waiter asks least often, and is starved by newcomers (for
seconds, with 32 processes). Here processes that found the store busy stand in line for a lock on its folder, which the
system hands on in order of arrival. The process whose turn it is writes as often as it likes for a few milliseconds,
since SQLite's cache is good until another process writes; then it goes to the end of the line. The line is a courtesy:
if it is held up or cannot be had, every process asks for itself, only less often.
"""

from __future__ import annotations

import _thread
import errno
import os
import time

TURN = 0.003  # with 32 processes each has one within 0.15 s
# Before the turn is over the next in line is woken, which may take as long: no process has the store meanwhile.
NOTICE = 0.001
FIRST_PAUSE = 0.0001  # between the tries of the process with the turn
PAUSE = 0.004  # without a line
PATIENCE = 0.4  # in line: longer than a moving line takes, since a try out of turn takes time from others
STRAY_PAUSE = 0.08  # between the tries of those in line, should the line not move


def is_waited_for(folder: str) -> bool:
    """Return True if a process stands in the line of this folder. Costs 6 us."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):  # no such locks on this system: there is no line
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # the lock is held: a process waits
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(handle)
    return False


def pause() -> None:
    """Wait a moment before the next try, each time another."""
    time.sleep(FIRST_PAUSE + _some(PAUSE))


class Line:
    """A place in the line of those that want to write, taken by a thread that waits for its turn.

    The lock is on the folder: on the file itself it would clash with SQLite's own (on macOS), and a
    file of its own would lie about for ever.
    """

    def __init__(self, folder: str, patience: float = PATIENCE):
        self.patience = patience  # until the next try, should it not be our turn before
        self.turn, self.done = _thread.allocate_lock(), _thread.allocate_lock()
        self.turn.acquire()  # held until it is our turn
        self.done.acquire()  # held until we have the store, or give up
        self.first = False
        self.folder = -1
        try:
            self.folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            _thread.start_new_thread(self._stand, ())
        except (OSError, RuntimeError):
            self._close()

    def pause(self) -> None:
        """Wait before the next try: until it is our turn, and briefly from then on."""
        if self.first:
            time.sleep(_some(2 * FIRST_PAUSE))
        elif self.folder < 0:
            pause()
        else:
            self.first = self.turn.acquire(timeout=self.patience)
            self.patience = STRAY_PAUSE / 2 + _some(STRAY_PAUSE)

    def leave(self) -> None:
        """Wait no more, having got the store or given up: our turn ends soon, and does not come if it has not yet."""
        self.done.release()

    def _stand(self) -> None:
        try:
            import fcntl

            fcntl.flock(self.folder, fcntl.LOCK_EX)
        except (ImportError, OSError):  # no such locks on this system: there is no line
            return self._close()
        self.turn.release()
        self.done.acquire()
        if self.first:
            time.sleep(TURN - NOTICE)  # the others leave the store to us until then
        self._close()

    def _close(self) -> None:
        folder, self.folder = self.folder, -1
        if folder >= 0:
            os.close(folder)


def _some(seconds: float) -> float:
    return seconds * os.urandom(1)[0] / 255  # importing `random` would take 5 ms

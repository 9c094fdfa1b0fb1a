"""The number of workers at once on this machine: a slot for each, and a queue for the waiting ones.

A slot is a file in the state folder that the worker's supervisor keeps locked (``flock``), so that it is free the
moment the supervisor is gone. A worker without a slot leaves a locked ticket, named by the time; only the holder of the
oldest ticket may take a slot, so that every waiter gets its turn. A stopped holder stops asking, and is passed over
until it goes on; its ticket is the oldest again then.

A worker that starts workers and waits for them would wait for ever if such workers had taken all slots. So each worker
has one more slot, for one worker of its own at a time.
"""

from __future__ import annotations

import fcntl
import os
import time

from swarm_hook_core.environment import first_set
from swarm_hook_core.state import make_private, open_private, state_dir

DEFAULT_MOST = 4
VARIABLE = "SWARM_MAX_WORKERS"
SILENT_SECONDS = 30.0  # since a ticket's holder has asked last


def most() -> int:
    """Return how many workers may run at once (``SWARM_MAX_WORKERS``), 0 for any number."""
    text = first_set(VARIABLE)
    if text.isascii() and text.isdigit():
        return int(text)
    return DEFAULT_MOST


class Slot:
    """One worker's slot. `within` names its starter, empty for none.

    For one thread only. Raises OSError if the state folder cannot be used.
    """

    def __init__(self, within: str = ""):
        self._folder = os.path.join(state_dir(), "slots")
        self._within = within
        self._held = self._ticket = -1
        self._ticket_path = ""
        self.taken = False

    def take(self) -> bool:
        """Take a slot if one is free and no other worker has waited longer. Returns True if this worker has one now."""
        if self.taken or not most():
            self.taken = True
            return True
        make_private(self._folder)
        self._draw_ticket()
        try:
            os.utime(self._ticket_path, (time.time(), time.time()))
        except OSError:
            pass  # the folder has been cleaned
        if self._is_first():
            self._held = next((file for file in map(self._lock, map(str, range(1, most() + 1))) if file >= 0), -1)
        if self._held < 0 and self._within:
            self._held = self._lock(f"within-{self._within}")
        self.taken = self._held >= 0
        if self.taken:
            self._drop_ticket()
        return self.taken

    def release(self) -> None:
        """Give the place back, or stop waiting for one. Safe to call twice."""
        self._drop_ticket()
        held, self._held, self.taken = self._held, -1, False
        if held >= 0:
            os.close(held)

    def _lock(self, name: str) -> int:
        """Return an open file locked by us, or -1 if another process has the lock."""
        path = os.path.join(self._folder, name)
        file = open_private(path, os.O_RDWR | os.O_CREAT)
        if not _locked(file):
            os.close(file)
            return -1
        return file

    # --------------------------------------------------------------- the line

    def _draw_ticket(self) -> None:
        folder = os.path.join(self._folder, "line")
        while self._ticket < 0:
            make_private(folder)
            path = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}")
            file = open_private(path, os.O_RDWR | os.O_CREAT)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(path):
                self._ticket, self._ticket_path = file, path
            else:  # another process saw it before it was locked, and removed it as a leftover
                os.close(file)

    def _drop_ticket(self) -> None:
        ticket, self._ticket = self._ticket, -1
        if ticket >= 0:
            _remove(self._ticket_path)
            os.close(ticket)

    def _is_first(self) -> bool:
        """Return True if no other waiter has waited longer."""
        folder, own = os.path.split(self._ticket_path)
        for name in sorted(os.listdir(folder)):
            if name == own:
                return True
            path = os.path.join(folder, name)
            if _is_held(path) and not _is_silent(path):
                return False
        return True  # the folder has been cleaned


def forget(worker: str) -> None:
    """Remove the leftovers of an ended worker: the slot within its own."""
    _remove(os.path.join(state_dir(), "slots", f"within-{worker}"))


def _is_held(path: str) -> bool:
    """Return True if the holder of a ticket still waits; a leftover ticket is removed."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # removed meanwhile
        return False
    try:
        if not _locked(file):
            return True
        _remove(path)
        return False
    finally:
        os.close(file)


def _is_silent(path: str) -> bool:
    """Return True if the holder of a ticket has not asked for so long that it must have been stopped."""
    try:
        return time.time() - os.stat(path).st_mtime >= SILENT_SECONDS
    except OSError:  # removed meanwhile
        return True


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by its holder
        return False
    return True


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:  # removed meanwhile
        pass

"""A check's wait for a store that somebody else has for himself just now, as a commit or the end of a command may.

Loaded only once a check has met that. It is over soon, within a few times that the disk takes to store what is
written; a check that gave up before would let a write pass that is to be denied. A store that somebody keeps is broken,
and every write would wait for it: once a check has waited in vain, those after it do not, for a while.
"""

import os
import time

from swarm_hook_core.state import read_private, state_dir, write_private

SECONDS = 1.0  # that a check waits in all, of the 5 s that clients wait for it: some ten times what a slow disk takes
IN_VAIN_SECONDS = 30  # in which none waits after one has in vain
PAUSE = 0.01  # between two looks, beside what SQLite waits itself

_in_vain: dict = {}  # store -> when this process last waited for it in vain: the state folder may not be writable


class Wait:
    """The wait of one check for the store at `path`, which has just been found busy, however often it is so."""

    def __init__(self, path: str):
        self.path = path
        self.end = 0.0 if _was_in_vain(path) else time.monotonic() + SECONDS

    def goes_on(self) -> bool:
        """Pause, and say whether to ask once more; where that has been done long enough, others are not to wait."""
        if time.monotonic() < self.end:
            time.sleep(PAUSE)
            return True
        if self.end:
            _note_in_vain(self.path)
        return False


def _note_file() -> str:
    return os.path.join(state_dir(), "busy")


def _was_in_vain(path: str) -> bool:
    now = time.monotonic()
    if now - _in_vain.get(path, now - IN_VAIN_SECONDS) < IN_VAIN_SECONDS:
        return True
    try:
        age = time.time() - os.stat(_note_file()).st_mtime
        noted = read_private(_note_file(), 16384).decode("utf-8", "surrogateescape")
        return 0 <= age < IN_VAIN_SECONDS and noted == path
    except OSError:
        return False


def _note_in_vain(path: str) -> None:
    _in_vain[path] = time.monotonic()
    try:
        write_private(_note_file(), path)
    except OSError:
        return  # each process finds out by itself then

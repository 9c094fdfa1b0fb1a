"""The wait of a check for a store that another process has locked, as a commit or the end of a command may.

Loaded only once a check has met that. It is over soon, within a few times that the disk takes for the write. A check
that gave up before would let a write pass that is to be denied. A store that stays locked is broken, and every write
would wait for it: after one check has waited in vain, the next ones do not, for a while.
"""

import os
import time

from swarm_hook_core.state import read_private, state_dir, write_private

# of a check's waits together, of the 5 s that clients wait for it: some ten times the time of a slow disk
SECONDS = 1.0
IN_VAIN_SECONDS = 30  # without waits after a check has waited in vain
PAUSE = 0.01  # between two looks, beside SQLite's own wait

# store -> when this process last waited for it in vain: the state folder may not be writable
_in_vain: "dict[str, float]" = {}


class Wait:
    """The wait of one check for the store at `path`, which has just been found busy, for all such moments together."""

    def __init__(self, path: str):
        self.path = path
        if _was_in_vain(path):
            self.end = 0.0
        else:
            self.end = time.monotonic() + SECONDS

    def goes_on(self) -> bool:
        """Pause, and return True to ask once more; after too long a wait, keep later checks from waiting."""
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
    except OSError:  # no check has waited in vain
        return False


def _note_in_vain(path: str) -> None:
    _in_vain[path] = time.monotonic()
    try:
        write_private(_note_file(), path)
    except OSError:
        return  # each process finds out by itself then

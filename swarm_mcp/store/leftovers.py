"""Temporary files that killed processes left in the state folder: they are removed after an hour."""

from __future__ import annotations

import os

from swarm_hook_core.state import state_dir

KEPT_SECONDS = 3600  # no process of ours writes one file for so long
NOT_OURS = ("work", "worktrees")  # folders in which workers write files of their own


def remove(now: float, age: float = KEPT_SECONDS) -> None:
    """Remove temporary files that have not changed for `age` seconds. `now` in Unix seconds. Never raises."""
    top = state_dir()
    for folder, folders, names in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name not in NOT_OURS]
        for name in names:
            if name.endswith(".tmp"):
                _remove_old(os.path.join(folder, name), now, age)


def _remove_old(path: str, now: float, age: float) -> None:
    try:
        if abs(now - os.lstat(path).st_mtime) > age:  # the clock may have been set back
            os.remove(path)
    except OSError:
        return  # its process has just put it in its place

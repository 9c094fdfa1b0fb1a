"""Files that releases with the official SDK left in the state folder: its recorded answers to first questions."""

from __future__ import annotations

import os

from swarm_hook_core.state import state_dir

PREFIX = "opening-"


def forget_records() -> bool:
    """Remove every record, and their folder once it is empty. Return True if there was a record."""
    folder, found = os.path.join(state_dir(), "server"), False
    try:
        for name in os.listdir(folder):
            if name.startswith(PREFIX):
                os.remove(os.path.join(folder, name))
                found = True
        os.rmdir(folder)
    except OSError:
        pass  # no folder, or one with files of other origin
    return found

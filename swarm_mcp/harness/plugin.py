"""The plugin that children get their hooks from, where the user's own configuration does not have it."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_mcp.errors import SwarmError

FOLDER = "plugin"


def plugin_folder() -> Path:
    """The folder of an up-to-date local bundle, in this user's state folder.

    A client that runs from it may be at work while a newer installation brings it up to date: files are replaced
    one by one, whole. Raises SwarmError where the folder cannot be written.
    """
    import fcntl

    from swarm_hook_core.state import make_private, open_private, state_dir
    from swarm_mcp.runtimes import bundle

    target = Path(state_dir()) / FOLDER
    try:
        if _is_current(target):
            return target
        make_private(str(target.parent))
        # Many workers may start at once: one of them writes, the others find it done.
        with open(open_private(f"{target}.lock", os.O_WRONLY | os.O_CREAT), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_current(target):
                bundle.write(target, local=True, force=True)
    except OSError as error:
        raise SwarmError(f"the plugin for workers cannot be written to {target}: {error.strerror or error}") from None
    return target


def _is_current(target: Path) -> bool:
    """Whether every file of the bundle is there with the bytes that it should have; the record is written last."""
    from swarm_mcp.runtimes import bundle

    if not (target / bundle.RECORD).is_file():
        return False
    for name, content in bundle.contents(local=True).items():
        path = target / name
        try:
            if os.path.getsize(path) != len(content) or path.read_bytes() != content:
                return False
        except OSError:
            return False
    return True

"""A private folder for one run, removed with the run.

A killed supervisor cannot remove its folder; the next run does, on proof that the process is gone. The folder lies in
the state folder, never in a checkout: its files may hold addresses, configuration, and a prompt.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from swarm_hook_core.process import gone, host_id, start_time
from swarm_hook_core.state import make_private, state_dir, write_private

OWNER = "owner"
FORGOTTEN_SECONDS = 3600  # a folder that never came to have an owner


def place() -> str:
    """Return where these folders lie."""
    return os.path.join(state_dir(), "running")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder of mode 0700 that is removed at the end of the block. Raises OSError."""
    make_private(place())
    sweep()
    outer = tempfile.mkdtemp(prefix="run-", dir=place())
    try:
        pid = os.getpid()
        write_private(os.path.join(outer, OWNER), f"{pid}\n{start_time(pid)}\n{host_id()}\n")
        inner = os.path.join(outer, "files")
        os.mkdir(inner, 0o700)
        yield Path(inner)
    finally:
        remove(outer)


def written(path: Path, text: str) -> str:
    """Write a private file with this text, and return its path, for settings that name it."""
    write_private(str(path), text)
    return str(path)


def sweep() -> list[str]:
    """Remove the folders of supervisors that are provably gone. The paths that were removed."""
    removed, here = [], host_id()
    try:
        names = os.listdir(place())
    except OSError:  # no folders yet
        return []
    for name in names:
        folder = os.path.join(place(), name)
        if name.startswith("run-") and _left(folder, here):
            remove(folder)
            removed.append(folder)
    return removed


def remove(folder: str) -> None:
    """Remove a folder and its content, read-only parts included. Never raises, never follows a link."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        for inner, _folders, _files in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(inner, stat.S_IRWXU)
        time.sleep(0.01)  # a process may still be writing there


def _left(folder: str, here: str) -> bool:
    try:
        with open(os.path.join(folder, OWNER), encoding="utf-8") as file:
            pid, started, host = file.read(4096).splitlines()[:3]
        return gone(host, int(pid), started, here)
    except (OSError, ValueError):
        try:
            return os.stat(folder).st_mtime < time.time() - FORGOTTEN_SECONDS
        except OSError:  # removed meanwhile
            return False

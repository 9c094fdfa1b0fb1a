"""The present state and content of a file, or of a symbolic link, that is handled whole, without lines."""

from __future__ import annotations

import os
import stat

from swarm_hook_core.no_links import FolderOf
from swarm_hook_core.state import read_all
from swarm_hook_core.traces import NO_FILE, state_of

LARGEST = 16 * 1024 * 1024  # bytes of a file; a larger one is not read

_READ = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


def state_now(path: str) -> str:
    """As `state_of`, of a path without links: a file behind a link that took a folder's place counts as missing."""
    try:
        with FolderOf(path) as (name, folder):
            return state_of(name, folder)
    except (OSError, ValueError):
        return NO_FILE  # its folder is gone, or no folder


def present(path: str) -> tuple[os.stat_result | None, bytes | None]:
    """Return the facts and the content of the file at `path`, of a link its target. Raises OSError.

    `path`: absolute, the links above it resolved. No facts for a missing file. No content for one over 16 MiB, a
    folder, or a device.
    """
    try:
        with FolderOf(path) as (name, folder):
            return present_in(folder, name)
    except (FileNotFoundError, NotADirectoryError):
        return None, None  # a missing file


def present_in(folder: int | None, name: str) -> tuple[os.stat_result, bytes | None]:
    """As `present`, of a file in an open folder. Raises FileNotFoundError for a missing one."""
    found = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(found.st_mode):
        return found, os.fsencode(os.readlink(name, dir_fd=folder))
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        return found, None
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        data = read_all(handle, LARGEST + 1)
    finally:
        os.close(handle)
    if len(data) > LARGEST:
        return found, None  # it has grown just now
    return found, data

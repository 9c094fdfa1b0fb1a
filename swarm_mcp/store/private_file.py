"""The store's file and folder, closed to other users."""

from __future__ import annotations

import _thread
import os

from swarm_hook_core.state import DEFAULT_STORE, make_private, open_private, refuse_link

BESIDE = ("-wal", "-shm", "-journal")  # SQLite's own files: new ones have the mode of the store
_OTHERS = 0o077
_FILE, _FOLDER = 0o100000, 0o040000
# Closing a file drops what locks the process has on it. So nobody here opens a store while another makes it.
_making = _thread.allocate_lock()


def make_private_store(path: str) -> None:
    """See to it that there is a store at `path` which this user alone can read. Raises OSError, for a link too."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        make_private(folder)
    elif path == os.path.expanduser(DEFAULT_STORE):
        _close_to_others(folder, _FOLDER)  # any other folder that was there before is a person's own choice
    with _making:
        refuse_link(path)
        if not os.path.lexists(path):
            _make(path)
    for end in ("", *BESIDE):
        _close_to_others(path + end, _FILE)


def _make(path: str) -> None:
    try:
        handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:  # another process was first
        return refuse_link(path)
    try:
        os.chmod(path, 0o600)  # the process's umask may have taken our own rights as well
    finally:
        os.close(handle)


def _close_to_others(path: str, kind: int) -> None:
    """Take other users' permissions away, where `path` is of this kind, no link, and ours."""
    try:
        found = os.lstat(path)
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if ours and found.st_mode & _OTHERS and found.st_mode & 0o170000 == kind:
            os.chmod(path, found.st_mode & 0o7777 & ~_OTHERS)
    except OSError:
        return  # not there, or a file system that keeps no permissions: it can be used all the same

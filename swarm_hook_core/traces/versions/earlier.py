"""Contents of locked files that earlier releases have kept. `swarm-mcp restore` finds them until they are too old.

They lie flat in ``<state>/kept``, with all facts in their names:

    <file>-<mtime>-<size>-<inode>-<mode>-<content>-<kept at>

`file` is a digest of the file's key (``paths.key_of``), `content` one of its bytes, `mode` octal, `kept at` in Unix
seconds. ``<state>/kept-names/<file>`` holds the path for a digest. Nothing is added any more.
"""

from __future__ import annotations

import os

from swarm_hook_core.state import read_private, state_dir
from swarm_hook_core.traces import names_in

LONGEST_PATH = 16384  # bytes


class EarlierContent:
    """One content: the `path` of its copy, digests of its `file` and its bytes, permissions, time in Unix seconds."""

    __slots__ = ("path", "file", "digest", "mode", "size", "at")

    def __init__(self, path: str):
        self.path = path
        self.file, _mtime, size, _inode, mode, self.digest, at = os.path.basename(path).split("-")
        self.size, self.mode, self.at = int(size), int(mode, 8), int(at)


def all_of() -> list[EarlierContent]:
    """Return all such contents, the newest first."""
    found = [one for name in names_in(_folder()) if (one := at(os.path.join(_folder(), name))) is not None]
    return sorted(found, key=lambda one: -one.at)


def at(path: str) -> EarlierContent | None:
    """Return the content kept at `path`; None if that is no such file."""
    if os.path.dirname(path) != _folder() or not os.path.isfile(path):
        return None
    try:
        return EarlierContent(path)
    except ValueError:
        return None  # another file


def path_of(file: str) -> str:
    """Return the path noted for the digest `file`, or ""."""
    try:
        path = os.fsdecode(read_private(os.path.join(_names(), file), LONGEST_PATH))
    except OSError:
        return ""  # never noted
    return path if os.path.isabs(path) else ""


def prune(now: float, age: float) -> int:
    """Remove contents that are older than `age` seconds, and unused names; return the number of contents.

    Raises OSError.
    """
    found = all_of()
    old = {one.path for one in found if one.at < now - age}
    used = {one.file for one in found if one.path not in old}
    unused = [os.path.join(_names(), file) for file in names_in(_names()) if file not in used]
    for path in [*old, *unused]:
        try:
            if path in old or os.lstat(path).st_mtime < now - 3600:
                os.remove(path)
        except FileNotFoundError:
            continue  # another process was faster
    return len(old)


def _folder() -> str:
    return os.path.join(state_dir(), "kept")


def _names() -> str:
    return os.path.join(state_dir(), "kept-names")

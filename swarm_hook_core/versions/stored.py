"""The versions of a file, as sessions have kept them. Reads the disk; never used before a write of a session alone."""

from __future__ import annotations

import os
import stat

from swarm_hook_core.traces import journal_name, place_of, version_path
from swarm_hook_core.versions import CONTENT, LIMIT_BYTES, NO_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Version:
    """One version of a file.

    path       of the kept copy
    journal    file name of the journal of the session that kept it
    at_ns      time of its entry there
    is_look    True if it was kept after a write, not before one
    exists     False: there was no file
    mode       permissions of the file, without the owner's right to write
    """

    __slots__ = ("path", "journal", "at_ns", "is_look", "exists", "mode", "size")

    def __init__(self, path: str, is_look: bool, found: os.stat_result):
        self.path = path
        self.journal = os.path.basename(os.path.dirname(path))
        self.at_ns = found.st_mtime_ns
        self.is_look = is_look
        self.mode = stat.S_IMODE(found.st_mode)
        self.exists = self.mode != NO_FILE
        self.size = found.st_size

    def content(self) -> bytes:
        """Return the content, empty if there was no file. Raises OSError if it is gone."""
        if not self.exists:
            return b""
        handle = os.open(self.path, _READ)
        try:
            data = b""
            while len(data) <= LIMIT_BYTES and (piece := os.read(handle, LIMIT_BYTES)):
                data += piece
            return data
        finally:
            os.close(handle)


def before_first_write(path: str, runtime: str, session_id: str) -> bytes | None:
    """Return the content of the file at absolute `path` before the session's own first write of it.

    Empty if there was no file; `first_version` tells the two apart. None if it is unknown: the session has not written
    the file, or its content was not kept.
    """
    version = first_version(path, runtime, session_id)
    if version is None:
        return None
    try:
        return version.content()
    except OSError:
        return None  # removed just now


def first_version(path: str, runtime: str, session_id: str) -> Version | None:
    """Return the Version of the file before the session's own first write of it, or None if it is unknown."""
    for one in _spellings(path):
        place = place_of(os.path.dirname(one))
        found = version_at(version_path(place, journal_name(runtime, session_id), one))
        if found is not None:
            return found
    return None


def version_at(path: str, is_look: bool = False) -> Version | None:
    """Return the Version kept at `path`, or None if nothing whole is there."""
    try:
        found = os.lstat(path)
    except OSError:
        return None  # never kept, or removed
    mode = stat.S_IMODE(found.st_mode)
    is_whole = mode == NO_FILE or (mode & CONTENT and not mode & 0o200)
    if not stat.S_ISREG(found.st_mode) or not is_whole:
        return None
    return Version(path, is_look, found)


def _spellings(path: str) -> Iterator[str]:
    """Yield the path with links resolved, and with only those of its folder: a write may replace a link itself."""
    whole = os.path.realpath(path)
    yield whole
    beside = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if beside != whole:
        yield beside

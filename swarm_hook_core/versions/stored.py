"""The versions of a file, as sessions have kept them. Reads the disk; never used before a write of a session alone."""

from __future__ import annotations

import os
import stat

from swarm_hook_core.traces import (
    AFTER,
    CUT,
    LATER,
    LOOK,
    WHOLE,
    journal,
    journal_name,
    kept_dir,
    others_in,
    place_of,
    version_path,
)  # fmt: skip
from swarm_hook_core.versions import CONTENT, LIMIT_BYTES, NO_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENDED = "%journal"  # the journal of a session that has ended, in the folder of its versions
_MARKS = (LATER, LOOK, AFTER)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Version:
    """One version of a file.

    path       of the kept copy
    journal    file name of the journal of the session that kept it
    at_ns      time of its entry there
    is_look    True if it was kept after a write, not before one
    is_after   True if that look was at the end of the call
    exists     False: there was no file
    mode       permissions of the file, without the owner's right to write
    """

    __slots__ = ("path", "journal", "at_ns", "is_look", "is_after", "exists", "mode", "size")

    def __init__(self, path: str, mark: str, found: os.stat_result):
        self.path = path
        self.journal = os.path.basename(os.path.dirname(path))
        self.at_ns = int(path.rpartition(mark)[2]) if mark else found.st_mtime_ns
        self.is_look = mark in (LOOK, AFTER)
        self.is_after = mark == AFTER
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


def version_at(path: str, mark: str = "") -> Version | None:
    """Return the Version kept at `path`, or None if nothing whole is there. `mark`: the one in its name."""
    try:
        found = os.lstat(path)
    except OSError:
        return None  # never kept, or removed
    mode = stat.S_IMODE(found.st_mode)
    is_whole = mode == NO_FILE or (mode & CONTENT and not mode & 0o200)
    if not stat.S_ISREG(found.st_mode) or not is_whole:
        return None
    return Version(path, mark, found)


def versions_of(place: str, path: str) -> list[Version]:
    """Return all whole versions of the file at `path`, links resolved, in `place`, the oldest first."""
    found = []
    base = kept_dir(place)
    for session in _names_in(base):
        first = version_path(place, session, path)
        folder, name = os.path.split(first)
        for one in _names_in(folder):
            mark = one[len(name) :][:2]
            if one == name or (one.startswith(name) and mark in _MARKS and one[len(name) + 2 :].isdigit()):
                found.append(version_at(os.path.join(folder, one), mark))
    return sorted(filter(None, found), key=lambda version: version.at_ns)


def files_of(runtime: str, session_id: str, folder: str) -> list[str]:
    """Return the absolute paths of files at and below absolute `folder`, in one repository, that a session has
    written, as far as its journal and its versions tell.
    """
    root = os.path.realpath(folder)
    place, name = place_of(root), journal_name(runtime, session_id)
    data = journals_of(place).get(name, b"")
    keys = [os.fsdecode(key) for key in journal.newest_lines(data, ("wrote",))]
    keys += [path for path, _version in _kept_by(place, name)]
    return sorted({key for key in keys if (key + "/").startswith(root.rstrip("/") + "/")})


def kept_at(place: str, name: str, since_ns: int, until_ns: int) -> list[tuple[str, Version]]:
    """Return ``[(path, version)]`` of the versions that a session has kept between the two times.

    `name`: file name of its journal. Files with a name too long to be read back are left out.
    """
    return [(path, one) for path, one in _kept_by(place, name) if since_ns <= one.at_ns <= until_ns]


def _kept_by(place: str, name: str) -> Iterator[tuple[str, Version]]:
    folder = os.path.join(kept_dir(place), name)
    for one in _names_in(folder):
        path, mark = path_in(one)
        version = version_at(os.path.join(folder, one), mark)
        if path and version is not None:
            yield path, version


def path_in(name: str) -> tuple[str, str]:
    """Return ``(path, mark)`` of the file that a version with this file name is of; the path is empty if it was cut."""
    mark = ""
    for one in _MARKS:
        head, found, at = name.rpartition(one)
        if found and at.isdigit():
            name, mark = head, one
    if CUT in name:
        return "", mark
    name = name.partition(WHOLE)[0]
    for escape, letter in (("%2F", "/"), ("%5C", "\\"), ("%3A", ":"), ("%25", "%")):
        name = name.replace(escape, letter)
    if os.path.isabs(name):
        return name, mark
    return "", mark


def journals_of(place: str) -> dict[str, bytes]:
    """Return ``{file name: entries}`` of the journals in `place`, also of sessions that have ended."""
    base = kept_dir(place)
    paths = [(name, os.path.join(base, name, ENDED)) for name in _names_in(base)]
    paths += [(os.path.basename(path), path) for path in others_in(place, "")]
    found: dict[str, bytes] = {}
    for name, path in paths:
        try:
            data = journal.read(path)
        except OSError:
            continue  # removed just now, or not a journal
        found[name] = found.get(name, b"") + data  # a session may go on after its end
    return found


def store_ended(path: str) -> bool:
    """Put away the journal at `path`, of a session that has ended, beside its versions. Return False without any."""
    place, name = os.path.split(path)
    folder = os.path.join(kept_dir(place), name)
    if not os.path.isdir(folder):
        return False
    for part in (".1", ""):
        try:
            os.replace(path + part, os.path.join(folder, ENDED + part))
        except OSError:
            continue  # there is no such part
    return True


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []  # nothing was kept there


def _spellings(path: str) -> Iterator[str]:
    """Yield the path with links resolved, and with only those of its folder: a write may replace a link itself."""
    whole = os.path.realpath(path)
    yield whole
    beside = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if beside != whole:
        yield beside

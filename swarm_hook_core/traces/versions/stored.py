"""The versions of a file, as sessions have kept them, and the copies of locked files.

Reads the disk; never used before a write of a session alone.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from swarm_hook_core.paths import contains, real_path
from swarm_hook_core.state import make_private, read_all, read_private, write_private
from swarm_hook_core.traces import (
    AFTER,
    CUT,
    LOOK,
    LOST,
    MERGED,
    PATH,
    journal,
    journal_name,
    kept_dir,
    names_in,
    others_in,
    place_of,
    traces_dir,
    version_path,
)  # fmt: skip
from swarm_hook_core.traces.versions import (
    CONTENT,
    HALF,
    LIMIT_BYTES,
    NO_FILE,
    is_of,
    keep_text,
    read_name,
    split_name,
)
from swarm_hook_core.watching.records import Snapshot, read_resolved

LOCKED = "locked.files"  # name of the folder of locked files' copies, in the place of a session's journal
TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system
ENDED = "%journal"  # the journal of a session that has ended, in the folder of its versions
LONGEST_PATH = 16384  # bytes
_KEEPS_ATIME = hasattr(os, "O_NOATIME")  # a first version's atime means something
_READ = os.O_RDONLY
for _flag in ("O_NOATIME", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


class Version:
    """One version of a file.

    path       of the kept copy
    file       path of the file, empty if the copy's name is too short for it
    journal    file name of the journal of the session that kept it
    at_ns      time of its entry there
    mark       in its name, empty for a session's first version of the file
    is_look    True if it was kept after a write, not before one
    is_after   True if that look was at the end of the call
    is_lost    True if it was kept for `swarm-mcp restore` alone: not one of the file's versions
    is_whole   False: nothing was kept, or half of it; only that the session was about to write is known
    exists     False: there was no file
    mode       permissions of the file, without the owner's right to write
    facts      Facts of a locked file; None for others
    found      the copy's state on the disk
    """

    __slots__ = (
        "path",
        "file",
        "mark",
        "journal",
        "at_ns",
        "is_look",
        "is_after",
        "is_lost",
        "is_whole",
        "exists",
        "mode",
        "facts",
        "size",
        "found",
    )

    def __init__(self, path: str, found: os.stat_result):
        self.path = path
        self.file, self.mark, at_ns = read_name(os.path.basename(path))
        self.journal = os.path.basename(os.path.dirname(path))
        self.at_ns = at_ns or found.st_mtime_ns
        self.is_look = self.mark in (LOOK, AFTER)
        self.is_after = self.mark == AFTER
        self.is_lost = self.mark == LOST
        self.facts = facts_in(os.path.basename(path)) if self.is_lost else None
        self.mode = stat.S_IMODE(found.st_mode)
        self.exists = self.mode != NO_FILE
        self.is_whole = not self.exists or bool(self.mode & CONTENT and not self.mode & 0o200)
        self.size = found.st_size
        self.found = found

    @property
    def kept_at(self) -> float:
        """The time at which it was kept, or noted last (Unix seconds)."""
        return max(self.found.st_mtime, self.found.st_ctime)

    @property
    def has_content(self) -> bool:
        """True if a whole content was kept."""
        return self.exists and self.is_whole

    def content(self) -> bytes:
        """Return the content, empty if there was no file. Raises OSError if it is gone."""
        if not self.exists:
            return b""
        handle = os.open(self.path, _READ)
        try:
            data = read_all(handle, self.size)
            if not _KEEPS_ATIME:
                os.utime(self.path, ns=(self.found.st_atime_ns, self.found.st_mtime_ns))
            return data
        finally:
            os.close(handle)


def version_at(path: str) -> Version | None:
    """Return the Version kept at `path`, or None if nothing whole is there."""
    found = found_at(path)
    return found if found is not None and found.is_whole else None


def found_at(path: str) -> Version | None:
    """Return the Version at `path`, perhaps half of it, or None."""
    try:
        found = os.lstat(path)
    except OSError:
        return None  # never kept, or removed
    return Version(path, found) if stat.S_ISREG(found.st_mode) else None


def versions_of(place: str, path: str, session: str = "") -> list[Version]:
    """Return all whole versions of the file at `path`, links resolved, in `place`, the oldest first.

    `session`: only those that the session with this journal has kept.
    """
    sessions = [session] if session else names_in(kept_dir(place))
    return [one for one in _all_of(place, path, sessions) if one.is_whole and not one.is_lost]


def contents_of(path: str) -> list[Version]:
    """Return all whole contents of the file at `path`, links resolved, that were ever kept, the newest first.

    In all places: its folder, or the repository, may be another one by now.
    """
    places = names_in(kept_dir(""))
    found = [one for place in places for one in _all_of(place, path, names_in(kept_dir(place)))]
    return sorted((one for one in found if one.has_content), key=lambda one: -one.at_ns)


def contents_below(folder: str) -> dict[str, list[Version]]:
    """Return ``{path: contents}``, the newest first, of files below absolute `folder`, in all its repositories."""
    found: dict[str, list[Version]] = {}
    for place in names_in(kept_dir("")):
        for session in names_in(kept_dir(place)):
            for path, one in kept_by(place, session):
                if one.exists and path.startswith(folder.rstrip(os.sep) + os.sep):
                    found.setdefault(path, []).append(one)
    return {path: sorted(some, key=lambda one: -one.at_ns) for path, some in found.items()}


def _all_of(place: str, path: str, sessions: list[str]) -> list[Version]:
    found = []
    for session in sessions:
        first = version_path(place, session, path)
        folder, name = os.path.split(first)
        beginning = [one for one in names_in(folder) if one.startswith(name)]  # few of very many
        found += [found_at(os.path.join(folder, one)) for one in beginning if is_of(one, name)]
    return sorted(filter(None, found), key=lambda version: version.at_ns)


def files_of(runtime: str, session_id: str, folder: str) -> list[str]:
    """Return the absolute paths of files at and below absolute `folder`, in one repository, that a session has
    written, as far as its journal and its versions tell.
    """
    root = os.path.realpath(folder)
    place, name = place_of(root), journal_name(runtime, session_id)
    data = journals_of(place).get(name, b"")
    keys = [os.fsdecode(key) for key in journal.newest_lines(data, ("wrote",))]
    keys += [path for path, _version in kept_by(place, name)]
    return sorted({key for key in keys if contains(root, key)})


def kept_by(place: str, name: str) -> Iterator[tuple[str, Version]]:
    """Yield ``(path, version)`` of the whole versions that a session has kept. `name`: file name of its journal."""
    folder = os.path.join(kept_dir(place), name)
    names = names_in(folder)
    long_paths: dict[str, str] | None = None
    for one in names:
        version = version_at(os.path.join(folder, one))
        if version is None or version.mark == MERGED:
            continue
        path = version.file
        if not path:
            if long_paths is None:
                long_paths = _long_paths(place, name, names)
            path = long_paths.get(split_name(one)[0], "")
        if path:
            yield path, version


def _long_paths(place: str, session: str, names: list[str]) -> dict[str, str]:
    """Return ``{name of a first version: path}`` of files whose path does not fit into the name.

    The session's journal has them; for locked files, a note beside the copies (``PATH``). `names`: all in the
    session's folder.
    """
    journals = journals_of(os.path.join(traces_dir(), os.path.basename(place)))
    keys = journal.newest_lines(journals.get(session, b""), ("wrote",))
    found = {os.path.basename(version_path(place, session, path)): path for path in map(os.fsdecode, keys)}
    for one in names:
        if one.endswith(PATH):
            try:
                path = os.fsdecode(read_private(os.path.join(kept_dir(place), session, one), LONGEST_PATH))
            except OSError:
                continue  # removed just now
            found[one[: -len(PATH)]] = path
    return found


def journals_of(place: str) -> dict[str, bytes]:
    """Return ``{file name: entries}`` of the journals in `place`, also of sessions that have ended."""
    from swarm_hook_core.traces.transcript import with_mark  # slow to load, and a cleaning does without

    found: dict[str, bytes] = {}
    for name, path in journal_files(place):
        try:
            data = journal.read(path)
        except OSError:
            continue  # removed just now, or not a journal
        found[name] = found.get(name, b"") + data  # a session may go on after its end
    return {name: with_mark(name, data) for name, data in found.items()}


def journal_files(place: str) -> list[tuple[str, str]]:
    """Return ``[(name, path)]`` of the same journals. An ended session's need not exist."""
    base = kept_dir(place)
    paths = [(name, os.path.join(base, name, ENDED)) for name in names_in(base)]
    return paths + [(os.path.basename(path), path) for path in others_in(place, "")]


def ended_at(place: str) -> dict[str, int]:
    """Return ``{file name of the journal: time}`` of the ends of sessions in `place` with versions."""
    base, found = kept_dir(place), {}
    for name in names_in(base):
        try:
            found[name] = os.lstat(os.path.join(base, name, ENDED)).st_ctime_ns  # it was renamed then
        except OSError:
            continue  # it goes on
    return found


def store_ended(path: str) -> bool:
    """Put away the journal at `path`, of a session that has ended, beside its versions.

    Return False if it tells nothing of any author: the session has neither versions nor commands that may have written
    any file.
    """
    place, name = os.path.split(path)
    folder = os.path.join(kept_dir(place), name)
    if not os.path.isdir(folder):
        try:
            data = journal.read(path)
            if b" ran " not in data and b" runs " not in data:
                return False
            make_private(folder)
        except OSError:
            return False  # not a journal, or a full disk
    for part in (".1", ""):
        try:
            os.replace(path + part, os.path.join(folder, ENDED + part))
        except OSError:
            continue  # there is no such part
    return True


# ------------------------------------------------------------------------------------------------ locked files
#
# Earlier contents of locked files, kept before a call that may change them, for `swarm-mcp restore`: in a folder of
# their own, where another session's call finds the same copy. The end of a copy's name is its time, and facts of the
# file that no copy shows (`Facts`). If the path is too long for that name, the file ``<name>%p`` holds it.


class Facts(NamedTuple):
    """Facts of a file when its content was kept. `mode`: all its permissions; `digest`: of its content."""

    inode: int
    mode: int
    digest: str

    def __str__(self) -> str:
        """Return the end of a version's name, for `facts_in`."""
        return f"-{self.inode}-{self.mode:o}-{self.digest}"


def facts_in(name: str) -> Facts | None:
    """Return the Facts at the end of a version's file name; None for a name without any."""
    found = name.rpartition(LOST)[2].split("-")
    try:
        _at_ns, inode, mode, digest = found
        return Facts(int(inode), int(mode, 8), digest)
    except ValueError:
        return None  # fewer parts, or another text


class NotKept(OSError):
    """A content could not be kept; the message says why."""


class Copy(NamedTuple):
    """One kept content: the `path` of the copy, and the `digest` of its bytes."""

    path: str
    digest: str


class Kept:
    """The copies of locked files. Each folder of copies is listed once.

    `is_resolved`: the paths are without links. Else links in the folder of a path are followed, once.
    """

    def __init__(self, is_resolved: bool = False) -> None:
        self._is_resolved = is_resolved
        self._firsts: dict[str, str] = {}  # folder of files -> path of its copies, but for the file's name
        self._listed: dict[str, dict[str, list[str]]] = {}  # folder of copies -> beginning of a name -> names

    def copy_of(self, path: str, seen: Snapshot) -> Copy | None:
        """Return the copy with the content that `seen`, a Snapshot without digest, saw at absolute `path`; or None.

        Also None if the file may have been written again in the same tick of its clock, or later: size and mtime can be
        set back, ctime cannot.
        """
        changed_ns = max(seen.mtime_ns, seen.ctime_ns)
        for copy, facts in self._copies(path):
            is_it = facts.inode == seen.inode and facts.mode == seen.mode & 0o7777
            if is_it and _mtime_of(copy, seen) > changed_ns + TICK_NS:
                return Copy(copy, facts.digest)
        return None

    def keep(self, path: str, limit: int = LIMIT_BYTES) -> tuple[Snapshot, Copy]:
        """Keep the present content of the file at absolute `path`, if there is no copy of it.

        Return its Snapshot and its Copy. `limit`: bytes of the largest file. Raises NotKept, OSError.
        """
        try:
            folder, name = os.path.split(path)
            seen, data = read_resolved(os.path.join(self._real(folder), name), limit)
        except OSError as error:
            raise NotKept(str(error.strerror or error)) from None
        facts = Facts(seen.inode, seen.mode & 0o7777, seen.digest)
        for copy, known in self._copies(path):
            if known == facts and _mtime_of(copy, seen):
                os.utime(copy)  # the file has had this content until now
                self._note_long(path)
                return seen, Copy(copy, seen.digest)
        at_ns = time.time_ns()
        target = f"{self._first(path)}{LOST}{at_ns}{facts}"
        keep_text(data, target, at_ns, facts.mode)
        folder, name = os.path.split(target)
        self._names_in(folder).setdefault(name.rpartition(LOST)[0], []).append(name)
        self._note_long(path)
        return seen, Copy(target, seen.digest)

    def _note_long(self, path: str) -> None:
        """Note the path of a file if the name of its copies is cut. The note is as young as its newest copy."""
        first = self._first(path)
        if CUT not in first:
            return
        folder, name = os.path.split(path)
        try:
            write_private(first + PATH, os.path.join(self._firsts[folder], name))
        except OSError:
            return  # the list of all files goes without this one: its content is kept

    def _copies(self, path: str) -> list[tuple[str, Facts]]:
        """Return ``[(path of the copy, Facts)]`` of a file."""
        folder, beginning = os.path.split(self._first(path))
        names = self._names_in(folder).get(beginning, ())
        return [(os.path.join(folder, name), facts) for name in names if (facts := facts_in(name)) is not None]

    def _first(self, path: str) -> str:
        folder, name = os.path.split(path)
        real = self._real(folder)
        key = f"{real}/"
        if key not in self._firsts:
            self._firsts[key] = place_of(real)
        return version_path(self._firsts[key], LOCKED, os.path.join(real, name))

    def _real(self, folder: str) -> str:
        if folder not in self._firsts:
            self._firsts[folder] = folder if self._is_resolved else real_path(folder)
        return self._firsts[folder]

    def _names_in(self, folder: str) -> dict[str, list[str]]:
        if folder not in self._listed:
            found: dict[str, list[str]] = {}
            for name in names_in(folder):
                found.setdefault(name.rpartition(LOST)[0], []).append(name)
            self._listed[folder] = found
        return self._listed[folder]


def _mtime_of(copy: str, seen: Snapshot) -> int:
    """Return the mtime of a copy in nanoseconds; 0 if it is gone, half, or no copy of a file of that size."""
    try:
        found = os.lstat(copy)
    except FileNotFoundError:
        return 0  # removed just now
    is_whole = found.st_mode & (HALF | 0o170000) == CONTENT | 0o100000
    return found.st_mtime_ns if is_whole and found.st_size == seen.size else 0

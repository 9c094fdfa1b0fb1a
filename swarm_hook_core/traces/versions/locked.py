"""Earlier contents of locked files, kept before a call that may change them, for `swarm-mcp restore`.

They lie in the store of versions (``traces.versions``), in a folder of their own: another session's call finds the same
copy. The end of a copy's name is its time, and facts of the file that no copy shows (`Facts`). If the path is
too long for that name, the file ``<name>%p`` holds it.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from swarm_hook_core.paths import real_path
from swarm_hook_core.state import write_private
from swarm_hook_core.traces import AFTER, CUT, LATER, LOOK, LOST, MERGED, PATH, WHOLE, names_in, place_of, version_path
from swarm_hook_core.traces.versions import CONTENT, HALF, LIMIT_BYTES, keep_text
from swarm_hook_core.watching.records import Snapshot, read_resolved

FILE_BYTES = LIMIT_BYTES  # a larger file is not kept
LOCKED = "locked.files"  # name of the folder, in the place of a session's journal
TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system


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

    def keep(self, path: str, limit: int = FILE_BYTES) -> tuple[Snapshot, Copy]:
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


# The file names of versions: the path of the file, a mark, a time; of locked files facts, too.

MARKS = (LATER, LOOK, AFTER, LOST)  # a MERGED text was never the content of its file


def is_of(name: str, first: str) -> bool:
    """Return True if a version with this file `name` is of the file whose first version is called `first`."""
    if not name.startswith(first):  # mostly
        return False
    mark, rest = name[len(first) :][:2], name[len(first) + 2 :]
    return name == first or (mark in MARKS and _time_in(rest) > 0)


def read_name(name: str) -> tuple[str, str, int]:
    """Return ``(path, mark, time)`` of the version with this file name.

    The path is that of its file, empty if it was too long. The mark is empty, and the time 0, for a first version.
    """
    first, mark, at_ns = split_name(name)
    if CUT in first:
        return "", mark, at_ns
    path = first.partition(WHOLE)[0]
    for escape, letter in (("%2F", "/"), ("%5C", "\\"), ("%3A", ":"), ("%25", "%")):
        path = path.replace(escape, letter)
    return (path if os.path.isabs(path) else ""), mark, at_ns


def split_name(name: str) -> tuple[str, str, int]:
    """Return ``(name of the file's first version, mark, time)`` of the version with this file name, as `read_name`."""
    first, mark, at_ns = name, "", 0
    for one in (*MARKS, MERGED):
        head, found, rest = first.rpartition(one)
        if found and _time_in(rest):
            first, mark, at_ns = head, one, _time_in(rest)
    return first, mark, at_ns


def _time_in(text: str) -> int:
    """Return the time at the beginning of `text`, before any facts; 0 for another text."""
    at_ns = text.partition("-")[0]
    if at_ns.isdigit():
        return int(at_ns)
    return 0

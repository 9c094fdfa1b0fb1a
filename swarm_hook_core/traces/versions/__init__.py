"""Versions: the content of a file before a certain write, kept so that each uncommitted line has an owner.

Each write keeps one *version* of its file: the content before it. A session that is alone keeps none if the file is
certainly as its last write has left it. The call keeps it as it is let pass; its entry ``wrote`` in the journal has the
same time (``traces.journal``). Where a hook looks at a file after a write, the content then is a version too, with an
entry ``is``.

A *step* leads from one version of a file to the next one, by any session, or to the present content. The *authors* of a
step are all that may have made it: mostly the one session that kept the first of the two; a person too, if the file's
times do not fit that session's call. A line's authors are those of the step that brought it. A line of the last commit
has no author. More than one author means that nothing tells them apart. Nothing here guesses.

Files: ``<state>/kept/<place>/<journal>/<path>``, with slashes of the path escaped. Appended: ``%w`` and a time for
versions after the first, ``%i`` or ``%a`` and a time for looks at the next call or at the end of the call, ``%l`` and a
time for contents kept for `swarm-mcp restore` alone: those that a call destroys, and those of locked files, all in the
folder ``locked.files`` (`Kept`). The file's mtime is the time of the entry, the first version's atime that of the
session's last write. Permissions say its state:

    r     the content, whole; other bits as in the file
    -     there was no file
    w     nothing was kept: a folder, a link, over 1 MiB, unreadable, or changed during the copy
    rw    a half copy, of a process that was killed or still copies: never read

The kernel copies, or shares the blocks where the file system can. Nothing is hashed before a write; ``pruning`` folds
equal contents, drops files that git ignores, and holds the bounds.

    stored    the versions of a file
    replay    the inputs of write tools, and the content after them
    layout    steps parted by changes of layout, and by inputs
    notes     everything noted in a place, read once; the calls that may have written a file; saves and undos of persons
    steps     the steps of a file, and their authors
    lines     the lines of a file, and their authors: `Fold`

This module has the names of versions, the copies, and those of locked files. ``traces.pruning`` removes them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from swarm_hook_core.paths import FolderOf, real_path
from swarm_hook_core.state import make_private, open_in_private, state_dir, write_all, write_private
from swarm_hook_core.traces import AFTER, CUT, LATER, LOOK, LOST, MERGED, PATH, WHOLE, names_in, place_of, version_path
from swarm_hook_core.watching.records import Snapshot, read_resolved

LIMIT_BYTES = 1024 * 1024  # of a file; nothing is kept of a larger one
AGE_SECONDS = 7 * 86400  # of the oldest versions (``traces.pruning``)
NO_FILE, NOT_KEPT = 0, 0o200  # permissions that stand for a state
CONTENT, HALF = 0o400, 0o600
MARKS = (LATER, LOOK, AFTER, LOST)  # a MERGED text was never the content of its file
LOCKED = "locked.files"  # name of the folder of locked files' copies, in the place of a session's journal
TICK_NS = 2 * 10**9  # the coarsest time stamps of any file system

_FILE = 0o100000  # as in the module `stat`, which takes time to load
_PIECE = 128 * 1024  # bytes read at once where the kernel does not copy
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | (_READ & ~getattr(os, "O_NONBLOCK", 0))


# ------------------------------------------------------------------------------------------------ names
#
# The path of the file, a mark, a time; of locked files facts, too.


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


# ------------------------------------------------------------------------------------------------ copies


def keep(source: str, target: str, at_ns: int) -> bool:
    """Keep the present content of the file `source` as the version at path `target`, of time `at_ns`.

    Return False if there is such a version already, also a half one: its content was another. A file behind a link that
    took a folder's place counts as missing. Raises OSError.
    """
    reading, state = _opened(source)
    try:
        return _keep(target, at_ns, lambda writing: _copied(reading, writing) if reading >= 0 else state)
    finally:
        if reading >= 0:
            os.close(reading)


def keep_again(copy: str, target: str, at_ns: int) -> bool:
    """Give the kept `copy`, with a time in its name, a second name `target`, of time `at_ns`. Return False if it cannot
    be done.
    """
    try:
        os.link(copy, target)
        os.utime(target, ns=(at_ns, at_ns))
    except (OSError, AttributeError):
        return False  # kept before, or a file system without links
    return True


def keep_text(data: bytes, target: str, at_ns: int, mode: int = 0) -> bool:
    """Keep `data` as the version at path `target`, of a file with the permissions `mode`; else as `keep`."""

    def written(writing: int) -> int:
        write_all(writing, data)
        return CONTENT | (mode & 0o177)

    return _keep(target, at_ns, written)


def keep_missing(target: str, at_ns: int) -> bool:
    """Keep at path `target` that there was no file; else as `keep`."""
    return _keep(target, at_ns, lambda _writing: NO_FILE)


def _keep(target: str, at_ns: int, fill: Callable[[int], int]) -> bool:
    """Make the version at path `target`; `fill` writes the open file and returns its permissions."""
    try:
        try:
            writing = os.open(target, _CREATE, HALF)
        except FileNotFoundError:
            make_private(os.path.join(state_dir(), "kept"))  # a link in its place is followed no further
            writing = open_in_private(target, _CREATE)  # with the permissions `HALF`
    except FileExistsError:
        return False  # kept before, by this call or another one
    try:
        state = fill(writing)
        by = target if os.name == "nt" else writing  # Windows takes paths only
        os.utime(by, ns=(at_ns, at_ns))
        os.chmod(by, state)
    finally:
        os.close(writing)
    return True


def _opened(source: str) -> tuple[int, int]:
    """Return ``(handle, CONTENT)`` of a file that can be kept, else ``(-1, NO_FILE or NOT_KEPT)``."""
    try:
        found = os.lstat(source)
        if found.st_mode & 0o170000 != _FILE or found.st_size > LIMIT_BYTES:
            return -1, NOT_KEPT
        reading = os.open(source, _READ)
        if _is_path_of(reading, source):  # mostly
            return reading, CONTENT
        os.close(reading)
        with FolderOf(source) as (name, folder):
            return os.open(name, _READ, dir_fd=folder), CONTENT
    except (FileNotFoundError, NotADirectoryError):
        return -1, NO_FILE  # the write creates the file
    except (OSError, ValueError):
        return -1, NOT_KEPT  # unreadable, or a path that cannot exist


def _is_path_of(handle: int, path: str) -> bool:
    """Return True if the open file lies at this very path: no link was followed. False where that is unknown."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}") == path
    except OSError:
        return False  # another platform


def _copied(reading: int, writing: int) -> int:
    """Copy one open file into the other; return the permissions of the version."""
    before = os.fstat(reading)
    if before.st_mode & 0o170000 != _FILE or before.st_size > LIMIT_BYTES:
        return NOT_KEPT  # another file by now
    copied = _by_kernel(reading, writing, before.st_size)
    if copied < before.st_size:
        copied += _by_hand(reading, writing, before.st_size - copied)
    after = os.fstat(reading)
    is_same = (before.st_ctime_ns, before.st_size) == (after.st_ctime_ns, after.st_size)
    if copied != before.st_size or not is_same:
        os.ftruncate(writing, 0)
        return NOT_KEPT
    return CONTENT | (before.st_mode & 0o177)


def _by_kernel(reading: int, writing: int, size: int) -> int:
    """Have the kernel copy `size` bytes; return the number of bytes that it has copied."""
    copied = 0
    try:
        while copied < size:
            done = os.copy_file_range(reading, writing, size - copied)
            if not done:
                break
            copied += done
    except (OSError, AttributeError):
        return copied  # another file system, an older kernel, or another platform
    return copied


def _by_hand(reading: int, writing: int, size: int) -> int:
    copied = 0
    while copied < size:
        piece = os.read(reading, min(_PIECE, size - copied))
        if not piece:
            break
        write_all(writing, piece)
        copied += len(piece)
    return copied


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

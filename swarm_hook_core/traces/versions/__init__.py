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
folder ``locked.files`` (`stored.Kept`). The file's mtime is the time of the entry, the first version's atime that of
the session's last write. Permissions say its state:

    r     the content, whole; other bits as in the file
    -     there was no file
    w     nothing was kept: a folder, a link, over 1 MiB, unreadable, or changed during the copy
    rw    a half copy, of a process that was killed or still copies: never read

The kernel copies, or shares the blocks where the file system can. Nothing is hashed before a write; ``pruning`` folds
equal contents, drops files that git ignores, and holds the bounds.

    stored    the versions of a file; copies of locked files: `Kept`
    replay    the inputs of write tools, and the content after them
    layout    steps parted by changes of layout, and by inputs
    notes     everything noted in a place, read once; the calls that may have written a file; saves and undos of persons
    steps     the steps of a file, and their authors
    lines     the lines of a file, and their authors: `Fold`

This module has the names of versions, and the copies. ``traces.pruning`` removes them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core.paths import FolderOf
from swarm_hook_core.state import make_private, open_in_private, state_dir, write_all
from swarm_hook_core.traces import AFTER, CUT, LATER, LOOK, LOST, MERGED, WHOLE

LIMIT_BYTES = 1024 * 1024  # of a file; nothing is kept of a larger one
AGE_SECONDS = 7 * 86400  # of the oldest versions (``traces.pruning``)
NO_FILE, NOT_KEPT = 0, 0o200  # permissions that stand for a state
CONTENT, HALF = 0o400, 0o600
MARKS = (LATER, LOOK, AFTER, LOST)  # a MERGED text was never the content of its file

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

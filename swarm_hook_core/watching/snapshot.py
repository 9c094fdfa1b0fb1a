"""The state of a file at one moment, to tell later if it has changed, without keeping it open.

Links at the end of a path are not followed; pipes and devices are not opened. `folder`: the open folder of the file, as
in ``os.lstat``. `read_resolved` and `full_resolved` follow no link at all.
"""

from __future__ import annotations

import os

HASHED_BYTES = 1024 * 1024  # larger files are compared by size, times and inode only

_PLAIN, _LINK = 0o100000, 0o120000
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def digest_of(data: bytes, size: int = 8) -> str:
    """Return a digest in hex, two digits for each of `size` bytes."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b(data, digest_size=size).hexdigest()


class Snapshot:
    """One file at one moment. `mode` 0: a missing file; `digest` "": unknown content.

    Times are in nanoseconds. The digest of a link is that of its target's path.
    """

    __slots__ = ("mode", "size", "mtime_ns", "ctime_ns", "inode", "digest")

    def __init__(
        self, mode: int = 0, size: int = 0, mtime_ns: int = 0, ctime_ns: int = 0, inode: int = 0, digest: str = ""
    ):
        self.mode = mode
        self.size = size
        self.mtime_ns = mtime_ns
        self.ctime_ns = ctime_ns
        self.inode = inode
        self.digest = digest

    @property
    def exists(self) -> bool:
        return self.mode != 0

    @property
    def is_plain(self) -> bool:
        """Return True for an ordinary file, not a folder, link, pipe or device."""
        return self.mode & 0o170000 == _PLAIN

    @property
    def is_link(self) -> bool:
        return self.mode & 0o170000 == _LINK

    def __str__(self) -> str:
        """Return all fields separated by blanks, for `parse`."""
        return f"{self.mode} {self.size} {self.mtime_ns} {self.ctime_ns} {self.inode} {self.digest}"

    def is_untouched(self, other: Snapshot) -> bool:
        """Return True if the file was not changed in any way between the two."""
        mine = (self.ctime_ns, self.mtime_ns, self.size, self.inode, self.mode)
        return mine == (other.ctime_ns, other.mtime_ns, other.size, other.inode, other.mode)


def parse(text: str) -> Snapshot:
    """Return the Snapshot with this ``str``. Raises ValueError."""
    *numbers, digest = text.split(" ")
    mode, size, mtime_ns, ctime_ns, inode = map(int, numbers)
    return Snapshot(mode, size, mtime_ns, ctime_ns, inode, digest)


def is_as_noted(path: str, text: str) -> bool:
    """Return True if the file at `path` has not been changed in any way since `text`, the ``str`` of its Snapshot.

    A missing or unreachable file has mode 0.
    """
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return text.startswith("0 ")  # missing, or a path that cannot exist
    state = f"{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} "
    return text.startswith(state)


def glance(path: str, folder: int | None = None) -> Snapshot:
    """Return the state without digest. A missing or unreachable file gives mode 0."""
    try:
        return _of(os.lstat(path, dir_fd=folder))
    except (OSError, ValueError):
        return Snapshot()  # missing, or a path that cannot exist


def read(path: str, limit: int = HASHED_BYTES, folder: int | None = None) -> tuple[Snapshot, bytes]:
    """Return ``(Snapshot, content)`` of a plain file of at most `limit` bytes.

    Raises OSError for any other file, and for one that is being written.
    """
    handle = os.open(path, _READ, dir_fd=folder)
    try:
        for _ in range(2):
            before = _of(os.fstat(handle))
            if not before.is_plain:
                raise OSError("not a plain file")
            if before.size > limit:
                raise OSError(f"larger than {limit} bytes")
            data = _all_of(handle, before.size, limit)
            if len(data) == before.size and before.is_untouched(_of(os.fstat(handle))):
                before.digest = digest_of(data)
                return before, data
        raise OSError("being written")
    finally:
        os.close(handle)


def read_resolved(path: str, limit: int = HASHED_BYTES) -> tuple[Snapshot, bytes]:
    """As `read`, of a path without links. Raises BeyondLink if a link has taken the place of a folder."""
    from swarm_hook_core.no_links import FolderOf

    with FolderOf(path) as (name, folder):
        return read(name, limit, folder)


def full(path: str, folder: int | None = None) -> Snapshot:
    """Return the state with the digest, if the file is small and readable."""
    seen = glance(path, folder)
    try:
        if seen.is_plain and seen.size <= HASHED_BYTES:
            return read(path, folder=folder)[0]
        if seen.is_link:
            seen.digest = digest_of(os.fsencode(os.readlink(path, dir_fd=folder)))
    except OSError:
        pass  # unreadable, or being written: without digest
    return seen


def full_resolved(path: str) -> Snapshot:
    """As `full`, of a path without links. A file behind a link that took a folder's place gives mode 0."""
    from swarm_hook_core.no_links import FolderOf

    try:
        with FolderOf(path) as (name, folder):
            return full(name, folder)
    except OSError:
        return Snapshot()  # missing, or beyond a link


def difference(before: Snapshot, path: str) -> tuple[str, Snapshot]:
    """Return ``(kind, present Snapshot)``: the difference of the file at `path` from `before`; "" for no difference.

    changed    other contents or permissions
    replaced   the same with another inode or type
    created    the file was missing before
    removed    the file is missing now
    """
    now = glance(path)
    if before.exists != now.exists:
        return ("removed" if before.exists else "created"), now
    if not now.exists:
        return "", now
    if before.is_untouched(now):
        return "", now
    if before.is_link or (now.is_plain and before.digest):
        now = full(path)
    if before.mode == now.mode:
        if before.digest and before.digest == now.digest:
            return "", now  # touched, or rewritten with the same content
        if not before.digest and _same_by_eye(before, now):
            return "", now
    same_file = before.inode == now.inode and before.mode & 0o170000 == now.mode & 0o170000
    return ("changed" if same_file else "replaced"), now


def _same_by_eye(before: Snapshot, now: Snapshot) -> bool:
    """Return True if a file of unknown content has changed only in its links or names."""
    if not before.is_plain:
        return before.inode == now.inode  # the content of a pipe, device or folder does not matter
    return (before.size, before.mtime_ns, before.inode) == (now.size, now.mtime_ns, now.inode)


def _of(found: os.stat_result) -> Snapshot:
    return Snapshot(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _all_of(handle: int, size: int, limit: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts, left = [], min(size, limit) + 1
    while left > 0:
        part = os.read(handle, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

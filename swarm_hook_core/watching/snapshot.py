"""What a file looks like at one moment: enough to tell later whether it is another, without keeping it open.

Nothing here follows a link at the end of a path or opens a pipe or a device.
"""

import os

HASHED_BYTES = 1024 * 1024  # larger files are told apart by size, times and inode alone

_PLAIN, _LINK = 0o100000, 0o120000
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def digest_of(data: bytes, size: int = 8) -> str:
    """Hex digits, two for each of `size` bytes, that differ where contents do."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b(data, digest_size=size).hexdigest()


class Snapshot:
    """One file at one moment. `mode` 0: there was none; `digest` empty: its content is not known.

    Times are in nanoseconds. The digest of a link is that of where it points.
    """

    __slots__ = ("mode", "size", "mtime_ns", "ctime_ns", "inode", "digest")

    def __init__(self, mode=0, size=0, mtime_ns=0, ctime_ns=0, inode=0, digest=""):
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
        """Whether it is a file with contents, and not a folder, link, pipe or device."""
        return self.mode & 0o170000 == _PLAIN

    @property
    def is_link(self) -> bool:
        return self.mode & 0o170000 == _LINK

    def __str__(self) -> str:
        """All of it as one word after the other, for `parse`."""
        return f"{self.mode} {self.size} {self.mtime_ns} {self.ctime_ns} {self.inode} {self.digest}"

    def is_untouched(self, other) -> bool:
        """Whether nothing at all has happened to the file between the two."""
        mine = (self.ctime_ns, self.mtime_ns, self.size, self.inode, self.mode)
        return mine == (other.ctime_ns, other.mtime_ns, other.size, other.inode, other.mode)


def parse(text: str) -> Snapshot:
    """The Snapshot whose ``str`` this is. Raises ValueError."""
    *numbers, digest = text.split(" ")
    mode, size, mtime_ns, ctime_ns, inode = map(int, numbers)
    return Snapshot(mode, size, mtime_ns, ctime_ns, inode, digest)


def glance(path: str) -> Snapshot:
    """What one look at the folder tells: all but the digest. No file where there is none or it is out of reach."""
    try:
        return _of(os.lstat(path))
    except (OSError, ValueError):
        return Snapshot()


def read(path: str, limit: int = HASHED_BYTES):
    """``(Snapshot, content)`` of a plain file of at most `limit` bytes. Raises OSError where it is none, or just
    being written."""
    handle = os.open(path, _READ)
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


def full(path: str) -> Snapshot:
    """`glance` with the digest, where the file is small and can be read."""
    seen = glance(path)
    try:
        if seen.is_plain and seen.size <= HASHED_BYTES:
            return read(path)[0]
        if seen.is_link:
            seen.digest = digest_of(os.fsencode(os.readlink(path)))
    except OSError:
        pass
    return seen


def difference(before: Snapshot, path: str):
    """``(kind, present Snapshot)``: how the file at `path` differs from `before`; kind is empty where it does not.

    changed    other contents or permissions
    replaced   the same, and it is another file by now, or of another type
    created    there was none
    removed    there is none
    """
    now = glance(path)
    if not before.exists or not now.exists:
        return ("" if before.exists == now.exists else "removed" if before.exists else "created"), now
    if before.is_untouched(now):
        return "", now
    if before.is_link or (now.is_plain and before.digest):
        now = full(path)
    if before.mode == now.mode:
        if before.digest and before.digest == now.digest:
            return "", now  # touched, or written anew with the same contents
        if not before.digest and _same_by_eye(before, now):
            return "", now
    same_file = before.inode == now.inode and before.mode & 0o170000 == now.mode & 0o170000
    return ("changed" if same_file else "replaced"), now


def _same_by_eye(before: Snapshot, now: Snapshot) -> bool:
    """Two looks at a file of unknown contents: whether only its links or names have changed since."""
    if not before.is_plain:
        return before.inode == now.inode  # what is in a pipe, a device or a folder is not looked at
    return (before.size, before.mtime_ns, before.inode) == (now.size, now.mtime_ns, now.inode)


def _of(found) -> Snapshot:
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

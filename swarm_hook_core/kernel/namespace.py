"""A mount namespace of this process's own, in which some paths are read-only (Linux 5.12 and newer).

The system calls are made through ctypes, as hooks have only the standard library. Sources: unshare(2), setns(2),
user_namespaces(7), open_tree(2), mount_setattr(2), move_mount(2), umount(2), proc_pid_mountinfo(5).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

_NEWNS, _NEWUSER = 0x20000, 0x10000000
_RECURSIVE, _SLAVE = 0x4000, 0x80000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every processor
_HERE, _NO_LINKS, _SELF, _ALL_BELOW = -100, 0x100, 0x1000, 0x8000  # AT_FDCWD, AT_*
_CLONE, _CLOSED_BY_EXEC = 1, 0o2000000
_FROM_ITSELF = 4  # MOVE_MOUNT_F_EMPTY_PATH
_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def enter() -> None:
    """Put this process into a new mount namespace. Later mounts outside appear in it, but none of its own outside.

    Root keeps all its rights. An ordinary user gets a user namespace too, with only that user in it. Raises OSError;
    the process may then be in a half-made state and must be given up.
    """
    if _libc.unshare(_NEWNS):
        if os.geteuid() == 0:  # in a user namespace root would lose its rights over other users' files
            raise _error("unshare")
        uid, gid = os.geteuid(), os.getegid()
        if _libc.unshare(_NEWNS | _NEWUSER):
            raise _error("unshare")
        _put("setgroups", "deny")
        _put("uid_map", f"{uid} {uid} 1")
        _put("gid_map", f"{gid} {gid} 1")
    if _libc.mount(None, b"/", None, _SLAVE | _RECURSIVE, None):
        raise _error("mount")


def join(pid: int) -> None:
    """Put this process into the namespaces of process `pid`. Raises OSError."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""  # the folder is gone
    opened: list[int] = []
    try:
        # Open everything first: from within one namespace the other cannot be reached.
        here = _opened(".", opened)
        root = _opened(f"/proc/{pid}/root", opened)
        places = [(_opened(f"/proc/{pid}/ns/{kind}", opened, os.O_RDONLY), flag) for kind, flag in _kinds(pid)]
        for handle, flag in places:
            if _libc.setns(handle, flag):
                raise _error("setns")
        # setns has left a chroot of this process; enter it again
        if _mount_of(root) != _mount_of(_opened("/", opened)):
            os.fchdir(root)
            os.chroot(".")
        try:
            os.chdir(cwd)  # by its path, so that a held folder is held in here too
        except OSError:  # it is gone, or not reachable for this user
            os.fchdir(here)
    finally:
        for handle in opened:
            os.close(handle)


def _opened(path: str, opened: list[int], flags: int = getattr(os, "O_PATH", 0)) -> int:
    handle = os.open(path, flags | os.O_CLOEXEC)
    opened.append(handle)
    return handle


def _mount_of(handle: int) -> str:
    """Return the mount id line of an open file."""
    with open(f"/proc/self/fdinfo/{handle}", encoding="utf-8") as file:
        return next((line for line in file if line.startswith("mnt_id:")), "")


def _kinds(pid: int) -> Iterator[tuple[str, int]]:
    if os.stat(f"/proc/{pid}/ns/user").st_ino != os.stat("/proc/self/ns/user").st_ino:
        yield "user", _NEWUSER
    yield "mnt", _NEWNS


def hold(path: bytes) -> None:
    """Make everything at and below absolute `path` read-only in this namespace. Raises OSError."""
    flags = _CLONE | _CLOSED_BY_EXEC | _ALL_BELOW | _NO_LINKS
    handle = _libc.syscall(_OPEN_TREE, _HERE, path, flags)
    if handle < 0:
        raise _error("open_tree", path)
    try:
        read_only = (ctypes.c_uint64 * 4)(1, 0, 0, 0)
        if _libc.syscall(_MOUNT_SETATTR, handle, b"", _SELF | _ALL_BELOW, read_only, 32):
            raise _error("mount_setattr", path)
        if _libc.syscall(_MOVE_MOUNT, handle, b"", _HERE, path, _FROM_ITSELF):
            raise _error("move_mount", path)
    finally:
        os.close(handle)


def release(path: bytes) -> None:
    """Undo `hold`, even while files below are open. Raises OSError."""
    if _libc.umount2(path, _DETACH):
        raise _error("umount2", path)


def mount_points(mountinfo: bytes) -> set[bytes]:
    """Return the mount points listed in the text of ``/proc/self/mountinfo``."""
    found = set()
    for line in mountinfo.splitlines():
        place = line.split(b" ")[4]
        for escape, letter in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
            place = place.replace(escape, letter)
        found.add(place)
    return found


def _put(name: str, text: str) -> None:
    handle = os.open(f"/proc/self/{name}", os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _error(call: str, path: bytes = b"") -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}", *([os.fsdecode(path)] if path else []))

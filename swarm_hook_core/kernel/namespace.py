"""A mount namespace in which some paths are read-only (Linux 5.12 and newer), its process, and the test for it.

The system calls are made through ctypes, as hooks have only the standard library. Sources: unshare(2), setns(2),
user_namespaces(7), open_tree(2), mount_setattr(2), move_mount(2), umount(2), proc_pid_mountinfo(5).
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from collections.abc import Iterator

from swarm_hook_core import state
from swarm_hook_core.clock import boot
from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.plans import Plan, kernel_dir
from swarm_hook_core.process import host_id, run
from swarm_hook_core.state import read_private, write_private

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


def _release(path: bytes) -> None:
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


# The second layer on macOS, by ``sandbox-exec``. Not yet tried there: `swarm-mcp doctor` calls it unverified.
#
# A profile holds until the command ends: a lock that ends meanwhile keeps its file read-only for the command.

PROGRAM = "/usr/bin/sandbox-exec"


def wrapped(plan: Plan, command: list[str]) -> list[str]:
    """Return the command line that runs `command` with the paths of `plan` closed to writing."""
    rules = " ".join(f"(subpath {_quoted(path)})" for path in plan.paths)
    return [PROGRAM, "-p", f"(version 1)(allow default)(deny file-write* {rules})", *command]


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


# A test if the kernel can hold files for this user's commands, made once and noted.
#
# <state>/kernel/probe    ``<boot of the machine> <user> <why not, or empty>``

SECONDS = 5.0
UNVERIFIED = "sandbox-exec is there; not tried on macOS yet"
# the obstacle -> its remedy
_MENDS = (
    ("apparmor_restrict_unprivileged_userns", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an"
     " AppArmor profile that lets this Python have user namespaces"),
    ("user.max_user_namespaces", "sudo sysctl -w user.max_user_namespaces=10000"),
    ("unprivileged_userns_clone", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("container", "run the container with --cap-add SYS_ADMIN, or a seccomp profile that lets it unshare and mount"),
    ("Linux", "a newer kernel"),
)  # fmt: skip


def works() -> bool:
    """Return True if the kernel can hold files here, by the noted result; test it if there is no result."""
    known = _known()
    return (again() if known is None else known) == ""


def again() -> str:
    """Test it, note the result and return it: the reason of a failure, or ""."""
    try:
        why = _tried()
        write_private(os.path.join(kernel_dir(), "probe"), f"{_mark()} {why}")
    except OSError as error:  # without a writable folder no plan can be written either
        return f"{kernel_dir()}: {error.strerror or error}"
    return why


def mend(why: str) -> str:
    """Return the remedy for a failure, or ""."""
    return next((what for mark, what in _MENDS if mark in why), "")


def _known() -> str | None:
    try:
        text = read_private(os.path.join(kernel_dir(), "probe"), 2000).decode()
    except (OSError, ValueError):
        return None  # never tested
    mark = _mark() + " "
    if text.startswith(mark):
        return text[len(mark) :].strip()
    return None


def _mark() -> str:
    """Return the conditions of the noted result: this boot of the machine, and this user."""
    return f"{boot(host_id()) or '-'} {os.geteuid()}"


def _tried() -> str:
    """Return the reason why nothing can be held here, or "", found by a process that tries it."""
    if sys.platform == "darwin":
        if os.path.exists(PROGRAM):
            return ""
        return f"there is no {PROGRAM}"
    if not sys.platform.startswith("linux"):
        return f"not tried on {sys.platform}"

    # in the state folder, as that belongs to the user
    canary = os.path.join(kernel_dir(), f"canary-{os.getpid()}")
    write_private(canary, "held\n")
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    attempt = f"from swarm_hook_core.kernel import namespace; namespace.attempt({canary!r})"
    code = f"import sys; sys.path[:0] = [{home!r}]; {attempt}"
    done = run([sys.executable, "-E", "-s", "-S", "-c", code], SECONDS)
    os.remove(canary)
    if done.code == 0:
        return ""
    said = " ".join((done.stdout or done.stderr).split()) or f"the attempt ended with {done.code}"
    return f"{said}{_reason()}"


def attempt(canary: str) -> None:
    """Hold the file `canary` and try to write it, in a process of its own. Prints the reason of a failure."""
    try:
        enter()
        hold(os.fsencode(canary))
    except OSError as error:
        print(error.strerror or error)
        os._exit(1)
    try:
        os.close(os.open(canary, os.O_WRONLY))
    except OSError:
        os._exit(0)
    print("a file that was made read-only could be written")
    os._exit(1)


def _reason() -> str:
    """Return the likely cause on this machine, in words."""
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdecimal())
    if release < (5, 12):
        return f" (Linux {os.uname().release}, and 5.12 is needed)"
    for name, stands, where in (
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        ("kernel.unprivileged_userns_clone", "0", "/proc/sys/kernel/unprivileged_userns_clone"),
        ("user.max_user_namespaces", "0", "/proc/sys/user/max_user_namespaces"),
    ):
        if os.geteuid() and _line(where) == stands:
            return f" ({name} is {stands})"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or "\nSeccomp:\t2" in _status():
        return " (a container, or another sandbox)"
    return ""


def _status() -> str:
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""  # not on this kernel


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(100).strip()
    except OSError:
        return ""  # not on this kernel


# The process that makes a namespace for a command, and stays in it to keep its mounts in line with the locks.
#
# It ends with the last process in the namespace. When a lock ends, its file becomes writable in there; when the holder
# has replaced a locked file, as editors do on saving, the new file is held. The kernel reports replacements; lock
# changes are polled. Files locked while the command runs are left alone: the locks may be the command's own, through an
# agent that it starts.

STORE_SECONDS = 0.25  # interval of looks at the store's files
LOCKS_SECONDS = 1.0  # interval of looks at the locks: leases lapse and holders die without a change of the store
# Pauses as multiples of the duration of the last look at the locks: without a change of the store, and after one. With
# a thousand locks a look is slow, and would keep a processor busy beside a server that runs all day.
REST, REST_AFTER_CHANGE = 100, 10


def keep(plan: Plan, command: int, ready: int) -> None:
    """Hold the paths of `plan`, report to the file `ready`, and stay. Never returns.

    Reports: ``held <own pid>``, ``nothing``, or ``failed <why>``. `command`: the process that will join. It inherits no
    open file and no child from this one.
    """
    try:
        os.setsid()
        try:
            enter()
            held = _hold(plan)
            report = "nothing"
            if held:
                report = f"held {os.getpid()}"
        except OSError as error:
            held, report = [], f"failed {error.strerror or error}"
        os.write(ready, report.encode("utf-8", "surrogateescape"))
        os.close(ready)
        if held:
            # Close all files of the command's process: readers of its output wait for the last writer to close
            nowhere = os.open(os.devnull, os.O_RDWR)
            for handle in (0, 1, 2):
                os.dup2(nowhere, handle)
            os.closerange(3, 65536)
            os.chdir("/")
            _Upkeep(plan, held, command).stay()
    except BaseException as error:
        _record(plan, error)
    os._exit(0)


def _hold(plan: Plan) -> list[bytes]:
    """Make the paths of `plan` read-only; return those held. Raises OSError if the kernel cannot hold any.

    A path that is gone meanwhile is no failure. For a strict plan, each existing path must be held.
    """
    held, failed = [], None
    for path in sorted(plan.paths, key=len):  # a folder before its files
        raw = os.fsencode(path)
        try:
            hold(raw)
            held.append(raw)
        except FileNotFoundError:
            continue  # gone meanwhile
        except OSError as error:
            failed = error
            if plan.is_strict or not held:
                raise
    if failed is not None:
        _record(plan, failed)
    return held


class _Upkeep:
    def __init__(self, plan: Plan, held: list[bytes], command: int):
        self.plan = plan
        self.planned = list(held)
        self.held = set(held)
        self.poll = select.poll()
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.poll.register(self.mounts, select.POLLPRI)
        self.waited: dict[int, int] = {}  # pidfd of a process in the namespace -> its pid
        self._wait_for(command)
        self.looked = self.took = 0.0
        self.lacks = False  # True if a file to be held is missing
        self.has_failed = False  # a failed look at the locks: recorded once
        self.mark = _store_mark(plan)

    def stay(self) -> None:
        while True:
            for handle, _ in self.poll.poll(STORE_SECONDS * 1000):
                if handle in self.waited:
                    self.poll.unregister(handle)
                    os.close(handle)
                    del self.waited[handle]
                else:
                    self._hold_again()
            if not self.waited and not self._others_are_here():
                return
            if self.lacks:
                self._hold_again()
            self._follow_locks()

    def _wait_for(self, process: int) -> None:
        try:
            handle = os.pidfd_open(process)
        except (OSError, AttributeError):  # the process has ended, or this Python lacks pidfd_open
            return
        self.waited[handle] = process
        self.poll.register(handle, select.POLLIN)

    def _others_are_here(self) -> bool:
        """Return True if another process is in this namespace, and wait for those found."""
        here, seen = os.readlink("/proc/self/ns/mnt"), {str(os.getpid())}
        while not self.waited:
            # A process that ends during the search may have started another after the listing.
            new = {name for name in os.listdir("/proc") if name.isdecimal()} - seen
            if not new:
                return False
            seen |= new
            for name in new:
                try:
                    is_here = os.readlink(f"/proc/{name}/ns/mnt") == here
                except OSError:
                    continue  # it has ended, or belongs to another user
                if is_here:
                    self._wait_for(int(name))
        return True

    def _hold_again(self) -> None:
        """Hold paths that have lost their mount because another file was put in their place."""
        self.lacks = False
        os.lseek(self.mounts, 0, os.SEEK_SET)
        there = mount_points(b"".join(iter(lambda: os.read(self.mounts, 1 << 16), b"")))
        for path in self.planned:
            if path in self.held and path not in there:
                try:
                    hold(path)
                except FileNotFoundError:
                    self.lacks = True  # missing at present, and nothing will tell when it returns
                except OSError as error:
                    _record(self.plan, error)

    def _follow_locks(self) -> None:
        """Release paths that are no longer locked against this session; hold those again that are."""
        now, mark = time.monotonic(), _store_mark(self.plan)
        if mark == self.mark:
            rest = max(LOCKS_SECONDS, REST * self.took)
        else:
            rest = REST_AFTER_CHANGE * self.took
        if now < self.looked + rest:
            return
        self.mark, spent = mark, time.process_time()
        try:
            wanted = {os.fsencode(path) for path in plans.still_held(self.plan)}
        except Exception as error:  # a busy store: the held paths stay held
            if not self.has_failed:
                self.has_failed = True
                _record(self.plan, error)
            return
        finally:
            self.looked, self.took = time.monotonic(), time.process_time() - spent
        for path in reversed(self.planned):
            if path in self.held and path not in wanted:
                try:
                    _release(path)
                except OSError:
                    pass  # it has gone with the file
                self.held.discard(path)
        self.held.update(path for path in self.planned if path in wanted)
        self._hold_again()


def _store_mark(plan: Plan) -> tuple[int | None, ...]:
    found: tuple[int | None, ...] = ()
    for end in ("", "-wal"):
        try:
            state = os.stat(plan.store + end)
            found += (state.st_mtime_ns, state.st_size, state.st_ino)
        except OSError:
            found += (None,)
    return found


def _record(plan: Plan, error: BaseException) -> None:
    try:
        state.record(plan.runtime, "kernel", error)
    except Exception:
        pass  # nobody listens to this process

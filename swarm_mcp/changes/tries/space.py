"""A view of the checkout for one command: other files at the checkout's own path (Linux).

The command runs in a mount namespace of its own, for an ordinary user in a user namespace with that user alone in it,
and in a process namespace: all its processes end with it, and no mount is left. The mounts are made by a process that
becomes the command later. So the command has the user's own id, and an ordinary user's has no capabilities. Sources:
unshare(2), mount(2), pid_namespaces(7), prctl(2) with PR_SET_PDEATHSIG, netdevice(7), the kernel's page on overlayfs.

    this process --- fork ---> keeper, with the mounts --- fork ---> process 1 --- fork ---> the command
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from swarm_hook_core.kernel import namespace

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


CANNOT_RUN, NOT_FOUND = 126, 127
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
TYPED = ("SIGINT", "SIGQUIT")  # at a terminal the command gets these by itself
_NEW_PROCESSES, _NEW_NETWORK = 0x20000000, 0x40000000
_BIND, _RECURSIVE = 0x1000, 0x4000
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP


class NoView(Exception):
    """The kernel refuses this view here; the message says why."""


class Command(NamedTuple):
    """A command to run.

    folder       its folder
    output       an open file for its standard output and error; -1: this process's own
    has_network  False: a network of its own, with the loopback alone
    """

    argv: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    output: int = -1
    has_network: bool = True


class Overlay(NamedTuple):
    """A mount: the files of `lower` with those of `upper` over them, at the place of `lower`."""

    lower: str
    upper: str
    work: str

    def mount(self) -> None:
        """Mount it. Raises OSError."""
        lower, upper, work = map(_escaped, self)
        _mount("overlay", self.lower, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work},userxattr")


class Bound(NamedTuple):
    """A mount: the folder `folder` at the place `path`."""

    folder: str
    path: str

    def mount(self) -> None:
        """Mount it. Raises OSError."""
        _mount(self.folder, self.path, "", _BIND | _RECURSIVE, "")


def begin(mounts: Sequence[Overlay | Bound], prepare: Callable[[], object], command: Command) -> int:
    """Start the command with these mounts, after ``prepare()`` among them. Return the keeper's pid, for `attend`.

    Raises NoView if the kernel refuses; OSError.
    """
    reader, writer = os.pipe()
    here = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    keeper = os.fork()
    if not keeper:
        code = CANNOT_RUN
        try:
            code = _keep(mounts, prepare, command, here, writer)
        except BaseException as error:  # the exit below must be reached: this is a copy of the caller
            with contextlib.suppress(OSError):
                os.write(writer, f"!{error}".encode(errors="replace")[:1000])
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as file:
        why = file.read().decode(errors="replace")
    if why:
        os.waitpid(keeper, 0)
        if why.startswith("!"):
            raise OSError(errno.EIO, why[1:])
        raise NoView(why)
    return keeper


def attend(child: int) -> int:
    """Wait for a child, and pass signals on to it. Return its exit code, or 128 and the number of its signal."""
    with _passing_on(child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def end(child: int) -> None:
    """End a keeper and its command."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


@contextlib.contextmanager
def _passing_on(child: int) -> Iterator[None]:
    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    before: dict[int, Any] = {}
    handlers: tuple[tuple[tuple[str, ...], Any], ...] = ((PASSED_ON, pass_on), (TYPED, signal.SIG_IGN))
    for names, handler in handlers:
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` means it
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ------------------------------------------------------------------------------------------- the keeper


def _keep(
    mounts: Sequence[Overlay | Bound], prepare: Callable[[], object], command: Command, above: int, writer: int
) -> int:
    try:
        namespace.enter()
        if not command.has_network:
            _unshare(_NEW_NETWORK)
        for mount in mounts:
            mount.mount()
    except OSError as error:
        os.write(writer, (error.strerror or str(error)).encode())
        return CANNOT_RUN
    if not command.has_network:
        _raise_loopback()
    prepare()
    _end_with_parent()
    if os.getppid() != above:
        return CANNOT_RUN  # it was killed meanwhile
    alive, mine = os.pipe()
    _unshare(_NEW_PROCESSES)  # after `prepare`: the first process that it starts is the namespace's own
    first = os.fork()
    if not first:
        code = CANNOT_RUN
        try:
            os.close(mine)
            code = _first(command, alive, writer)
        finally:
            os._exit(code)
    os.close(alive)
    os.close(writer)
    return _shell_code(attend(first))


def _first(command: Command, alive: int, writer: int) -> int:
    """Be process 1 of the namespace: start the command, and wait for its end. The others end with this process."""
    _end_with_parent()
    if select.select([alive], [], [], 0)[0]:
        return CANNOT_RUN  # the keeper was killed meanwhile
    with contextlib.suppress(OSError):  # in a container: it keeps the machine's own list
        _mount("proc", "/proc", "proc", 0, "")
    child = os.fork()
    if not child:
        _become(command)
    os.close(writer)
    with _passing_on(child):
        while True:
            pid, status = os.wait()
            if pid == child:
                return _shell_code(os.waitstatus_to_exitcode(status))


def _become(command: Command) -> None:
    code = CANNOT_RUN
    try:
        for name in (*TYPED, "SIGPIPE"):  # ignored here
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.chdir(command.folder)
        if command.output >= 0:
            os.dup2(command.output, 1)
            os.dup2(command.output, 2)
        os.execvpe(command.argv[0], list(command.argv), dict(command.environment))
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            code = NOT_FOUND
        os.write(2, f"try failed: {command.argv[0]}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(code)


def _shell_code(code: int) -> int:
    """Return an exit code, 128 and the signal's number for a process that a signal has ended."""
    if code < 0:
        return 128 - code
    return code


def _end_with_parent() -> None:
    _libc().prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sH14s", b"lo", _UP, b""))


def _unshare(flags: int) -> None:
    if _libc().unshare(flags):
        raise _error()


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    if _libc().mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None):
        raise _error()


def _escaped(path: str) -> str:
    """Return a path as the options of an overlay have it."""
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))

"""The checker as a process: it answers one call after the other by the code of a hook, until its server ends."""

from __future__ import annotations

import fcntl
import gc
import importlib
import io
import os
import pkgutil
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

import swarm_hook_core
from swarm_hook_core import __version__, coordinator, patch, process, repository, settings
from swarm_hook_core.core import HookCore
from swarm_hook_core.guests import HOSTS
from swarm_hook_core.lookup import glance
from swarm_hook_core.state import open_in_private
from swarm_hook_core.traces import journal
from swarm_mcp.checker import BEGUN, EVENTS, LARGEST_HEAD, LARGEST_PAYLOAD, SIZES, WORDS, checkers_dir
from swarm_mcp.hooks.session_hooks import run_in_store
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import hook_config
from swarm_mcp.store import driver

# The surroundings of one call, as a hook inherits them from its client: the checker puts them on while it answers.


class Surroundings:
    """The `environment` of a relay, as the system has it, and its `folder`. A context manager.

    `words`: the hook's command line; `output`: takes its output. The environment stays until the next call, mostly with
    the same.
    """

    def __init__(self, environment: list[bytes], folder: bytes, words: list[str], output: io.StringIO):
        self._environment = environment
        self._folder = folder
        self._words = words
        self._output = output

    def __enter__(self) -> Surroundings:
        self._kept = sys.stdout, sys.stderr, sys.argv
        put_on(self._environment)
        os.chdir(self._folder)
        sys.stdout, sys.stderr, sys.argv = self._output, io.StringIO(), self._words
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr, sys.argv = self._kept
        process.answer_for(0, 0, None)
        os.chdir("/")  # the folder may be removed or unmounted


def put_on(environment: list[bytes]) -> None:
    """Make `environment` this process's own: of two entries of one name the first counts, as in a new process."""
    new: dict[bytes, bytes] = {}
    for entry in environment:
        name, sign, value = entry.partition(b"=")
        if name and sign:
            new.setdefault(name, value)
    old = os.environb
    zone = old.get(b"TZ")
    for name in [name for name in old if name not in new]:
        del old[name]
    for name, value in new.items():
        if old.get(name) != value:
            old[name] = value
    if old.get(b"TZ") != zone:
        time.tzset()


LISTENER, SERVER = 3, 0  # open files: the socket, and the end of a pipe that closes with the server
LOWEST = 100  # number of the checker's own open files: a command may name those of a hook, as /dev/fd/3
RECEIVE_SECONDS = 0.2  # for the parts of a request: the relay sends them at once
MARGIN_NS = 5_000_000  # before the relay stops waiting
ANSWER_NS = 50_000_000  # likewise, for the end of a hook behind its answer
WHOLE_EVERY = 16  # calls, between two collections of all garbage
REAP_MS = 1000  # between two looks at errands that go on
_MODULES_APART = ("swarm_hook_core.kernel.enter",)  # of processes of their own
# Modules that the hook of a turn loads beside the hook core.
_OF_TURNS = ("hooks.session_hooks", "hooks.protection_watch", "store.store", "store.sessions", "store.messages",
             "store.cleanup")  # fmt: skip


class Refused(Exception):
    """The checker does not answer this request: the relay runs the hook as a process."""


class Request:
    """One call as a relay has sent it."""

    def __init__(self, connection: socket.socket, release: str):
        self.connection = connection
        self.pid = _trusted_pid(connection)
        connection.sendall(BEGUN)
        sizes = _received(connection, SIZES)
        began_ns = time.monotonic_ns()
        head_size, payload_size = int(sizes[:8], 16), int(sizes[8:], 16)
        if head_size > LARGEST_HEAD or payload_size > LARGEST_PAYLOAD:
            raise Refused
        head = _received(connection, head_size)
        words = head.split(b"\0")
        told = dict(zip(WORDS, words))
        self.payload = _received(connection, payload_size)
        self.client, self.event = told["client"].decode(), told["event"].decode()
        self.parent, self.end_ns, self.folder = int(told["parent"]), int(told["end"]), told["folder"]
        if told["end"].startswith(b"+"):
            self.end_ns += began_ns
        if self.pid == self.parent:
            self.pid = 0  # a plugin asks from its client's process: no process of a hook is below that
        self.environment = words[len(WORDS) : -1]
        if told["release"].decode() != release or self.event not in EVENTS or not self.folder.startswith(b"/"):
            raise Refused
        if not _reads_utf8(self.environment):
            raise Refused  # names of files are other texts to this process than to the hook
        if self.client == "claude-code" and any(name.encode() + b"=" in head for name in HOSTS):
            raise Refused  # another client runs hooks of Claude Code's: the hook itself finds the client of its call

    def demand(self, margin_ns: int = MARGIN_NS) -> None:
        """Raise Abandoned if the relay has stopped waiting, or is about to."""
        if time.monotonic_ns() > self.end_ns - margin_ns:
            raise process.Abandoned
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)  # it sends nothing more: readable means closed
        if poll.poll(0):
            raise process.Abandoned

    def answer(self, status: int, output: str) -> None:
        """Send the exit status and the output of the hook."""
        data = output.encode("utf-8", "surrogateescape")
        self.connection.settimeout(RECEIVE_SECONDS)
        self.connection.sendall(f"{status:02x}{len(data):08x}".encode() + data)


class Output(io.StringIO):
    """The output of a hook. Without a waiting relay the hook ends at its answer, as a process does at a closed pipe."""

    def __init__(self, request: Request):
        super().__init__()
        self._request = request

    def flush(self) -> None:
        """Raise Abandoned if the relay does not wait for the answer: its words are kept for another time."""
        self._request.demand(ANSWER_NS)


def _reads_utf8(environment: list[bytes]) -> bool:
    """Return True if a Python started in `environment` has names of files in UTF-8, and so has this one."""
    told = dict(entry.partition(b"=")[::2] for entry in reversed(environment))  # the first of one name counts
    locale = next((told[name] for name in (b"LC_ALL", b"LC_CTYPE", b"LANG") if told.get(name)), b"C")
    is_utf8 = b"utf" in locale.lower() or locale in (b"C", b"POSIX")
    return is_utf8 and sys.getfilesystemencoding() == "utf-8"


def _trusted_pid(connection: socket.socket) -> int:
    """Return the pid of the relay. Raises Refused if it is another user's, or sees other processes or files."""
    if not hasattr(socket, "SO_PEERCRED"):
        return int.from_bytes(connection.getsockopt(0, 2, 4), sys.byteorder)  # LOCAL_PEERPID of macOS
    found: tuple[int, int, int] = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    pid, user, _group = found
    if user != os.geteuid() or not pid:
        raise Refused
    for kind in ("pid", "time", "mnt"):
        try:
            if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"):
                raise Refused
        except FileNotFoundError:  # a kernel without namespaces of that kind
            continue
    return pid


def _received(connection: socket.socket, size: int) -> bytes:
    parts, end = [], time.monotonic() + RECEIVE_SECONDS
    while size:
        connection.settimeout(max(0.001, end - time.monotonic()))
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise Refused
        parts.append(part)
        size -= len(part)
        end = time.monotonic() + RECEIVE_SECONDS
    return b"".join(parts)


class Checker:
    """Answers the requests of the client with the socket `name`, and keeps a record of them for `swarm-mcp doctor`."""

    def __init__(self, name: str) -> None:
        load_all()
        self._driver: Any = driver.load()
        coordinator.use(coordinator_command())
        journal.is_kept = True
        self._files = _mark()
        self._count = self._spent_ns = 0
        record = os.path.join(checkers_dir(), f"{name}.answered")
        self._record = moved_up(open_in_private(record, os.O_WRONLY | os.O_CREAT))

    def run(self) -> None:
        """Answer until the server has ended, or the files of this release were replaced."""
        listener = socket.socket(fileno=moved_up(LISTENER))
        listener.setblocking(False)
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(SERVER, select.POLLIN)
        has_errands = False
        while True:
            ready = dict(poll.poll(REAP_MS if has_errands else None))
            if SERVER in ready or _mark() != self._files:
                return
            if ready:
                try:
                    connection = socket.socket(fileno=moved_up(listener.accept()[0].detach()))
                except (BlockingIOError, ConnectionAbortedError):  # the relay has left
                    continue
                with connection:
                    self._answer(connection)
            has_errands = tidy(self._count % WHOLE_EVERY == 0)

    def _answer(self, connection: socket.socket) -> None:
        try:
            request = Request(connection, __version__)
            began_ns = time.monotonic_ns()
            left = request.end_ns - MARGIN_NS - began_ns
            if left <= 0:
                return
            signal.setitimer(signal.ITIMER_REAL, left / 1e9)
            try:
                status, output = self.result(request)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if _mark() != self._files:
                return  # it may have met files of another release
            request.answer(status & 0xFF, output)
            self._count += 1
            self._spent_ns += time.monotonic_ns() - began_ns
            os.pwrite(self._record, f"{self._count} {self._spent_ns} {_processor_ns()}\n".encode(), 0)
        except Exception:
            return  # the hook runs as a process, and tells of any fault

    def result(self, request: Request) -> tuple[int, str]:
        """Return exit status and output of the hook."""
        words = [f"{_folder()}/integrations/hook.py", request.client, request.event]
        output = Output(request)
        forget()
        with Surroundings(request.environment, request.folder, words, output):
            process.answer_for(request.pid, request.parent, request.demand)
            payload, event = io.BytesIO(request.payload), request.event
            if event == "turn" and not os.environ.get("SWARM_MCP_BIN", "").strip():
                status = run_in_store(request.client, event, payload, self._driver)
            else:
                core = HookCore(hook_config(request.client), driver=self._driver)
                status = int(getattr(core, f"run_{event}_hook")(payload))
        return status, output.getvalue()


def _processor_ns() -> int:
    """Return the processor time of this process, and of those that it has started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)


def moved_up(handle: int) -> int:
    """Close `handle`; return another number of the same open file."""
    higher = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    os.close(handle)
    return higher


def load_all() -> None:
    """Import the whole hook core: no module may come later, from files of another release."""
    for found in pkgutil.walk_packages(swarm_hook_core.__path__, "swarm_hook_core."):
        if found.name not in _MODULES_APART:
            importlib.import_module(found.name)
    for name in _OF_TURNS:
        importlib.import_module(f"swarm_mcp.{name}")


def forget() -> None:
    """Drop the contents of files that modules have read for the call before: a hook as a process reads them, too.

    Marks of files tell a change only from one tick of the file system's clock to the next.
    """
    settings._last = (None, None)
    patch._last = (None, [])
    repository._known.clear()
    glance._in_vain.clear()
    glance.forget_connection(if_replaced=True)


def tidy(is_whole: bool = True) -> bool:
    """Let nothing of a call outlive it, while no call waits. Return True if an errand goes on.

    After a fault only a collection closes the store: an error and the frames that it names hold each other. Unless
    `is_whole` it looks at the objects of the last calls alone; only a whole one gives back the memory of large calls.
    """
    gc.collect(2 if is_whole else 1)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
        return True
    except ChildProcessError:  # all have ended
        return False


def _folder() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(swarm_hook_core.__file__)))


def _mark() -> tuple[int, int]:
    """Return a mark that changes when this release's files are replaced."""
    try:
        found = os.stat(swarm_hook_core.__file__)
    except OSError:  # they are being replaced just now
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


def main() -> None:
    """Answer the calls of the keeper's client. An abandoned check ends the process: its keeper starts another.

    The alarm kills it, wherever it is, as a client kills a hook. The hook that runs as a process from then on is alone
    with its call.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal's; the server's end is this one's
    os.dup2(os.pipe()[1], 1)  # a pipe, as a hook has: a command may name its output by /dev/stdout
    checker = Checker(sys.argv[-1])
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        checker.run()
    except process.Abandoned:
        pass  # its relay has left: the next call has a new process
    os._exit(0)

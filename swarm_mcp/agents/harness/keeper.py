"""The process between a supervisor and its child (Linux). All descendants of the child stay below it.

An orphan process becomes a child of the nearest ancestor that has asked for such (a "sub-reaper", prctl(2)). The keeper
asks, then starts the child. So a run's leftovers are found among the keeper's descendants, even in a session of their
own and with an empty environment. The keeper reads a pipe from the supervisor: if it ends without a word, the
supervisor was killed, and the keeper ends all descendants.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess

import swarm_mcp
from swarm_hook_core.process import KEEPER, is_stopped
from swarm_hook_core.state import write_all
from swarm_mcp import processes
from swarm_mcp.installation import interpreter
from swarm_mcp.processes import pipes_of, wait_or_kill

GRACE_SECONDS = 3.0
LOOK_SECONDS = 0.5  # between two looks at a keeper that says nothing
SET_NAME, SET_CHILD_SUBREAPER = 15, 36  # prctl(2)
DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from swarm_mcp.agents.harness.keeper import main; main(*sys.argv[2:])"
)
LENGTH = 8  # bytes that say how long the orders are


class Keeper:
    """A keeper, as its supervisor sees it. `child` is the pid of the child, `streams` its three pipes.

    `greeting` is the child's input before its prompt.

    Raises OSError if the child cannot be started, ValueError for words that no process can be given.
    """

    def __init__(self, argv: list[str], cwd: str, environment: dict[str, str], run_id: str):
        self.greeting = b""
        self.exit_code: int | None = None
        orders = _packed(argv, cwd, environment)
        theirs, self._orders = os.pipe()
        self._report, their_report = os.pipe()
        folder = os.path.dirname(os.path.dirname(os.path.abspath(swarm_mcp.__file__)))
        words = [interpreter(), "-I", "-S", "-B", "-c", CODE, folder, str(theirs), str(their_report), run_id]
        try:
            self._process = subprocess.Popen(
                words, bufsize=0, cwd="/", env=_own_environment(), pass_fds=(theirs, their_report),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(self._orders)
            os.close(self._report)
            raise
        finally:
            os.close(theirs)
            os.close(their_report)
        self.pid = self._process.pid
        self.streams = pipes_of(self._process)
        try:
            write_all(self._orders, orders)
            self.child = self._child_started()
        except BaseException:
            self.release()
            for stream in self.streams:
                stream.close()
            raise

    def _child_started(self) -> int:
        """The child's pid, once it runs. Raises OSError."""
        found = b""
        while not found.endswith(b"\n"):
            piece = os.read(self._report, 1)
            if not piece:
                break
            found += piece
        word, number = (found.split() + [b"", b""])[:2]
        if word == b"pid":
            os.set_blocking(self._report, False)
            return int(number)
        if word == b"error":
            code = int(number)
        else:
            code = errno.ECHILD
        raise OSError(code, os.strerror(code) if word else "its keeper did not start")

    def poll(self) -> int | None:
        """Return the child's exit code, the negative number of the fatal signal, or None for a running child."""
        if self.exit_code is None:
            try:
                said = os.read(self._report, 64).split()
            except BlockingIOError:
                self._wake()
                return None
            # A silent keeper was killed: its processes are ended with it.
            if said:
                self.exit_code = int(said[1])
            else:
                self.exit_code = -signal.SIGKILL
        return self.exit_code

    def wait(self) -> None:
        """Wait for the child's end."""
        while self.poll() is None:
            select.select([self._report], [], [], LOOK_SECONDS)

    def _wake(self) -> None:
        """Continue a stopped keeper: it would never report the end of its child."""
        if is_stopped(self.pid):
            os.kill(self.pid, signal.SIGCONT)

    def end_handle(self) -> int:
        """Return a handle that can be read once the child has ended."""
        return os.dup(self._report)

    def release(self) -> None:
        """Let the keeper go: nothing is left to be ended. May be called again."""
        if self._orders < 0:
            return
        orders, self._orders = self._orders, -1
        try:
            write_all(orders, b"over\n")
        except OSError:  # it has ended by itself
            pass
        os.close(orders)
        os.close(self._report)
        self._wake()
        wait_or_kill(self._process)


def _own_environment() -> dict[str, str]:
    """Return an environment without a run's id: a keeper must not find itself. A supervisor that is to outlive the run
    has another.
    """
    kept = {"PATH": os.defpath}
    if os.environ.get(processes.OUTLIVES):
        return {**kept, processes.OUTLIVES: "1"}
    return kept


def _packed(argv: list[str], cwd: str, environment: dict[str, str]) -> bytes:
    words = [cwd, str(len(argv)), *argv, *(f"{name}={value}" for name, value in environment.items())]
    encoded = [os.fsencode(word) for word in words]
    if any(b"\0" in word for word in encoded):
        raise ValueError("embedded null byte")
    body = b"\0".join(encoded)
    return len(body).to_bytes(LENGTH, "big") + body


# ------------------------------------------------------------------------------------- in the keeper itself


def main(orders: str, report: str, run_id: str) -> None:
    """Start the child that the orders describe, and see it, and all that it starts, through."""
    ears, mouth = int(orders), int(report)
    for handle in (ears, mouth):
        os.set_inheritable(handle, False)
    try:
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(SET_NAME, KEEPER.encode(), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # without it, processes that leave the group are found by the run's id alone
    bell, ringer = os.pipe()
    for handle in (bell, ringer):
        os.set_blocking(handle, False)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    # With a handler, and not ignored: that would be handed on to the child.
    for number in (*(n for n in DEAF_TO if signal.getsignal(n) is not signal.SIG_IGN), signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    child = _started(_read(ears, int.from_bytes(_read(ears, LENGTH), "big")), mouth)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    while True:
        ready, _, _ = select.select([ears, bell], [], [])
        if bell in ready:
            os.read(bell, 4096)
            _bury(child, mouth)
        if ears in ready:
            if not os.read(ears, 64):
                processes.end(child, run_id, 0.0, GRACE_SECONDS, os.getpid())
            os._exit(0)


def _started(orders: bytes, mouth: int) -> int:
    """Return the pid of the child once it has become its program; on failure, report the reason and end."""
    cwd, count, *words = orders.split(b"\0")
    argv, variables = words[: int(count)], words[int(count) :]
    environment = dict(variable.split(b"=", 1) for variable in variables)
    wrong, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)  # Python ignores these
            os.chdir(cwd)
            _become(argv, environment)
        except OSError as error:
            os.write(theirs, b"%d" % (error.errno or errno.EIO))
        finally:
            os._exit(127)
    os.close(theirs)
    failed = os.read(wrong, 16)
    os.close(wrong)
    _say(mouth, b"error " + failed if failed else b"pid %d" % pid)
    if failed:
        os._exit(1)
    return pid


def _become(argv: list[bytes], environment: dict[bytes, bytes]) -> None:
    try:
        os.execve(argv[0], argv, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    os.execve(b"/bin/sh", [b"/bin/sh", *argv], environment)  # a script without an interpreter line


def _bury(child: int, mouth: int) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # no child is left
            return
        if not pid:
            return
        if pid == child:
            _say(mouth, b"exit %d" % os.waitstatus_to_exitcode(status))


def _say(mouth: int, line: bytes) -> None:
    try:
        os.write(mouth, line + b"\n")
    except OSError:
        pass  # the supervisor has gone, and `orders` shows that as well


# ------------------------------------------------------------------------------------------------- both


def _read(handle: int, length: int) -> bytes:
    """Read exactly `length` bytes. An earlier end of the pipe ends this process: the writer was killed."""
    found = b""
    while len(found) < length:
        piece = os.read(handle, length - len(found))
        if not piece:
            os._exit(1)
        found += piece
    return found

"""One child process: a group of its own, a helper that ends it with us, and reading it from its start to its end."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from swarm_hook_core.process import start_time
from swarm_mcp import processes
from swarm_mcp.agents.harness.keeper import Keeper
from swarm_mcp.processes import GATE, RUN_ID, Reaper, pipes_of

PATIENCE_SECONDS = 0.5  # seconds for MCP servers and pipes to close down after the child
STRAY_GRACE_SECONDS = 3.0
PIECE = 65536


def found(program: str, environment: Mapping[str, str], cwd: str) -> str | None:
    """Return the whole path of a program as the child would find it; None without a runnable one."""
    if os.path.dirname(program):
        path = os.path.join(cwd, os.path.expanduser(program))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
        return None
    return shutil.which(program, path=environment.get("PATH", os.defpath))


class Child:
    """A child that runs. `pid` is also its process group; `started` its start time (``process.start_time``).

    Raises OSError, or ValueError for an environment that no process can have, where it cannot be started.
    """

    def __init__(self, argv: list[str], cwd: str, environment: Mapping[str, str], prompt: str = ""):
        self.run_id = environment.get(RUN_ID, "")
        if "PWD" in environment:
            environment = {**environment, "PWD": cwd}
        self._closed = False
        self._start: Keeper | _WatchedChild
        self._keeper = 0
        if sys.platform.startswith("linux"):
            self._start = Keeper(argv, cwd, dict(environment), self.run_id)
            self._keeper = self._start.pid
        else:
            self._start = _WatchedChild(argv, cwd, dict(environment))
        self.pid = self._start.child
        self.started = start_time(self.pid)
        self._unsent = memoryview(self._start.greeting + prompt.encode("utf-8", "replace"))
        self.input, self.output, self.errors = (stream.fileno() for stream in self._start.streams)
        for handle in (self.input, self.output, self.errors):
            os.set_blocking(handle, False)

    # ------------------------------------------------------------------ streams

    def feed(self) -> bool:
        """Write as much of its prompt as the child takes now, and close its input at the end. Returns True if there is
        more.
        """
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.input, self._unsent[:PIECE]) :]
        except BlockingIOError:  # the pipe is full
            return True
        except OSError:
            self._unsent = self._unsent[:0]  # it does not want to read
        self._start.streams[0].close()
        return False

    def read(self, handle: int) -> bytes | None:
        """Return the new bytes on `handle`: empty at its end, None without any."""
        try:
            return os.read(handle, PIECE)
        except BlockingIOError:  # nothing has come yet
            return None
        except OSError:  # the other end is gone
            return b""

    # --------------------------------------------------------------------- end

    def ended(self) -> bool:
        """Return True if the child itself is over (its descendants may not be)."""
        return self._start.poll() is not None

    def end_handle(self) -> int:
        """Return a handle that becomes readable after the child's end, to be closed by the caller; -1 without one."""
        return self._start.end_handle()

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, the negative number of the fatal signal, or None for a running child."""
        return self._start.exit_code

    @property
    def signal(self) -> int:
        """Return the fatal signal, 0 for none."""
        return max(0, -(self.exit_code or 0))

    def terminate(self) -> None:
        """Ask the group, and the processes that left it, to end."""
        processes.send(self.pid, self.run_id, signal.SIGTERM, self._keeper)

    def kill(self) -> None:
        """End them."""
        processes.send(self.pid, self.run_id, signal.SIGKILL, self._keeper)

    def close(self) -> int:
        """End all remaining processes, close everything, and return the number of remaining ones. Idempotent."""
        if self._closed:
            return 0
        if not self.ended():
            self.kill()
            self._start.wait()
        left = processes.end(self.pid, self.run_id, PATIENCE_SECONDS, STRAY_GRACE_SECONDS, self._keeper)
        self._closed = True
        self._start.release()
        for stream in self._start.streams:
            stream.close()
        return left


class _WatchedChild:
    """A child of this very process, where there is no keeper: a reaper ends its group alone."""

    def __init__(self, argv: list[str], cwd: str, environment: dict[str, str]):
        # Some shells (dash) lose variables with names they cannot have, such as exported functions of bash. A child
        # with such variables is started without the gate, and the reaper is told a moment later.
        gated = all(name.isascii() and name.isidentifier() for name in environment)
        gate, self.greeting = [], b""
        if gated:
            gate, self.greeting = ["/bin/sh", "-c", GATE, "swarm-gate"], b"go\n"
        self._reaper = Reaper().start()
        try:
            self._process = subprocess.Popen(
                [*gate, *argv], bufsize=0, cwd=cwd, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._reaper.release()
            raise
        self.child = self.pid = self._process.pid
        self._reaper.watch(self.pid)
        self.streams = pipes_of(self._process)
        self.poll, self.wait, self.release = self._process.poll, self._process.wait, self._reaper.release

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    def end_handle(self) -> int:
        try:
            return os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not on this system
            return -1


LONGEST_LINE = 4 * 1024 * 1024  # bytes; tool results with pictures have megabytes, and all of it is kept several times


class LineSplitter:
    """Cuts the bytes of one stream into lines, in bounded memory.

    A line ends with LF or CRLF; the end of the stream ends the last one. Of a line longer than `longest` bytes the
    beginning is kept, and `cut` counts the bytes that are lost.
    """

    def __init__(self, longest: int = LONGEST_LINE):
        self._longest = longest
        self._open = bytearray()
        self._begun = False
        self.cut = 0

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without their ends."""
        first, *others = data.split(b"\n")
        self._add(first)
        if not others:
            return []
        found = [self._close()]
        for line in others[:-1]:
            self._add(line)
            found.append(self._close())
        self._begun = False
        self._add(others[-1])
        return found

    def end(self) -> list[str]:
        """Return the line that the stream's end completes, if there is one."""
        if self._begun:
            return [self._close()]
        return []

    def _add(self, piece: bytes) -> None:
        room = self._longest - len(self._open)
        self._open += piece[: max(0, room)]
        self.cut += max(0, len(piece) - room)
        self._begun = self._begun or bool(piece)

    def _close(self) -> str:
        line = bytes(self._open)
        self._open.clear()
        self._begun = False
        return (line[:-1] if line.endswith(b"\r") else line).decode("utf-8", "replace")


TICK_SECONDS = 0.5
DRAIN_SECONDS = 0.5  # how long pipes that a descendant still holds are read once the child is over


class StopRequest:
    """A request to end a run, from any thread or signal handler. The first one counts.

    `reason` is ``(error code, words)``, None before a request; `handle` is readable from then on. No lock is taken: a
    signal handler may interrupt the thread that holds it.
    """

    def __init__(self) -> None:
        self.reason: tuple[str, str] | None = None
        self.handle, self._bell = os.pipe()
        os.set_blocking(self._bell, False)

    def give(self, code: str, words: str) -> None:
        """Request the end of the run for this reason."""
        if self.reason is None:
            self.reason = (code, words)
        if self._bell >= 0:
            try:
                os.write(self._bell, b"!")
            except OSError:
                pass  # it has been rung often enough

    def close(self) -> None:
        """Close the handles, after the last listener and the last request."""
        handle, bell, self.handle, self._bell = self.handle, self._bell, -1, -1
        if bell >= 0:
            os.close(bell)
            os.close(handle)

    def __del__(self) -> None:
        self.close()  # not before: a late signal would ring a bell that is something else by then


def follow(
    child: Child,
    take: Callable[[str, bytes], None],
    stop: StopRequest,
    deadline: Callable[[], None],
    until: float,
    grace: float,
    each_turn: Callable[[], None] = lambda: None,
) -> bool:
    """Read `child` until it is over. Returns True if it was stopped.

    `take` gets ``("stdout" | "stderr", bytes)`` as they come, and empty bytes at a stream's end. At `until`
    (``time.monotonic()``, 0 for never) `deadline` is called to make a stop request. After one: TERM, `grace` seconds,
    KILL. `each_turn` is called at least every TICK_SECONDS.
    """
    streams = _Streams(child, take, stop)
    try:
        kill_at = 0.0
        stopped = False
        while not child.ended():
            now = time.monotonic()
            if until and now >= until and stop.reason is None:
                deadline()
            if stop.reason is not None and not stopped:
                stopped, kill_at = True, now + grace
                child.terminate()
            if kill_at and now >= kill_at:
                kill_at = now + 1.0  # again, should something have been born meanwhile
                child.kill()
            nearest = [limit for limit in (kill_at, until if not stopped else 0.0) if limit]
            streams.turn(min([TICK_SECONDS, *(max(0.0, limit - now) for limit in nearest)]))
            each_turn()
        streams.drain(DRAIN_SECONDS)
        return stopped
    finally:
        streams.close()


class _Streams:
    """The two streams of a child and the end of it, in one selector."""

    def __init__(self, child: Child, take: Callable[[str, bytes], None], stop: StopRequest):
        self._child, self._take = child, take
        self._selector = selectors.DefaultSelector()
        self._open = {child.output: "stdout", child.errors: "stderr"}
        for handle in self._open:
            self._selector.register(handle, selectors.EVENT_READ)
        self._stop = stop.handle
        self._selector.register(stop.handle, selectors.EVENT_READ)
        self._feeding = child.feed()
        if self._feeding:
            self._selector.register(child.input, selectors.EVENT_WRITE)
        self._end = child.end_handle()
        if self._end >= 0:
            self._selector.register(self._end, selectors.EVENT_READ)

    def turn(self, seconds: float) -> None:
        """Take the available output, after at most `seconds` of waiting."""
        if self._end < 0:
            seconds = min(seconds, 0.05)  # nothing else tells us of the child's end
        for key, _ in self._selector.select(seconds):
            handle = key.fd
            if handle in self._open:
                self._read(handle)
            elif handle == self._stop:
                os.read(handle, 64)
            elif self._feeding and handle == self._child.input:
                self._selector.unregister(self._child.input)  # before it is closed
                self._feeding = self._child.feed()
                if self._feeding:
                    self._selector.register(self._child.input, selectors.EVENT_WRITE)

    def drain(self, seconds: float) -> None:
        """Read the rest of the pipes. A descendant that holds them open is waited for no longer than `seconds`."""
        if self._end >= 0:
            self._selector.unregister(self._end)  # it can be read for ever now
            os.close(self._end)
            self._end = -1
        until = time.monotonic() + seconds
        while self._open and time.monotonic() < until:
            self.turn(0.05)
        for handle in list(self._open):
            for _ in range(64):
                if handle in self._open and not self._read(handle):
                    break
            self._forget(handle)

    def close(self) -> None:
        self._selector.close()
        if self._end >= 0:
            os.close(self._end)

    def _read(self, handle: int) -> bool:
        data = self._child.read(handle)
        if data:
            self._take(self._open[handle], data)
        elif data is not None:
            self._forget(handle)
        return bool(data)

    def _forget(self, handle: int) -> None:
        stream = self._open.pop(handle, "")
        if stream:
            self._selector.unregister(handle)
            self._take(stream, b"")

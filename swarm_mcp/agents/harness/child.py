"""One child of a run: its process group, reading it from its start to its end, and the events of its lines.

A helper ends the child with us (``keeper``).
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.process import start_time
from swarm_mcp import processes
from swarm_mcp.agents.harness import environment, events, outcome
from swarm_mcp.agents.harness.adapter import HarnessAdapter, Launch, limit_reached
from swarm_mcp.agents.harness.environment import API_KEY, added, without_session
from swarm_mcp.agents.harness.events import Event, Ledger
from swarm_mcp.agents.harness.keeper import Keeper
from swarm_mcp.agents.harness.outcome import Ending, code_of_error
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.record import RUNTIME, EventSink
from swarm_mcp.agents.harness.scrub import Scrubber
from swarm_mcp.errors import SwarmError
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


def _follow(
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


# Noticing that an agent calls the same tools over and over: a warning first, then the end of the run.

WINDOW = 40  # calls that are remembered
WARN, STOP = "warn", "stop"
SAME = (8, 15)  # calls of one tool with the same arguments, within the window: warned at, stopped at
TURNS = (6, 12)  # calls in a row that alternate between two
# Tools with arguments that name the file, but not the change: a repeated call may well be progress.
COARSE = frozenset({"file_change"})
COARSE_SAME = (16, 24)
COARSE_TURNS = (12, 24)


class ToolLoopGuard:
    """The last calls of one run."""

    def __init__(self) -> None:
        self._calls: deque[tuple[str, bool]] = deque(maxlen=WINDOW)
        self._warned: set[tuple[str, ...]] = set()

    def saw(self, tool: str, args: object) -> tuple[str, str] | None:
        """Note a call. ``(WARN | STOP, words)`` where it is one too many; a warning is given once."""
        # A name for a call; the order of keys, however deep, makes no difference
        try:
            text = json.dumps([tool, args], sort_keys=True, default=str)
        except (TypeError, ValueError, RecursionError):
            text = f"{tool} {args!r:.4000}"
        call = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(), tool in COARSE)
        self._calls.append(call)
        times = self._calls.count(call)
        found = _level(times, COARSE_SAME if call[1] else SAME)
        if found:
            return self._once(found, (call[0],), f"{tool} was called {times} times with the same arguments")
        # The number of last calls that alternate between two, and the other one of the two
        calls = list(self._calls)
        if len(calls) < 2 or calls[-1] == calls[-2]:
            turns, other = 0, ("", False)
        else:
            length = 2
            while length < len(calls) and calls[-length - 1] == calls[-length + 1]:
                length += 1
            turns, other = length, calls[-2]
        found = _level(turns, COARSE_TURNS if call[1] or other[1] else TURNS)
        if found:
            return self._once(found, tuple(sorted((call[0], other[0]))), f"the same two calls took turns {turns} times")
        return None

    def _once(self, level: str, key: tuple[str, ...], words: str) -> tuple[str, str] | None:
        if level == WARN and key in self._warned:
            return None
        self._warned.add(key)
        return level, words


def _level(times: int, limits: tuple[int, int]) -> str:
    if times >= limits[1]:
        return STOP
    if times >= limits[0]:
        return WARN
    return ""


TAIL_LINES, TAIL_CHARACTERS = 100, 16384  # the end of its output, kept to find out the reason for a failure


class NotStarted(Exception):
    """The child could not be started: `code` (one of ``outcome.ERRORS``) and one line saying why."""

    def __init__(self, code: str, reason: str):
        super().__init__(reason)
        self.code = code


class RunAttempt:
    """A child before its start. Afterwards `was_stopped` is True if we ended it, and `strayed` if its session differs
    from the one to continue.
    """

    def __init__(self, adapter: HarnessAdapter, query: Query, sink: EventSink, ledger: Ledger, stop: StopRequest):
        self._adapter, self._query = adapter, query
        self._sink, self._ledger, self._stop = sink, ledger, stop
        self._guards: dict[str, ToolLoopGuard] = {}  # by the call that made a sub-agent
        self._state: dict[str, Any] = {"query": query}
        self._lines = {"stdout": LineSplitter(), "stderr": LineSplitter()}
        self._tails = {"stdout": deque[str](maxlen=TAIL_LINES), "stderr": deque[str](maxlen=TAIL_LINES)}
        self._native = 0
        self.notes: list[str] = []  # notes for the person before the child begins
        self.was_stopped = False
        self.strayed = False

    # ------------------------------------------------------------------- start

    def set_folder(self, folder: object) -> None:
        """Tell the adapter where the run's private folder is."""
        self._state["folder"] = str(folder)

    def launch(self, folder: Path, number: int) -> tuple[list[str], dict[str, str], Launch]:
        """Return argv, environment and the rest of how the child starts; emit its metadata. Raises NotStarted."""
        query = self._query
        self.set_folder(folder)
        try:
            launch = self._adapter.launch(query, folder)
        except Exception as error:
            self._sink.scrubber = self._scrubber({})
            raise NotStarted(code_of_error(error), _words(error)) from error
        own = added(query, launch.env)
        environment = {**without_session(drop=launch.drop), **own}
        self._sink.scrubber = self._scrubber(launch.env)
        self._sink.meta(self._metadata(launch, own, number))
        program = found(launch.argv[0], environment, query.cwd)
        if program is None:
            reason = f"{launch.argv[0]} is not installed, or not on PATH. {self._adapter.instructions}".strip()
            raise NotStarted(outcome.NOT_INSTALLED, reason)
        return [program, *launch.argv[1:]], environment, launch

    def run(self, folder: Path, number: int, until: float, started: Callable[[Child], None]) -> Ending:
        """Start the child, follow it to its end and return how it ended. `until` as in `_follow`. Raises NotStarted."""
        argv, environment, launch = self.launch(folder, number)
        if self._adapter.is_opaque:
            argv = self._held(argv, folder)
        try:
            child = Child(argv, self._query.cwd, environment, launch.stdin)
        except (OSError, ValueError) as error:
            raise NotStarted(outcome.PROCESS_CRASHED, f"{launch.argv[0]} cannot be started: {error}") from error
        try:
            started(child)
            for note in self.notes:
                self._sink.event(events.custom("swarm.not_heeded", {"message": note}))
            for note in launch.notes:
                self._sink.line("stderr", note)
            seconds = self._query.timeout_seconds

            def deadline() -> None:
                self._stop.give(outcome.TIMEOUT, f"it took longer than {seconds:g} seconds")

            self.was_stopped = _follow(
                child, self.take, self._stop, deadline, until, self._query.grace_seconds, self._hand_on
            )
        finally:
            left = child.close()
        if left:
            self._sink.event(events.custom("swarm.leftovers_ended", {"processes": left}))
        return self.over(child.exit_code, child.signal)

    def _held(self, argv: list[str], folder: Path) -> list[str]:
        """Return the command line with which the kernel protects the locked files of others, if that is on."""
        try:
            return environment.inside(self._query, argv, folder)
        except environment.NotHeld as why:
            words = f"the kernel does not protect the locked files of others from this command: {why}"
            if why.is_final:
                raise NotStarted(outcome.UNSUPPORTED, f"{words}; nothing uncertain may run here: SWARM_STRICT") from why
            self.notes.append(words)
            return argv

    def _scrubber(self, own: Mapping[str, str]) -> Scrubber:
        query = self._query
        servers = [values for server in query.mcp_servers.values() for values in (server.env, server.headers)]
        return Scrubber(os.environ, query.env, own, {API_KEY: query.api_key}, *servers, folder=query.cwd)

    def _metadata(self, launch: Launch, own: dict[str, str], number: int) -> dict[str, Any]:
        """Return the beginning of the record. Of the environment it has the child's additions only."""
        query = self._query
        return {
            "timestamp": time.time(), "adapter": self._adapter.name, "command": launch.argv[0],
            "args": list(launch.argv[1:]), "command_line": shlex.join(launch.argv), "cwd": query.cwd,
            "env": self._sink.scrubber.environment(own), "prompt": query.prompt, "model": query.model,
            "effort": query.effort, "mode": query.mode,  "run_id": query.run_id, "task_id": query.task_id,
            "instance_id": query.instance_id, "requester_id": query.requester_id, "scope": query.scope,
            "label": query.label, "role": query.role, "resume_session_id": query.resume_session_id,
            "timeout_seconds": query.timeout_seconds, "grace_seconds": query.grace_seconds, "attempt": number,
            "supervisor_pid": os.getpid(), "iteration": query.iteration,
        }  # fmt: skip

    # ------------------------------------------------------------------- lines

    def take(self, stream: str, data: bytes) -> None:
        """Take `data` that the child wrote to ``stdout`` or ``stderr``; empty data means that the stream has ended."""
        lines = self._lines[stream]
        for line in lines.feed(data) if data else lines.end():
            self._line(stream, line)
        if lines.cut:
            self._sink.event(events.custom("swarm.line_cut", {"stream": stream, "bytes": lines.cut}))
            lines.cut = 0
        self._sink.flush()

    def over(self, exit_code: int | None, signal: int) -> Ending:
        """Return how the child ended, after both its streams have, and emit the events that are left."""
        self._events(self._ask(self._adapter.finish, self._state))
        self._hand_on(is_over=True)
        for event in self._ledger.close():
            self._sink.event(event)
        ledger = self._ledger
        return Ending(
            exit_code, signal, ledger.result, tuple(ledger.errors), self._tail("stderr"), self._tail("stdout"),
            self._native,
        )  # fmt: skip

    def _line(self, stream: str, line: str) -> None:
        if stream == "stderr":
            seen = self._ask(self._adapter.parse_stderr, line, self._state)
            self._sink.line(stream, line, told=bool(seen) and self._adapter.tells_stderr)
            self._tails[stream].append(line[-TAIL_CHARACTERS:])
            self._events(seen)
            return
        try:
            recorded = self._adapter.recorded(line)
        except Exception:  # a line that is not as the adapter knows it is told whole
            recorded = line
        self._sink.line(stream, recorded)
        self._native += bool(line.strip())
        self._hand_on()  # an answer during a call stands before the end of that call
        seen = self._ask(self._adapter.parse, line, self._state)
        if not seen:
            self._tails[stream].append(line[-TAIL_CHARACTERS:])
        self._events(seen)

    def _hand_on(self, is_over: bool = False) -> None:
        """Hand on events of other threads; one about a call waits for the call's beginning."""
        waiting = self._sink.waiting
        for _ in range(len(waiting)):
            event = waiting.popleft()
            call_id = event.data.get("tool_call_id")
            if is_over or not call_id or self._ledger.is_open(call_id):
                self._sink.event(event)
            else:
                waiting.append(event)

    def _ask(self, question: Callable[..., list[Event]], *words: object) -> list[Event]:
        """The adapter's answer. It must not raise; should it, the fault is recorded and the run goes on."""
        try:
            return question(*words) or []
        except Exception as error:
            state.record(RUNTIME, self._adapter.name, _words(error))
            return [events.custom(f"{self._adapter.name}.not_understood", {"error": _words(error)})]

    def _events(self, seen: list[Event]) -> None:
        for event in seen:
            for admitted in self._ledger.admit(event):
                self._sink.event(admitted)
                self._look(admitted)
            if event.kind == events.ERROR and event.data.get("final"):
                code = event.data.get("category")
                self._stop.give(code if code in outcome.ERRORS else outcome.UNKNOWN, str(event.data.get("message")))

    def _look(self, event: Event) -> None:
        if event.kind == events.TOOL_START:
            guard = self._guards.setdefault(str(event.data.get("parent_tool_call_id") or ""), ToolLoopGuard())
            level, words = guard.saw(event.data["tool_name"], event.data.get("args")) or ("", "")
            if level == STOP:
                self._stop.give(outcome.TOOL_LOOP, words)
            elif level:
                self._sink.event(events.custom("swarm.tool_loop_warning", {"message": words}))
        if event.kind == events.CONTEXT_USAGE and event.data.get("goes_on"):
            reached = limit_reached(self._query, event.data.get("cost_usd"), event.data.get("num_turns"))
            if reached:
                self._stop.give(outcome.BUDGET, reached)
        asked, came = self._query.resume_session_id, self._ledger.session_id
        if asked and came and came != asked and not self._query.fork_session and not self.strayed:
            self.strayed = True
            words = f"session {asked} was to be continued, and session {came} began"
            self._sink.event(events.error(words, outcome.SESSION_NOT_FOUND))

    def _tail(self, stream: str) -> str:
        return "\n".join(self._tails[stream])[-TAIL_CHARACTERS:]


def _words(error: BaseException) -> str:
    if isinstance(error, SwarmError):
        return str(error)
    return f"{type(error).__name__}: {error}"

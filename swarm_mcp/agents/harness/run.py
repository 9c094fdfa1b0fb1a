"""The runner: one run of one harness, whole; and a conversation of several runs."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from swarm_hook_core import state
from swarm_mcp.agents.harness import events, outcome, registry
from swarm_mcp.agents.harness.adapter import PERMISSIONS, HarnessAdapter, PermissionServer, left_out, require_possible
from swarm_mcp.agents.harness.child import Child, NotStarted, RunAttempt, StopRequest
from swarm_mcp.agents.harness.conclusion import (
    ChangeWatch,
    Resumption,
    announced,
    concluded,
    decide,
    error_in,
    is_unknown_session,
    serialize,
    session_given,
)
from swarm_mcp.agents.harness.environment import private_folder, skill_folders
from swarm_mcp.agents.harness.events import AnyEvent, Event, EventStream, Ledger, waker
from swarm_mcp.agents.harness.membership import joined
from swarm_mcp.agents.harness.outcome import Changes, Cost, Ending, RunResult, added, checked_result, code_of_error
from swarm_mcp.agents.harness.query import Options, PathLike, Query
from swarm_mcp.agents.harness.query_types import checked, function_of, normalized, path_of
from swarm_mcp.agents.harness.record import RUNTIME, EventSink, Record
from swarm_mcp.agents.harness.servers import CLIENT_TOOLS, ToolServer, servers_for
from swarm_mcp.errors import Refused, SwarmError

NOTHING = Ending(None)


class Run:
    """One run of a harness, given as its adapter or by name. `run_id` names the run, `record` is the path of its record
    (of the last attempt's).

    `membership` is the run's place in the swarm (``membership.Membership``), or None; `previous` an earlier result, its
    ``session_params``, or the harness's own session id, to continue that session if possible. ``Session`` does so for
    every prompt.

    Raises Refused for an argument, or a field of the query, with a meaningless type.

    ``with run:`` (and ``async with run:``) starts it, and ends a running one at the end of the block. ``await run`` is
    `result`, and blocks nothing else of the event loop.
    """

    def __init__(
        self,
        adapter: HarnessAdapter | str,
        query: Query,
        *,
        record_folder: PathLike = "",
        membership: Any = None,
        previous: Mapping[str, Any] | RunResult | str | None = None,
    ):
        adapter = registry.adapter_of(adapter)
        query = normalized(query)
        self.run_id = query.run_id or getattr(membership, "run_id", "") or str(uuid.uuid4())
        instance_id = query.instance_id or getattr(membership, "instance_id", "")
        self._adapter = adapter
        self._query = query._replace(run_id=self.run_id, instance_id=instance_id)
        if membership is not None and not hasattr(membership, "join"):
            raise Refused(f"membership wants a Membership, not {type(membership).__name__}")
        self._membership = membership
        self._previous = session_given(adapter, previous)
        self._folder = path_of("record_folder", record_folder)
        self._sink = EventSink()
        self._record = self._sink.record = self._new_record()
        self._ledger = Ledger(adapter.name)
        self._stop = StopRequest()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._endings: list[Callable[[], object]] = []  # functions to call at its end
        self._ending = threading.Lock()
        self._child: tuple[int, str] | None = None
        self._result: RunResult | None = None
        self._attempts = 0
        self._forget = False
        self._began = 0.0
        self._changes: ChangeWatch | None = None

    # ---------------------------------------------------------------- the face

    @property
    def record(self) -> str:
        """Path of the record (of the last attempt's)."""
        return self._record.path

    @property
    def session_id(self) -> str | None:
        """The harness's session, None until it is known."""
        known = self._ledger.session_id
        return known and self._sink.scrubber.text(known)

    @property
    def child(self) -> tuple[int, str] | None:
        """Pid and start time of the running child, else None."""
        return self._child

    def on_event(self, listener: Callable[[AnyEvent], object]) -> Run:
        """Call `listener` with every event (``events``), in the run's own thread."""
        self._sink.on_event(function_of("on_event", listener))
        return self

    def on_log(self, listener: Callable[[str, str], object]) -> Run:
        """Call `listener` with ``("stdout" | "stderr", line)``, scrubbed."""
        self._sink.on_log(function_of("on_log", listener))
        return self

    def on_meta(self, listener: Callable[[dict[str, Any]], object]) -> Run:
        """Call `listener` with a child's metadata before it is started."""
        self._sink.on_meta(function_of("on_meta", listener))
        return self

    def start(self) -> Run:
        """Start the run in a thread of its own. Raises Refused for a query that makes no sense or cannot be done."""
        require_possible(self._adapter, checked(self._query))
        if self._thread is None:
            self._began = time.monotonic()
            ended_at_exit(self)
            # A daemon: should its process end regardless, its keeper or reaper ends the child.
            self._thread = threading.Thread(target=self._main, name=f"run-{self.run_id[:8]}", daemon=True)
            self._thread.start()
        return self

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """Wait for the run's end and return its result; None after `timeout` seconds without it."""
        self._over.wait(timeout)
        return self._result

    def result(self) -> RunResult:
        """Return the result of a successful run. Starts it if necessary, and waits for its end.

        Raises HarnessError for a failed run, and the errors of `start`. An interrupted caller (Ctrl-C) ends the run.
        """
        try:
            seen_through = self.start().wait()
        except BaseException:  # interrupted: nothing may go on behind the caller
            self.abort("interrupted")
            raise
        return self._checked(seen_through)

    def events(self) -> EventStream:
        """Return the run's events from now on, for a ``for`` or an ``async for`` loop. Starts the run if necessary.

        Leaving the loop early leaves the run going (``with run:`` does not). Raises the errors of `start`.
        """
        stream = EventStream()
        self.on_event(stream.put)
        self.start()
        self._when_over(stream.end)
        return stream

    def __enter__(self) -> Run:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.abort("its caller has left")
        self.wait()

    async def __aenter__(self) -> Run:
        return self.start()

    async def __aexit__(self, *_exception: object) -> None:
        self.abort("its caller has left")
        await self.ended()

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._awaited().__await__()

    def abort(self, reason: str = "") -> None:
        """End the run. May be called from any thread or signal handler, and again; has no effect once it is over."""
        self._stop.give(outcome.ABORTED, reason or "it was cancelled")

    async def ended(self) -> None:
        """Wait for the end of a started run, without blocking the event loop."""
        import asyncio

        over = asyncio.Event()
        self._when_over(waker(over))
        await over.wait()

    # -------------------------------------------------------------- those who wait

    async def _awaited(self) -> RunResult:
        try:
            self.start()
            await self.ended()
        except BaseException:  # cancelled: nothing may go on behind the caller
            self.abort("interrupted")
            raise
        return self._checked(self._result)

    def _checked(self, result: RunResult | None) -> RunResult:
        assert result is not None  # its end has been waited for
        return checked_result(result, self._adapter.instructions)

    def _when_over(self, call: Callable[[], object]) -> None:
        with self._ending:
            if not self._over.is_set():
                self._endings.append(call)
                return
        call()

    # --------------------------------------------------------------- the thread

    def _main(self) -> None:
        result = RunResult(self.run_id, self._adapter.name, is_error=True, error_category=outcome.UNKNOWN)
        try:
            self._result = self._announced(self._carry_out())
        except BaseException as error:  # a bug of ours: waiting callers must get a result all the same
            state.record(RUNTIME, "run", state.describe(error))
            result = result._replace(error_message=f"the run failed inside: {type(error).__name__}", record=self.record)
            self._result = result
            self._sink.event(events.result("", True, outcome.UNKNOWN, error_message=result.error_message))
        finally:
            self._result = self._result or result
            self._sink.close()
            with self._ending:
                self._over.set()
            for call in self._endings:
                call()

    def _carry_out(self) -> RunResult:
        self._record.open()
        try:
            self._changes = ChangeWatch(self._query.cwd)
            self.on_event(self._changes.note)
            with joined(self._membership), private_folder() as folder, self._tools() as tools, self._asked() as asked:
                # The query with all servers and skills that the child gets
                query = self._query
                servers = servers_for(query)
                if tools is not None:
                    servers[CLIENT_TOOLS] = tools.server  # in place of another of that name
                if asked is not None:
                    servers[PERMISSIONS] = asked.server
                return self._attempt_twice_at_most(
                    query._replace(mcp_servers=servers, skills=skill_folders(query), cwd=os.path.abspath(query.cwd)),
                    folder,
                )
        except (SwarmError, OSError) as error:
            return self._concluded(NOTHING, (code_of_error(error), str(error)), Cost())

    def _attempt_twice_at_most(self, query: Query, folder: Path) -> RunResult:
        """One attempt, and a fresh one where the session to be continued does not exist."""
        resumption = decide(self._adapter, query, self._previous)
        self._forget = resumption.forget
        query = query._replace(resume_session_id=resumption.session_id)
        if resumption.refused:
            self._admit(events.error(f"{resumption.refused}; a new session begins", outcome.SESSION_NOT_FOUND))
            self._ledger.errors.clear()  # told; it is no error of the run
        ending, failure, attempt = self._attempt(query, folder)
        if query.resume_session_id and not attempt.was_stopped and is_unknown_session(self._adapter, ending):
            self._forget = True
            self._admit(events.error(
                f"session {query.resume_session_id} does not exist any more; a new session begins",
                outcome.SESSION_NOT_FOUND,
            ))  # fmt: skip
            self._ledger.again()
            self._sink.close()
            self._record = self._sink.record = self._new_record()
            self._record.open()
            resumption = Resumption()
            ending, failure, attempt = self._attempt(query._replace(resume_session_id=""), folder)
        if attempt.strayed:
            self._forget = True
            return self._concluded(ending, failure, Cost())
        return self._concluded(ending, failure, resumption.before)

    def _attempt(self, query: Query, folder: Path) -> tuple[Ending, tuple[str, str] | None, RunAttempt]:
        self._attempts += 1
        own = folder / str(self._attempts)
        own.mkdir(mode=0o700)
        attempt = RunAttempt(self._adapter, query, self._sink, self._ledger, self._stop)
        attempt.notes = left_out(self._adapter, self._query)
        if self._stop.reason:
            attempt.was_stopped = True
            return NOTHING, self._stop.reason, attempt
        until = 0.0
        if query.timeout_seconds:
            until = self._began + query.timeout_seconds
        try:
            ending = attempt.run(own, self._attempts, until, self._started)
        except NotStarted as error:
            return NOTHING, (error.code, str(error)), attempt
        finally:
            self._child = None
        return ending, self._stop.reason if attempt.was_stopped else error_in(self._adapter, ending), attempt

    def _started(self, child: Child) -> None:
        self._child = (child.pid, child.started)
        bind = getattr(self._membership, "bind", None)
        if bind:
            bind(child.pid, child.started)

    # -------------------------------------------------------------------- parts

    def _new_record(self) -> Record:
        return Record(self._folder, self.run_id, self._query.task_id or self.run_id, self._query.log_file)

    def _tools(self) -> Any:
        if not self._query.client_tools:
            return contextlib.nullcontext()
        return ToolServer(self._query.client_tools)

    def _asked(self) -> Any:
        if self._query.on_permission is None:
            return contextlib.nullcontext()
        return PermissionServer(self._query.on_permission, self._sink.waiting.append)

    def _admit(self, event: Event) -> None:
        for admitted in self._ledger.admit(event):
            self._sink.event(admitted)

    def _concluded(self, ending: Ending, failure: tuple[str, str] | None, before: Cost) -> RunResult:
        return concluded(self._adapter, self._query, self._ledger, ending, failure, before)

    def _announced(self, result: RunResult) -> RunResult:
        changes = Changes()
        if self._changes and self._attempts:
            changes = self._changes.changes(result.session_id)
        return announced(self._sink, self._ledger, result._replace(
            changes=changes,
            clear_session=self._forget, attempts=self._attempts, record=self.record,
            duration_ms=int((time.monotonic() - self._began) * 1000),
        ))  # fmt: skip


SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_live: weakref.WeakSet[Run] = weakref.WeakSet()


@contextlib.contextmanager
def ended_by_signals(*runs: Run) -> Iterator[list[int]]:
    """Abort `runs` on SIGINT, SIGTERM and SIGHUP while the block runs, instead of ending this process.

    Gives a list of the signals that came. Only for the main thread.
    """
    came: list[int] = []

    def end(number: int, _frame: object) -> None:
        came.append(number)
        for run in runs:
            run.abort(f"ended by {signal.Signals(number).name}")

    # An ignored signal stays ignored, for the sake of `nohup`.
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended_at_exit(run: Run) -> None:
    """Abort `run` and wait for it, should this process end first."""
    if not _live:
        atexit.register(_end_all)
    _live.add(run)


def _end_all() -> None:
    runs = list(_live)
    for run in runs:
        run.abort("its supervisor ended")
    for run in runs:
        run.wait(60)


# A conversation with one agent: each prompt continues the session of the one before.

_OWN = ("resume_session_id", "fork_session")


class Session:
    """A conversation with `harness` (a name or an adapter) in `cwd`; `options` are fields of a ``Query``.

    ``async with Session("codex", cwd=path) as session: result = await session.ask("...")``. `previous` continues an
    earlier one: a ``RunResult``, its ``session_params``, this class's `previous`, or the harness's own session id.
    Leaving the block ends a prompt that is still being answered. The session itself stays with the harness.
    """

    def __init__(
        self,
        harness: HarnessAdapter | str,
        cwd: PathLike,
        *,
        previous: Mapping[str, Any] | RunResult | str | None = None,
        record_folder: PathLike = "",
        **options: Unpack[Options],
    ):
        """Raises Refused for an unknown harness, or an unknown option."""
        harness = registry.adapter_of(harness)
        self._adapter, self._cwd, self._folder = harness, cwd, record_folder
        self._options: dict[str, Any] = {**options}
        session_given(harness, previous)  # refused now, not at the first prompt
        self._previous: Any = previous
        self._is_fork = False
        self._is_closed = False
        self._turn: Run | None = None
        self._results: list[RunResult] = []
        self._lock = threading.RLock()
        self._query("", {})

    async def ask(self, prompt: str, **changes: Unpack[Options]) -> RunResult:
        """Return the answer's result; `changes` are options for this prompt alone. Raises as ``Run.result`` does."""
        return await self.run(prompt, **changes)

    def run(self, prompt: str, **changes: Unpack[Options]) -> Run:
        """Return the run for a prompt, not yet started: for its events, or ``.result()`` without an event loop.

        Its start raises Refused while this session is answering an earlier prompt.
        """
        return _Turn(self, self._query(prompt, {**changes}))

    def fork(self) -> Session:
        """Return a conversation that knows all that was said here, and goes its own way from its first prompt on."""
        with self._lock:
            self._settle()
            made = Session(self._adapter, self._cwd, previous=self._previous, record_folder=self._folder,
                           **self._options)  # fmt: skip
            made._is_fork = self._previous is not None
            return made

    @property
    def results(self) -> tuple[RunResult, ...]:
        """The results so far, failed ones too."""
        with self._lock:
            self._settle()
            return tuple(self._results)

    @property
    def cost(self) -> Cost:
        """The sum over `results`; a figure that one result lacks is None."""
        return functools.reduce(added, [result.cost for result in self.results] or [Cost(0.0, 0, 0, 0, 0, 0)])

    @property
    def previous(self) -> dict[str, Any] | None:
        """The session as a JSON object, to be continued later, in any process; None before the first answer."""
        with self._lock:
            self._settle()
            known = session_given(self._adapter, self._previous)
            return known and serialize(known)

    @property
    def session_id(self) -> str | None:
        """The harness's name of the session, None before the first answer."""
        return (self.previous or {}).get("session_id")

    def close(self) -> None:
        """End a prompt that is being answered, without waiting, and refuse further ones."""
        with self._lock:
            self._is_closed = True
            if self._turn is not None:
                self._turn.abort("its session was closed")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
        if self._turn is not None:
            self._turn.wait()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()
        if self._turn is not None:
            await self._turn.ended()

    # ------------------------------------------------------------------ parts

    def _query(self, prompt: str, changes: dict[str, Any]) -> Query:
        given = {**self._options, **changes}
        wrong = next((name for name in given if name not in Query._fields or name in _OWN), None)
        if wrong:
            raise Refused(f"{wrong!r} is no option of a session (docs/dev/python.md)")
        return Query(prompt, self._cwd, **given)

    def _settle(self) -> None:
        """Take in the result of the last prompt, if it is over."""
        result = self._turn.wait(0) if self._turn is not None else None
        if result is None:
            return
        self._turn = None
        self._results.append(result)
        if result.session_params:
            self._previous, self._is_fork = result.session_params, False
        elif result.clear_session:
            self._previous, self._is_fork = None, False

    def _begin(self, turn: _Turn) -> tuple[Any, bool]:
        """Make `turn` the prompt that is being answered; return the session to continue, and True for a copy of it."""
        self._settle()
        if self._is_closed:
            raise Refused("this session is closed")
        if self._turn is not None and self._turn is not turn:
            raise Refused("this session is still answering an earlier prompt: wait for it, or ask a fork()")
        self._turn = turn
        return self._previous, self._is_fork


class _Turn(Run):
    """One prompt of a session. It continues the session as it is at its start."""

    def __init__(self, session: Session, query: Query):
        super().__init__(session._adapter, query, record_folder=session._folder)
        self._session = session

    def start(self) -> Run:
        with self._session._lock:
            if self._thread is None:
                previous, is_fork = self._session._begin(self)
                # Continue that session, in a copy if `is_fork`, in place of the one given before.
                # Only before the start.
                self._previous = session_given(self._adapter, previous)
                self._query = self._query._replace(fork_session=is_fork)
            try:
                return super().start()
            finally:
                if self._thread is None:  # refused
                    self._session._turn = None

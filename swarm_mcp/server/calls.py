"""Carrying out tool calls, in a few worker threads with a store each, and telling clients of changed resources."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from swarm_hook_core.untrusted_text import cut_text
from swarm_mcp.errors import SwarmError
from swarm_mcp.mcp.protocol import INVALID_PARAMS, RESOURCE_UPDATED, SUBSCRIPTION_KEY, first_mismatch
from swarm_mcp.mcp.server import Call as Request
from swarm_mcp.server.calling_session import CallingSession, with_session
from swarm_mcp.server.resources import is_known, state
from swarm_mcp.server.tool import Answer, Call, Tool, WaitingCall, answer_to, bounded
from swarm_mcp.store import Store
from swarm_mcp.store.changes import Changes

# The watcher of the store for everything that waits in this server: tool calls and subscriptions.


class StoreWatcher:
    """A counter of commits to the store, by this process and others. It watches only while there are listeners."""

    def __init__(self) -> None:
        self.commits = 0
        self._listeners = 0
        self._next_commit = asyncio.Event()
        self._changes: Any = None  # a Changes, while there are listeners

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count `commits` meanwhile. A commit before the entry does not count."""
        self._listeners += 1
        if self._changes is None:
            self._start()
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._changes is not None:
                self._changes.stop()
                self._changes = None

    async def wait_beyond(self, commits: int, seconds: float | None) -> bool:
        """Wait until there are more than `commits`. Return False after `seconds`; `None` waits for ever."""
        if self.commits > commits:
            return True
        passing = asyncio.ensure_future(self._pass(commits))
        try:  # before Python 3.12, `wait_for` returns where a commit and a cancellation come at one moment
            done, _ = await asyncio.wait({passing}, timeout=seconds)
        finally:
            passing.cancel()
        return bool(done)

    async def _pass(self, commits: int) -> None:
        while self.commits <= commits:
            await self._next_commit.wait()

    def _start(self) -> None:
        changes = self._changes = Changes()
        loop = asyncio.get_running_loop()

        def watch() -> None:
            try:
                while self._changes is changes:
                    if changes.wait(None) and self._changes is changes:
                        loop.call_soon_threadsafe(self._count)
            finally:
                changes.close()

        threading.Thread(target=watch, daemon=True).start()

    def _count(self) -> None:
        self.commits += 1
        news, self._next_commit = self._next_commit, asyncio.Event()
        news.set()


# One slow call (a terminal that is asked, a store that is busy) must not hold up the others. Those that only
# read, or wait for something to happen, have workers of their own: they need not stand behind those that write.
WORKERS = 4
READ, WRITE, WAIT = "read", "write", "wait"
LARGEST = 2**63 - 1  # whole number that the store can keep
LONGEST_COMPLAINT, LONGEST_NAME = 300, 60  # characters of a client's text in an error


class Calls:
    """The workers for tool calls and resources."""

    def __init__(self, session: CallingSession, tools: dict[str, Tool]):
        self.session = session
        self.tools = tools
        self.watcher = StoreWatcher()
        self._workers = {kind: ThreadPoolExecutor(WORKERS, thread_name_prefix=kind) for kind in (READ, WRITE, WAIT)}
        self._receipts: set[Future[Any]] = set()
        self._own = threading.local()
        self._background: set[asyncio.Future[Any]] = set()  # asyncio itself keeps weak references

    async def use(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> Answer:
        """Call the tool `name`. A refusal is an ordinary answer; wrong arguments and faults are errors."""
        return bounded(await self._use(name, *with_session(arguments, meta)))

    async def _use(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> Answer:
        tool = self.tools[name]
        wrong = self._complaint(tool, arguments)
        if wrong:
            return Answer(text=f"MCP error {INVALID_PARAMS}: {wrong}", is_error=True)
        defaults = {key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}
        arguments = {**defaults, **arguments}
        try:
            waiting = _waiting(tool, arguments)
            if waiting:
                return await self._wait(waiting, arguments, meta)
            kind = READ if tool.reads else WRITE
            answer: Answer = await self.run(lambda call: tool.call(call, arguments), meta, kind)
            return answer
        except SwarmError as error:
            return answer_to(error)
        except Exception as error:
            print(f"swarm-mcp serve: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            return Answer(text=f"{name} failed: {type(error).__name__}: {error}", is_error=True)

    async def _wait(
        self, function: Callable[..., Awaitable[Answer]], arguments: dict[str, Any], meta: dict[str, Any]
    ) -> Answer:
        call = _Waiting(self, meta)
        try:
            with self.watcher.listening():
                return await function(call, arguments)
        except asyncio.CancelledError:
            for undo in call.undo:  # in the background: the client does not wait for it
                task = asyncio.ensure_future(self.run(undo, meta, WAIT))
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            raise

    def is_waiting(self, name: object, arguments: object) -> bool:
        """Return True for a call that waits for something to happen."""
        tool = self.tools.get(name) if isinstance(name, str) else None
        return tool is not None and _waiting(tool, arguments) is not None

    async def run(self, function: Callable[..., Any], meta: dict[str, Any], kind: str = READ) -> Any:
        """Return the result of ``function(call)``, run in a worker thread of this kind. Once begun, it is finished.

        An answer counts as lost if the call is cancelled meanwhile.
        """
        work = self._workers[kind].submit(self._carry_out, function, meta)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            work.add_done_callback(self.give_up)
            raise

    def sent(self, answer: Answer) -> None:
        """Run an answer's `on_sent`: the client has the answer."""
        self._see_to(answer.on_sent)

    def lost(self, answer: Answer) -> None:
        """Run an answer's `on_lost`: the client will never have it."""
        self._see_to(answer.on_lost)

    def finish(self, seconds: float) -> None:
        """Wait until that has been done for every answer so far, for at most `seconds`."""
        wait(list(self._receipts), seconds)

    def _see_to(self, function: Callable[..., Any] | None) -> None:
        if function:
            work = self._workers[WRITE].submit(self._carry_out, lambda call: function(call.store), {})
            self._receipts.add(work)
            work.add_done_callback(self._seen_to)

    def _seen_to(self, work: Future[Any]) -> None:
        self._receipts.discard(work)
        error = work.exception()
        if error:  # the claim on undelivered mail expires by itself
            print(f"swarm-mcp serve: {type(error).__name__}: {error}", file=sys.stderr)

    def give_up(self, work: Future[Any] | asyncio.Future[Any]) -> None:
        """Treat the answer of the finished `work` as lost."""
        if work.cancelled() or work.exception():
            answer = None
        else:
            answer = work.result()
        if isinstance(answer, Answer):
            self.lost(answer)

    def _carry_out(self, function: Callable[..., Any], meta: dict[str, Any]) -> Any:
        store = getattr(self._own, "store", None)
        if store is None:
            store = self._own.store = Store()
        store.refresh()
        return function(Call(store, self.session, meta))

    def _complaint(self, tool: Tool, arguments: dict[str, Any]) -> str:
        """Return the first mistake in `arguments`, in a line; empty if there is no mistake."""
        odd = _no_number(arguments)
        if odd:
            return f"{tool.name}: {odd}"
        wrong = first_mismatch(arguments, tool.schema)
        if wrong is None:
            return ""
        if wrong.keyword == "required" and not wrong.path:
            missing = next(name for name in tool.required if name not in arguments)
            return f"{tool.name} needs {missing}: {tool.properties[missing]['description']}"
        if wrong.keyword == "additionalProperties" and not wrong.path:
            unknown = next(name for name in arguments if name not in tool.properties)[:LONGEST_NAME]
            return f"{tool.name} has no argument {unknown}; it takes {', '.join(tool.properties) or 'none'}"
        return f"{tool.name}: {wrong.place()}: {wrong.message[:LONGEST_COMPLAINT]}"


def _no_number(value: object, place: str = "") -> str:
    """Return the complaint about an infinite or too large number in `value`, with its place; empty if there is no such
    number.

    JSON has no NaN, but parsers take it, and no schema forbids it. `1e999` is read as infinity.
    """
    if isinstance(value, float):
        if math.isfinite(value):
            return ""
        return f"{place or 'the value'}: {value} is no number that JSON has"
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"{place or 'the value'}: a whole number here lies between -{LARGEST} and {LARGEST}"
    items: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for name, one in items:
        odd = _no_number(one, f"{place}[{name}]" if place else str(name)[:LONGEST_NAME])
        if odd:
            return odd
    return ""


def _waiting(tool: Tool, arguments: object) -> Callable[..., Any] | None:
    """Return the coroutine function of a waiting call of `tool`, or `None` if the call does not wait."""
    if inspect.iscoroutinefunction(tool.call):
        return tool.call
    if isinstance(arguments, dict) and arguments.get("wait_seconds"):
        return tool.wait
    return None


class _Waiting(WaitingCall):
    def __init__(self, calls: Calls, meta: dict[str, Any]):
        self._calls = calls
        self._meta = meta
        self._commits = calls.watcher.commits
        self.undo: list[Callable[..., Any]] = []

    def when_cancelled(self, function: Callable[..., object]) -> None:
        self.undo.append(function)

    async def run(self, function: Callable[..., Any]) -> Any:
        # Shielded: once begun it is finished, so that locks and mail it has taken can be put back.
        work = asyncio.ensure_future(self._calls.run(function, self._meta, WAIT))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self._calls.give_up)
            raise

    async def changed(self, seconds: float | None) -> bool:
        found = await self._calls.watcher.wait_beyond(self._commits, seconds)
        self._commits = self._calls.watcher.commits
        return found


# Subscriptions to resources: a client is notified of their changes.


LISTENED = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
LONGEST_ERROR = 200  # characters of an error about a resource
PACE_SECONDS = 0.1  # between two looks at the store; a busy store changes a hundred times a second


class _Subscriber:
    """One receiver of changes: `uris` are its resources, `call` is the request that asked for them.

    `meta` stands in each notification. No notification is sent before `ready`.
    """

    def __init__(self, call: Request, uris: set[str], meta: dict[str, Any]):
        self.call, self.uris, self._meta = call, uris, meta
        self.ready = asyncio.Event()

    async def notify(self, uri: str) -> None:
        """Tell the client that the resource has changed."""
        await self.ready.wait()
        params: dict[str, Any] = {"uri": uri}
        if self._meta:
            params["_meta"] = self._meta
        await self.call.notify(RESOURCE_UPDATED, params)


class Subscriptions:
    """One connection's subscriptions.

    Until 2025-11-25 a client adds and removes one URI after the other. Since 2026-07-28 one request names several URIs
    and stays open.
    """

    def __init__(self, calls: Calls):
        self._calls = calls
        self._single: _Subscriber | None = None
        self._subscribers: list[_Subscriber] = []
        self._states: dict[str, str] = {}  # by URI, as last notified
        self._follower: asyncio.Task[None] | None = None

    async def add(self, uri: str, call: Request) -> None:
        """Notify the client of changes from now on."""
        if self._single is None:
            self._single = _Subscriber(call, set(), {})
            self._single.ready.set()
            self._subscribers.append(self._single)
        self._single.uris.add(uri)
        await self._follow([uri], call)

    def remove(self, uri: str) -> None:
        """Stop notifying. A URI without subscription is ignored."""
        if self._single is None:
            return
        self._single.uris.discard(uri)
        if not self._single.uris:
            self._subscribers.remove(self._single)
            self._single = None
        self._tidy()

    async def listen(self, call: Request) -> dict[str, Any]:
        """Acknowledge a subscription to several resources, and notify until the request is cancelled."""
        wanted = call.params["notifications"]
        uris = [uri for uri in wanted.get("resourceSubscriptions") or () if is_known(uri)]
        meta = {SUBSCRIPTION_KEY: call.request.number}
        subscriber = _Subscriber(call, set(uris), meta)
        self._subscribers.append(subscriber)
        try:
            await self._follow(uris, call)
            honored = {name: value for name, value in wanted.items() if name in LISTENED and value}
            await call.notify("notifications/subscriptions/acknowledged", {"notifications": honored, "_meta": meta})
            subscriber.ready.set()
            await asyncio.get_running_loop().create_future()  # for ever
        finally:
            subscriber.ready.set()
            self._subscribers.remove(subscriber)
            self._tidy()
        return {"_meta": meta}

    async def _follow(self, uris: list[str], call: Request) -> None:
        if uris and self._follower is None:
            self._follower = asyncio.get_running_loop().create_task(self._notify_changes())
            await asyncio.sleep(0)  # until it listens: no change may fall between that and this look
        for uri in uris:
            if uri not in self._states:
                self._states[uri] = await self._state(uri, call)

    def _tidy(self) -> None:
        uris = {uri for one in self._subscribers for uri in one.uris}
        self._states = {uri: state for uri, state in self._states.items() if uri in uris}
        if self._follower is not None and not uris:
            self._follower.cancel()
            self._follower = None

    async def _notify_changes(self) -> None:
        loop, watcher = asyncio.get_running_loop(), self._calls.watcher
        with watcher.listening():
            while True:
                commits, looked = watcher.commits, loop.time()
                for uri, known in list(self._states.items()):
                    subscribers = [one for one in self._subscribers if uri in one.uris]
                    if subscribers:
                        await self._notify_if_changed(uri, known, subscribers)
                await watcher.wait_beyond(commits, None)
                await asyncio.sleep(max(0.0, looked + PACE_SECONDS - loop.time()))

    async def _notify_if_changed(self, uri: str, known: str, subscribers: list[_Subscriber]) -> None:
        state = await self._state(uri, subscribers[0].call)
        if state in ("", known) or uri not in self._states:
            return
        self._states[uri] = state
        for subscriber in subscribers:
            try:
                await subscriber.notify(uri)
            except Exception as error:
                _print(uri, error)

    async def _state(self, uri: str, call: Request) -> str:
        try:
            return str(await self._calls.run(lambda made: state(made, uri), call.meta))
        except Exception as error:
            _print(uri, error)
            return ""


def _print(uri: str, error: Exception) -> None:
    print(f"swarm-mcp serve: {cut_text(f'{uri}: {type(error).__name__}: {error}', LONGEST_ERROR)}", file=sys.stderr)

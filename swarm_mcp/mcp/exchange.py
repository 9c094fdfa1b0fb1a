"""Many requests at once over a connection's two streams: tasks, cancellation, and back-pressure.

A client that writes without reading is not read from while more than `LONGEST_BACKLOG` bytes of its requests, and of
the answers to them, are in this process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from swarm_mcp.mcp.protocol import (
    CANCELLED,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    Notification,
    ProtocolError,
    Refusal,
    Request,
    key_of,
    messages_in,
)
from swarm_mcp.mcp.server import Connection, Reply
from swarm_mcp.mcp.streams import Incoming, Outgoing, encoded

LONGEST_BACKLOG = 4 * 1024 * 1024  # bytes; above this, no more requests are read
MESSAGE_BYTES = 2048  # overhead of a request beside its own text
LOOK_SECONDS = 0.2  # between two looks for the end of the client, while nothing is read
CLOSED = ProtocolError(CONNECTION_CLOSED, "Connection closed")


def serve(connection: Connection, incoming: Incoming, outgoing: Outgoing, waits: Callable[[Request], bool]) -> None:
    """Serve until the client closes its end. `waits` as for Exchange."""
    asyncio.run(Exchange(connection, incoming, outgoing, waits).run())


class Backlog:
    """The bytes of unanswered requests and of unread answers in this process."""

    def __init__(self) -> None:
        self.size = 0
        self._room = asyncio.Event()

    def add(self, size: int) -> None:
        """Add bytes; a negative `size` takes them away."""
        self.size += size
        if self.size <= LONGEST_BACKLOG:
            self._room.set()

    async def wait_for_room(self, client_left: Callable[[], bool]) -> bool:
        """Wait until more requests may be read. Return False if the client leaves before that."""
        while self.size > LONGEST_BACKLOG:
            if client_left():
                return False
            self._room.clear()
            try:
                await asyncio.wait_for(self._room.wait(), LOOK_SECONDS)
            except asyncio.TimeoutError:
                continue  # time to look at the client again
        return True


class Exchange:
    """The open requests of one connection.

    ``waits(request)`` names requests that stay unanswered until something happens. They do not count as backlog, and
    end with the input.
    """

    def __init__(
        self,
        connection: Connection,
        incoming: Incoming,
        outgoing: Outgoing,
        waits: Callable[[Request], bool] = lambda request: False,
    ):
        self._connection, self._incoming, self._outgoing = connection, incoming, outgoing
        self._waits = waits
        self._backlog = Backlog()
        self._order = asyncio.Lock()  # of the lines to the client
        self._by_key: dict[str, list[asyncio.Task[None]]] = {}  # clients may use an id twice
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def run(self) -> None:
        """Serve until the input ends and everything else is answered."""
        while True:
            line = await self._line()
            if not line:
                break
            if line.strip():
                for message in messages_in(line):
                    self.take(message, len(line) + MESSAGE_BYTES)
        while self._tasks - self._waiting:
            await asyncio.wait(self._tasks - self._waiting, return_when=asyncio.FIRST_COMPLETED)
        self._is_closing = True
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self, message: Request | Notification | Refusal, size: int = 0) -> None:
        """Begin with the answer to a message of `size` bytes."""
        if isinstance(message, Notification):
            if message.method == CANCELLED:
                for task in self._by_key.get(key_of(message.params.get("requestId")), [])[-1:]:
                    task.cancel()
            return
        if isinstance(message, Refusal):
            self._start(self._write(message.answer), size)
            return
        try:
            work = self._connection.begin(message, self._notify)
        except ProtocolError as error:
            self._start(self._write(error.answer(message.number)), size)
            return
        if isinstance(work, dict):
            self._start(self._write(message.answer(work)), size)
            return
        waits = self._waits(message)
        task = self._start(self._answer(message, work), 0 if waits else size)
        if waits:
            self._waiting.add(task)
        self._by_key.setdefault(key_of(message.number), []).append(task)
        task.add_done_callback(lambda done: self._forget(message.number, done))
        task.add_done_callback(lambda done: work.close())  # cancelled before it began

    def _start(self, work: Any, size: int) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        self._backlog.add(size)
        task.add_done_callback(lambda done: self._end(done, size))
        return task

    def _end(self, task: asyncio.Task[None], size: int) -> None:
        self._tasks.discard(task)
        self._waiting.discard(task)
        self._backlog.add(-size)
        if not task.cancelled():
            task.exception()  # a client that does not read; `Outgoing.lost` has dealt with it

    def _forget(self, number: object, task: asyncio.Task[None]) -> None:
        tasks = self._by_key[key_of(number)]
        tasks.remove(task)
        if not tasks:
            del self._by_key[key_of(number)]

    async def _answer(self, request: Request, work: Coroutine[Any, Any, Reply]) -> None:
        reply = None
        try:
            try:
                reply = await work
                message = request.answer(self._connection.shaped(request, reply.result))
            except ProtocolError as error:
                message = error.answer(request.number)
            except Exception as error:
                print(f"swarm-mcp serve: {request.method}: {type(error).__name__}: {error}", file=sys.stderr)
                message = ProtocolError(INTERNAL_ERROR, f"{type(error).__name__}: {error}").answer(request.number)
            await self._write(message)
        except asyncio.CancelledError:
            if reply is not None:
                reply.lost()
            elif self._is_closing:
                await self._write(CLOSED.answer(request.number))
            return  # the client wants no answer
        if reply is not None:
            reply.sent()

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def _write(self, message: dict[str, Any]) -> None:
        """Hand a whole line to the client. Shielded: a line that was begun goes on after a cancellation."""
        await asyncio.shield(self._hand_over(encoded(message)))

    async def _hand_over(self, data: bytes) -> None:
        if self._order.locked():
            size = len(data)
        else:
            size = 0
        self._backlog.add(size)
        try:
            async with self._order:
                if self._outgoing.takes_at_once(data):
                    self._outgoing.write(data)
                else:  # in a thread: while the client does not read, it may still write
                    await asyncio.get_running_loop().run_in_executor(None, self._outgoing.write, data)
        finally:
            self._backlog.add(-size)

    async def _line(self) -> str:
        incoming = self._incoming
        if not await self._backlog.wait_for_room(incoming.client_left):
            incoming.note_end()  # the process ends soon, unless the client reads its answers
        while True:
            line = incoming.buffered()
            if line is not None:
                return line
            incoming.add(await self._more())

    async def _more(self) -> bytes:
        """Return the next bytes. A thread reads if the event loop cannot wait for the descriptor, such as a file's."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._incoming.descriptor, ready.set)
        except (OSError, NotImplementedError):  # a file, or an event loop without readers
            return await loop.run_in_executor(None, self._incoming.read)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._incoming.descriptor)
        return self._incoming.read()

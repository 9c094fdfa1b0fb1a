"""The client's end of things: lines in, lines out.

The first lines are read by the opening, blocking; the SDK takes over from wherever that stopped.
Until then nothing here loads asyncio, which takes 30 ms.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

CHUNK = 65536
# What a pipe takes at once wherever it takes anything.
SHORT = getattr(select, "PIPE_BUF", 512)


class Incoming:
    """Lines from a file descriptor: `read_line` to begin with, ``async for`` after that.

    Bytes that are not UTF-8 come as lone surrogates, so that nothing passes for a text it is not.
    `ended` is called once, when there is no more to read; `admit` says which messages a line
    stands for; ``async for`` ends when `settled` has.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._searched = 0  # so many bytes of the buffer are known to hold no end of line
        self._over = False
        self._ahead: deque[str] = deque()
        self._admitted: deque[str] = deque()
        self.ended: Callable[[], None] = lambda: None
        self.admit: Callable[[str], Iterable[str]] = lambda line: (line,)
        self.settled: Callable[[], Awaitable[None]] | None = None

    def read_line(self) -> str:
        """The next line, blocking; empty at the end."""
        line = self._buffered()
        while line is None:
            self._take(_read(self._descriptor))
            line = self._buffered()
        return line

    def put_back(self, lines: list[str]) -> None:
        """Have these lines read again, before all others."""
        self._ahead.extendleft(reversed(lines))

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> str:
        while not self._admitted:
            line = self._ahead.popleft() if self._ahead else self._buffered()
            if line is None:
                self._take(await self._more())
            elif line.strip():
                self._admitted.extend(self.admit(line))
            elif not line:
                if self.settled:
                    await self.settled()
                raise StopAsyncIteration
        return self._admitted.popleft()

    def _take(self, data: bytes) -> None:
        self._buffer += data
        if not data:
            self._over = True
            self.ended()

    def _buffered(self) -> str | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and not self._over:
            self._searched = len(self._buffer)
            return None
        size = end + 1 if end >= 0 else len(self._buffer)
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line.decode("utf-8", "surrogateescape")

    async def _more(self) -> bytes:
        """The next bytes. A thread reads where the descriptor cannot be waited for, as a file's cannot."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            ready = loop.create_future()
            loop.add_reader(self._descriptor, lambda: ready.done() or ready.set_result(None))
        except (OSError, NotImplementedError):
            return await loop.run_in_executor(None, _read, self._descriptor)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        return _read(self._descriptor)


class Outgoing:
    """Lines to a file descriptor, whole and in order, from the opening and from the SDK.

    What a client does not read waits in a thread: it must not keep us from reading what the client
    writes. `withheld` says of a message that it is not for the client; `sent` is told of every other
    once it has been handed over; `lost` is called where nobody reads any more.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._line = ""
        self._order = None
        self.wrote_at = time.monotonic()
        self.withheld: Callable[[dict], bool] = lambda message: False
        self.sent: Callable[[dict], None] = lambda message: None
        self.lost: Callable[[], None] = lambda: None

    def send(self, message: dict) -> None:
        """Write one message, blocking."""
        self._write(_encoded(json.dumps(message, ensure_ascii=False) + "\n"))

    async def reply(self, message: dict) -> None:
        """Write one message of our own between those of the SDK."""
        await self._hand_over(_encoded(json.dumps(message, ensure_ascii=False) + "\n"))

    async def write(self, text: str) -> None:
        """Take one line, as the SDK's transport writes it."""
        self._line += text

    async def flush(self) -> None:
        """Hand the line to the client, then say so through `sent`."""
        line, self._line = self._line, ""
        message = json.loads(line)
        if not self.withheld(message):
            await self._hand_over(_encoded(line))
            self.sent(message)

    async def _hand_over(self, data: bytes) -> None:
        import asyncio

        if self._order is None:
            self._order = asyncio.Lock()
        async with self._order:
            if len(data) <= SHORT and self._has_room():
                self._write(data)
            else:
                await asyncio.get_running_loop().run_in_executor(None, self._write, data)

    def _has_room(self) -> bool:
        """Whether a short line can be written at once."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
                self.wrote_at = time.monotonic()
        except OSError:
            self.lost()
            raise


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:
        return b""  # a terminal that hung up, a socket that was reset: nothing will come any more


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "replace")


def claim_streams() -> tuple[Incoming, Outgoing]:
    """The client's two ends under numbers of their own: nothing that runs here may print into its input."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # closed: it takes the lowest free number, which is this one
    wire_in, wire_out = os.dup(0), os.dup(1)
    for descriptor in (wire_in, wire_out):
        os.set_blocking(descriptor, True)  # whoever shares it with us may have wanted it otherwise
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)
    sys.stdout = sys.stderr
    return Incoming(wire_in), Outgoing(wire_out)

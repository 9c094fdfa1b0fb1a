"""The client's end of things: lines in, lines out.

The first lines are read by the opening, blocking; the SDK takes over from wherever that stopped.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable

CHUNK = 65536


class Incoming:
    """Lines from a file descriptor: `read_line` to begin with, ``async for`` after that."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._ended = False
        self._ahead: list[str] = []
        self.admit: Callable[[str], bool] = lambda line: True

    def read_line(self) -> str:
        """The next line, blocking; empty at the end."""
        line = self._buffered()
        while line is None:
            self._take(os.read(self._descriptor, CHUNK))
            line = self._buffered()
        return line

    def put_back(self, lines: list[str]) -> None:
        """Have these lines read again, before all others."""
        self._ahead = [*lines, *self._ahead]

    def _take(self, data: bytes) -> None:
        self._buffer += data
        self._ended = not data

    def _buffered(self) -> str | None:
        end = self._buffer.find(b"\n")
        if end < 0 and not self._ended:
            return None
        size = end + 1 if end >= 0 else len(self._buffer)
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        return line.decode("utf-8", "replace")

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> str:
        while True:
            if self._ahead:
                line = self._ahead.pop(0)
                if self.admit(line):
                    return line
                continue
            line = self._buffered()
            while line is None:
                self._take(await self._more())
                line = self._buffered()
            if not line:
                raise StopAsyncIteration
            if line.strip() and self.admit(line):
                return line

    async def _more(self) -> bytes:
        """The next bytes. A thread reads where the descriptor cannot be waited for, as a file's cannot."""
        loop = asyncio.get_running_loop()
        try:
            ready = loop.create_future()
            loop.add_reader(self._descriptor, lambda: ready.done() or ready.set_result(None))
        except (OSError, NotImplementedError):
            return await loop.run_in_executor(None, os.read, self._descriptor, CHUNK)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        return os.read(self._descriptor, CHUNK)


class Outgoing:
    """Lines to a file descriptor, whole and in order, from the opening and from the SDK.

    Lines are written by a thread of their own once the SDK is there: a client that does not read must
    not keep us from reading what it writes.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._line = ""
        self._swallowed: set[str] = set()
        self.sent: Callable[[dict], None] | None = None

    def send(self, message: dict) -> None:
        """Write one message, blocking. Raises BrokenPipeError where nobody reads any more."""
        self._write(json.dumps(message, ensure_ascii=False) + "\n")

    def swallow(self, request_id: object) -> None:
        """Keep the response to this request to ourselves: the client has had it."""
        self._swallowed.add(json.dumps(request_id))

    async def write(self, text: str) -> None:
        """Take one line, as the SDK's transport writes it."""
        self._line += text

    async def flush(self) -> None:
        """Hand the line to the client, then say so through `sent`."""
        line, self._line = self._line, ""
        message = json.loads(line) if self._swallowed or self.sent else {}
        if self._swallowed and "method" not in message and json.dumps(message.get("id")) in self._swallowed:
            self._swallowed.discard(json.dumps(message.get("id")))
            return
        if len(line) < CHUNK // 16 and self._has_room():
            self._write(line)
        else:
            await asyncio.get_running_loop().run_in_executor(None, self._write, line)
        if self.sent:
            self.sent(message)

    def _has_room(self) -> bool:
        """Whether a short line can be written at once."""
        import select

        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))

    def _write(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "replace"))
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]

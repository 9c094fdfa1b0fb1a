"""Lines over standard input and output, as file descriptors. Reading and writing block; ``exchange`` adds asyncio.

A server answers a client's first questions with this module alone, because loading asyncio takes 30 ms.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any

CHUNK = 65536
BYTE_ORDER_MARK = "\ufeff"  # some clients on Windows write it before a line; it means nothing
SHORT = getattr(select, "PIPE_BUF", 512)  # bytes that a pipe with any room takes at once


class Incoming:
    """Lines from a file descriptor.

    Bytes that are not UTF-8 become lone surrogates, so that the protocol can refuse them. `ended` is called once, at
    the end of the input.
    """

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.ended: Callable[[], None] = lambda: None
        self._buffer = bytearray()
        self._searched = 0  # bytes at the buffer's beginning that hold no end of line
        self._is_over = self._is_end_known = False
        self._ahead: list[str] = []

    def read_line(self) -> str:
        """Return the next line, or an empty text at the end. Blocks."""
        line = self.buffered()
        while line is None:
            self.add(self.read())
            line = self.buffered()
        return line

    def put_back(self, line: str) -> None:
        """Make `line` the next line again."""
        self._ahead.append(line)

    def buffered(self) -> str | None:
        """Return the next line, empty at the end, or `None` if it has not come yet."""
        if self._ahead:
            return self._ahead.pop()
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and not self._is_over:
            self._searched = len(self._buffer)
            return None
        if end >= 0:
            size = end + 1
        else:
            size = len(self._buffer)
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line.decode("utf-8", "surrogateescape").removeprefix(BYTE_ORDER_MARK)

    def read(self) -> bytes:
        """Return the next bytes of the descriptor, empty at its end. Blocks."""
        try:
            return os.read(self.descriptor, CHUNK)
        except OSError:
            return b""  # a terminal that hung up, or a socket that was reset: this is the end

    def add(self, data: bytes) -> None:
        """Take bytes from `read`; no bytes mark the end of the input."""
        self._buffer += data
        if not data:
            self._is_over = True
            self.note_end()

    def note_end(self) -> None:
        """Call `ended`, the first time."""
        if not self._is_end_known:
            self._is_end_known = True
            self.ended()

    def client_left(self) -> bool:
        """Return True once the client has closed its end. Lines it wrote before may still be unread."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self.descriptor, getattr(select, "POLLRDHUP", 0))  # a closed pipe is reported without asking
        return bool(poll.poll(0))


class Outgoing:
    """Lines to a file descriptor. `lost` is called if the client does not read any more."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self.wrote_at = time.monotonic()
        self.lost: Callable[[], None] = lambda: None

    def send(self, message: dict[str, Any]) -> None:
        """Write one message. Blocks."""
        self.write(encoded(message))

    def write(self, data: bytes) -> None:
        """Write bytes. Blocks. Raises OSError after `lost`."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
                self.wrote_at = time.monotonic()
        except OSError:
            self.lost()
            raise

    def takes_at_once(self, data: bytes) -> bool:
        """Return True if `write(data)` would not block."""
        if len(data) > SHORT or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))


def encoded(message: dict[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def claim_streams(errors: Callable[[int], Any]) -> tuple[Incoming, Outgoing]:
    """Return the client's two streams, moved to descriptors of their own.

    Standard output and error go to ``errors(2)`` from now on, so that no print can get between the messages.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it was closed: the lowest free number is this one
    wire_in, wire_out = os.dup(0), os.dup(1)
    for descriptor in (wire_in, wire_out):
        os.set_blocking(descriptor, True)  # another owner of the pipe may have made it non-blocking
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr = errors(2)
    return Incoming(wire_in), Outgoing(wire_out)

"""The client's end of things: lines in, lines out, and the end of its process.

The first lines are read blocking, and answered from the cache of handshakes; the SDK takes over from wherever that
stopped. Until then nothing here loads asyncio, which takes 30 ms.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from swarm_hook_core.process import gone, host_id, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

CHUNK = 65536
BYTE_ORDER_MARK = "\ufeff"  # before a line, as some clients on Windows write it: it says nothing
# What a pipe takes at once wherever it takes anything.
SHORT = getattr(select, "PIPE_BUF", 512)
LONGEST_BACKLOG = 4 * 1024 * 1024  # bytes; above, no more requests are read
MESSAGE_BYTES = 2048  # what a message in the backlog takes, beside its own text
LOOK_SECONDS = 0.2  # between two looks whether the client has left, while nothing is read
PROCESS_LOOK_SECONDS = 1.0  # between two looks at its process, where the system does not tell


class Backlog:
    """How many bytes of requests that are not answered, and of answers that nobody has read, are in this process."""

    def __init__(self) -> None:
        self.size = 0
        self._less: asyncio.Event | None = None

    def add(self, size: int) -> None:
        """So many more; of a negative `size` less."""
        self.size += size
        if self._less is not None and self.size <= LONGEST_BACKLOG:
            self._less.set()

    async def lessen(self, client_left: Callable[[], bool]) -> bool:
        """True once they are few enough for more, False where the client has left before."""
        import asyncio

        while self.size > LONGEST_BACKLOG:
            if client_left():
                return False
            self._less = asyncio.Event()
            await asyncio.wait([asyncio.ensure_future(self._less.wait())], timeout=LOOK_SECONDS)
            self._less.set()  # ends the waiting task as well
            self._less = None
        return True


class Incoming:
    """Lines from a file descriptor: `read_line` to begin with, ``async for`` after that.

    Bytes that are not UTF-8 come as lone surrogates, so that nothing passes for a text it is not.
    `ended` is called once, when there is no more to read; `admit` says which messages a line
    stands for; ``async for`` ends when `settled` has. While there is much `backlog` nothing more is read.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._searched = 0  # so many bytes of the buffer are known to hold no end of line
        self._over = self._told = False
        self._ahead: deque[str] = deque()
        self._admitted: deque[str] = deque()
        self.ended: Callable[[], None] = lambda: None
        self.admit: Callable[[str], Iterable[str]] = lambda line: (line,)
        self.settled: Callable[[], Awaitable[None]] | None = None
        self.backlog = Backlog()

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
        await self._room()
        while not self._admitted:
            await self._room()  # lines that were refused are answered as well
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

    async def _room(self) -> None:
        if not await self.backlog.lessen(self._client_left):
            self._end()  # soon, unless somebody reads what is there

    def _end(self) -> None:
        if not self._told:
            self._told = True
            self.ended()

    def _client_left(self) -> bool:
        """Whether nobody can write to us any more; what has been written may still be there to be read."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._descriptor, getattr(select, "POLLRDHUP", 0))  # it tells of other ends without being asked
        return bool(poll.poll(0))

    def _take(self, data: bytes) -> None:
        self._buffer += data
        if not data:
            self._over = True
            self._end()

    def _buffered(self) -> str | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and not self._over:
            self._searched = len(self._buffer)
            return None
        size = end + 1 if end >= 0 else len(self._buffer)
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line.decode("utf-8", "surrogateescape").removeprefix(BYTE_ORDER_MARK)

    async def _more(self) -> bytes:
        """The next bytes. A thread reads where the descriptor cannot be waited for, as a file's cannot."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            ready = loop.create_future()
            loop.add_reader(self._descriptor, lambda: None if ready.done() else ready.set_result(None))
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
    writes (``Backlog`` sees to it that this does not become too much). `withheld` says of a message that
    it is not for the client; `sent` is told of every other once it has been handed over; `lost` is called
    where nobody reads any more.
    """

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._line = ""
        self._order: asyncio.Lock | None = None
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


class ClientProcess:
    """The client's process `pid`, started at `started`; pid 0 for a client that is not known.

    Its end is watched for: a client that was killed may leave our input open in a sibling of ours.
    """

    def __init__(self, pid: int, started: str):
        self._pid, self._started, self._here = pid, started, host_id()
        self._handle: int | None = None  # where the system has them: a descriptor of the process
        self._queue: Any = None  # or a queue of its events
        if pid:
            try:
                self._watch()
            except OSError:
                pass  # the system cannot tell, or it is gone already: looking will show

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until the client has gone, for at most `seconds`; whether it has."""
        if not self._pid:
            time.sleep(seconds)
            return False
        end = time.monotonic() + seconds
        while not gone(self._here, self._pid, self._started, self._here):
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._pause(left)
        return True

    def _watch(self) -> None:
        if hasattr(os, "pidfd_open"):
            self._handle = os.pidfd_open(self._pid)
        elif hasattr(select, "kqueue"):
            bsd: Any = select
            self._queue = bsd.kqueue()
            event = bsd.kevent(self._pid, filter=bsd.KQ_FILTER_PROC, flags=bsd.KQ_EV_ADD, fflags=bsd.KQ_NOTE_EXIT)
            self._queue.control([event], 0)
        if start_time(self._pid) != self._started:
            self._handle = self._queue = None  # another process of that number by now

    def _pause(self, seconds: float) -> None:
        """Wait for the news, or for `seconds`. The news keeps coming once it has come: what follows is a look."""
        if self._handle is not None:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            told = poll.poll(seconds * 1000)
        elif self._queue is not None:
            told = self._queue.control(None, 1, seconds)
        else:
            told = []
            time.sleep(min(seconds, PROCESS_LOOK_SECONDS))
        if told:
            time.sleep(0.05)  # between this and the look it may have to become a zombie first


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
    from swarm_mcp.server.standard_error import StandardError

    sys.stdout = sys.stderr = StandardError(2)
    return Incoming(wire_in), Outgoing(wire_out)

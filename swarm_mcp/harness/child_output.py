"""Reading one child from its start to its end: lines out of bytes, when it is over, when it has to be ended."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable

from swarm_mcp.harness.child import Child

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
        return [self._close()] if self._begun else []

    def _add(self, piece: bytes) -> None:
        room = self._longest - len(self._open)
        self._open += piece[: max(0, room)]
        self.cut += max(0, len(piece) - room)
        self._begun = self._begun or bool(piece)

    def _close(self) -> str:
        line = bytes(self._open)
        self._open.clear()
        self._begun = False
        return _text(line[:-1] if line.endswith(b"\r") else line)


def _text(line: bytes) -> str:
    """`line` as text that can be written as UTF-8 again; what is no UTF-8 becomes U+FFFD."""
    return line.decode("utf-8", "replace")


TICK_SECONDS = 0.5
DRAIN_SECONDS = 0.5  # how long pipes that a descendant still holds are read once the child is over


class StopRequest:
    """A request to end a run, made from any thread or signal handler. The first one counts.

    `reason` is ``(error code, words)``, None for none yet; `handle` can be read from then on. No lock is taken: a
    signal handler may interrupt the thread that holds it.
    """

    def __init__(self):
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
        """Give the handles back once nobody listens and nobody makes a request any more."""
        handle, bell, self.handle, self._bell = self.handle, self._bell, -1, -1
        if bell >= 0:
            os.close(bell)
            os.close(handle)

    def __del__(self):
        self.close()  # not before: a late signal would ring a bell that is something else by then


def follow(
    child: Child,
    take: Callable[[str, bytes], None],
    stop: StopRequest,
    deadline: Callable[[], None],
    until: float,
    grace: float,
) -> bool:
    """Read `child` until it is over; return whether it was stopped.

    `take` gets ``("stdout" | "stderr", bytes)`` as they come, and empty bytes at a stream's end. At `until`
    (``time.monotonic()``, 0 for never) `deadline` is called, which makes a stop request. After one: TERM, `grace`
    seconds, KILL.
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
        """Take what there is, after waiting for it at most that long."""
        if self._end < 0:
            seconds = min(seconds, 0.05)  # nothing else tells us of the child's end
        for key, _ in self._selector.select(seconds):
            handle = key.fd
            if handle in self._open:
                self._read(handle)
            elif handle == self._stop:
                os.read(handle, 64)
            elif self._feeding and handle == self._child.input:
                self._feed()

    def drain(self, seconds: float) -> None:
        """Read what is still in the pipes. A descendant that holds them open is not waited for longer than that."""
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

    def _feed(self) -> None:
        self._selector.unregister(self._child.input)  # before it is closed
        self._feeding = self._child.feed()
        if self._feeding:
            self._selector.register(self._child.input, selectors.EVENT_WRITE)

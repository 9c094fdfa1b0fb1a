"""The server's standard error: a log for a person. A client need not read it.

A client that does not read would otherwise stop the server once the pipe is full: every thread that prints would wait
for ever. Each line is cut to the size that a pipe takes at once, and left out if the pipe is full.
"""

from __future__ import annotations

import io
import os
import select
import threading

LONGEST = min(getattr(select, "PIPE_BUF", 512), 1000)  # bytes of a line; a pipe that takes anything takes that at once
CUT = b" ...\n"


class StandardError(io.TextIOBase):
    """Lines for the file `descriptor`. Neither `write` nor `flush` ever waits or raises."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._begun = ""  # the beginning of a line without its end
        self._left_out = 0  # lines

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, rest = (self._begun + text).split("\n")
            self._begun = rest[:LONGEST]
            for line in lines:
                self._tell(line)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here: a line goes out once it is whole."""

    def _tell(self, line: str) -> None:
        if not self._has_room():
            self._left_out += 1
            return
        if self._left_out:
            missing, self._left_out = self._left_out, 0
            self._put(f"swarm-mcp serve: {missing} lines were left out here: nobody read them")
            if not self._has_room():
                self._left_out = 1
                return
        self._put(line)

    def _put(self, line: str) -> None:
        data = line[:LONGEST].encode(self.encoding, self.errors) + b"\n"
        if len(data) > LONGEST or len(line) > LONGEST:
            data = data[: LONGEST - len(CUT)].decode("utf-8", "ignore").encode() + CUT
        try:
            os.write(self._descriptor, data)
        except OSError:
            return  # the reader has gone

    def _has_room(self) -> bool:
        if not hasattr(select, "poll"):
            return True  # Windows, where only a socket could be asked
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        try:
            return any(event & select.POLLOUT for _, event in poll.poll(0))
        except OSError:  # the reader has gone
            return False

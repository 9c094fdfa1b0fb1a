"""The end of the client's process, noticed at once where the system reports it.

The end of the input is not enough: a killed client may leave the pipe open in another of its children.
"""

from __future__ import annotations

import os
import select
import time

from swarm_hook_core.process import gone, host_id, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOOK_SECONDS = 1.0  # between two looks at the process, where the system does not report its end
ZOMBIE_SECONDS = 0.05  # between the report of an end and the end that `gone` sees


class ClientProcess:
    """The process `pid`, started at `started`. Pid 0 stands for an unknown client, and never ends."""

    def __init__(self, pid: int, started: str):
        self._pid, self._started, self._here = pid, started, host_id()
        self._handle: int | None = None  # a descriptor of the process (Linux)
        self._queue: Any = None  # a queue of its events (BSD, macOS)
        if pid:
            try:
                if hasattr(os, "pidfd_open"):
                    self._handle = os.pidfd_open(self._pid)
                elif hasattr(select, "kqueue"):
                    bsd: Any = select
                    self._queue = bsd.kqueue()
                    event = bsd.kevent(
                        self._pid, filter=bsd.KQ_FILTER_PROC, flags=bsd.KQ_EV_ADD, fflags=bsd.KQ_NOTE_EXIT
                    )
                    self._queue.control([event], 0)
                if start_time(self._pid) != self._started:
                    self._handle = self._queue = None  # another process has the number by now
            except OSError:
                pass  # it has ended already, or the system does not report ends: `wait_for_end` looks by itself

    def wait_for_end(self, seconds: float) -> bool:
        """Wait for the end of the process, at most `seconds`. Return True if it has ended."""
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

    def _pause(self, seconds: float) -> None:
        """Wait until the process may have ended, at most `seconds`. After its end this returns at once."""
        if self._handle is not None:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            has_ended = bool(poll.poll(seconds * 1000))
        elif self._queue is not None:
            has_ended = bool(self._queue.control(None, 1, seconds))
        else:
            has_ended = False
            time.sleep(min(seconds, LOOK_SECONDS))
        if has_ended:
            time.sleep(ZOMBIE_SECONDS)

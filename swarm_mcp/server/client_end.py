"""Knowing when the client has gone: one that was killed may leave our input open in a sibling of ours."""

from __future__ import annotations

import os
import select
import time

from swarm_hook_core.process import gone, host_id, start_time

LOOK_SECONDS = 1.0  # between looks where the system does not tell


class ClientEnd:
    """The end of process `pid` that was started at `started`; 0 for a client that is not known."""

    def __init__(self, pid: int, started: str):
        self._pid, self._started, self._here = pid, started, host_id()
        self._handle = self._queue = None
        if pid:
            try:
                self._watch()
            except OSError:
                pass  # the system cannot tell, or it is gone already: looking will show

    def wait(self, seconds: float) -> bool:
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
            queue = select.kqueue()
            event = select.kevent(
                self._pid, filter=select.KQ_FILTER_PROC, flags=select.KQ_EV_ADD, fflags=select.KQ_NOTE_EXIT
            )
            queue.control([event], 0)
            self._queue = queue
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
            told = ()
            time.sleep(min(seconds, LOOK_SECONDS))
        if told:
            time.sleep(0.05)  # between this and the look it may have to become a zombie first

"""Waiting for locks: in a queue across processes, woken by whatever is committed to the store.

A wait is an object that is asked again after each change to the store (`advance`), by a command that blocks or by
a server that must not.
"""

from __future__ import annotations

import time

from swarm_mcp.errors import LockRefused
from swarm_mcp.store.lock_request import LockRequest

LONGEST_NAP = 1.0  # seconds: leases lapse, and processes die, without anybody's committing anything


class LockWait:
    """A wait of `instance` (its row) for what is `wanted`, for at most `seconds` from now; None: for any time."""

    def __init__(self, instance: dict, wanted: LockRequest, seconds: float | None):
        self.instance = instance
        self.wanted = wanted
        self._until = None if seconds is None else time.monotonic() + seconds

    def advance(self, store) -> list[dict] | None:
        """The locks' rows once they are held, None while there is something to wait for.

        Raises LockRefused when the time is over, Deadlock where waiting would never end, and what
        ``locks.acquire_all`` raises; the place in the queue is given up then.
        """
        try:
            return store.locks.acquire_all(self.instance, self.wanted)
        except LockRefused:
            if self._is_over():
                self.give_up(store)
                raise
        except BaseException:
            self.give_up(store)
            raise
        if not self.wanted.ticket:
            left = None if self._until is None else self._until - time.monotonic()
            self.wanted = self.wanted._replace(ticket=store.queue.join(self.instance, self.wanted, left))
            return self.advance(store)  # what was in the way may have gone before we were in line
        return None

    def left(self) -> float:
        """Seconds after which `advance` may have something to say even if nothing is committed."""
        return LONGEST_NAP if self._until is None else min(LONGEST_NAP, max(0.0, self._until - time.monotonic()))

    def give_up(self, store) -> None:
        """Leave the queue."""
        ticket, self.wanted = self.wanted.ticket, self.wanted._replace(ticket=0)
        store.queue.leave(ticket)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until


def obtained(store, instance: dict, wanted: LockRequest, seconds: float | None) -> list[dict]:
    """The locks' rows, waited for here, blocking. Raises what `LockWait.advance` raises."""
    if seconds == 0:
        return store.locks.acquire_all(instance, wanted)
    from swarm_mcp.store.changes import Changes

    wait = LockWait(instance, wanted, seconds)
    with Changes(store.path) as changes:
        try:
            while (rows := wait.advance(store)) is None:
                changes.wait(wait.left())
        except BaseException:
            wait.give_up(store)
            raise
    return rows

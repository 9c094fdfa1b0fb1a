"""Waiting for a dispatched task to end, and what its worker wrote to the requester meanwhile."""

from __future__ import annotations

import time
from typing import NamedTuple

from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import TERMINAL

ALL = -1  # messages, in one go


class CompletionWait(NamedTuple):
    """A wait for the end of one task of `requester`, begun at `begun` (``time.monotonic()``), for at most `seconds`."""

    requester: Session
    task_id: str
    seconds: float
    begun: float

    @classmethod
    def of(cls, requester: Session, task_id: str, seconds: float) -> CompletionWait:
        """Return a wait that begins now."""
        return cls(requester, task_id, seconds, time.monotonic())

    def seconds_left(self) -> float:
        """Return the seconds until the wait is over."""
        return max(0.0, self.begun + self.seconds - time.monotonic())

    def look(self, store) -> dict | None:
        """Return how the wait ended, None while it goes on.

        ``{status, task_id, waited_seconds}`` with `status` ``completed`` (with ``task_status`` done, failed or
        cancelled, ``result`` and ``task``), ``timeout`` (the same, as far as it is now) or ``missing`` (no such
        task any more); and ``messages``, the mail about this task that the requester had not read. That mail
        is claimed, not yet read: acknowledge its ids once they have been handed out.
        """
        task = store.tasks.get(self.requester.scope, self.task_id)
        if task is None:
            status = "missing"
        elif task.status in TERMINAL:
            status = "completed"
        elif not self.seconds_left():
            status = "timeout"
        else:
            return None
        waited = round(time.monotonic() - self.begun, 3)
        ended: dict = {"status": status, "task_id": self.task_id, "waited_seconds": waited}
        if task:
            ended.update(task_status=task.status, result=task.result, task=task)
        ended["messages"] = store.messages.take(self.requester, ALL, about=self.task_id)
        return ended

"""The wait of a dispatch's requester for the end of the task."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.store import Store

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

    def look(self, store: Store) -> dict[str, Any] | None:
        """Return the end of the wait, None while it goes on.

        ``{status, task_id, waited_seconds, waited_ms}``. `status` is ``completed`` (with ``task_status`` done, failed
        or cancelled, ``result`` and ``task``), ``timeout`` (the same, in the present state) or ``missing`` (the task
        was deleted). ``messages`` is the requester's unread mail about this task. That mail is claimed, not yet read:
        acknowledge its ids after handing it out.
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
        ended: dict[str, Any] = {"status": status, "task_id": self.task_id, "waited_seconds": waited}
        ended["waited_ms"] = round(waited * 1000)
        if task:
            ended.update(task_status=task.status, result=task.result, task=task)
        ended["messages"] = store.messages.take(self.requester, ALL, about=self.task_id)
        return ended

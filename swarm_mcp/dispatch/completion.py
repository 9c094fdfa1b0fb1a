"""Waiting for a dispatched task to end, and what its worker wrote to the requester meanwhile."""

from __future__ import annotations

import time

from swarm_mcp.store import task_rows
from swarm_mcp.store.task_states import TERMINAL

EVERY = -1


class CompletionWait:
    """A wait for one task of `requester`, for at most `seconds` from now."""

    def __init__(self, requester: dict, task_id: str, seconds: float):
        self.requester = requester
        self.task_id = task_id
        self._begun = time.monotonic()
        self._seconds = seconds

    def left(self) -> float:
        """Seconds until the wait is over."""
        return max(0.0, self._begun + self._seconds - time.monotonic())

    def look(self, store) -> dict | None:
        """How the wait ended, None while it goes on.

        ``{status, task_id, waited_seconds}`` with `status` ``completed`` (with ``task_status`` done, failed or
        cancelled, ``result`` and ``task``), ``timeout`` (the same, as far as it is now) or ``missing`` (no such
        task any more); and ``messages``, the mail about this task that the requester had not read. That mail
        is claimed, not yet read: acknowledge its ids once they have been handed out.
        """
        task = task_rows.get(store, self.requester["scope"], self.task_id)
        if task is None:
            status = "missing"
        elif task["status"] in TERMINAL:
            status = "completed"
        elif not self.left():
            status = "timeout"
        else:
            return None
        waited = round(time.monotonic() - self._begun, 3)
        ended: dict = {"status": status, "task_id": self.task_id, "waited_seconds": waited}
        if task:
            ended.update(task_status=task["status"], result=task["result"], task=task)
        ended["messages"] = store.messages.take(self.requester, EVERY, about=self.task_id)
        return ended

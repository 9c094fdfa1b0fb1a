"""A standing worker: it takes the tasks of a checkout as they come, until it is ended.

The work itself is done by supervisors, as for ``dispatch --all`` (`all_tasks`): they outlive a killed standing worker,
and the next one follows them. Only counts and costs are kept here.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress

from swarm_hook_core.process import start_time
from swarm_mcp.agents.dispatch.all_tasks import MOST_LOST, AllTasks, cost_of, to_be_done
from swarm_mcp.agents.dispatch.nursery import Nursery
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import FAILED, TERMINAL, Task
from swarm_mcp.store import Store

# Seconds without a start after a failure: doubled by each that follows, up to the second number.
BACK_OFF, LONGEST_BACK_OFF = 5.0, 300.0
IDLE_SECONDS = 1.0  # between two looks without a change of the store


class StandingWorker(AllTasks):
    """The open tasks of `requester`'s scope, of the `types` (empty: all), as they come.

    `most_tasks`: begun at all (0: any number). ``max_cost_usd`` of the request limits their cost together. The other
    arguments are those of `AllTasks`.
    """

    def __init__(
        self,
        store: Store,
        requester: Session,
        request: DispatchRequest,
        types: Collection[str] = (),
        most: int = 0,
        most_tasks: int = 0,
        tell: Callable[[Task, str], object] = lambda _task, _words: None,
        nursery: Nursery | None = None,
    ):
        super().__init__(store, requester, request, most, "", tell, nursery)
        self._types, self._most_tasks = frozenset(types), most_tasks
        self._begun: set[str] = set()
        self._failures = 0  # one after another
        self._idle_until = 0.0
        self.counts_of_ends: Counter[str] = Counter()  # status -> ended tasks that this worker began
        self.is_ending = False
        self._tasks.clear()
        self._ended.clear()

    @property
    def is_busy(self) -> bool:
        """True while a worker is at work or on its way."""
        return bool(self._at_work or self._dispatches)

    def rest_seconds(self) -> float:
        """Return the seconds until the next look, if the store does not change before."""
        if self.is_busy:
            return self.seconds_left()
        return IDLE_SECONDS

    def advance(self, store: Store) -> bool:
        """Take in new tasks, and start the ready ones. Returns True once nothing more will be done."""
        if self.seconds_left():
            return False
        for task in to_be_done(store, self._requester, ""):
            if task.id not in self._tasks and (not self._types or task.type in self._types):
                self._tasks[task.id], self._ended[task.id] = task, []
        super().advance(store)
        for task in self.tasks:
            if task.id not in self._at_work:
                self._count(task)
        return (self.is_ending or self._is_full() or bool(self.stopped)) and not self.is_busy

    def end(self) -> None:
        """Start no more workers."""
        self.is_ending = True

    def hand_back(self, store: Store) -> None:
        """End the workers under way: a supervisor ends its agent, and the task is open again, with its session."""
        for run in store.runs.live(self._requester.scope):
            pid = run.supervisor_pid
            if run.task_id in self._at_work and pid and start_time(pid) == run.supervisor_start:
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGTERM)

    def _is_full(self) -> bool:
        return bool(self._most_tasks) and len(self._begun) >= self._most_tasks

    def _may_begin(self, store: Store, task: Task) -> bool:
        if self.is_ending or time.monotonic() < self._idle_until:
            return False
        return super()._may_begin(store, task)

    def _start(self, store: Store, task: Task, limit: float) -> None:
        if self._is_full() and task.id not in self._begun:
            return  # another one of this look was the last
        self._begun.add(task.id)
        super()._start(store, task, limit)

    def _count(self, task: Task) -> None:
        """Count a task that has ended; after a failure, or if no worker could be started, start none for a while."""
        is_over = task.status in TERMINAL
        could_not_start = task.id in self._faults and self._lost.get(task.id, 0) < MOST_LOST
        if could_not_start:
            del self._faults[task.id]  # it is tried again after the pause
        if could_not_start or (task.id in self._begun and task.status == FAILED):
            pause = min(BACK_OFF * 2**self._failures, LONGEST_BACK_OFF)
            self._failures, self._idle_until = self._failures + 1, time.monotonic() + pause
        elif task.id in self._begun and is_over:
            self._failures, self._idle_until = 0, 0.0
        if is_over:
            if task.id in self._begun:
                self.counts_of_ends[task.status] += 1
            self._forget(task)

    def _forget(self, task: Task) -> None:
        """Keep nothing of an ended task but its cost."""
        cost = cost_of(self._ended.pop(task.id))
        if cost is None and self._budget:
            self.stopped = "the cost of a worker is unknown, so the limit cannot be kept"
        self._spent += cost or 0.0
        del self._tasks[task.id]
        self._told.pop(task.id, None)
        self._lost.pop(task.id, None)
        self._faults.pop(task.id, None)

"""Many tasks at once: workers are started for the ready ones, a given number at a time, until all are done.

No state of importance is kept here. Tasks, workers and results stand in the store, and each worker has a supervisor of
its own: a killed run is started again and goes on at the same point.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from swarm_mcp.agents.dispatch import slots
from swarm_mcp.agents.dispatch.dispatch import Dispatch
from swarm_mcp.agents.dispatch.nursery import Nursery
from swarm_mcp.agents.dispatch.request import DispatchRequest, require_gateway, worker_command
from swarm_mcp.agents.harness.registry import get
from swarm_mcp.answers.views import name_of, short
from swarm_mcp.domain.question import WAITS
from swarm_mcp.domain.run import ENDED, PAUSED, QUEUED, RUNNING, Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import (
    APPROVAL_REQUIRED,
    BLOCKED,
    CLAIMED,
    DONE,
    IN_PROGRESS,
    OPEN,
    TERMINAL,
    Task,
)  # fmt: skip
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

LOOK_SECONDS = 0.5  # between two looks at the store
MOST_LOST = 3  # workers of one task that were killed, or gave it up
RETRIES = 1
LEAST_SHARE = 0.001  # US dollars; with less nothing is begun
START_SECONDS = 120.0  # for a supervisor to come up, of many that do so at once


class TaskEnd(NamedTuple):
    """The result of one task. `why` explains a failure if the result does not; `took` in seconds.

    `cost_usd` is that of all its workers, None if one is unknown; `tries` of its last worker.
    """

    task: Task
    workers: int
    tries: int
    took: float
    cost_usd: float | None
    why: str


class AllTasks:
    """The open tasks of `requester`'s scope, and their progress.

    `request` says how workers are started; its ``max_cost_usd`` limits the cost of all together. At most `most` work at
    a time (0: the machine's limit), beside those that wait for a person. `parent`: only the parts of that task. `tell`
    gets a task and its new state in a few words; `nursery` starts its workers, if they are processes. Raises Refused if
    no worker can be started like that.
    """

    def __init__(
        self,
        store: Store,
        requester: Session,
        request: DispatchRequest,
        most: int = 0,
        parent: str = "",
        tell: Callable[[Task, str], object] = lambda _task, _words: None,
        nursery: Nursery | None = None,
    ):
        require_gateway(requester)
        self._requester, self._tell = requester, tell
        self._stops_in_time = False
        self._nursery = nursery
        self._budget = request.max_cost_usd
        self._request = request._replace(max_cost_usd=0.0, retries=RETRIES, wait_seconds=START_SECONDS)
        self.warnings = self._checked()
        of_machine = slots.most()
        self.most = min(most or of_machine or slots.DEFAULT_MOST, of_machine or most or slots.DEFAULT_MOST)
        if most > self.most:
            self.warnings.append(
                f"{slots.VARIABLE} lets {of_machine} workers run at a time on this machine, not {most}"
            )
        self._tasks = {task.id: task for task in to_be_done(store, requester, parent)}
        self._dispatches: dict[str, Dispatch] = {}
        self._limits: dict[str, float] = {}  # cost limits of running workers
        self._lost: dict[str, int] = {}
        self._faults: dict[str, str] = {}  # of tasks without a possible worker
        self._told: dict[str, str] = {}
        self._ended = {task_id: ended_runs(store, task) for task_id, task in self._tasks.items()}
        self._at_work: dict[str, Run | None] = {}  # None: its supervisor is on its way
        self._next_look = 0.0
        self._spent = 0.0  # on tasks that are remembered no more
        self.stopped = ""  # why no more workers are started, empty while they are

    @property
    def tasks(self) -> list[Task]:
        """The tasks, as they were at the last look."""
        return list(self._tasks.values())

    def seconds_left(self) -> float:
        """Return the seconds until `advance` looks again."""
        return max(0.0, self._next_look - time.monotonic())

    def counts(self) -> dict[str, int]:
        """Return how many tasks there are of each status, and how many are at work."""
        found = {status: sum(task.status == status for task in self.tasks) for status in (*TERMINAL, BLOCKED)}
        return {**found, "at work": len(self._at_work), "all": len(self._tasks)}

    def advance(self, store: Store) -> bool:
        """Start the ready tasks. Returns True if nothing more can be done: no task is at work, and none is ready."""
        if self.seconds_left():
            return False
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._look(store)
        ready = [task for task in self.tasks if self._may_begin(store, task)]
        for place, task in enumerate(sorted(ready, key=lambda task: (-task.priority, task.created_at))):
            if self._free_places() <= 0:
                break
            limit = self._share(len(ready) - place)
            if limit is None:
                break
            self._start(store, task, limit)
        return not self._at_work and not self._dispatches and (not ready or bool(self.stopped))

    def ends(self, store: Store) -> list[TaskEnd]:
        """Return the result of each task."""
        return [self._end(store, _as_it_is(store, task)) for task in self.tasks]

    # ------------------------------------------------------------------------- looking

    def _checked(self) -> list[str]:
        """Check the request, and return remarks on it. Raises Refused."""
        command = worker_command(self._request._replace(retries=0), self._requester)
        if command.spawner != "process":
            self._nursery = None
        if not command.is_supervised:
            raise Refused(f"{command.spawner} does not report the end of its workers: use --all with process or tmux")
        if not self._budget:
            return list(command.warnings)
        adapter = get(command.harness)
        if not (adapter.capabilities.cost or adapter.prices):
            raise Refused(f"{adapter.name} cannot have a cost limit: its cost is unknown")
        self._stops_in_time = adapter.capabilities.max_cost
        late = f"{adapter.name} reports its cost at its end only: running workers may go over the limit"
        return [*command.warnings, *([] if self._stops_in_time else [late])]

    def _look(self, store: Store) -> None:
        for task_id, dispatch in list(self._dispatches.items()):
            answer = dispatch.advance(store)
            if answer is not None:
                del self._dispatches[task_id]
                # A worker that has come up, and was killed before that was seen, is one that has gone.
                had_none = len(ended_runs(store, self._tasks[task_id])) == len(self._ended[task_id])
                if answer["status"] == "spawn_failed" and had_none:
                    self._faults[task_id] = answer["error"]
        live = {run.task_id: run for run in store.runs.live() if run.task_id in self._tasks}
        for task in self.tasks:
            self._tasks[task.id] = store.tasks.get(task.scope, task.id) or task
        ended = [task_id for task_id in self._at_work if task_id not in live and task_id not in self._dispatches]
        self._at_work = {**dict.fromkeys(self._dispatches), **live}
        for task_id in ended:
            self._note_end(store, self._tasks[task_id])
        for task in self.tasks:
            words = self._words(task)
            if words and self._told.get(task.id) != words:
                self._told[task.id] = words
                self._tell(task, words)

    def _note_end(self, store: Store, task: Task) -> None:
        """A worker has gone."""
        self._limits.pop(task.id, None)
        self._ended[task.id] = ended_runs(store, task)
        if task.status not in TERMINAL:
            self._lost[task.id] = lost = self._lost.get(task.id, 0) + 1
            last = next(iter(self._ended[task.id]), None)
            how = (last and last.result or {}).get("error_message") or "it gave the task up"
            if lost >= MOST_LOST:
                self._faults[task.id] = f"{lost} workers have left it, the last so: {how}"
            self._tell(task, f"its worker has gone: {how}")

    def _words(self, task: Task) -> str:
        """Return the words about a task that is running or over."""
        if task.status in TERMINAL:
            return task.status
        run = self._at_work.get(task.id)
        if run is not None:
            if run.state == QUEUED and asks_a_person(task):
                return "asks a person"
            return {RUNNING: "at work", PAUSED: "paused"}.get(run.state, "")
        return self._faults.get(task.id, "")

    def _free_places(self) -> int:
        """Return how many workers may be started now; those that wait for a person have given their slot back."""
        waiting = sum(
            run is not None and (run.state == PAUSED or (run.state == QUEUED and asks_a_person(self._tasks[task_id])))
            for task_id, run in self._at_work.items()
        )
        return self.most - len(self._at_work) + waiting

    def _may_begin(self, store: Store, task: Task) -> bool:
        if task.id in self._at_work or task.id in self._faults:
            return False
        held = task.status in (CLAIMED, IN_PROGRESS) and task.assignee and store.instances.live(task.assignee)
        return task.status in (OPEN, CLAIMED, IN_PROGRESS) and not held

    # ------------------------------------------------------------------------- starting

    def _start(self, store: Store, task: Task, limit: float) -> None:
        """Have a worker started for a task."""
        request = self._request._replace(resume=task.id, max_cost_usd=limit if self._stops_in_time else 0.0)
        try:
            dispatch = Dispatch(self._requester, request, starter=self._nursery)
            answer = dispatch.advance(store)
        except Refused as refusal:
            self._faults[task.id] = str(refusal)
            return
        if answer is None:
            self._dispatches[task.id] = dispatch
        elif answer["status"] == "spawn_failed":
            self._faults[task.id] = answer["error"]
            return
        self._at_work[task.id] = None
        if self._budget:
            self._limits[task.id] = limit

    def _share(self, ready: int) -> float | None:
        """Return the cost limit of the next worker of `ready` tasks: an equal share of the remaining money for the free
        places.

        0 without a limit. None if no money is left: the run is `stopped` then, unless running workers leave something
        over.
        """
        if not self._budget:
            return 0.0
        costs = [cost_of(runs) for runs in self._ended.values()]
        if None in costs:
            self.stopped = "the cost of a worker is unknown, so the limit cannot be kept"
            return None
        left = self._budget - self._spent - sum(cost for cost in costs if cost is not None) - sum(self._limits.values())
        if left >= LEAST_SHARE:
            # Rounded to a millionth: the limit is handed to a program as text, and must equal its later comparison.
            return round(left / min(ready, self._free_places()), 6)
        if not self._at_work:
            self.stopped = f"the limit of ${self._budget:g} is reached"
        return None

    # -------------------------------------------------------------------------- the end

    def _end(self, store: Store, task: Task) -> TaskEnd:
        runs = store.runs.of_task(task.scope, task.id)
        took = sum((run.ended_at or run.updated_at) - run.started_at for run in runs)
        if runs:
            tries = int((runs[0].result or {}).get("attempts") or 1)
        else:
            tries = 0
        return TaskEnd(task, len(runs), tries, took, cost_of(runs), self._why(store, task))

    def _why(self, store: Store, task: Task) -> str:
        """Return the obstacle to a task that is not done; empty for an ended one, since its result says it."""
        if task.status in TERMINAL:
            return ""
        if task.id in self._faults:
            return self._faults[task.id]
        if task.status == BLOCKED:
            waits = [one for one in task.depends_on or () if (row := store.tasks.get(task.scope, one)) is None
                     or row.status != DONE]  # fmt: skip
            return f"waits for {', '.join(map(short, waits))}"
        if task.status == APPROVAL_REQUIRED:
            return "waits for approval"
        if task.assignee:
            holder = store.instances.live(task.assignee)
        else:
            holder = None
        if holder:
            return f"{name_of(holder)} has it"
        return self.stopped or "not begun"


def _as_it_is(store: Store, task: Task) -> Task:
    """Return the task; it is open if its worker has gone unnoticed."""
    held = task.status in (CLAIMED, IN_PROGRESS)
    if held and not (task.assignee and store.instances.live(task.assignee)):
        return task.replace(status=OPEN)
    return task


def asks_a_person(task: Task) -> bool:
    """Return True while a person's answer about the task is awaited."""
    return (task.blocked_reason or "").startswith(WAITS)


def ended_runs(store: Store, task: Task) -> list[Run]:
    """Return the runs of a task that are over."""
    return [run for run in store.runs.of_task(task.scope, task.id) if run.state == ENDED]


def cost_of(runs: list[Run]) -> float | None:
    """Return the cost of all runs; None if a supervised one did not report it. A killed run counts nothing."""
    seen_through = [run for run in runs if (run.result or {}).get("exit_code") is not None]
    if any(run.cost_usd is None for run in seen_through):
        return None
    return sum(run.cost_usd or 0.0 for run in runs)


def to_be_done(store: Store, requester: Session, parent: str) -> list[Task]:
    """Return the open tasks that are unassigned, or assigned to workers of ours, in the order of their creation."""
    workers = {run.instance_id for run in store.runs.live(requester.scope)}
    found = []
    for status in (OPEN, BLOCKED, CLAIMED, IN_PROGRESS, APPROVAL_REQUIRED):
        for _, task in store.tasks.walk(requester, status):
            if task.assignee and store.instances.live(task.assignee):
                holder = task.assignee
            else:
                holder = None
            if (not parent or task.parent_task_id == parent) and (holder is None or holder in workers):
                found.append(task)
    return sorted(found, key=lambda task: (task.created_at, task.id))


def is_well(ends: list[TaskEnd]) -> bool:
    """Return True if all tasks are done."""
    return all(end.task.status == DONE for end in ends)

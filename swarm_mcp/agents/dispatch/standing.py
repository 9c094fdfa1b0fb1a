"""A standing worker takes a checkout's tasks as they come, as many at a time as this machine has slots.

No state of importance is kept here. Tasks, workers and results stand in the store, and each worker has a supervisor of
its own that outlives a killed standing worker: the next one follows it. Only counts and costs are kept.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress

from swarm_hook_core.environment import first_set
from swarm_hook_core.process import start_time
from swarm_hook_core.state import make_private, open_private, state_dir
from swarm_mcp.agents.dispatch.dispatch import Dispatch
from swarm_mcp.agents.dispatch.request import SUPERVISED, DispatchRequest, require_gateway, worker_command
from swarm_mcp.agents.harness.registry import get
from swarm_mcp.domain import (
    APPROVAL_REQUIRED,
    BLOCKED,
    CLAIMED,
    ENDED,
    FAILED,
    IN_PROGRESS,
    OPEN,
    PAUSED,
    QUEUED,
    RUNNING,
    TERMINAL,
    WAITS,
    Run,
    Session,
    Task,
)
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

# The number of workers at once on this machine: a slot for each, and a queue for the waiting ones.
#
# A slot is a file in the state folder that the worker's supervisor keeps locked (``flock``), so that it is free the
# moment the supervisor is gone. A worker without a slot leaves a locked ticket, named by the time; only the holder of
# the oldest ticket may take a slot, so that every waiter gets its turn. A stopped holder stops asking, and is passed
# over until it goes on; its ticket is the oldest again then.
#
# A worker that starts workers and waits for them would wait for ever if such workers had taken all slots. So each
# worker has one more slot, for one worker of its own at a time.

DEFAULT_MOST = 4
VARIABLE = "SWARM_MAX_WORKERS"
SILENT_SECONDS = 30.0  # since a ticket's holder has asked last


def most_slots() -> int:
    """Return how many workers may run at once (``SWARM_MAX_WORKERS``), 0 for any number."""
    text = first_set(VARIABLE)
    if text.isascii() and text.isdigit():
        return int(text)
    return DEFAULT_MOST


class Slot:
    """One worker's slot. `within` names its starter, empty for none.

    For one thread only. Raises OSError if the state folder cannot be used.
    """

    def __init__(self, within: str = ""):
        self._folder = os.path.join(state_dir(), "slots")
        self._within = within
        self._held = self._ticket = -1
        self._ticket_path = ""
        self.taken = False

    def take(self) -> bool:
        """Take a slot if one is free and no other worker has waited longer. Returns True if this worker has one now."""
        if self.taken or not most_slots():
            self.taken = True
            return True
        make_private(self._folder)
        self._draw_ticket()
        try:
            os.utime(self._ticket_path, (time.time(), time.time()))
        except OSError:
            pass  # the folder has been cleaned
        if self._is_first():
            self._held = next((file for file in map(self._lock, map(str, range(1, most_slots() + 1))) if file >= 0), -1)
        if self._held < 0 and self._within:
            self._held = self._lock(f"within-{self._within}")
        self.taken = self._held >= 0
        if self.taken:
            self._drop_ticket()
        return self.taken

    def release(self) -> None:
        """Give the place back, or stop waiting for one. Safe to call twice."""
        self._drop_ticket()
        held, self._held, self.taken = self._held, -1, False
        if held >= 0:
            os.close(held)

    def _lock(self, name: str) -> int:
        """Return an open file locked by us, or -1 if another process has the lock."""
        path = os.path.join(self._folder, name)
        file = open_private(path, os.O_RDWR | os.O_CREAT)
        if not _locked(file):
            os.close(file)
            return -1
        return file

    # --------------------------------------------------------------- the line

    def _draw_ticket(self) -> None:
        folder = os.path.join(self._folder, "line")
        while self._ticket < 0:
            make_private(folder)
            path = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}")
            file = open_private(path, os.O_RDWR | os.O_CREAT)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(path):
                self._ticket, self._ticket_path = file, path
            else:  # another process saw it before it was locked, and removed it as a leftover
                os.close(file)

    def _drop_ticket(self) -> None:
        ticket, self._ticket = self._ticket, -1
        if ticket >= 0:
            _remove(self._ticket_path)
            os.close(ticket)

    def _is_first(self) -> bool:
        """Return True if no other waiter has waited longer."""
        folder, own = os.path.split(self._ticket_path)
        for name in sorted(os.listdir(folder)):
            if name == own:
                return True
            path = os.path.join(folder, name)
            if _is_held(path) and not _is_silent(path):
                return False
        return True  # the folder has been cleaned


def forget(worker: str) -> None:
    """Remove the leftovers of an ended worker: the slot within its own."""
    _remove(os.path.join(state_dir(), "slots", f"within-{worker}"))


def _is_held(path: str) -> bool:
    """Return True if the holder of a ticket still waits; a leftover ticket is removed."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # removed meanwhile
        return False
    try:
        if not _locked(file):
            return True
        _remove(path)
        return False
    finally:
        os.close(file)


def _is_silent(path: str) -> bool:
    """Return True if the holder of a ticket has not asked for so long that it must have been stopped."""
    try:
        return time.time() - os.stat(path).st_mtime >= SILENT_SECONDS
    except OSError:  # removed meanwhile
        return True


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by its holder
        return False
    return True


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:  # removed meanwhile
        pass


LOOK_SECONDS = 0.5  # between two looks at the store
IDLE_SECONDS = 1.0  # between two looks without a change of the store
MOST_LOST = 3  # workers of one task that were killed, or gave it up
RETRIES = 1
LEAST_SHARE = 0.001  # US dollars; with less nothing is begun
START_SECONDS = 120.0  # for a supervisor to come up, of many that do so at once
# Seconds without a start after a failure: doubled by each that follows, up to the second number.
BACK_OFF, LONGEST_BACK_OFF = 5.0, 300.0


class StandingWorker:
    """The open tasks of `requester`'s scope, of the `types` (empty: all), as they come.

    `request` says how workers are started; its ``max_cost_usd`` limits the cost of all together. At most `most` work at
    a time (0: the machine's limit), beside those that wait for a person; `most_tasks` are begun at all (0: any number).
    `tell` gets a task and its new state in a few words. Raises Refused if no worker can be started like that.
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
    ):
        require_gateway(requester)
        self._requester, self._tell = requester, tell
        self._types, self._most_tasks = frozenset(types), most_tasks
        self._budget = request.max_cost_usd
        self._stops_in_time = False
        self._request = request._replace(max_cost_usd=0.0, retries=RETRIES, wait_seconds=START_SECONDS)
        self.warnings = self._checked()
        of_machine = most_slots()
        self.most = min(most or of_machine or DEFAULT_MOST, of_machine or most or DEFAULT_MOST)
        if most > self.most:
            self.warnings.append(f"{VARIABLE} lets {of_machine} workers run at a time on this machine, not {most}")
        self._tasks: dict[str, Task] = {}
        self._begun: set[str] = set()
        self._dispatches: dict[str, Dispatch] = {}
        self._limits: dict[str, float] = {}  # cost limits of running workers
        self._lost: dict[str, int] = {}
        self._faults: dict[str, str] = {}  # of tasks without a possible worker
        self._told: dict[str, str] = {}
        self._ended: dict[str, list[Run]] = {}  # the runs of each task that are over
        self._at_work: dict[str, Run | None] = {}  # None: its supervisor is on its way
        self._next_look = self._idle_until = 0.0
        self._failures = 0  # one after another
        self._spent = 0.0  # on tasks that are remembered no more
        self.counts_of_ends: Counter[str] = Counter()  # status -> ended tasks that this worker began
        self.is_ending = False
        self.stopped = ""  # why no more workers are started, empty while they are

    @property
    def is_busy(self) -> bool:
        """True while a worker is at work or on its way."""
        return bool(self._at_work or self._dispatches)

    def seconds_left(self) -> float:
        """Return the seconds until `advance` looks again."""
        return max(0.0, self._next_look - time.monotonic())

    def rest_seconds(self) -> float:
        """Return the seconds until the next look, if the store does not change before."""
        if self.is_busy:
            return self.seconds_left()
        return IDLE_SECONDS

    def advance(self, store: Store) -> bool:
        """Take in new tasks, and start the ready ones. Returns True once nothing more will be done."""
        if self.seconds_left():
            return False
        self._next_look = time.monotonic() + LOOK_SECONDS
        for task in to_be_done(store, self._requester):
            if task.id not in self._tasks and (not self._types or task.type in self._types):
                self._tasks[task.id], self._ended[task.id] = task, []
        self._look(store)
        ready = [task for task in self._tasks.values() if self._may_begin(store, task)]
        for place, task in enumerate(sorted(ready, key=lambda task: (-task.priority, task.created_at))):
            if self._free_places() <= 0:
                break
            limit = self._share(len(ready) - place)
            if limit is None:
                break
            self._start(store, task, limit)
        for task in list(self._tasks.values()):
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

    # ------------------------------------------------------------------------- looking

    def _checked(self) -> list[str]:
        """Check the request, and return remarks on it. Raises Refused."""
        command = worker_command(self._request._replace(retries=0), self._requester)
        if not command.is_supervised:
            raise Refused(f"{command.spawner} does not report the end of its workers: poll with {SUPERVISED}")
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
        for task in list(self._tasks.values()):
            self._tasks[task.id] = store.tasks.get(task.scope, task.id) or task
        ended = [task_id for task_id in self._at_work if task_id not in live and task_id not in self._dispatches]
        self._at_work = {**dict.fromkeys(self._dispatches), **live}
        for task_id in ended:
            self._note_end(store, self._tasks[task_id])
        for task in self._tasks.values():
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

    def _is_full(self) -> bool:
        return bool(self._most_tasks) and len(self._begun) >= self._most_tasks

    def _may_begin(self, store: Store, task: Task) -> bool:
        if self.is_ending or time.monotonic() < self._idle_until:
            return False
        if task.id in self._at_work or task.id in self._faults:
            return False
        held = task.status in (CLAIMED, IN_PROGRESS) and task.assignee and store.instances.live(task.assignee)
        return task.status in (OPEN, CLAIMED, IN_PROGRESS) and not held

    # ------------------------------------------------------------------------- starting

    def _start(self, store: Store, task: Task, limit: float) -> None:
        """Have a worker started for a task."""
        if self._is_full() and task.id not in self._begun:
            return  # another one of this look was the last
        self._begun.add(task.id)
        request = self._request._replace(resume=task.id, max_cost_usd=limit if self._stops_in_time else 0.0)
        try:
            dispatch = Dispatch(self._requester, request)
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
            self._stop_unknown()
            return None
        left = self._budget - self._spent - sum(cost for cost in costs if cost is not None) - sum(self._limits.values())
        if left >= LEAST_SHARE:
            # Rounded to a millionth: the limit is handed to a program as text, and must equal its later comparison.
            return round(left / min(ready, self._free_places()), 6)
        if not self._at_work:
            self.stopped = f"the limit of ${self._budget:g} is reached"
        return None

    def _stop_unknown(self) -> None:
        self.stopped = "the cost of a worker is unknown, so the limit cannot be kept"

    # -------------------------------------------------------------------------- the end of a task

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
            # Keep nothing of an ended task but its cost
            cost = cost_of(self._ended.pop(task.id))
            if cost is None and self._budget:
                self._stop_unknown()
            self._spent += cost or 0.0
            del self._tasks[task.id]
            self._told.pop(task.id, None)
            self._lost.pop(task.id, None)
            self._faults.pop(task.id, None)


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


def to_be_done(store: Store, requester: Session) -> list[Task]:
    """Return the open tasks that are unassigned, or assigned to workers of ours, in the order of their creation."""
    workers = {run.instance_id for run in store.runs.live(requester.scope)}
    found = []
    for status in (OPEN, BLOCKED, CLAIMED, IN_PROGRESS, APPROVAL_REQUIRED):
        for _, task in store.tasks.walk(requester, status):
            if task.assignee and store.instances.live(task.assignee):
                holder = task.assignee
            else:
                holder = None
            if holder is None or holder in workers:
                found.append(task)
    return sorted(found, key=lambda task: (task.created_at, task.id))

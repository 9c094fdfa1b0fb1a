"""A dispatch, step by step: find or make the task, then a worker for it.

A dispatch waits twice at most, for a worker that is being started and for the task's end. So it is an
object that is asked again after each change to the store (`advance`), by a command that blocks or by a
server that must not.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.labels import token
from swarm_hook_core.untrusted_text import label
from swarm_mcp.dispatch import workers
from swarm_mcp.dispatch.completion import CompletionWait
from swarm_mcp.dispatch.dispatch_task import Commission
from swarm_mcp.dispatch.mode_limits import require_below
from swarm_mcp.dispatch.request import Order, checked, require_gateway, scrubbed
from swarm_mcp.dispatch.spawners import SUPERVISED, SpawnFailed, Worker, canonical, spawner
from swarm_mcp.dispatch.worker_command import RUN, left_out_of, outfit
from swarm_mcp.errors import Refused
from swarm_mcp.scope import clean
from swarm_mcp.settings import Settings
from swarm_mcp.store import spawn_locks
from swarm_mcp.store.registration import new_id
from swarm_mcp.store.runs import PAUSED, RESUME
from swarm_mcp.store.task_states import OPEN, TERMINAL
from swarm_mcp.visibility import may_meet

LOOK_SECONDS = 0.5
_UNSHOWN = ("supervisor", "log")  # facts for ourselves
SECRET_WARNING = (
    "there is a secret in what was dispatched: the task's title and description have it masked, the worker is told it"
    " as it stands; better name the variable or file that holds it"
)


class Handover:
    """One dispatch by `requester` (its row). The answer is complete once `advance` returns it."""

    def __init__(self, requester: dict, order: Order):
        require_gateway(requester)
        self.requester = requester
        self.order = checked(order)
        settings = Settings(token(requester["label"] or "", "identity"))
        self.spawner_name = canonical(self.order.spawner or settings.spawner)
        self.harness, self.command = outfit(self.order, requester, self.spawner_name, settings)
        self.cwd = clean(self.order.cwd, requester["directory"]) if self.order.cwd else requester["directory"]
        if self.order.spawn and not os.path.isdir(self.cwd):
            raise Refused(f"a worker cannot be started in {self.cwd}: there is no such folder")
        self._commission = Commission(requester, self.order)
        self.key = self._commission.key
        self._warnings = left_out_of(self.order, self.spawner_name, self.harness)
        self._warnings += [SECRET_WARNING] if scrubbed(self.order)[1] else []
        self.task: dict = {}
        self._answer: dict = {}
        self._decision: dict = {}
        self._lock: dict = {}  # of the spawn under way
        self._facts: dict = {}
        self._until = 0.0
        self._completion: CompletionWait | None = None

    def advance(self, store) -> dict | None:
        """The answer, None while there is something to wait for: a change to the store, or `left` seconds.

        ``{status, task_id, task, ...}`` as the contract has it for each status. Messages in
        ``completion`` are claimed: acknowledge their ids once they have been handed out.
        """
        if not self.task:
            self._begin(store)
        if self._lock and not self._look_for_worker(store):
            return None
        # Nobody is coming after a failure: the error is worth more at once than after the wait.
        if self.order.completion_wait_seconds > 0 and self._answer["status"] != "spawn_failed":
            if self._completion is None:
                self._completion = CompletionWait(self.requester, self.task["id"], self.order.completion_wait_seconds)
            ended = self._completion.look(store)
            if ended is None:
                return None
            self._answer["completion"] = ended
        return self._answer

    def left(self) -> float:
        """Seconds after which `advance` has something to say even if nothing changes."""
        if self._completion:
            return self._completion.left()
        left = max(0.0, self._until - time.monotonic())
        # That a supervisor has died changes nothing in the store.
        return min(left, LOOK_SECONDS) if self.spawner_name in SUPERVISED else left

    # -------------------------------------------------------------- the task

    def _begin(self, store) -> None:
        if self.order.spawn:
            require_below(store, self.requester, self.order)
        commission = self._commission
        commission.settle(store, self._find_worker)
        self.task, self._decision, self.order, self.key = (
            commission.task, commission.decision, commission.order, commission.key,
        )  # fmt: skip
        if self.task["status"] in TERMINAL:
            return self._answered("already_terminal")
        worker = None if self.order.force_spawn else self._bound(store)
        if worker:
            return self._prompt(store, worker)
        if not self.order.spawn:
            return self._answered("no_worker", role=self.order.role)
        self._spawn(store)

    # ------------------------------------------------------------ the worker

    def _find_worker(self, store) -> dict | None:
        order = self.order
        passed_over = order.force_spawn or order.wants_new_worker()
        return None if passed_over else workers.find(store, self.requester, order.role)

    def _assigned(self, store) -> dict | None:
        return workers.assigned(store, self.requester, self.task)

    def _tell(self, store, worker: dict) -> dict:
        order = self.order
        return workers.tell(store, self.requester, worker, self.task, order.message, order.nudge, order.force)

    def _bound(self, store) -> dict | None:
        """The live session that the task is for: its assignee, else one found now, which it is given to."""
        worker = self._assigned(store)
        if worker is None and not self.order.resume:
            worker = self._find_worker(store)
        if worker and self.task["status"] == OPEN:
            self._reserve(store, worker)
            return self._assigned(store)
        return worker

    def _reserve(self, store, worker: dict) -> None:
        """Give an open task to `worker`, unless somebody was faster."""
        try:
            self.task = store.tasks.reserve(self.task["id"], worker)
        except Refused:
            self.task = store.tasks.get(self.requester["scope"], self.task["id"]) or self.task

    def _prompt(self, store, worker: dict) -> None:
        run = store.runs.of_instance(worker["id"])
        if self.order.resume and run and run["state"] == PAUSED:
            store.runs.ask(run["id"], RESUME)
        sent = self._tell(store, worker)
        more = {}
        if self.order.wants_new_worker() and not (run and run["harness"] == self.harness):
            more["not_started"] = f"{label(worker['label'] or worker['id'])} works on it already"
        self._answered("dispatched", recipient=worker["id"], prompt=sent, **more)

    # ------------------------------------------------------------- the spawn

    def _spawn(self, store) -> None:
        """Start a worker, unless another dispatch is at it."""
        name, reserved = spawn_locks.name_of(self.order.role, self.key), new_id()
        with store.writing():
            store.instances.require(self.requester["id"])
            lock = spawn_locks.take(store, self.requester, name, self.task["id"], reserved)
        if lock is None:
            return self._in_flight(store, name)
        # Whoever had the lock before may have brought a worker between our look and this.
        self.task = store.tasks.get(self.requester["scope"], self.task["id"]) or self.task
        worker = None if self.order.force_spawn else self._assigned(store)
        if worker:
            self._release(store, lock, "worker_found")
            return self._prompt(store, worker)
        chosen = spawner(self.spawner_name)
        try:
            facts = chosen.start(store, self._worker(reserved))
        except SpawnFailed as error:
            self._release(store, lock, "spawn_failed")
            return self._answered("spawn_failed", spawner=self.spawner_name, error=str(error))
        except BaseException:
            self._release(store, lock, "spawn_failed")  # a server lives on, and would block the next dispatch
            raise
        self._lock, self._facts = lock, facts
        with store.writing():
            spawn_locks.started(store, lock, {"spawner": self.spawner_name, **facts})
        patience = self.order.wait_seconds
        self._until = time.monotonic() + (chosen.patience if patience is None else patience)

    def _worker(self, reserved: str) -> Worker:
        order = self.order
        return Worker(
            requester=self.requester,
            task_id=self.task["id"],
            instance_id=reserved,
            role=order.role,
            harness=self.harness,
            command=self.command,
            cwd=self.cwd,
            label=order.label,
            name=order.name,
            message=order.message,
            placement=order.placement,
            title=self.task["title"],
            lock=spawn_locks.name_of(order.role, self.key),
            run={name: getattr(order, name) for name in RUN if getattr(order, name)},
        )

    def _look_for_worker(self, store) -> bool:
        """Whether the spawn has come to its end, for this dispatch at least."""
        lock, facts = self._lock, self._facts
        shown = {name: value for name, value in facts.items() if name not in _UNSHOWN}
        try:
            seen = spawner(self.spawner_name).look(store, facts)
        except SpawnFailed as error:
            self._release(store, lock, "spawn_failed")
            self._answered("spawn_failed", spawner=self.spawner_name, error=str(error), **shown)
            self._lock = {}
            return True
        details = {"spawner": self.spawner_name, **shown}
        if seen is None:
            if time.monotonic() < self._until:
                return False
            if "ui_command_id" in facts:
                details["ui_command"] = store.ui_commands.get(facts["ui_command_id"])
            self._answered("spawn_in_flight", **details, spawn_lock=lock["file"])
        else:
            worker = store.instances.live(seen.get("instance_id") or "")
            if worker:
                self._welcome(store, worker)
            elif self.spawner_name in SUPERVISED:
                self._release(store, lock, "worker_through")  # it was quicker than this look
            if self.spawner_name in SUPERVISED:
                self.task = store.tasks.get(self.requester["scope"], self.task["id"]) or self.task
            self._answered("spawned", **{**details, **seen}, spawn_lock=lock["file"])
        self._lock = {}
        return True

    def _welcome(self, store, worker: dict) -> None:
        """Give the task to a worker that has come up, and let the next dispatch start another."""
        if self.task["status"] == OPEN:
            self._reserve(store, worker)
        if self.spawner_name not in SUPERVISED:
            self._tell(store, worker)
        if self.task["assignee"] == worker["id"]:
            self._release(store, self._lock, "worker_arrived")

    def _in_flight(self, store, name: str) -> None:
        """Another dispatch is starting a worker; where that has come up unnoticed, the work is its."""
        held = spawn_locks.holder(store, self.requester["scope"], name)
        worker = spawn_locks.worker_of(store, held) if held else None
        if worker and may_meet(self.requester["label"], worker["label"]):
            if self.task["status"] == OPEN:
                self._reserve(store, worker)
            return self._prompt(store, worker)
        viewer = token(self.requester["label"] or "", "identity")
        self._answered("spawn_in_flight", lock=store.locks.describe(held, viewer) if held else None)

    def _release(self, store, lock: dict, reason: str) -> None:
        with store.writing():
            spawn_locks.release(store, lock, reason)

    # ------------------------------------------------------------ the answer

    def _answered(self, status: str, **more) -> None:
        task = self.task
        self._answer = {"status": status, "task_id": task["id"], "task": task, **more}
        if self._warnings:
            self._answer["warnings"] = self._warnings
        if self._decision:
            self._answer["promotion"] = {"decision": self._decision}


def carry_out(store, requester: dict, order: Order) -> dict:
    """Dispatch and wait here, blocking; the answer. Raises what a `Handover` raises."""
    from swarm_mcp.store.changes import Changes

    handover = Handover(requester, order)
    with Changes(store.path) as changes:
        while (answer := handover.advance(store)) is None:
            changes.wait(handover.left())
    return answer

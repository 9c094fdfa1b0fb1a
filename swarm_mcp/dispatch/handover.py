"""A dispatch, step by step: find or make the task, then a worker for it.

A dispatch waits twice at most, for a worker that is being started and for the task's end. So it is an
object that is asked again after each change to the store (`advance`), by a command that blocks or by a
server that must not.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.labels import token
from swarm_mcp.actor import TERMINAL as SHELL
from swarm_mcp.circle import may_meet
from swarm_mcp.dispatch import promotion
from swarm_mcp.dispatch.completion import CompletionWait
from swarm_mcp.dispatch.control import named_task
from swarm_mcp.dispatch.order import GENERALIST, Order, checked, may_go_wild, require_gateway, split_command
from swarm_mcp.dispatch.spawners import SUPERVISED, SpawnFailed, Worker, canonical, spawner
from swarm_mcp.errors import Refused
from swarm_mcp.scope import clean
from swarm_mcp.settings import Settings
from swarm_mcp.store import spawn_locks
from swarm_mcp.store.registration import new_id
from swarm_mcp.store.task_states import OPEN, TERMINAL
from swarm_mcp.store.tracker_links import entry_in
from swarm_mcp.workspace.prompting import deliver

# Of an order, what is for the run of a supervised worker.
RUN = ("model", "mode", "effort", "timeout_seconds", "max_cost_usd", "fresh")
_UNSHOWN = ("supervisor", "log")  # facts for ourselves
TRIES = 3  # at naming a worker who may leave at that very moment


class Handover:
    """One dispatch by `requester` (its row). The answer is complete once `advance` returns it."""

    def __init__(self, requester: dict, order: Order):
        require_gateway(requester)
        self.requester = requester
        self.order = checked(order)
        settings = Settings(token(requester["label"] or "", "identity"))
        self.spawner_name = canonical(self.order.spawner or settings.spawner)
        self.harness = self.order.harness or settings.harness(requester["label"] or "")
        self.command = self._words(settings)
        self.cwd = clean(self.order.cwd, requester["directory"]) if self.order.cwd else requester["directory"]
        if self.order.spawn and not os.path.isdir(self.cwd):
            raise Refused(f"a worker cannot be started in {self.cwd}: there is no such folder")
        if self.order.spawn and self.spawner_name in SUPERVISED:
            self._require_meaning()
        self.key = self.order.key(requester)
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
                self._completion = CompletionWait(
                    self.requester, self.task["id"], self.order.completion_wait_seconds
                )
            ended = self._completion.look(store)
            if ended is None:
                return None
            self._answer["completion"] = ended
        return self._answer

    def left(self) -> float:
        """Seconds after which `advance` has something to say even if nothing changes."""
        if self._completion:
            return self._completion.left()
        return max(0.0, self._until - time.monotonic())

    # ------------------------------------------------------- what is asked for

    def _words(self, settings: Settings) -> tuple[str, ...]:
        """The words that start the harness; empty for a supervised one that nothing else is said of."""
        if self.order.command:
            return split_command(self.order.command)
        words = tuple(settings.harness_command(self.harness))
        return () if self.spawner_name in SUPERVISED and words == (self.harness,) else words

    def _require_meaning(self) -> None:
        """Raises Refused where a supervised worker could not be meant like this."""
        from swarm_mcp.harness.query import EFFORTS, MODES, YOLO
        from swarm_mcp.harness.registry import chosen_name

        order = self.order
        self.harness = chosen_name(self.harness)
        if self.harness == "process" and not self.command:
            raise Refused("the harness process needs a command: --command 'make check', or SWARM_HARNESS_PROCESS")
        if order.mode not in ("", *MODES):
            raise Refused(f"unknown mode {order.mode[:40]!r}; choose from {', '.join(MODES)}")
        if order.effort not in EFFORTS:
            raise Refused(f"unknown effort {order.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
        if order.mode == YOLO and not may_go_wild(self.requester):
            raise Refused("mode yolo is for a person at a terminal, or where SWARM_ALLOW_YOLO=1 allows it")

    # -------------------------------------------------------------- the task

    def _begin(self, store) -> None:
        self._request(store)
        if self.task["status"] in TERMINAL:
            return self._answered("already_terminal")
        worker = None if self.order.force_spawn else self._bound(store)
        if worker:
            return self._prompt(store, worker)
        if not self.order.spawn:
            return self._answered("no_worker", role=self.order.role)
        self._spawn(store)

    def _request(self, store) -> None:
        """Find or make the task."""
        order, requester = self.order, self.requester
        if order.resume:
            return self._recall(store)
        self._decision = promotion.decide(self._work(store))
        spec = {
            "type": order.type,
            "title": order.title,
            "description": order.description,
            "files": list(order.files),
            "priority": order.priority,
            "depends_on": list(order.depends_on),
            "idempotency_key": self.key,
            "parent_task_id": order.parent_task_id,
            "approval_required": order.approval_required,
        }
        if self._decision["promote"]:
            spec.update(tracker_required=True, tracker_provider=self._decision["provider"])
        for attempt in range(1, TRIES + 1):
            worker = None if order.force_spawn else self._find_worker(store)
            try:
                # No notice: the instructions follow, with more to say, and the next dispatch brings them if not this.
                made = store.tasks.request(requester, {**spec, "assignee": worker and worker["id"]}, notify=False)
                break
            except Refused:
                if attempt == TRIES or worker is None or store.instances.live(worker["id"]):
                    raise
        self.task = made["task"]
        self._link(store)
        if made["existing"]:
            self._decision = {}

    def _recall(self, store) -> None:
        """Find the task to be gone on with; what is not said anew is as it was."""
        self.task = named_task(store, self.requester, self.order.resume)
        self.key = self.task["idempotency_key"] or f"task:{self.task['id']}"
        words = self.order.message or self.task["description"] or self.task["title"]
        self.order = self.order._replace(title=self.task["title"], message=words)

    def _work(self, store) -> promotion.Work:
        """The facts of the promotion decision."""
        order, requester = self.order, self.requester
        configured = store.tracker.of(requester)
        value = configured["value"] if configured else None
        provider = promotion.provider_of(value)
        parent = store.tasks.get(requester["scope"], order.parent_task_id) if order.parent_task_id else None
        named = order.promote_identifier.strip()
        return promotion.Work(
            identity=token(requester["label"] or "", "identity"),
            tracker=value,
            type=order.type,
            title=order.title,
            description=order.description,
            files=tuple(dict.fromkeys(order.files)),
            promote=order.promote,
            identifier=entry_in(named) or named,
            # Only one tracker's entries can be told from other words.
            mentioned=(entry_in(order.title) or entry_in(order.description)) if provider == "linear" else "",
            parent=parent
            and promotion.Parent(
                bool(parent["tracker_required"]), store.tracker.entry(requester, provider, parent["id"])
            ),
        )

    def _link(self, store) -> None:
        """Remember the tracker entry of a task that was made with one, also where a dispatch before this was killed."""
        decision, task = self._decision, self.task
        if not decision.get("identifier") or not task["tracker_required"]:
            return
        if store.tracker.entry(self.requester, decision["provider"], task["id"]):
            return
        named = self.order.promote_identifier.strip()
        url = decision.get("existing_binding", {}).get("url") or (named if "://" in named else "")
        store.tracker.link(self.requester, decision["provider"], task["id"], decision["identifier"], url)

    # ------------------------------------------------------------ the worker

    def _find_worker(self, store) -> dict | None:
        """The first live session with the role, else the first that is good for anything."""
        # A supervised worker has one task and ends with it; a person's shell works on none.
        busy = {run["instance_id"] for run in store.runs.live(self.requester["scope"])}
        peers = [
            row
            for row in store.instances.in_scope(self.requester["scope"])
            if row["id"] != self.requester["id"]
            and row["id"] not in busy
            and token(row["label"] or "", "origin") != SHELL
            and may_meet(self.requester["label"], row["label"])
        ]
        for roles in ((self.order.role,), ("", GENERALIST)):
            for row in peers:
                if token(row["label"] or "", "role") in roles:
                    return row
        return None

    def _bound(self, store) -> dict | None:
        """The live session that the task is for: its assignee, else one found now, which it is given to."""
        worker = self._assigned(store) or self._find_worker(store)
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
        sent = self._tell(store, worker)
        self._answered("dispatched", recipient=worker["id"], prompt=sent)

    def _tell(self, store, worker: dict) -> dict:
        """Leave the instructions in the worker's inbox and wake it; not twice while they lie there unread.

        A supervised worker had them with its start, and is told what is new only.
        """
        content = f"[task:{self.task['id']}] {self.order.message}"
        requester = self.requester
        told = 1 if store.runs.of_instance(worker["id"]) else 0
        with store.writing():
            waiting = store.row(
                "SELECT 1 FROM messages WHERE scope = ? AND recipient = ? AND read <= ? AND sender = ? AND content = ?",
                (requester["scope"], worker["id"], told, requester["id"], content),
            )
            if not waiting and worker["id"] != requester["id"]:
                store.messages.post(requester["scope"], requester["id"], worker["id"], content)
        return deliver(store, requester, worker["id"], content, self.order.nudge, self.order.force)

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

    def _assigned(self, store) -> dict | None:
        row = store.instances.live(self.task["assignee"]) if self.task["assignee"] else None
        return row if row and may_meet(self.requester["label"], row["label"]) else None

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
            if self.left():
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

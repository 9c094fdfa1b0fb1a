"""Tasks that sessions hand to each other, and runs."""

from __future__ import annotations

from collections.abc import Iterator

from support.memory_store.tables import Part
from swarm_hook_core.json_text import dumps
from swarm_hook_core.process import gone
from swarm_mcp.domain.run import COLUMNS, ENDED, STARTING, Run
from swarm_mcp.domain.session import RUN_RUNTIME, Session
from swarm_mcp.domain.task import (
    APPROVAL_REQUIRED,
    BLOCKED,
    CANCELLED,
    CLAIMED,
    DONE,
    FAILED,
    IN_PROGRESS,
    OPEN,
    STATUSES,
    TERMINAL,
    UNCHANGED,
    Task,
)
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store.task_life import refusal
from swarm_mcp.store.task_requests import _composed
from swarm_mcp.visibility import may_meet


class Tasks(Part):
    def get(self, scope: str, task_id: str) -> Task | None:
        task = self.memory.tasks.get(task_id)
        return task if task and task.scope == scope else None

    def seen(self, viewer: Session, task_id: str) -> Task | None:
        task = self.memory.tasks.get(task_id)
        return task if task and self._sees(viewer, task) else None

    def _listed(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> list[Task]:
        def fits(task: Task) -> bool:
            pairs = ((status, task.status), (assignee, task.assignee), (requester, task.requester))
            return all(wanted in ("", there) for wanted, there in pairs)

        found = [task for task in self._by_age(viewer) if fits(task)]
        return sorted(found, key=lambda task: (-task.priority, task.created_at, task.id))

    def _by_age(self, viewer: Session) -> list[Task]:
        own = [task for task in self.memory.tasks.values() if task.scope == viewer["scope"]]
        return [task for task in own if self._sees(viewer, task)]

    def walk(
        self, viewer: Session, status: str = "", assignee: str = "", requester: str = "",
        after: str = "", by_age: bool = False,
    ) -> Iterator[tuple[str, Task]]:  # fmt: skip
        rows = self._listed(viewer, status, assignee, requester)
        if by_age:
            numbers = {name: self.number_of(name) for name in self.memory.tasks}
            rows.sort(key=lambda task: (task.created_at, numbers[task.id]))
            return self.behind(after, (int, int), rows, lambda task: [task.created_at, numbers[task.id]])
        # Its place is compared as it rises; a task of higher priority comes first.
        return self.behind(after, (int, int, str), rows, lambda task: [-task.priority, task.created_at, task.id])

    def count(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> int:
        return len(self._listed(viewer, status, assignee, requester))

    def beginning(self, viewer: Session, text: str, limit: int) -> list[Task]:
        return [task for task in self._by_age(viewer) if task.id.startswith(text)][:limit]

    def counts(self, viewer: Session) -> dict[str, int]:
        return {status: len(self._listed(viewer, status)) for status in STATUSES}

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        mine = self._listed(instance, CLAIMED, instance["id"])
        return (mine + [task for task in self._listed(instance, OPEN) if not task.assignee])[:limit]

    def current(self, viewer: Session, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
        grouped = {status: self._listed(viewer, status) for status in STATUSES}
        ended = {status: len(grouped[status]) for status in TERMINAL}
        for status in () if include_terminal else TERMINAL:
            newest = sorted(grouped.pop(status), key=lambda task: -task.changed_at)[:terminal_limit]
            if terminal_limit > 0:
                grouped[status] = newest
        return {**grouped, "terminal_counts": ended}

    def glance(self, viewer: Session, _changed_after: int | None = None) -> dict:
        return self.current(viewer)

    def unfinished_of(self, session: Session, limit: int = -1) -> list[Task]:
        found = [task for task in self._listed(session, assignee=session["id"]) if task.status not in TERMINAL]
        few = {task.id for status in STATUSES for task in [t for t in found if t.status == status][: limit % 10**9]}
        return [task for task in found if task.id in few]

    def count_unfinished_of(self, session: Session) -> int:
        return len(self.unfinished_of(session))

    def at_work_beside(self, session: Session, limit: int) -> list[Task]:
        begun = [task for task in self._listed(session) if task.status in (CLAIMED, IN_PROGRESS)]
        return [task for task in begun if task.assignee not in (None, session["id"])][:limit]

    def request_batch(self, requester: Session, specs: list[dict]) -> dict:
        before, made, told = dict(self.memory.tasks), [], {}
        try:
            for spec in specs:
                needed = [self._named(made, one) for one in spec.get("depends_on") or ()]
                answer = self.request(requester, {**spec, "depends_on": needed}, notify=False)
                made.append((answer["task"], answer["existing"]))
        except SwarmError:
            self.memory.tasks = before
            raise
        for task, existing in made:
            if not existing and task.assignee not in (None, requester["id"]):
                told.setdefault(task.assignee, task)
        tasks = [{"id": task.id, "status": task.status, "new": not existing} for task, existing in made]
        return {
            "tasks": tasks,
            "notices": [note for who, task in told.items() for note in self._post(requester, who, task)],
        }

    def _named(self, made: list[tuple[Task, bool]], reference: str) -> str:
        """The task that a dependency names: an id, or ``$N``, the Nth of the batch."""
        if not reference.startswith("$"):
            return reference
        number = int(reference[1:])
        if not 0 < number <= len(made):
            raise Refused(f"{reference} names no earlier item of this batch")
        return made[number - 1][0].id

    def complete(self, actor: Session, task_id: str, record: dict, status: str = DONE) -> dict:
        task = self._seen(actor, task_id)
        if task.tracker_required and not (record.get("tracker_update") or record.get("tracker_update_skipped")):
            raise Refused("Tracker-backed tasks require tracker_update or tracker_update_skipped in complete_task")
        result = {name: record.get(name) or [] for name in ("summary", "files_changed", "tests", "followups")}
        return {**self.end(actor, task_id, status, dumps(result)), "result": result}

    def request(self, requester: Session, spec: dict, notify: bool = True) -> dict:
        self.store.instances.show_life(requester["id"])
        key = (spec.get("idempotency_key") or "").strip()
        known = [task for task in self.memory.tasks.values() if key and task.idempotency_key == key]
        if known:
            return {"task": known[0], "existing": True, "notices": []}
        task = _composed(requester, spec)
        for needed in task["depends_on"] or ():
            if needed not in self.memory.tasks:
                raise Refused(f"Dependency task {needed} not found in scope")
        if task["assignee"] and not self.store.instances.live(task["assignee"]):
            raise Refused(f"Instance {task['assignee']} is not active in this scope")
        if task["status"] == OPEN or self._failed(task):
            task["status"] = self._standing(task)
        now = self.store.now()
        task.update(created_at=now, updated_at=now, changed_at=now * 1000)
        self.memory.tasks[task["id"]] = made = Task(task)
        self.memory.add_event(made.scope, "task.created", requester["id"], made.id)
        told = []
        if notify and made.assignee and made.assignee != requester["id"] and made.status not in TERMINAL:
            told = self._post(requester, made.assignee, made)
        return {"task": made, "existing": False, "notices": told}

    def claim(self, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
        self.store.instances.show_life(instance["id"])
        task = self._seen(instance, task_id)
        holder = self.store.instances.get(task.assignee) if task.assignee else None
        if holder and not self.store.instances.live(holder.id):
            self.store.instances.remove(holder.id, "reclaimed")
            task = self._seen(instance, task_id)
        mail = [one for one in self.store.messages.peek(instance) if f"task_id: {task_id})" not in one.content]
        if mail and not ignore_unread:
            raise Refused("Read your mail first")
        prior = task.status
        return {
            "task": self._move(task, IN_PROGRESS, "claim", instance, assignee=instance["id"]),
            "prior_status": prior,
        }

    def claim_next(self, instance: Session, types: list[str] | None = None, files: list[str] | None = None,
                   ignore_unread: bool = False) -> dict:  # fmt: skip
        found = [task for task in self.claimable(instance, 10**9) if not types or task.type in types]
        if not found:
            raise Refused("No claimable task found")
        return self.claim(instance, found[0].id, ignore_unread)

    def reserve(self, task_id: str, worker: Session) -> Task:
        return self._move(self.memory.tasks[task_id], CLAIMED, "reserve", worker, assignee=worker["id"])

    def take_back(self, task: Task, prior_status: str) -> None:
        now = self.memory.tasks[task.id]
        if (now.status, now.assignee) == (task.status, task.assignee):
            assignee = task.assignee if prior_status == CLAIMED else None
            self._move(now, prior_status, "take back", Session(id="system"), assignee=assignee)

    def approve(self, actor: Session, task_id: str) -> dict:
        task = self._seen(actor, task_id)
        self.store.instances.show_life(actor["id"])
        moved = self._move(task, self._standing(task), "approve", actor)
        if moved.status == CANCELLED:
            self._spread(moved)
        return {"task": moved, "notices": []}

    def report_progress(self, actor: Session, task_id: str, summary: str, blocked_reason: object = UNCHANGED,
                        expected_next_update_at: object = UNCHANGED, begun: bool = True) -> dict:  # fmt: skip
        task = self._seen(actor, task_id)
        if task.assignee != actor["id"] or task.status != IN_PROGRESS:
            raise Refused("Only the assignee can report progress on this task")
        given = {"blocked_reason": blocked_reason, "expected_next_update_at": expected_next_update_at}
        changed = {name: value for name, value in given.items() if value is not UNCHANGED}
        self.memory.tasks[task.id] = task.replace(progress_summary=summary, **changed)
        return {"progress_summary": summary, **changed}

    def end(self, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
        if status not in TERMINAL:
            raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
        self.store.instances.show_life(actor["id"])
        task = self._move(self._seen(actor, task_id), status, "end", actor, result=result)
        held = self.store.locks.of(task.assignee) if task.assignee else []
        theirs = [
            lock for lock in held if lock.task_id == task.id or (not lock.task_id and lock.file in (task.files or ()))
        ]
        self.store.locks.drop(theirs, "task_terminal")
        told = []
        if status != CANCELLED and task.requester != actor["id"]:
            told = self._post(actor, task.requester, task)
        return {"task": task, "notices": told, "unblocked": self._spread(task)}

    def release_all(self, session: Session) -> None:
        for task in list(self.memory.tasks.values()):
            if task.assignee == session.id and task.status in (CLAIMED, IN_PROGRESS):
                self._move(task, OPEN, "release", None, assignee=None)
            elif task.assignee == session.id and task.status not in TERMINAL:
                self.memory.tasks[task.id] = task.replace(assignee=None)

    def _spread(self, ended: Task) -> list[tuple[str, str]]:
        """What the end of a task means for those that wait for it."""
        told: list[tuple[str, str]] = []
        for task in list(self.memory.tasks.values()):
            if ended.id in (task.depends_on or ()) and task.status in (BLOCKED, APPROVAL_REQUIRED):
                if self._failed(task):
                    told += self._spread(self._move(task, CANCELLED, "cascade", None))
                elif task.status == BLOCKED and self._standing(task) != BLOCKED:
                    moved = self._move(task, self._standing(task), "unblock", None)
                    told += self._post(Session(id="system"), moved.assignee, moved) if moved.assignee else []
        return told

    def _failed(self, task: dict) -> bool:
        needed = [self.memory.tasks[one].status for one in task["depends_on"] or () if one in self.memory.tasks]
        return any(status in (FAILED, CANCELLED) for status in needed)

    def _standing(self, task: dict) -> str:
        if self._failed(task):
            return CANCELLED
        needed = [self.memory.tasks[one].status for one in task["depends_on"] or () if one in self.memory.tasks]
        if any(status != DONE for status in needed):
            return BLOCKED
        return CLAIMED if task["assignee"] else OPEN

    def _move(self, task: Task, status: str, how: str, actor: Session | None, **columns: object) -> Task:
        why = refusal(task, status, how, actor["id"] if actor else None)
        if why:
            raise Refused(why)
        self.memory.tasks[task.id] = moved = task.replace(status=status, updated_at=self.store.now(), **columns)
        self.memory.add_event(task.scope, f"task.{how}", actor["id"] if actor else "system", task.id)
        return moved

    def _post(self, sender: Session, recipient: str, task: Task) -> list[tuple[str, str]]:
        row = self.store.instances.get(recipient)
        if row is None:
            return []
        content = f"[task:{task.id}] [auto] {task.title} is {task.status} (task_id: {task.id})"
        self.store.messages.post(row.scope, sender["id"], recipient, content)
        return [(recipient, content)]

    def _seen(self, actor: Session, task_id: str) -> Task:
        task = self.seen(actor, task_id)
        if task is None:
            raise Refused("Task not found")
        return task

    def _sees(self, viewer: Session, task: Task) -> bool:
        owner = self.store.instances.get(task.requester)
        return viewer["id"] in (task.requester, task.assignee) or not owner or may_meet(viewer["label"], owner.label)


class Runs(Part):
    def begin(self, spec: dict) -> Run:
        now = self.store.now()
        nothing = dict.fromkeys(COLUMNS)
        self.memory.runs[spec["id"]] = Run({**nothing, "state": STARTING, "started_at": now, "updated_at": now, **spec})
        return self.memory.runs[spec["id"]]

    def update(self, run_id: str, **columns: object) -> Run | None:
        run = self.get(run_id)
        if run is None:
            return None
        ended = {"ended_at": self.store.now()} if columns.get("state") == ENDED else {}
        self.memory.runs[run_id] = run.replace(**columns, **ended)
        return self.memory.runs[run_id]

    def ask(self, run_id: str, control: str) -> Run:
        run = self.get(run_id)
        if run is None or run.state == ENDED:
            raise Refused(f"run {run_id} has ended" if run else f"there is no run {run_id}")
        return self.update(run_id, control=control or None) or run

    def get(self, run_id: str) -> Run | None:
        return self.memory.runs.get(run_id)

    def find(self, scope: str, reference: str) -> Run:
        def begins(run: Run) -> bool:
            return run.id.startswith(reference) or (run.task_id or "").startswith(reference)

        exact = [run for run in self._newest_first() if reference in (run.id, run.task_id)]
        found = exact[:1] or [run for run in self._newest_first(scope) if reference and begins(run)]
        if not found or len({run.task_id or run.id for run in found}) > 1:
            raise Refused(f"{reference!r} is no run, or several")
        return found[0]

    def of_task(self, scope: str, task_id: str) -> list[Run]:
        return [run for run in self._newest_first(scope) if run.task_id == task_id]

    def of_session(self, harness: str, session_id: str) -> dict | None:
        kept = (run.session_params for run in self._newest_first() if run.harness == harness)
        return next((params for params in kept if params and params.get("session_id") == session_id), None)

    def _newest_first(self, scope: str = "") -> list[Run]:
        return [run for run in self.memory.runs.values() if scope in ("", run.scope)][::-1]

    def walk(self, scope: str, state: str = "", after: str = "") -> Iterator[tuple[str, Run]]:
        numbers = {name: self.number_of(name) for name in self.memory.runs}
        rows = [run for run in self._newest_first(scope) if state in ("", run.state)]
        return self.behind(after, (int, int), rows, lambda run: [run.started_at, numbers[run.id]], falling=True)

    def count(self, scope: str, state: str = "") -> int:
        return len([run for run in self._newest_first(scope) if state in ("", run.state)])

    def live(self, scope: str = "") -> list[Run]:
        return [run for run in self._newest_first(scope) if run.state != ENDED]

    def of_instance(self, instance_id: str) -> Run | None:
        return next((run for run in self.live() if run.instance_id == instance_id), None)

    def session_of(self, task_id: str, harness: str) -> dict | None:
        for run in [run for run in self._newest_first() if (run.task_id, run.harness) == (task_id, harness)]:
            if run.session_params or (run.result or {}).get("clear_session"):
                return run.session_params
        return None

    def admit(self, instance_id: str, client: tuple[int, str]) -> Run | None:
        run = self.of_instance(instance_id)
        if run is None or not client[0]:
            return run
        known = [(run[f"{who}_pid"], run[f"{who}_start"]) for who in ("supervisor", "child", "client")]
        if client not in known and known[2][0] and not gone(self.store.here, *known[2], self.store.here):
            return None
        return run if client in known else self.update(run.id, client_pid=client[0], client_start=client[1])

    def take_back(self, instance_id: str) -> bool:
        run, row = self.of_instance(instance_id), self.store.instances.get(instance_id)
        if run and row:
            self.memory.sessions[instance_id] = row.replace(runtime=RUN_RUNTIME, session_id=run.id)
            self.update(run.id, client_pid=None, client_start=None)
        return run is not None

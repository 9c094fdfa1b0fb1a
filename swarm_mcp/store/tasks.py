"""Tasks: work that sessions hand to each other, as callers ask for it; and how tasks go on and end.

What else they promise is kept in the modules beside it: ``task_life`` (the life of a task, as a table, and what waits
for what), ``task_reading``, ``task_requests`` and ``task_holders`` (taking one, letting go).

`instance` and `viewer` are sessions, of which ``id``, ``label`` and ``scope`` count. Whatever the rules forbid raises
``Refused``, whose `answer` is ``{"error", ...}``. Messages to others are stored in the change's own transaction and
returned as ``[(recipient id, text)]``, for the caller to wake them with.
"""

from __future__ import annotations

from swarm_mcp.domain.message import SYSTEM
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import UNCHANGED, Task
from swarm_mcp.errors import Refused
from swarm_mcp.store import events, task_holders, task_requests
from swarm_mcp.store import task_life as states
from swarm_mcp.store.known_values import names_entry
from swarm_mcp.store.task_life import TaskParts
from swarm_mcp.store.task_reading import TaskReader, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Tasks(TaskReader):
    """The embedded store's tasks."""

    def __init__(self, parts: TaskParts):
        super().__init__(parts.db)
        self._parts = parts

    # ------------------------------------------------------- request, claim

    def request(self, requester: Session, spec: dict, notify: bool = True) -> dict:
        return task_requests.request(self._parts, requester, spec, notify)

    def request_batch(self, requester: Session, specs: list[dict]) -> dict:
        return task_requests.request_batch(self._parts, requester, specs)

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        return task_holders.claimable(self._parts, instance, limit)

    def claim(self, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
        return task_holders.claim(self._parts, instance, task_id, ignore_unread)

    def claim_next(
        self,
        instance: Session,
        types: list[str] | None = None,
        files: list[str] | None = None,
        ignore_unread: bool = False,
    ) -> dict:
        return task_holders.claim_next(self._parts, instance, types, files, ignore_unread)

    def reserve(self, task_id: str, worker: Session) -> Task:
        return task_holders.reserve(self._parts, task_id, worker)

    def take_back(self, task: Task, prior_status: str) -> None:
        task_holders.take_back(self._parts, task, prior_status)

    # ---------------------------------------------------------------- go on

    def report_progress(
        self,
        actor: Session,
        task_id: str,
        summary: str,
        blocked_reason=UNCHANGED,
        expected_next_update_at=UNCHANGED,
        begun: bool = True,
    ) -> dict:
        given = {"blocked_reason": blocked_reason, "expected_next_update_at": expected_next_update_at}
        changed = {name: value for name, value in given.items() if value is not UNCHANGED}
        due = changed.get("expected_next_update_at")
        if due is not None:
            if abs(due) > task_requests.LARGEST:
                raise Refused("expected_next_update_at is a time in Unix seconds")
            changed["expected_next_update_at"] = int(due)
        with self._db.writing():
            task = self._known(actor, task_id)
            if task.assignee != actor.id:
                raise Refused("Only the assignee can report progress on this task")
            if task.status != states.IN_PROGRESS and (begun or task.status != states.CLAIMED):
                raise Refused(f"Task is {task.status}, not in_progress")
            now = self._db.now()
            progress = {"progress_summary": summary, "progress_updated_at": now}
            progress.update({name: changed.get(name, task[name]) for name in given})
            columns = {**progress, "updated_at": now, "changed_at": states.stamp(self._parts, task.scope)}
            self._db.change(
                f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
                (*columns.values(), task.id),
            )
            payload = {"summary": summary, **progress}
            del payload["progress_summary"]
            events.add(self._db, task.scope, "task.progress", actor.id, task.id, payload)
        return progress

    def approve(self, actor: Session, task_id: str) -> dict:
        parts = self._parts
        with self._db.writing():
            task = self._known(actor, task_id)
            standing = states.dependencies_of(parts, task)
            columns: dict = {}
            if standing.failed:
                target, columns = states.CANCELLED, {"result": states.because_of(standing)}
            else:
                target = states.ready_status(task) if standing.met else states.BLOCKED
            payload = {"status": target, "prior_status": task.status}
            # The contract leaves this event without an actor.
            moved = states.move(parts, task, target, "approve", None, payload, **columns)
            if standing.failed:
                states.release_locks(parts, moved)
                states.cancel_dependents(parts, moved)
            return {"task": moved, "notices": task_requests.tell_approved(parts, actor, moved)}

    # ------------------------------------------------------------------ end

    def end(self, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
        return self._end(actor, task_id, status, result, result, lambda _task: "")

    def complete(self, actor: Session, task_id: str, record: dict, status: str = states.DONE) -> dict:
        import json

        result: dict = {"summary": record["summary"]}
        result["files_changed"] = task_requests.resolved(actor, record.get("files_changed") or [], "files_changed")
        result["tests"] = [
            {name: test[name] for name in ("command", "status", "notes") if test.get(name) is not None}
            for test in record.get("tests") or []
        ]
        tracked = [name for name in ("tracker_update", "tracker_update_skipped") if _says_something(record.get(name))]
        result.update({name: record[name] for name in tracked})
        result["followups"] = list(record.get("followups") or [])
        try:
            text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise Refused("A result holds no NaN and no infinity: they are not JSON") from None
        except RecursionError:
            raise Refused("A result this deeply nested cannot be stored; say it in words") from None

        def complaint(task: Task) -> str:
            if tracked or not _needs_entry(task):
                return ""
            return "Tracker-backed tasks require tracker_update or tracker_update_skipped in complete_task"

        return {**self._end(actor, task_id, status, text, record["summary"], complaint), "result": result}

    def _end(
        self,
        actor: Session,
        task_id: str,
        status: str,
        result: str | None,
        summary: str | None,
        complaint: Callable[[Task], str],
    ) -> dict:
        """Do as `end`, unless there is a `complaint` of the task: what it still lacks, empty for nothing."""
        if status not in states.TERMINAL:
            raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
        parts = self._parts
        known = seen(self._db, actor, task_id)
        keys = states.keys_of(known) if known else []  # outside the transaction
        with self._db.writing():
            task = self._known(actor, task_id)
            why = states.refusal(task, status, "end", actor.id) or complaint(task)
            if why:
                raise Refused(why)
            payload = {"status": status, "prior_status": task.status, "result": result}
            ended = states.move(parts, task, status, "end", actor.id, payload, result=result)
            states.release_locks(parts, ended, keys)
            unblocked = states.settle(parts, ended)
            told = task_requests.tell_ended(parts, actor, ended, summary)
            return {"task": ended, "notices": told, "unblocked": self._tell_unblocked(actor, unblocked)}

    # ------------------------------------------------- for other parts alone

    def release_all(self, session: Session, reason: str) -> None:
        """Inside a transaction: free the tasks of a session that is being removed for `reason`."""
        task_holders.leave(self._parts, session, reason)

    def vacate(self, session: Session) -> None:
        """Inside a transaction: a session works in another scope now, and leaves its tasks of this one behind."""
        task_holders.vacate(self._parts, session)

    def take_in(self, columns: dict, before: Task | None, scope: str, machine: str) -> Task:
        """Inside a transaction: a task as another machine has it; see ``task_life.take_in``."""
        return states.take_in(self._parts, columns, before, scope, machine)

    def lose_key(self, task_id: str, scope: str) -> None:
        """Inside a transaction: an idempotency key is another task's."""
        self._db.change(
            "UPDATE tasks SET idempotency_key = NULL, changed_at = ? WHERE id = ?",
            (states.stamp(self._parts, scope), task_id),
        )

    def settle_vanished(self, scope: str | None = None) -> list[tuple[str, str]]:
        """Inside a transaction: let go of tasks that nothing keeps blocked any more; the notices to assignees.

        For cleanup, right after it has deleted ended tasks (`scope` None: everywhere). It also mends what another
        program has left: dependencies that ended without their dependents hearing of it.
        """
        return self._tell_unblocked(Session(id=SYSTEM), states.settle_vanished(self._parts, scope))

    # -------------------------------------------------------------- innards

    def _known(self, actor: Session, task_id: str) -> Task:
        """Inside a transaction, which `actor` makes: the task. Raises Refused where it may not know of it."""
        self._parts.sessions.require(actor.id)
        task = seen(self._db, actor, task_id)
        if task is None:
            raise Refused("Task not found")
        return task

    def _tell_unblocked(self, actor: Session, tasks: list[Task]) -> list[tuple[str, str]]:
        return task_requests.tell_unblocked(self._parts, actor, tasks)


def _needs_entry(task: Task) -> bool:
    """Tell whether a task belongs to an entry of a work tracker, which its end has to account for."""
    return bool(task.tracker_required) or any(
        names_entry(task[name]) for name in ("idempotency_key", "title", "description")
    )


def _says_something(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)

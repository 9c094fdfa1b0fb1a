"""How tasks go on and end: progress, approval, completion."""

from __future__ import annotations

from swarm_mcp.domain.message import SYSTEM
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import UNCHANGED, Task
from swarm_mcp.errors import Refused
from swarm_mcp.store import events
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_notices as notices
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.known_values import names_entry
from swarm_mcp.store.task_life import TaskParts
from swarm_mcp.store.task_requests import LARGEST, resolved


def end(parts: TaskParts, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
    """Take a task to done, failed or cancelled: ``{task, notices, unblocked}``.

    `notices` are for the requester, `unblocked` for assignees whose tasks may begin now; both
    ``[(recipient id, text)]``. Raises Refused.
    """
    return _end(parts, actor, task_id, status, result, result, _no_complaint)


def complete(parts: TaskParts, actor: Session, task_id: str, record: dict, status: str = states.DONE) -> dict:
    """`end` with a structured result: ``{task, result, notices, unblocked}``.

    `record` has the arguments of ``complete_task``. A task that names an entry of a work tracker
    ends only with word of what became of that entry.
    """
    import json

    result: dict = {"summary": record["summary"]}
    result["files_changed"] = resolved(actor, record.get("files_changed") or [], "files_changed")
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

    def complaint(task: dict) -> str:
        if tracked or not needs_entry(task):
            return ""
        return "Tracker-backed tasks require tracker_update or tracker_update_skipped in complete_task"

    return {**_end(parts, actor, task_id, status, text, record["summary"], complaint), "result": result}


def report_progress(
    parts: TaskParts, actor: Session, task_id: str, summary: str, blocked_reason=UNCHANGED,
    expected_next_update_at=UNCHANGED, begun: bool = True,
) -> dict:  # fmt: skip
    """Say how far a task is: its progress columns. What is left out stays as it was, None clears it.

    Without `begun` also of a task that its assignee has yet to begin: why it does not.
    """
    given = {"blocked_reason": blocked_reason, "expected_next_update_at": expected_next_update_at}
    changed = {name: value for name, value in given.items() if value is not UNCHANGED}
    due = changed.get("expected_next_update_at")
    if due is not None:
        if abs(due) > LARGEST:
            raise Refused("expected_next_update_at is a time in Unix seconds")
        changed["expected_next_update_at"] = int(due)
    with parts.db.writing():
        parts.sessions.require(actor["id"])
        task = _seen(parts, actor, task_id)
        if task["assignee"] != actor["id"]:
            raise Refused("Only the assignee can report progress on this task")
        if task["status"] != states.IN_PROGRESS and (begun or task["status"] != states.CLAIMED):
            raise Refused(f"Task is {task['status']}, not in_progress")
        now = parts.db.now()
        progress = {"progress_summary": summary, "progress_updated_at": now}
        progress.update({name: changed.get(name, task[name]) for name in given})
        columns = {**progress, "updated_at": now, "changed_at": states.stamp(parts, task["scope"])}
        parts.db.change(
            f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
            (*columns.values(), task["id"]),
        )
        payload = {"summary": summary, **progress}
        del payload["progress_summary"]
        events.add(parts.db, task["scope"], "task.progress", actor["id"], task["id"], payload)
    return progress


def approve(parts: TaskParts, actor: Session, task_id: str) -> dict:
    """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""
    with parts.db.writing():
        parts.sessions.require(actor["id"])
        task = _seen(parts, actor, task_id)
        standing = states.dependencies_of(parts, task)
        columns: dict = {}
        if standing.failed:
            target, columns = states.CANCELLED, {"result": states.because_of(standing)}
        else:
            target = states.ready_status(task) if standing.met else states.BLOCKED
        payload = {"status": target, "prior_status": task["status"]}
        # The contract leaves this event without an actor.
        moved = states.move(parts, task, target, "approve", None, payload, **columns)
        if standing.failed:
            states.release_locks(parts, moved)
            states.cancel_dependents(parts, moved)
        return {"task": moved, "notices": notices.approved(parts, actor, moved)}


def settle_vanished(parts: TaskParts, scope: str | None) -> list[tuple[str, str]]:
    """Inside a transaction: let go of tasks whose dependencies are done or deleted; the notices to assignees."""
    unblocked = states.settle_vanished(parts, scope)
    return notices.unblocked(parts, Session(id=SYSTEM), unblocked)


def needs_entry(task: dict) -> bool:
    """Whether the task belongs to an entry of a work tracker, which its end has to account for."""
    return bool(task["tracker_required"]) or any(
        names_entry(task[name]) for name in ("idempotency_key", "title", "description")
    )


def _end(
    parts: TaskParts, actor: Session, task_id: str, status: str, result: str | None, summary: str | None, complaint
) -> dict:
    if status not in states.TERMINAL:
        raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
    known = rows.seen(parts.db, actor, task_id)
    keys = states.keys_of(known) if known else []  # outside the transaction
    with parts.db.writing():
        parts.sessions.require(actor["id"])
        task = _seen(parts, actor, task_id)
        why = states.refusal(task, status, "end", actor["id"]) or complaint(task)
        if why:
            raise Refused(why)
        payload = {"status": status, "prior_status": task["status"], "result": result}
        ended = states.move(parts, task, status, "end", actor["id"], payload, result=result)
        states.release_locks(parts, ended, keys)
        unblocked = states.settle(parts, ended)
        told = notices.ended(parts, actor, ended, summary)
        return {"task": ended, "notices": told, "unblocked": notices.unblocked(parts, actor, unblocked)}


def _seen(parts: TaskParts, actor: Session, task_id: str) -> Task:
    task = rows.seen(parts.db, actor, task_id)
    if task is None:
        raise Refused("Task not found")
    return task


def _says_something(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _no_complaint(_task: dict) -> str:
    return ""

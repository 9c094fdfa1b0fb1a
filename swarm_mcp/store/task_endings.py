"""How tasks go on and end: progress, approval, completion."""

from __future__ import annotations

from swarm_mcp.domain.task import UNCHANGED
from swarm_mcp.errors import Refused
from swarm_mcp.store import events
from swarm_mcp.store import task_dependencies as dependencies
from swarm_mcp.store import task_locks as locks
from swarm_mcp.store import task_notices as notices
from swarm_mcp.store import task_rows as rows
from swarm_mcp.store import task_states as states
from swarm_mcp.store.task_requests import LARGEST, resolved
from swarm_mcp.store.tracker_links import names_entry


def end(store, actor: dict, task_id: str, status: str, result: str | None = None) -> dict:
    """Take a task to done, failed or cancelled: ``{task, notices, unblocked}``.

    `notices` are for the requester, `unblocked` for assignees whose tasks may begin now; both
    ``[(recipient id, text)]``. Raises Refused.
    """
    return _end(store, actor, task_id, status, result, result, _no_complaint)


def complete(store, actor: dict, task_id: str, record: dict, status: str = states.DONE) -> dict:
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

    return {**_end(store, actor, task_id, status, text, record["summary"], complaint), "result": result}


def report_progress(
    store, actor: dict, task_id: str, summary: str, blocked_reason=UNCHANGED, expected_next_update_at=UNCHANGED,
    begun: bool = True,
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
    with store.writing():
        store.instances.require(actor["id"])
        task = _seen(store, actor, task_id)
        if task["assignee"] != actor["id"]:
            raise Refused("Only the assignee can report progress on this task")
        if task["status"] != states.IN_PROGRESS and (begun or task["status"] != states.CLAIMED):
            raise Refused(f"Task is {task['status']}, not in_progress")
        now = store.now()
        progress = {"progress_summary": summary, "progress_updated_at": now}
        progress.update({name: changed.get(name, task[name]) for name in given})
        columns = {**progress, "updated_at": now, "changed_at": states.stamp(store, task["scope"])}
        store.change(
            f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
            (*columns.values(), task["id"]),
        )
        payload = {"summary": summary, **progress}
        del payload["progress_summary"]
        events.add(store, task["scope"], "task.progress", actor["id"], task["id"], payload)
    return progress


def approve(store, actor: dict, task_id: str) -> dict:
    """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""
    with store.writing():
        store.instances.require(actor["id"])
        task = _seen(store, actor, task_id)
        standing = dependencies.standing(store, task)
        columns = {}
        if standing.failed:
            target, columns = states.CANCELLED, {"result": dependencies.because_of(standing)}
        else:
            target = dependencies.ready_status(task) if standing.met else states.BLOCKED
        payload = {"status": target, "prior_status": task["status"]}
        # The contract leaves this event without an actor.
        moved = states.move(store, task, target, "approve", None, payload, **columns)
        if standing.failed:
            locks.release(store, moved)
            dependencies.cancel_dependents(store, moved)
        return {"task": moved, "notices": notices.approved(store, actor, moved)}


def settle_vanished(store, scope: str | None) -> list[tuple[str, str]]:
    """Inside a transaction: let go of tasks whose dependencies are done or deleted; the notices to assignees."""
    unblocked = dependencies.settle_vanished(store, scope)
    return notices.unblocked(store, {"id": dependencies.SYSTEM}, unblocked)


def needs_entry(task: dict) -> bool:
    """Whether the task belongs to an entry of a work tracker, which its end has to account for."""
    return bool(task["tracker_required"]) or any(
        names_entry(task[name]) for name in ("idempotency_key", "title", "description")
    )


def _end(store, actor: dict, task_id: str, status: str, result: str | None, summary: str | None, complaint) -> dict:
    if status not in states.TERMINAL:
        raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
    known = rows.seen(store, actor, task_id)
    keys = locks.keys_of(known) if known else []  # outside the transaction
    with store.writing():
        store.instances.require(actor["id"])
        task = _seen(store, actor, task_id)
        why = states.refusal(task, status, "end", actor["id"]) or complaint(task)
        if why:
            raise Refused(why)
        payload = {"status": status, "prior_status": task["status"], "result": result}
        ended = states.move(store, task, status, "end", actor["id"], payload, result=result)
        locks.release(store, ended, keys)
        unblocked = dependencies.settle(store, ended)
        told = notices.ended(store, actor, ended, summary)
        return {"task": ended, "notices": told, "unblocked": notices.unblocked(store, actor, unblocked)}


def _seen(store, actor: dict, task_id: str) -> dict:
    task = rows.seen(store, actor, task_id)
    if task is None:
        raise Refused("Task not found")
    return task


def _says_something(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _no_complaint(_task: dict) -> str:
    return ""

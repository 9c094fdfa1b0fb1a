"""Tasks under way: progress, questions to a person, approval, ends, and the effects of an end.

Beside it: ``task_life`` (the table of status changes), ``task_reading`` and ``task_requests``.

`instance` and `viewer` are sessions; only ``id``, ``label`` and ``variables`` count. A breach of the rules raises
``Refused``, whose `answer` is ``{"error", ...}``. Messages to others are stored in the change's own transaction and
returned as ``[(recipient id, text)]``, for the caller to wake them with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarm_hook_core.untrusted_text import quoted
from swarm_mcp.domain import (
    BLOCKED,
    CANCELLED,
    CLAIMED,
    DONE,
    IN_PROGRESS,
    SYSTEM,
    TERMINAL,
    UNCHANGED,
    WAITS,
    Lock,
    Question,
    Session,
    Task,
)
from swarm_mcp.errors import Refused
from swarm_mcp.store import reactions, task_life, task_reading, task_requests
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.values import names_entry


def report_progress(
    db: Database,
    actor: Session,
    task_id: str,
    summary: str,
    blocked_reason: Any = UNCHANGED,
    expected_next_update_at: Any = UNCHANGED,
    begun: bool = True,
) -> dict[str, Any]:
    """Say how far a task is; return its four progress columns. An omitted column stays, None clears it."""
    given = {"blocked_reason": blocked_reason, "expected_next_update_at": expected_next_update_at}
    changed = {name: value for name, value in given.items() if value is not UNCHANGED}
    due = changed.get("expected_next_update_at")
    if due is not None:
        if abs(due) > task_requests.LARGEST:
            raise Refused("expected_next_update_at is a time in Unix seconds")
        changed["expected_next_update_at"] = int(due)
    with db.writing() as tx:
        task = known(tx, actor, task_id)
        if task.assignee != actor.id:
            raise Refused("Only the assignee can report progress on this task")
        if task.status != IN_PROGRESS and (begun or task.status != CLAIMED):
            raise Refused(f"Task is {task.status}, not in_progress")
        now = tx.now()
        progress = {"progress_summary": summary, "progress_updated_at": now}
        progress.update({name: changed.get(name, task[name]) for name in given})
        columns = {**progress, "updated_at": now, "changed_at": task_life.stamp(tx, task.scope)}
        tx.change(
            f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
            (*columns.values(), task.id),
        )
        payload = {"summary": summary, **progress}
        del payload["progress_summary"]
        tx.add_event(task.scope, "task.progress", actor.id, task.id, payload)
    return progress


def approve(db: Database, actor: Session, task_id: str) -> dict[str, Any]:
    """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""
    with db.writing() as tx:
        task = known(tx, actor, task_id)
        standing = task_life.dependencies_of(tx, task)
        columns: dict[str, Any] = {}
        if standing.failed:
            target, columns = CANCELLED, {"result": task_life.because_of(standing)}
        elif standing.met:
            target = task_life.ready_status(task)
        else:
            target = BLOCKED
        payload = {"status": target, "prior_status": task.status}
        # The contract leaves this event without an actor.
        moved = task_life.move(tx, task, target, "approve", None, payload, **columns)
        if standing.failed:
            release_locks(tx, moved)
            cancel_dependents(tx, moved)
        return {"task": moved, "notices": task_life.tell_approved(tx, actor, moved)}


def approval_of(db: Database, task: Task) -> int | None:
    """Return the number of the event of the task's approval; None if it needed none, or was approved a day ago."""
    sql = "SELECT id FROM events WHERE scope = ? AND type = 'task.approved' AND subject = ? ORDER BY id DESC LIMIT 1"
    return next((row.id for row in db.rows(sql, (task.scope, task.id))), None)


def end(db: Database, actor: Session, task_id: str, status: str, result: str | None = None) -> dict[str, Any]:
    """Done, failed or cancelled: ``{task, notices, unblocked}``."""
    return _end(db, actor, task_id, status, result, result, lambda _task: "")


def complete(db: Database, actor: Session, task_id: str, record: dict[str, Any], status: str = DONE) -> dict[str, Any]:
    """Do as `end`, with a structured result from the arguments of ``complete_task``: also as ``result``.

    A task that names an entry of a work tracker ends only with an account of that entry.
    """
    import json

    result: dict[str, Any] = {"summary": record["summary"]}
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

    return {**_end(db, actor, task_id, status, text, record["summary"], complaint), "result": result}


def _end(
    db: Database,
    actor: Session,
    task_id: str,
    status: str,
    result: str | None,
    summary: str | None,
    complaint: Callable[[Task], str],
) -> dict[str, Any]:
    """Do as `end`, unless there is a `complaint` of the task: a missing part of its end, empty without one."""
    if status not in TERMINAL:
        raise Refused(f"A task ends as done, failed or cancelled, not as {status}")
    before = task_reading.seen(db, actor, task_id)
    keys = task_life.keys_of(before) if before else []  # outside the transaction
    with db.writing() as tx:
        task = known(tx, actor, task_id)
        why = task_life.refusal(task, status, "end", actor.id) or complaint(task)
        if why:
            raise Refused(why)
        payload = {"status": status, "prior_status": task.status, "result": result}
        ended = task_life.move(tx, task, status, "end", actor.id, payload, result=result)
        release_locks(tx, ended, keys)
        unblocked = settle(tx, ended)
        told = task_life.tell_ended(tx, actor, ended, summary)
        return {"task": ended, "notices": told, "unblocked": task_life.tell_unblocked(tx, actor, unblocked)}


def lose_key(tx: Transaction, task_id: str, scope: str) -> None:
    """Inside a transaction: an idempotency key is another task's."""
    tx.change(
        "UPDATE tasks SET idempotency_key = NULL, changed_at = ? WHERE id = ?",
        (task_life.stamp(tx, scope), task_id),
    )


def settle_vanished(tx: Transaction, scope: str | None = None) -> list[tuple[str, str]]:
    """Inside a transaction: let go of tasks that nothing keeps blocked any more; return the notices to assignees.

    For cleanup, right after it has deleted ended tasks (`scope` None: everywhere). It also mends tasks that another
    program has left blocked after their dependencies ended.
    """
    return task_life.tell_unblocked(tx, Session(id=SYSTEM), resume_all(tx, scope))


def known(tx: Transaction, actor: Session, task_id: str) -> Task:
    """Inside a transaction of `actor`: return the task. Raises Refused if the actor may not know of it."""
    reactions.require(tx, actor.id)
    task = task_reading.seen(tx, actor, task_id)
    if task is None:
        raise Refused("Task not found")
    return task


def _needs_entry(task: Task) -> bool:
    """Return True if a task belongs to an entry of a work tracker, which its end has to account for."""
    return bool(task.tracker_required) or any(
        names_entry(task[name]) for name in ("idempotency_key", "title", "description")
    )


def _says_something(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def release_locks(tx: Transaction, task: Task, keys: list[str] | None = None) -> None:
    """Inside a transaction: release the assignee's locks with the task's tag, and untagged ones on its files.

    `keys` as `keys_of` gives them; without them they are found here, if there may be such a lock.
    """
    if not task.assignee:
        return
    held = "FROM context WHERE type = 'lock' AND instance_id = ?"
    if keys is None:
        untagged = tx.row(f"SELECT 1 {held} AND task_id IS NULL LIMIT 1", (task.assignee,))
        if untagged:
            keys = task_life.keys_of(task)
        else:
            keys = []
    found = tx.rows(
        f"SELECT id, instance_id, scope, file, path_key, task_id {held}"
        f" AND (task_id = ? OR task_id IS NULL AND (file IN {task_reading.AMONG} OR path_key IN {task_reading.AMONG}))",
        (task.assignee, task.id, task_life.as_json(task.files or []), task_life.as_json(keys)),
        Lock,
    )
    reactions.end_locks(tx, found, "task_terminal", task_id=task.id)


def settle(tx: Transaction, ended: Task) -> list[Task]:
    """Inside a transaction: apply the end of a task to its dependents; return those that may begin now."""
    if ended.status == DONE:
        return _resume(tx, task_life.dependents(tx, ended), ended.id)
    cancel_dependents(tx, ended)
    return []


def cancel_dependents(tx: Transaction, ended: Task) -> None:
    """Inside a transaction: cancel all dependents of a task that came to nothing, however far down."""
    if not task_life.dependents(tx, ended):  # found far sooner
        return
    reached = [row.id for row in tx.rows(task_life.REACHED, (ended.scope, ended.id))]
    tasks = {
        task.id: task for task in task_reading.find(tx, f"id IN {task_reading.AMONG}", (task_life.as_json(reached),))
    }
    over = {ended.id: ended.status}
    for task_id in reached[1:]:  # each behind the one by which it was reached
        cause = next((one for one in tasks[task_id].depends_on or () if one in over), "")
        if cause:  # else it is no list that another program left there
            over[task_id] = _cancel(tx, tasks[task_id], task_life.Dependencies(False, cause, over[cause])).status


def resume_all(tx: Transaction, scope: str | None) -> list[Task]:
    """Inside a transaction: let go of tasks that nothing keeps blocked any more; those that may begin now.

    That is where dependencies have been deleted, or ended while another program forgot to look.
    """
    condition, values = ("tasks.scope = ? AND ", [scope]) if scope is not None else ("", [])
    dependency = f"FROM {task_life.NEEDED} needed JOIN tasks other ON other.id = needed.value WHERE other.status"
    due = task_reading.find(
        tx,
        f"{condition}{task_life.WAITING} AND status = '{BLOCKED}' AND (NOT EXISTS (SELECT 1 {dependency} <> 'done')"
        f" OR EXISTS (SELECT 1 {dependency} IN ('failed', 'cancelled'))) AND {task_reading.SOUND}"
        f" ORDER BY {task_reading.ORDER}",
        values,
    )
    return _resume(tx, due, "")


def _resume(tx: Transaction, tasks: list[Task], trigger: str) -> list[Task]:
    resumed = []
    for task in tasks:
        now = task_life.dependencies_of(tx, task)
        if now.failed:
            # Another program let it fail and left its dependents alone; or it was cancelled just above.
            found = task_reading.get(tx, task.scope, task.id)
            if found and found.status not in TERMINAL:
                cancel_dependents(tx, _cancel(tx, task, now))
        elif now.met and task.status == BLOCKED:
            target = task_life.ready_status(task)
            payload = {"trigger": trigger or now.gone or (task.depends_on or [""])[-1], "status": target}
            payload["prior_status"] = task.status
            resumed.append(task_life.move(tx, task, target, "unblock", SYSTEM, payload))
    return resumed


def _cancel(tx: Transaction, task: Task, cause: task_life.Dependencies) -> Task:
    result = task_life.because_of(cause)
    payload = {"trigger": cause.failed, "reason": "dependency_failed", "result": result}
    payload.update(prior_status=task.status, dependency_status=cause.status)
    moved = task_life.move(tx, task, CANCELLED, "cascade", SYSTEM, payload, result=result)
    release_locks(tx, moved)
    return moved


def take_in(tx: Transaction, columns: dict[str, Any], before: Task | None, scope: str, machine: str) -> Task:
    """Inside a transaction: store a task as another machine has it, after the same table; `before`: as it was here.

    `columns`: all but `scope` and `changed_at`. The end of a task ends the locks of its assignee for it.
    """
    kind = "task.created"
    if before:
        kind, scope = "task.updated", before.scope
    task = Task({**columns, "scope": scope, "changed_at": task_life.stamp(tx, scope)})
    values = [task_life.as_json(value) if isinstance(value, list) else value for value in task.values()]
    if before is None:
        tx.change(f"INSERT INTO tasks ({', '.join(task)}) VALUES ({', '.join('?' * len(task))})", values)
    else:
        columns_set = ", ".join(f"{name} = ?" for name in task)
        tx.change(f"UPDATE tasks SET {columns_set} WHERE id = ?", (*values, task.id))
    payload = {"status": task.status, "prior_status": before.status if before else None, "machine": machine}
    tx.add_event(scope, kind, SYSTEM, task.id, payload)
    if before is not None and task.status in TERMINAL and before.status not in TERMINAL:
        release_locks(tx, before)
    return task


# Questions of workers to a person: they and their answers are kept as long as their tasks.
#
# They stay on this machine: a team shares the task, whose ``blocked_reason`` has the question, but not the answer.

LONGEST = 10_000  # characters of a question, or of an answer
_COLUMNS = ", ".join(Question.__annotations__)


def ask(db: Database, actor: Session, task_id: str, text: str) -> tuple[Question, list[tuple[str, str]]]:
    """Ask a person about the task of `actor`; return the question, and the notice to the task's requester.

    The same text again is the same question, answered or not. Raises Refused while another one is not answered.
    """
    text = _checked(text, "question")
    with db.writing() as tx:
        task = known(tx, actor, task_id)
        if task.assignee != actor.id:
            raise Refused("Only the assignee can ask about this task")
        if task.status != IN_PROGRESS:
            raise Refused(f"Task is {task.status}, not in_progress")
        before = of_task(tx, task.id)
        for one in before:
            if one.question == text:
                return one, []
            if one.answer is None:
                raise Refused(f"Your question {quoted(one.question)} is not answered yet: ask one at a time")
        tx.change(
            "INSERT INTO swarm_questions (task_id, asked_by, question, asked_at) VALUES (?, ?, ?, ?)",
            (task.id, actor.id, text, tx.now()),
        )
        _block(tx, task, "asks a person", WAITS + text, actor.id)
        return of_task(tx, task.id)[-1], task_life.tell_asked(tx, actor, task, text)


def answer(db: Database, actor: Session, task_id: str, text: str) -> Question:
    """Give a person's answer to the open question of a task; return it. Raises Refused without an open question."""
    text = _checked(text, "answer")
    with db.writing() as tx:
        task = task_reading.seen(tx, actor, task_id)
        if task is None:
            raise Refused("Task not found")
        if task.status in TERMINAL:
            raise Refused(f"Task is {task.status}: nobody waits for the answer")
        asked = open_of(tx, task.id)
        if asked is None:
            raise Refused("Task waits for no answer")
        now = tx.now()
        tx.change("UPDATE swarm_questions SET answer = ?, answered_at = ? WHERE id = ?", (text, now, asked.id))
        _block(tx, task, "a person has answered", None, actor.id)
        return asked.replace(answer=text, answered_at=now)


def of_task(db: Database | Transaction, task_id: str) -> list[Question]:
    """Return the questions about a task, the oldest first."""
    return db.rows(f"SELECT {_COLUMNS} FROM swarm_questions WHERE task_id = ? ORDER BY id", (task_id,), Question)


def open_of(db: Database | Transaction, task_id: str) -> Question | None:
    """Return the question about a task that is not answered, or None."""
    return next((one for one in of_task(db, task_id) if one.answer is None), None)


def untold(db: Database | Transaction, task_id: str) -> list[Question]:
    """Return the questions about a task whose answer its worker does not know."""
    return [one for one in of_task(db, task_id) if one.told_at is None]


def told(tx: Transaction, ids: list[int]) -> None:
    """Inside a transaction: note that the worker knows the answers to these questions."""
    for one in ids:
        tx.change(
            "UPDATE swarm_questions SET told_at = ? WHERE id = ? AND answer IS NOT NULL AND told_at IS NULL",
            (tx.now(), one),
        )


def waiting(db: Database | Transaction, viewer: Session) -> list[tuple[Task, Question]]:
    """Return the unfinished tasks of `viewer`'s scope that wait for an answer, in the order of the questions."""
    found = []
    for row in db.rows(f"SELECT {_COLUMNS} FROM swarm_questions WHERE answer IS NULL ORDER BY id", (), Question):
        task = task_reading.seen(db, viewer, row.task_id)
        if task and task.status not in TERMINAL:
            found.append((task, row))
    return found


def _checked(text: str, what: str) -> str:
    text = text.strip()
    if not text:
        raise Refused(f"the {what} is empty")
    if len(text) > LONGEST:
        raise Refused(f"the {what} has {len(text)} characters, more than {LONGEST}")
    return text


def _block(tx: Transaction, task: Task, summary: str, reason: str | None, actor: str) -> None:
    """Inside a transaction: say why a task is blocked, or that it is not any more."""
    now = tx.now()
    if reason is None and not (task.blocked_reason or "").startswith(WAITS):
        reason = task.blocked_reason  # the worker's own
    tx.change(
        "UPDATE tasks SET blocked_reason = ?, updated_at = ?, changed_at = ? WHERE id = ?",
        (reason, now, task_life.stamp(tx, task.scope), task.id),
    )
    payload = {"summary": summary, "progress_updated_at": task.progress_updated_at, "blocked_reason": reason}
    payload["expected_next_update_at"] = task.expected_next_update_at
    tx.add_event(task.scope, "task.progress", actor, task.id, payload)

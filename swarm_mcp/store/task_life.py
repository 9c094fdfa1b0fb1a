"""The life of a task: which status may follow which, by whose hand, and what the end of one means for others.

Nothing else in this package writes ``tasks.status``. Modules of their own decide whether something is
due (requests, holders, endings); what they then do is a row of `TRANSITIONS`.

A dependency that has been deleted counts as done: ended tasks are kept for a day only, and those that
failed have cancelled their dependents long before. A task names only tasks that were there before it,
so there are no circles; chains may be long, so nothing here calls itself.
"""

from __future__ import annotations

from swarm_hook_core.json_text import quote
from swarm_hook_core.paths import key_of
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.message import SYSTEM
from swarm_mcp.domain.task import (
    APPROVAL_REQUIRED,
    BLOCKED,
    CANCELLED,
    CLAIMED,
    DONE,
    FAILED,
    IN_PROGRESS,
    OPEN,
    TERMINAL,
    Task,
)  # fmt: skip
from swarm_mcp.errors import Refused
from swarm_mcp.store import events
from swarm_mcp.store import task_reading as rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.session_table import SessionTable
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

NEW = ""  # before there is a row
AHEAD_MS = 86_400_000  # how far another program's clock may be ahead of this one

# Who may do it.
ANYONE = "anyone"  # who may see the task at all
ASSIGNEE = "assignee"
PARTY = "requester or assignee"
STORE = "store"  # follows from something else that happened

# Status before, status after, who, how.
TRANSITIONS = (
    (NEW, OPEN, ANYONE, "request"),  # nothing to wait for, nobody named
    (NEW, CLAIMED, ANYONE, "request"),  # nothing to wait for, an assignee named
    (NEW, BLOCKED, ANYONE, "request"),  # waits for other tasks
    (NEW, APPROVAL_REQUIRED, ANYONE, "request"),
    (NEW, CANCELLED, ANYONE, "request"),  # a task it depends on has failed already
    (OPEN, IN_PROGRESS, ANYONE, "claim"),
    (CLAIMED, IN_PROGRESS, ASSIGNEE, "claim"),
    (OPEN, CLAIMED, STORE, "reserve"),  # for a worker that has just been started
    (APPROVAL_REQUIRED, OPEN, ANYONE, "approve"),
    (APPROVAL_REQUIRED, CLAIMED, ANYONE, "approve"),
    (APPROVAL_REQUIRED, BLOCKED, ANYONE, "approve"),
    (APPROVAL_REQUIRED, CANCELLED, ANYONE, "approve"),  # a task it depends on has failed meanwhile
    (BLOCKED, OPEN, STORE, "unblock"),
    (BLOCKED, CLAIMED, STORE, "unblock"),
    (BLOCKED, CANCELLED, STORE, "cascade"),
    (APPROVAL_REQUIRED, CANCELLED, STORE, "cascade"),
    (CLAIMED, DONE, ASSIGNEE, "end"),
    (CLAIMED, FAILED, ASSIGNEE, "end"),
    (IN_PROGRESS, DONE, ASSIGNEE, "end"),
    (IN_PROGRESS, FAILED, ASSIGNEE, "end"),
    (OPEN, CANCELLED, PARTY, "end"),
    (CLAIMED, CANCELLED, PARTY, "end"),
    (IN_PROGRESS, CANCELLED, PARTY, "end"),
    (BLOCKED, CANCELLED, PARTY, "end"),
    (APPROVAL_REQUIRED, CANCELLED, PARTY, "end"),
    (CLAIMED, OPEN, STORE, "release"),  # its session has gone
    (IN_PROGRESS, OPEN, STORE, "release"),
    (IN_PROGRESS, OPEN, STORE, "take back"),  # nobody could tell whether another machine has claimed it
    (IN_PROGRESS, CLAIMED, STORE, "take back"),
    (CLAIMED, OPEN, STORE, "take back"),
)

_WHO = {(before, after, how): who for before, after, who, how in TRANSITIONS}
# The event of each kind of transition.
_EVENTS = {
    "request": "task.created",
    "claim": "task.claimed",
    "reserve": "task.reserved",
    "approve": "task.approved",
    "unblock": "task.cascade.unblocked",
    "cascade": "task.cascade.cancelled",
    "end": "task.updated",
    "release": "task.updated",
    "take back": "task.updated",
}
_PROGRESS = ("progress_summary", "progress_updated_at", "blocked_reason", "expected_next_update_at")


class TaskParts(NamedTuple):
    """What changing a task takes of the rest of the store."""

    db: Database
    sessions: SessionTable
    messages: Messages
    locks: LockEndings
    signals: Signals


def refusal(task: Task, target: str, how: str, actor: str | None) -> str:
    """Return why `actor` (an instance id, None for the store itself) may not do that; empty where it may."""
    status = task.status
    who = _WHO.get((status, target, how))
    if who is None:
        return _impossible(task, target, how)
    if who == ASSIGNEE and task.assignee != actor:
        if how == "claim":
            return "Task is assigned to another session"
        return f"Only the assignee can mark this task {target}"
    if who == PARTY and actor not in (task.requester, task.assignee):
        return "Only the requester or the assignee can cancel this task"
    return ""


def create(parts: TaskParts, task: dict, actor: str, payload: dict) -> None:
    """Inside a transaction: add a row (`task` has every column, lists as lists) and its event."""
    if (NEW, task["status"], "request") not in _WHO:
        raise AssertionError(f"no task begins as {task['status']}")
    task.update(updated_at=task["created_at"], changed_at=stamp(parts, task["scope"]))
    values = [as_json(value) if isinstance(value, list) else value for value in task.values()]
    parts.db.change(f"INSERT INTO tasks ({', '.join(task)}) VALUES ({', '.join('?' * len(task))})", values)
    events.add(parts.db, task["scope"], _EVENTS["request"], actor, task["id"], payload)


def move(parts: TaskParts, task: Task, target: str, how: str, actor: str | None, payload: dict, **columns) -> Task:
    """Inside a transaction: take `task`, as just read, to `target`, with its event; the task as it is then.

    `columns` change with the status. `actor` may be ``system`` for what the store itself does. Raises
    Refused where the table does not allow it.
    """
    why = refusal(task, target, how, actor)
    if why:
        raise Refused(why)
    changed = {"status": target, **columns}
    if target in TERMINAL:
        changed.update(dict.fromkeys(_PROGRESS))
    changed.update(updated_at=parts.db.now(), changed_at=stamp(parts, task.scope))
    moved = parts.db.change(
        f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in changed)}"
        " WHERE id = ? AND status = ? AND assignee IS ?",
        (*changed.values(), task.id, task.status, task.assignee),
    )
    if moved != 1:  # read before this transaction began
        raise Refused("Task was changed by another session just now; look at it again")
    events.add(parts.db, task.scope, _EVENTS[how], actor, task.id, payload)
    return task.replace(**changed)


def take_in(parts: TaskParts, columns: dict, before: Task | None, scope: str, machine: str) -> Task:
    """Inside a transaction: a task as another machine has it, which followed the same table; `before`: as it was here.

    `columns`: all but `scope` and `changed_at`. One that ends takes the locks of its assignee along.
    """
    scope = before.scope if before else scope
    task = Task({**columns, "scope": scope, "changed_at": stamp(parts, scope)})
    values = [as_json(value) if isinstance(value, list) else value for value in task.values()]
    if before is None:
        parts.db.change(f"INSERT INTO tasks ({', '.join(task)}) VALUES ({', '.join('?' * len(task))})", values)
    else:
        columns_set = ", ".join(f"{name} = ?" for name in task)
        parts.db.change(f"UPDATE tasks SET {columns_set} WHERE id = ?", (*values, task.id))
    kind = "task.updated" if before else "task.created"
    payload = {"status": task.status, "prior_status": before.status if before else None, "machine": machine}
    events.add(parts.db, scope, kind, SYSTEM, task.id, payload)
    if before is not None and task.status in TERMINAL and before.status not in TERMINAL:
        release_locks(parts, before)
    return task


def stamp(parts: TaskParts, scope: str) -> int:
    """Inside a transaction: a ``changed_at`` in ms later than any in `scope`, so that nobody who waits misses it.

    A time more than a day ahead is another program's fault, and not counted from: the column could not grow on.
    """
    now = parts.db.now_ms()
    condition, values = "scope = ? AND changed_at <= ?", (scope, now + AHEAD_MS)
    row = parts.db.row(f"SELECT max(changed_at) AS latest FROM tasks WHERE {condition}", values)
    latest = row and row.get("latest")
    return max(now, int(latest) + 1 if isinstance(latest, (int, float)) else 0)


def as_json(texts: list[str]) -> str:
    """Return a list as JSON text, for a column or for ``json_each(?)``: variables are few, 32 766 in some SQLites."""
    return f"[{','.join(map(quote, texts))}]"


def _impossible(task: Task, target: str, how: str) -> str:
    status = task.status
    if how == "approve":
        return f"Task is {status}, not approval_required"
    if status in TERMINAL or status == target:
        return f"Task is already {status}"
    if status == BLOCKED:
        waits = ", ".join(task.depends_on or ())
        return f"Task is blocked: it waits for {waits or 'other tasks'}"
    if status == APPROVAL_REQUIRED:
        return "Task waits for approval: approve_task"
    if status == OPEN and how == "end":
        return f"Task is open and must be claimed before it can be {target}"
    return f"Task is {status} and cannot become {target} by {how}"


# ------------------------------------------------------------ locks


def keys_of(task: Task) -> list[str]:
    """Return by what names its declared files may be locked. Asks the file system, which may be slow."""
    return [key_of(file) for file in task.files or ()]


def release_locks(parts: TaskParts, task: Task, keys: list[str] | None = None) -> None:
    """Inside a transaction: free what the assignee locked by the task's tag, or untagged on one of its files.

    `keys` as `keys_of` gives them; without them they are found here, where such a lock may be.
    """
    if not task.assignee:
        return
    held = "FROM context WHERE type = 'lock' AND instance_id = ?"
    if keys is None:
        untagged = parts.db.row(f"SELECT 1 {held} AND task_id IS NULL LIMIT 1", (task.assignee,))
        keys = keys_of(task) if untagged else []
    found = parts.db.rows(
        f"SELECT id, instance_id, scope, file, path_key, task_id {held}"
        f" AND (task_id = ? OR task_id IS NULL AND (file IN {rows.AMONG} OR path_key IN {rows.AMONG}))",
        (task.assignee, task.id, as_json(task.files or []), as_json(keys)),
        Lock,
    )
    parts.locks.drop(found, "task_terminal", task_id=task.id)


# ----------------------------------------------------- dependencies


_NAMES = rows.ITEMS.format("tasks.depends_on")
_WAITING = f"tasks.status IN ('{BLOCKED}', '{APPROVAL_REQUIRED}')"
# Ids of the tasks of scope ?1 that wait for task ?2, or for one that does, and so on; ?2 itself is the first.
_REACHED = (
    "WITH RECURSIVE pairs(dependency, waiting) AS MATERIALIZED (SELECT needed.value, tasks.rowid"
    f" FROM tasks, {_NAMES} needed WHERE scope = ?1 AND {_WAITING}),"
    " reached(id) AS (SELECT ?2 UNION SELECT tasks.id FROM reached"
    " CROSS JOIN pairs ON pairs.dependency = reached.id"
    f" CROSS JOIN tasks ON tasks.rowid = pairs.waiting AND {rows.SOUND})"
    " SELECT id FROM reached"
)


class Dependencies(NamedTuple):
    """How a task stands with its dependencies: `met`, waiting, or `failed` (the id of one that came to nothing).

    `gone` is the first one that has been deleted, `status` that of the failed one; both else empty.
    """

    met: bool
    failed: str = ""
    status: str = ""
    gone: str = ""


def statuses(parts: TaskParts, ids: list[str]) -> dict[str, str]:
    """Return the status by id of those tasks that are there."""
    found = parts.db.rows(f"SELECT id, status FROM tasks WHERE id IN {rows.AMONG}", (as_json(ids),))
    return {row.id: row.status for row in found}


def dependencies_of(parts: TaskParts, task: dict) -> Dependencies:
    """Return how `task` stands now."""
    needed = task["depends_on"] or []
    known = statuses(parts, needed) if needed else {}
    gone = next((task_id for task_id in needed if task_id not in known), "")
    for task_id in needed:
        if known.get(task_id) in (FAILED, CANCELLED):
            return Dependencies(False, task_id, known[task_id], gone)
    return Dependencies(all(known.get(task_id, DONE) == DONE for task_id in needed), gone=gone)


def ready_status(task: dict) -> str:
    """Return the status of a task that nothing keeps from being done."""
    return CLAIMED if task["assignee"] else OPEN


def because_of(cause: Dependencies) -> str:
    """Return the result of a task that a failed dependency has cancelled."""
    return f"[auto] Cancelled: it depends on task {cause.failed}, which is {cause.status}"


def settle(parts: TaskParts, ended: Task) -> list[Task]:
    """Inside a transaction: what the end of a task means for those that wait for it; those that may begin now."""
    if ended.status == DONE:
        return _resume(parts, _dependents(parts, ended), ended.id)
    cancel_dependents(parts, ended)
    return []


def cancel_dependents(parts: TaskParts, ended: Task) -> None:
    """Inside a transaction: cancel whatever depends on a task that came to nothing, however far down."""
    if not _dependents(parts, ended):  # which is found far sooner
        return
    reached = [row.id for row in parts.db.rows(_REACHED, (ended.scope, ended.id))]
    tasks = {task.id: task for task in rows.find(parts.db, f"id IN {rows.AMONG}", (as_json(reached),))}
    over = {ended.id: ended.status}
    for task_id in reached[1:]:  # each behind the one by which it was reached
        cause = next((one for one in tasks[task_id].depends_on or () if one in over), "")
        if cause:  # else it is no list that another program left there
            over[task_id] = _cancel(parts, tasks[task_id], Dependencies(False, cause, over[cause])).status


def settle_vanished(parts: TaskParts, scope: str | None) -> list[Task]:
    """Inside a transaction: let go of tasks that nothing keeps blocked any more; those that may begin now.

    That is where dependencies have been deleted, or ended while another program forgot to look.
    """
    condition, values = ("tasks.scope = ? AND ", [scope]) if scope is not None else ("", [])
    dependency = f"FROM {_NAMES} needed JOIN tasks other ON other.id = needed.value WHERE other.status"
    due = rows.find(
        parts.db,
        f"{condition}{_WAITING} AND status = '{BLOCKED}' AND (NOT EXISTS (SELECT 1 {dependency} <> 'done')"
        f" OR EXISTS (SELECT 1 {dependency} IN ('failed', 'cancelled'))) AND {rows.SOUND} ORDER BY {rows.ORDER}",
        values,
    )
    return _resume(parts, due, "")


def _dependents(parts: TaskParts, task: Task) -> list[Task]:
    # Most lists are told apart by a look for the bare id; one that JSON may spell otherwise is in every text.
    plain = task.id if task.id.replace("-", "").isalnum() and task.id.isascii() else ""
    return rows.find(
        parts.db,
        f"scope = ? AND {_WAITING} AND instr(depends_on, ?)"
        f" AND EXISTS (SELECT 1 FROM {_NAMES} needed WHERE needed.value = ?) AND {rows.SOUND} ORDER BY {rows.ORDER}",
        (task.scope, plain, task.id),
    )


def _resume(parts: TaskParts, tasks: list[Task], trigger: str) -> list[Task]:
    resumed = []
    for task in tasks:
        now = dependencies_of(parts, task)
        if now.failed:
            # Another program let it fail and left its dependents alone; or it was cancelled just above.
            found = rows.get(parts.db, task.scope, task.id)
            if found and found.status not in TERMINAL:
                cancel_dependents(parts, _cancel(parts, task, now))
        elif now.met and task.status == BLOCKED:
            target = ready_status(task)
            payload = {"trigger": trigger or now.gone or (task.depends_on or [""])[-1], "status": target}
            payload["prior_status"] = task.status
            resumed.append(move(parts, task, target, "unblock", SYSTEM, payload))
    return resumed


def _cancel(parts: TaskParts, task: Task, cause: Dependencies) -> Task:
    result = because_of(cause)
    payload = {"trigger": cause.failed, "reason": "dependency_failed", "result": result}
    payload.update(prior_status=task.status, dependency_status=cause.status)
    moved = move(parts, task, CANCELLED, "cascade", SYSTEM, payload, result=result)
    release_locks(parts, moved)
    return moved

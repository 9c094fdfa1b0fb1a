"""The life of a task: which status may follow which, by whose hand, and how.

Nothing else in this package writes ``tasks.status``. Modules of their own decide whether something is
due (claims, endings, dependencies); what they then do is a row of `TRANSITIONS`.
"""

from __future__ import annotations

from swarm_hook_core.json_text import quote
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
}
_PROGRESS = ("progress_summary", "progress_updated_at", "blocked_reason", "expected_next_update_at")


def refusal(task: dict, target: str, how: str, actor: str | None) -> str:
    """Why `actor` (an instance id, None for the store itself) may not do that; empty where it may."""
    status = task["status"]
    who = _WHO.get((status, target, how))
    if who is None:
        return _impossible(task, target, how)
    if who == ASSIGNEE and task["assignee"] != actor:
        if how == "claim":
            return "Task is assigned to another session"
        return f"Only the assignee can mark this task {target}"
    if who == PARTY and actor not in (task["requester"], task["assignee"]):
        return "Only the requester or the assignee can cancel this task"
    return ""


def create(store, task: dict, actor: str, payload: dict) -> None:
    """Inside a transaction: add a row (`task` has every column, lists as lists) and its event."""
    if (NEW, task["status"], "request") not in _WHO:
        raise AssertionError(f"no task begins as {task['status']}")
    task.update(updated_at=task["created_at"], changed_at=stamp(store, task["scope"]))
    values = [as_json(value) if isinstance(value, list) else value for value in task.values()]
    store.change(f"INSERT INTO tasks ({', '.join(task)}) VALUES ({', '.join('?' * len(task))})", values)
    events.add(store, task["scope"], _EVENTS["request"], actor, task["id"], payload)


def move(store, task: dict, target: str, how: str, actor: str | None, payload: dict, **columns) -> Task:
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
    changed.update(updated_at=store.now(), changed_at=stamp(store, task["scope"]))
    moved = store.change(
        f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in changed)}"
        " WHERE id = ? AND status = ? AND assignee IS ?",
        (*changed.values(), task["id"], task["status"], task["assignee"]),
    )
    if moved != 1:  # read before this transaction began
        raise Refused("Task was changed by another session just now; look at it again")
    events.add(store, task["scope"], _EVENTS[how], actor, task["id"], payload)
    return task.replace(**changed)


def stamp(store, scope: str) -> int:
    """Inside a transaction: a ``changed_at`` in ms later than any in `scope`, so that nobody who waits misses it.

    A time more than a day ahead is another program's fault, and not counted from: the column could not grow on.
    """
    now = store.now_ms()
    condition, values = "scope = ? AND changed_at <= ?", (scope, now + AHEAD_MS)
    row = store.row(f"SELECT max(changed_at) AS latest FROM tasks WHERE {condition}", values) or {}
    latest = row.get("latest")
    return max(now, int(latest) + 1 if isinstance(latest, (int, float)) else 0)


def as_json(texts: list[str]) -> str:
    """A list as JSON text, for a column or for ``json_each(?)``: variables are few, 32 766 in some SQLites."""
    return f"[{','.join(map(quote, texts))}]"


def _impossible(task: dict, target: str, how: str) -> str:
    status = task["status"]
    if how == "approve":
        return f"Task is {status}, not approval_required"
    if status in TERMINAL or status == target:
        return f"Task is already {status}"
    if status == BLOCKED:
        waits = ", ".join(task["depends_on"] or ())
        return f"Task is blocked: it waits for {waits or 'other tasks'}"
    if status == APPROVAL_REQUIRED:
        return "Task waits for approval: approve_task"
    if status == OPEN and how == "end":
        return f"Task is open and must be claimed before it can be {target}"
    return f"Task is {status} and cannot become {target} by {how}"

"""The life of a task: the table of status changes, their allowed actors, and notices about them.

No other module writes ``tasks.status``. Other modules decide if a change is due (`task_requests`, `task_claims`,
`tasks`); the change itself is a row of `TRANSITIONS`.

A dependency that has been deleted counts as done: ended tasks are kept for a day only, and those that failed have
cancelled their dependents long before. A task names only tasks that were there before it, so there are no circles;
chains may be long, so nothing here calls itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.json_text import quote
from swarm_hook_core.paths import key_of
from swarm_hook_core.untrusted_text import as_word, named
from swarm_hook_core.untrusted_text import quoted as quoted_words
from swarm_mcp.domain import (
    APPROVAL_REQUIRED,  # fmt: skip
    BLOCKED,  # fmt: skip
    CANCELLED,  # fmt: skip
    CLAIMED,  # fmt: skip
    DONE,  # fmt: skip
    FAILED,  # fmt: skip
    IN_PROGRESS,  # fmt: skip
    OPEN,  # fmt: skip
    TERMINAL,  # fmt: skip
    Session,
    Task,  # fmt: skip
    length,
    of_task,
)
from swarm_mcp.errors import Refused
from swarm_mcp.store import messages, session_table
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.database import Transaction
from swarm_mcp.store.messages import may_meet, name_of

NEW = ""  # before there is a row
AHEAD_MS = 86_400_000  # how far another program's clock may be ahead of this one

# Allowed actors.
ANYONE = "anyone"  # every session that may see the task
ASSIGNEE = "assignee"
PARTY = "requester or assignee"
STORE = "store"  # follows from something else that happened

# Status before, status after, actor, kind of change.
TRANSITIONS = (
    (NEW, OPEN, ANYONE, "request"),  # nothing to wait for, no assignee
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
    (IN_PROGRESS, OPEN, STORE, "take back"),  # it is unknown if another machine has claimed it
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


# The scopes that have tasks, hopping along an index: a session may have moved to another one since.
_SCOPES = (
    "WITH RECURSIVE places(scope) AS (SELECT min(scope) FROM tasks"
    " UNION ALL SELECT (SELECT min(scope) FROM tasks WHERE tasks.scope > places.scope) FROM places"
    " WHERE places.scope IS NOT NULL)"
    " SELECT scope FROM places WHERE scope IS NOT NULL"
)
# Unregistered holders of a scope's tasks, hopping from holder to holder; the order is that of the index on held tasks.
_HOLDER = (
    f"SELECT assignee FROM tasks WHERE {rows.SOUND} AND scope = ?1 AND status IN ('claimed', 'in_progress')"
    " AND assignee"
)
_NEXT = f"ORDER BY assignee, {rows.ORDER} LIMIT 1"
_GHOSTS = (
    f"WITH RECURSIVE holders(id) AS (SELECT ({_HOLDER} IS NOT NULL {_NEXT})"
    f" UNION ALL SELECT ({_HOLDER} > holders.id {_NEXT}) FROM holders WHERE holders.id IS NOT NULL)"
    " SELECT id FROM holders WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM instances)"
)
_NAMED_LIMIT = 5
_AT_ONCE = 100


def refusal(task: Task, target: str, how: str, actor: str | None) -> str:
    """Return the reason why `actor` (an instance id, None for the store itself) may not do that; empty if it may."""
    status = task.status
    who = _WHO.get((status, target, how))
    if who is None:
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
    if who == ASSIGNEE and task.assignee != actor:
        if how == "claim":
            return "Task is assigned to another session"
        return f"Only the assignee can mark this task {target}"
    if who == PARTY and actor not in (task.requester, task.assignee):
        return "Only the requester or the assignee can cancel this task"
    return ""


def create(tx: Transaction, task: dict[str, Any], actor: str, payload: dict[str, Any]) -> None:
    """Inside a transaction: add a row (`task` has every column, lists as lists) and its event."""
    if (NEW, task["status"], "request") not in _WHO:
        raise AssertionError(f"no task begins as {task['status']}")
    task.update(updated_at=task["created_at"], changed_at=stamp(tx, task["scope"]))
    values = [as_json(value) if isinstance(value, list) else value for value in task.values()]
    tx.change(f"INSERT INTO tasks ({', '.join(task)}) VALUES ({', '.join('?' * len(task))})", values)
    tx.add_event(task["scope"], _EVENTS["request"], actor, task["id"], payload)


def move(
    tx: Transaction, task: Task, target: str, how: str, actor: str | None, payload: dict[str, Any], **columns: object
) -> Task:
    """Inside a transaction: take `task`, as just read, to `target`, with its event; return the task as it is then.

    `columns` change with the status. `actor` may be ``system`` for the store itself. Raises Refused if the table does
    not allow it.
    """
    why = refusal(task, target, how, actor)
    if why:
        raise Refused(why)
    changed = {"status": target, **columns}
    if target in TERMINAL:
        changed.update(dict.fromkeys(_PROGRESS))
    changed.update(updated_at=tx.now(), changed_at=stamp(tx, task.scope))
    moved = tx.change(
        f"UPDATE tasks SET {', '.join(f'{name} = ?' for name in changed)}"
        " WHERE id = ? AND status = ? AND assignee IS ?",
        (*changed.values(), task.id, task.status, task.assignee),
    )
    if moved != 1:  # read before this transaction began
        raise Refused("Task was changed by another session just now; look at it again")
    tx.add_event(task.scope, _EVENTS[how], actor, task.id, payload)
    return task.replace(**changed)


def stamp(tx: Transaction, scope: str) -> int:
    """Inside a transaction: return a ``changed_at`` in ms later than any in `scope`, so that no waiter misses it.

    A time more than a day ahead is another program's fault, and not counted from: the column could not grow on.
    """
    now = tx.now_ms()
    condition, values = "scope = ? AND changed_at <= ?", (scope, now + AHEAD_MS)
    row = tx.row(f"SELECT max(changed_at) AS latest FROM tasks WHERE {condition}", values)
    latest = row and row.get("latest")
    return max(now, int(latest) + 1 if isinstance(latest, (int, float)) else 0)


def as_json(texts: list[str]) -> str:
    """Return a list as JSON text, for a column or for ``json_each(?)``: variables are few, 32 766 in some SQLites."""
    return f"[{','.join(map(quote, texts))}]"


# ------------------------------------------------------------ locks


def keys_of(task: Task) -> list[str]:
    """Return the keys under which its declared files may be locked. Asks the file system, and so may be slow."""
    return [key_of(file) for file in task.files or ()]


# ----------------------------------------------------- dependencies


NEEDED = rows.ITEMS.format("tasks.depends_on")
WAITING = f"tasks.status IN ('{BLOCKED}', '{APPROVAL_REQUIRED}')"
# Ids of the tasks of scope ?1 that wait for task ?2, or for one that does, and so on; ?2 itself is the first.
REACHED = (
    "WITH RECURSIVE pairs(dependency, waiting) AS MATERIALIZED (SELECT needed.value, tasks.rowid"
    f" FROM tasks, {NEEDED} needed WHERE scope = ?1 AND {WAITING}),"
    " reached(id) AS (SELECT ?2 UNION SELECT tasks.id FROM reached"
    " CROSS JOIN pairs ON pairs.dependency = reached.id"
    f" CROSS JOIN tasks ON tasks.rowid = pairs.waiting AND {rows.SOUND})"
    " SELECT id FROM reached"
)


class Dependencies(NamedTuple):
    """The state of a task's dependencies: `met`, waiting, or `failed` (the id of one that came to nothing).

    `gone` is the first one that has been deleted, `status` that of the failed one; both else empty.
    """

    met: bool
    failed: str = ""
    status: str = ""
    gone: str = ""


def statuses(tx: Transaction, ids: list[str]) -> dict[str, str]:
    """Return the status by id of those tasks that are there."""
    found = tx.rows(f"SELECT id, status FROM tasks WHERE id IN {rows.AMONG}", (as_json(ids),))
    return {row.id: row.status for row in found}


def dependencies_of(tx: Transaction, task: dict[str, Any]) -> Dependencies:
    """Return how `task` stands now."""
    needed = task["depends_on"] or []
    if needed:
        known = statuses(tx, needed)
    else:
        known = {}
    gone = next((task_id for task_id in needed if task_id not in known), "")
    for task_id in needed:
        if known.get(task_id) in (FAILED, CANCELLED):
            return Dependencies(False, task_id, known[task_id], gone)
    return Dependencies(all(known.get(task_id, DONE) == DONE for task_id in needed), gone=gone)


def ready_status(task: dict[str, Any]) -> str:
    """Return the status of a task that nothing keeps from being done."""
    if task["assignee"]:
        return CLAIMED
    return OPEN


def because_of(cause: Dependencies) -> str:
    """Return the result of a task that a failed dependency has cancelled."""
    return f"[auto] Cancelled: it depends on task {cause.failed}, which is {cause.status}"


def dependents(tx: Transaction, task: Task) -> list[Task]:
    # Most lists are told apart by a look for the bare id; one that JSON may spell otherwise is in every text.
    if task.id.replace("-", "").isalnum() and task.id.isascii():
        plain = task.id
    else:
        plain = ""
    return rows.find(
        tx,
        f"scope = ? AND {WAITING} AND instr(depends_on, ?)"
        f" AND EXISTS (SELECT 1 FROM {NEEDED} needed WHERE needed.value = ?) AND {rows.SOUND} ORDER BY {rows.ORDER}",
        (task.scope, plain, task.id),
    )


def leave(tx: Transaction, row: Session, reason: str) -> None:
    """Inside a transaction: free the tasks of instance `row`, which is being removed for `reason`.

    Tasks under way are open again; waiting ones only lose their assignee. If the session was ``reclaimed`` the others
    of its scope are told.
    """
    released = []
    for place in tx.rows(_SCOPES):
        released += [release(tx, task) for task in _held(tx, place.scope, row.id)]
        _unassign(tx, place.scope, row.id)
    if released and reason == "reclaimed":
        _tell(tx, row, released)


def vacate(tx: Transaction, row: Session) -> None:
    """Inside a transaction: instance `row` goes to work in another scope, and leaves its tasks of this one behind."""
    for task in _held(tx, row.scope, row.id):
        release(tx, task)
    _unassign(tx, row.scope, row.id)


def release(tx: Transaction, task: Task) -> Task:
    """Inside a transaction: open a task whose session has gone to any session again.

    Its progress is still worth knowing; that its session was stuck, and when it meant to report, is not.
    """
    payload = {"status": OPEN, "prior_status": task.status, "result": None, "reason": "assignee_gone"}
    over = {"assignee": None, "blocked_reason": None, "expected_next_update_at": None}
    return move(tx, task, OPEN, "release", "system", payload, **over)


def abandoned(tx: Transaction, scope: str) -> list[Task]:
    """Return some claimed or begun tasks without a session: rows of another program, or left behind by it."""
    found = _held(tx, scope, None)
    for ghost in tx.rows(_GHOSTS, (scope,)):
        if len(found) < _AT_ONCE:
            found += _held(tx, scope, ghost.id)
    return found[:_AT_ONCE]


def _held(tx: Transaction, scope: str, instance_id: str | None) -> list[Task]:
    condition = f"{rows.SOUND} AND scope = ? AND assignee IS ? AND status IN ('claimed', 'in_progress')"
    return rows.find(tx, f"{condition} ORDER BY {rows.ORDER}", (scope, instance_id))


def _unassign(tx: Transaction, scope: str, instance_id: str) -> None:
    """No transition: the status stays."""
    waiting = rows.find(
        tx,
        "scope = ? AND status IN ('blocked', 'approval_required') AND +assignee = ?",
        (scope, instance_id),
    )
    for task in waiting:
        tx.change(
            "UPDATE tasks SET assignee = NULL, updated_at = ?, changed_at = ? WHERE id = ?",
            (tx.now(), stamp(tx, scope), task.id),
        )


def _tell(tx: Transaction, row: Session, released: list[Task]) -> None:
    """One message to each session that is still there and may know of the one that has gone."""
    peers = [
        peer.id
        for peer in session_table.in_scope(tx, row.scope)
        if peer.id != row.id and may_meet(row.label, peer.label)
    ]
    if not peers:
        return
    named = [f"{as_word(task.title)} (task_id: {task.id})" for task in released[:_NAMED_LIMIT]]
    if len(released) > _NAMED_LIMIT:
        named.append(f"{len(released) - _NAMED_LIMIT} more")
    who = name_of(row)
    content = f"[auto] Session {who} has gone. Open again: {', '.join(named)}. claim_task takes one over."
    for peer in peers:
        tx.change(
            "INSERT INTO messages (scope, sender, recipient, content, created_at) VALUES (?, 'system', ?, ?, ?)",
            (row.scope, peer, content, tx.now()),
        )
    payload = {"content": content, "recipients": len(peers), "length": length(content)}
    payload.update(reason="instance_stale_reclaimed", released_tasks=len(released))
    tx.add_event(row.scope, "message.broadcast", "system", None, payload)


# Notices about tasks, to their requesters and assignees.
#
# A notice is stored with the change that it is about, in the present scope of its recipient, since its inbox is there.
# Unregistered sessions get no notices. Functions that tell return ``[(recipient id, text)]``, for the caller to wake
# the recipients. All texts begin with ``[auto] `` and name their tasks as ``(task_id: ...)``; by that the unread gate
# knows a notice about the very task that is being claimed.

AUTO = "[auto] "
LONGEST_QUOTE = 2000


def tell_assigned(tx: Transaction, requester: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee of a new task."""
    if task.assignee in (None, requester.id) or task.status in TERMINAL:
        return []
    when = {
        BLOCKED: "It is blocked by other tasks; you will be told when it may begin.",
        APPROVAL_REQUIRED: "It waits for approval; you will be told when it may begin.",
    }.get(task.status, "Begin with claim_task.")
    return _post(tx, requester, task.assignee, f"New {named(task.type)} task for you: {_title(task)}. {when}", task)


def tell_assigned_together(tx: Transaction, requester: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell each assignee of a batch, in one message each."""
    mine: dict[str, list[Task]] = {}
    for task in tasks:
        if task.assignee not in (None, requester.id) and task.status not in TERMINAL:
            mine.setdefault(task.assignee, []).append(task)
    told = []
    for assignee, some in mine.items():
        listed = "; ".join(f"{_title(task)} [{named(task.type)}, {task.status}]" for task in some)
        later = ""
        if any(task.status != CLAIMED for task in some):
            later = " those that are claimed; you will be told when the others may begin"
        text = f"{len(some)} new task{'s' if len(some) > 1 else ''} for you: {listed}. Begin with claim_task{later}."
        told += _post(tx, requester, assignee, text, None)
    return told


def tell_approved(tx: Transaction, approver: Session, task: Task) -> list[tuple[str, str]]:
    """Inside a transaction: tell the assignee that an approved task may begin."""
    if task.status != CLAIMED or task.assignee == approver.id:
        return []
    text = f"Approved: {_title(task)}. Begin with claim_task."
    return _post(tx, approver, task.assignee, text, task)


def tell_ended(tx: Transaction, actor: Session, task: Task, summary: str | None) -> list[tuple[str, str]]:
    """Inside a transaction: tell the requester that a task is done or has failed. Cancelling is silent."""
    requester = task.requester
    if task.status == CANCELLED or requester == actor.id:
        return []
    outcome = ""
    if summary and summary.strip():
        outcome = f": {quoted_words(summary, LONGEST_QUOTE)}"
    text = f"{'Done' if task.status == DONE else 'Failed'}: {_title(task)}{outcome}"
    return _post(tx, actor, requester, text, task)


def tell_asked(tx: Transaction, actor: Session, task: Task, question: str) -> list[tuple[str, str]]:
    """Inside a transaction: tell the requester that the task waits for a person's answer."""
    if task.requester == actor.id:
        return []
    text = f"A question to a person: {_title(task)}: {quoted_words(question, LONGEST_QUOTE)}."
    text += f" They answer in a terminal of their own: swarm-mcp task answer {task.id} TEXT"
    return _post(tx, actor, task.requester, text, task)


def tell_unblocked(tx: Transaction, actor: Session, tasks: list[Task]) -> list[tuple[str, str]]:
    """Inside a transaction: tell assignees that their tasks may begin now. `actor` may be the system itself."""
    told = []
    for task in tasks:
        if task.status == CLAIMED and task.assignee != actor.id:
            text = f"No longer blocked: {_title(task)}. Begin with claim_task."
            told += _post(tx, actor, task.assignee, text, task)
    return told


def is_about(content: str, task_id: str) -> bool:
    """Return True if a message is nothing but such a notice about this task."""
    own = of_task(task_id, AUTO)
    return content.startswith(own) or (content.startswith(AUTO) and f"task_id: {task_id})" in content)


def _title(task: Task) -> str:
    return f"{quoted_words(task.title)} (task_id: {task.id})"


def _post(
    tx: Transaction, sender: Session, recipient: str | None, text: str, task: Task | None
) -> list[tuple[str, str]]:
    row = session_table.get(tx, recipient) if recipient else None
    if row is None:
        return []
    content = AUTO + text
    if task:
        content = of_task(task.id, content)
    messages.post(tx, row.scope, sender.id, row.id, content)
    return [(row.id, content)]

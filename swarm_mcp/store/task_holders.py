"""Who has a task: taking one, and what becomes of it when its session leaves. Each task has a single winner.

What is to be begun is read once more in the transaction that begins it, so of any number of sessions that
reach for a task one gets it and the others see that it is taken. The search comes before, for it may have a
long way to go past tasks that do not fit, and must not keep others from writing meanwhile. It walks along
indexes in the queue's own order; what has ended, and what others hold, is never read.
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import quoted
from swarm_mcp.domain.session import TEAM, Session
from swarm_mcp.domain.task import Task
from swarm_mcp.errors import Refused
from swarm_mcp.store import events
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.task_life import TaskParts
from swarm_mcp.store.task_requests import is_about, resolved
from swarm_mcp.views import name_of
from swarm_mcp.visibility import may_meet

INBOX_GLANCE = 200

# The same words as the partial indexes, which serve only a query that repeats their condition. The plus
# signs keep SQLite from the indexes on status and assignee, whatever statistics say: they are not in order.
# An open task of somebody who is not registered is another program's fault, and anybody's to take.
MINE = (
    f"{rows.SOUND} AND scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress') AND +status = 'claimed'"
    f"{{more}} ORDER BY {rows.ORDER} LIMIT ?"
)
QUEUE = (
    f"{rows.SOUND} AND scope = ? AND status = 'open'"
    " AND (+assignee IS NULL OR +assignee NOT IN (SELECT id FROM instances))"
    f"{{more}} ORDER BY {rows.ORDER} LIMIT ?"
)
# The scopes that have tasks, hopping along an index: a session may have moved to another one since.
_SCOPES = (
    "WITH RECURSIVE places(scope) AS (SELECT min(scope) FROM tasks"
    " UNION ALL SELECT (SELECT min(scope) FROM tasks WHERE tasks.scope > places.scope) FROM places"
    " WHERE places.scope IS NOT NULL)"
    " SELECT scope FROM places WHERE scope IS NOT NULL"
)
# Who holds tasks of a scope without being registered, hopping from holder to holder; the order is that of
# the index on what is held, which has nothing else in it.
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


def claim(parts: TaskParts, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
    """Begin a task: ``{task, prior_status}``. Raises Refused, and says which unread messages come first."""
    with parts.db.writing():
        parts.sessions.require(instance.id)
        task = rows.seen(parts.db, instance, task_id)
        if task is None:
            raise Refused("Task not found")
        task = _without_dead_holder(parts, task)
        _refuse_unless_possible(parts, task, instance)
        return _begin(parts, instance, task, ignore_unread, {})


def claim_next(
    parts: TaskParts,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict:
    """Begin the most urgent task that fits, one's own assigned ones first: ``{task, prior_status}``.

    `types` and `files` narrow the choice: a task of one of the types, that names one of the files.
    Raises Refused where there is none.
    """
    paths = resolved(instance, files or [], "files")
    while True:
        found = _Wanted(parts, instance, types or [], paths).first(1)
        if not found:
            if _reopen(parts, instance):
                continue
            raise Refused("No claimable task found")
        with parts.db.writing():
            parts.sessions.require(instance.id)
            task = rows.get(parts.db, instance.scope, found[0].id)
            if task and (task.status, task.assignee) == (found[0].status, found[0].assignee):
                return _begin(parts, instance, task, ignore_unread, {"claim_next": True})
        # Somebody was faster: with every round another session has got on.


def reserve(parts: TaskParts, task_id: str, worker: Session) -> Task:
    """Keep an open task for a worker that a dispatch has found or started; the task. Raises Refused."""
    with parts.db.writing():
        task = rows.get(parts.db, worker.scope, task_id)
        if task is None:
            raise Refused("Task not found")
        payload = {"prior_status": task.status, "status": states.CLAIMED}
        return states.move(parts, task, states.CLAIMED, "reserve", worker.id, payload, assignee=worker.id)


def take_back(parts: TaskParts, task: Task, prior_status: str) -> None:
    """Let a task that has just been claimed, or reserved, be again as it was; nothing where it is not that any more."""
    with parts.db.writing():
        now = rows.get(parts.db, task.scope, task.id)
        if now is None or (now.status, now.assignee) != (task.status, task.assignee):
            return
        payload = {"prior_status": task.status, "status": prior_status, "reason": "team_unreachable"}
        assignee = task.assignee if prior_status == states.CLAIMED else None
        states.move(parts, now, prior_status, "take back", "system", payload, assignee=assignee)


def claimable(parts: TaskParts, instance: Session, limit: int) -> list[Task]:
    """Return the next few tasks that `claim_next` would choose from, in its order."""
    return _Wanted(parts, instance, [], []).first(limit)


class _Wanted:
    """What a session looks for in the queue."""

    def __init__(self, parts: TaskParts, instance: Session, types: list[str], files: list[str]):
        self.parts = parts
        self.instance = instance
        # Nobody has an open task, so its requester alone decides who may see it.
        self.strangers = sorted(rows.Sight(parts.db, instance).strangers)
        self.types = list(dict.fromkeys(types))
        named = f"SELECT 1 FROM {rows.ITEMS.format('tasks.files')} named WHERE named.value IN {rows.AMONG}"
        self.values: tuple[str, ...]
        self.narrow, self.values = (f" AND EXISTS ({named})", (states.as_json(files),)) if files else ("", ())

    def first(self, limit: int) -> list[Task]:
        """Return the most urgent few: those assigned to the session, then open ones."""
        more, values = self.narrow, self.values
        if self.types:
            more, values = f" AND type IN {rows.AMONG}{more}", (states.as_json(self.types), *values)
        own = (self.instance.scope, self.instance.id, *values, limit)
        found = rows.find(self.parts.db, MINE.format(more=more), own)
        return found + self._queued(limit - len(found)) if len(found) < limit else found

    def _queued(self, limit: int) -> list[Task]:
        more, values = self.narrow, self.values
        if self.strangers:
            more, values = f" AND requester NOT IN {rows.AMONG}{more}", (states.as_json(self.strangers), *values)
        if not self.types:
            return rows.find(self.parts.db, QUEUE.format(more=more), (self.instance.scope, *values, limit))
        # Each type in a walk of its own: only then is there an index that has nothing else on the way.
        one = f"SELECT id FROM tasks WHERE {QUEUE.format(more=f' AND type = ?{more}')}"
        heads = [
            row.id
            for kind in self.types
            for row in self.parts.db.rows(one, (self.instance.scope, kind, *values, limit))
        ]
        first = f"id IN {rows.AMONG} ORDER BY {rows.ORDER} LIMIT ?"
        return rows.find(self.parts.db, first, (states.as_json(heads), limit))


def _begin(parts: TaskParts, instance: Session, task: Task, ignore_unread: bool, more: dict) -> dict:
    if not ignore_unread:
        _refuse_while_unread(parts, instance, task.id)
    payload = {"prior_status": task.status, "status": states.IN_PROGRESS, **more}
    begun = states.move(parts, task, states.IN_PROGRESS, "claim", instance.id, payload, assignee=instance.id)
    return {"task": begun, "prior_status": task.status}


def _refuse_unless_possible(parts: TaskParts, task: Task, instance: Session) -> None:
    why = states.refusal(task, states.IN_PROGRESS, "claim", instance.id)
    if not why and task.assignee not in (None, instance.id) and parts.sessions.live(task.assignee):
        why = "Task is assigned to another session"
    if why:
        raise Refused(why + _elsewhere(parts, task, instance))


def _elsewhere(parts: TaskParts, task: Task, instance: Session) -> str:
    """Who on another machine has the task, for those that one may meet; empty where it is nobody there."""
    holder = parts.sessions.live(task.assignee) if task.assignee else None
    if holder is None or holder.runtime != TEAM or not may_meet(instance.label, holder.label):
        return ""
    return f": {name_of(holder)} has it"


def _refuse_while_unread(parts: TaskParts, instance: Session, task_id: str) -> None:
    """New work waits until the mail has been read, which may be about that work.

    The notice that one has been given this very task is no reason to wait.
    """
    glance = parts.messages.peek(instance, INBOX_GLANCE)
    if all(is_about(message.content, task_id) for message in glance):
        return
    latest = (
        parts.db.row(
            "SELECT id, sender FROM messages WHERE scope = ? AND recipient = ? AND read = 0 ORDER BY id DESC LIMIT 1",
            (instance.scope, instance.id),
        )
        or glance[-1]
    )
    count = parts.messages.unread_count(instance)
    raise Refused(
        f"Read your mail first: {count} unread message{'s' if count != 1 else ''}, the latest #{latest.id} from"
        f" {latest.sender}. Call poll_messages (or bootstrap), then claim again; ignore_unread_messages skips this.",
        unread_message_count=count,
        latest_message_id=latest.id,
        latest_message_sender=latest.sender,
    )


def _without_dead_holder(parts: TaskParts, task: Task) -> Task:
    """Return `task`, open again where the session that has it is gone and nobody has noticed yet, or there is none."""
    holder = task.assignee
    if task.status not in (states.CLAIMED, states.IN_PROGRESS) or (holder and parts.sessions.live(holder)):
        return task
    row = parts.sessions.get(holder) if holder else None
    if row is None:
        return release(parts, task)
    parts.signals.session_gone(row, "reclaimed")
    return rows.get(parts.db, task.scope, task.id) or task


def _reopen(parts: TaskParts, instance: Session) -> bool:
    """Make tasks of this scope claimable that nobody has any more; whether there were any."""
    if not _dead_holders(parts, instance) and not abandoned(parts, instance.scope):
        return False
    with parts.db.writing():
        parts.sessions.require(instance.id)
        for row in _dead_holders(parts, instance):
            parts.signals.session_gone(row, "reclaimed")
        for task in abandoned(parts, instance.scope):
            release(parts, task)
    return True


def _dead_holders(parts: TaskParts, instance: Session) -> list[Session]:
    """Return sessions of this scope that have gone and still hold tasks, which would be free otherwise."""
    return [
        row
        for row in parts.sessions.gone()
        if parts.db.row(
            "SELECT 1 FROM tasks WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')",
            (instance.scope, row.id),
        )
    ]


# ---------------------------------------------------------- letting go


def leave(parts: TaskParts, row: Session, reason: str) -> None:
    """Inside a transaction: free the tasks of instance `row`, which is being removed for `reason`.

    What it was doing is open again; what still waits only loses its name. Where it was ``reclaimed``
    the others of its scope are told.
    """
    released = []
    for place in parts.db.rows(_SCOPES):
        released += [release(parts, task) for task in _held(parts, place.scope, row.id)]
        _unassign(parts, place.scope, row.id)
    if released and reason == "reclaimed":
        _tell(parts, row, released)


def vacate(parts: TaskParts, row: Session) -> None:
    """Inside a transaction: instance `row` goes to work in another scope, and leaves its tasks of this one behind."""
    for task in _held(parts, row.scope, row.id):
        release(parts, task)
    _unassign(parts, row.scope, row.id)


def release(parts: TaskParts, task: Task) -> Task:
    """Inside a transaction: a task whose session has gone is open to anyone again.

    How far it came is still worth knowing; that its session was stuck, and when it meant to report, is not.
    """
    payload = {"status": states.OPEN, "prior_status": task.status, "result": None, "reason": "assignee_gone"}
    over = {"assignee": None, "blocked_reason": None, "expected_next_update_at": None}
    return states.move(parts, task, states.OPEN, "release", "system", payload, **over)


def abandoned(parts: TaskParts, scope: str) -> list[Task]:
    """Return some tasks that are claimed or in progress for nobody: another program's rows, or what it left behind."""
    found = _held(parts, scope, None)
    for ghost in parts.db.rows(_GHOSTS, (scope,)):
        if len(found) < _AT_ONCE:
            found += _held(parts, scope, ghost.id)
    return found[:_AT_ONCE]


def _held(parts: TaskParts, scope: str, instance_id: str | None) -> list[Task]:
    condition = f"{rows.SOUND} AND scope = ? AND assignee IS ? AND status IN ('claimed', 'in_progress')"
    return rows.find(parts.db, f"{condition} ORDER BY {rows.ORDER}", (scope, instance_id))


def _unassign(parts: TaskParts, scope: str, instance_id: str) -> None:
    """No transition: the status stays."""
    waiting = rows.find(
        parts.db,
        "scope = ? AND status IN ('blocked', 'approval_required') AND +assignee = ?",
        (scope, instance_id),
    )
    for task in waiting:
        parts.db.change(
            "UPDATE tasks SET assignee = NULL, updated_at = ?, changed_at = ? WHERE id = ?",
            (parts.db.now(), states.stamp(parts, scope), task.id),
        )


def _tell(parts: TaskParts, row: Session, released: list[Task]) -> None:
    """One message to each session that is still there and may know of the one that has gone."""
    peers = [
        peer.id for peer in parts.sessions.in_scope(row.scope) if peer.id != row.id and may_meet(row.label, peer.label)
    ]
    if not peers:
        return
    named = [f"{quoted(task.title)} (task_id: {task.id})" for task in released[:_NAMED_LIMIT]]
    if len(released) > _NAMED_LIMIT:
        named.append(f"{len(released) - _NAMED_LIMIT} more")
    who = name_of(row)
    content = f"[auto] Session {who} has gone. Open again: {', '.join(named)}. claim_task takes one over."
    for peer in peers:
        parts.db.change(
            "INSERT INTO messages (scope, sender, recipient, content, created_at) VALUES (?, 'system', ?, ?, ?)",
            (row.scope, peer, content, parts.db.now()),
        )
    payload = {"content": content, "recipients": len(peers), "length": events.length(content)}
    payload.update(reason="instance_stale_reclaimed", released_tasks=len(released))
    events.add(parts.db, row.scope, "message.broadcast", "system", None, payload)

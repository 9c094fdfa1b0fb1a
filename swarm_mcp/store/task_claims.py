"""Claiming tasks. Each task has a single winner.

A task is read once more in the transaction that begins it. So of any number of sessions that reach for it one gets it,
and the others see that it is taken. The search comes before: it may have a long way to go past unfit tasks, and must
not keep others from writing meanwhile. It walks along indexes in the queue's own order, and never reads ended tasks or
those that others hold.
"""

from __future__ import annotations

from swarm_mcp.domain.session import REMOTE, Session
from swarm_mcp.domain.task import CLAIMED, IN_PROGRESS, Task
from swarm_mcp.errors import Refused
from swarm_mcp.store import messages, reactions, session_life, session_table
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.naming import may_meet, name_of
from swarm_mcp.store.task_notices import is_about
from swarm_mcp.store.task_requests import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Database, Transaction

INBOX_GLANCE = 200

# The same words as the partial indexes, which serve only a query that repeats their condition. The plus signs keep
# SQLite from the indexes on status and assignee, whatever statistics say: they are not in order. An open task of an
# unregistered session is another program's fault, and free to take.
MINE = (
    f"{rows.SOUND} AND scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress') AND +status = 'claimed'"
    f"{{more}} ORDER BY {rows.ORDER} LIMIT ?"
)
QUEUE = (
    f"{rows.SOUND} AND scope = ? AND status = 'open'"
    " AND (+assignee IS NULL OR +assignee NOT IN (SELECT id FROM instances))"
    f"{{more}} ORDER BY {rows.ORDER} LIMIT ?"
)


def claim(db: Database, instance: Session, task_id: str, ignore_unread: bool = False) -> dict[str, Any]:
    """Begin a task: ``{task, prior_status}``. Raises Refused, naming unread messages that come first."""
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        task = rows.seen(tx, instance, task_id)
        if task is None:
            raise Refused("Task not found")
        task = _without_dead_holder(tx, task)
        why = states.refusal(task, IN_PROGRESS, "claim", instance.id)
        if not why and task.assignee not in (None, instance.id) and session_table.live(tx, task.assignee):
            why = "Task is assigned to another session"
        if why:
            # The name of the session on another machine that has the task, if it may be known; else an empty text
            if task.assignee:
                holder = session_table.live(tx, task.assignee)
            else:
                holder = None
            if holder is None or holder.runtime != REMOTE or not may_meet(instance.label, holder.label):
                elsewhere = ""
            else:
                elsewhere = f": {name_of(holder)} has it"
            raise Refused(why + elsewhere)
        return _begin(tx, instance, task, ignore_unread, {})


def claim_next(
    db: Database,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict[str, Any]:
    """Begin the most urgent task that fits, one's own assigned ones first: ``{task, prior_status}``.

    `types` and `files` narrow the choice: a task of one of the types, that names one of the files. Raises Refused if
    there is no such task.
    """
    paths = resolved(instance, files or [], "files")
    while True:
        found = _Wanted(db, instance, types or [], paths).first(1)
        if not found:
            if _reopen(db, instance):
                continue
            raise Refused("No claimable task found")
        with db.writing() as tx:
            session_life.require(tx, instance.id)
            task = rows.get(tx, instance.scope, found[0].id)
            if task and (task.status, task.assignee) == (found[0].status, found[0].assignee):
                return _begin(tx, instance, task, ignore_unread, {"claim_next": True})
        # Another session was faster. With every round one session has got on.


def reserve(db: Database, task_id: str, worker: Session) -> Task:
    """Keep an open task for a worker that a dispatch has found or started; the task. Raises Refused."""
    with db.writing() as tx:
        task = rows.get(tx, worker.scope, task_id)
        if task is None:
            raise Refused("Task not found")
        payload = {"prior_status": task.status, "status": CLAIMED}
        return states.move(tx, task, CLAIMED, "reserve", worker.id, payload, assignee=worker.id)


def take_back(db: Database, task: Task, prior_status: str) -> None:
    """Let a task that has just been claimed, or reserved, be again as it was; nothing where it is not that any more."""
    with db.writing() as tx:
        now = rows.get(tx, task.scope, task.id)
        if now is None or (now.status, now.assignee) != (task.status, task.assignee):
            return
        payload = {"prior_status": task.status, "status": prior_status, "reason": "team_unreachable"}
        if prior_status == CLAIMED:
            assignee = task.assignee
        else:
            assignee = None
        states.move(tx, now, prior_status, "take back", "system", payload, assignee=assignee)


def claimable(tx: Transaction, instance: Session, limit: int = 10) -> list[Task]:
    """Return the next few tasks that `claim_next` would choose from, in its order."""
    return _Wanted(tx, instance, [], []).first(limit)


class _Wanted:
    """The tasks that a session looks for in the queue."""

    def __init__(self, tx: Transaction, instance: Session, types: list[str], files: list[str]):
        self.tx = tx
        self.instance = instance
        # An open task has no assignee, so its requester alone decides about its visibility.
        self.strangers = sorted(rows.Sight(tx, instance).strangers)
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
        found = rows.find(self.tx, MINE.format(more=more), own)
        if len(found) < limit:
            return found + self._queued(limit - len(found))
        return found

    def _queued(self, limit: int) -> list[Task]:
        more, values = self.narrow, self.values
        if self.strangers:
            more, values = f" AND requester NOT IN {rows.AMONG}{more}", (states.as_json(self.strangers), *values)
        if not self.types:
            return rows.find(self.tx, QUEUE.format(more=more), (self.instance.scope, *values, limit))
        # Each type in a walk of its own: only then is there an index that has nothing else on the way.
        one = f"SELECT id FROM tasks WHERE {QUEUE.format(more=f' AND type = ?{more}')}"
        heads = [
            row.id for kind in self.types for row in self.tx.rows(one, (self.instance.scope, kind, *values, limit))
        ]
        first = f"id IN {rows.AMONG} ORDER BY {rows.ORDER} LIMIT ?"
        return rows.find(self.tx, first, (states.as_json(heads), limit))


def _begin(tx: Transaction, instance: Session, task: Task, ignore_unread: bool, more: dict[str, Any]) -> dict[str, Any]:
    if not ignore_unread:
        _refuse_while_unread(tx, instance, task.id)
    payload = {"prior_status": task.status, "status": IN_PROGRESS, **more}
    begun = states.move(tx, task, IN_PROGRESS, "claim", instance.id, payload, assignee=instance.id)
    return {"task": begun, "prior_status": task.status}


def _refuse_while_unread(tx: Transaction, instance: Session, task_id: str) -> None:
    """Refuse new work until the mail has been read: it may be about that work.

    The notice that one has been given this very task is no reason to wait.
    """
    glance = messages.peek(tx, instance, INBOX_GLANCE)
    if all(is_about(message.content, task_id) for message in glance):
        return
    latest = (
        tx.row(
            "SELECT id, sender FROM messages WHERE scope = ? AND recipient = ? AND read = 0 ORDER BY id DESC LIMIT 1",
            (instance.scope, instance.id),
        )
        or glance[-1]
    )
    count = messages.unread_count(tx, instance)
    raise Refused(
        f"Read your mail first: {count} unread message{'s' if count != 1 else ''}, the latest #{latest.id} from"
        f" {latest.sender}. Call poll_messages (or bootstrap), then claim again; ignore_unread_messages skips this.",
        unread_message_count=count,
        latest_message_id=latest.id,
        latest_message_sender=latest.sender,
    )


def _without_dead_holder(tx: Transaction, task: Task) -> Task:
    """Return `task`, reopened if its session is gone, unnoticed so far, or if it has no session."""
    holder = task.assignee
    if task.status not in (CLAIMED, IN_PROGRESS) or (holder and session_table.live(tx, holder)):
        return task
    if holder:
        row = session_table.get(tx, holder)
    else:
        row = None
    if row is None:
        return states.release(tx, task)
    reactions.session_gone(tx, row, "reclaimed")
    return rows.get(tx, task.scope, task.id) or task


def _reopen(db: Database, instance: Session) -> bool:
    """Make tasks of this scope claimable whose sessions are gone; return True if there were any."""
    if not _dead_holders(db, instance) and not states.abandoned(db, instance.scope):
        return False
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        for row in _dead_holders(tx, instance):
            reactions.session_gone(tx, row, "reclaimed")
        for task in states.abandoned(tx, instance.scope):
            states.release(tx, task)
    return True


def _dead_holders(tx: Transaction, instance: Session) -> list[Session]:
    """Return gone sessions of this scope that still hold tasks; the tasks would be free otherwise."""
    return [
        row
        for row in session_table.all_gone(
            tx,
        )
        if tx.row(
            "SELECT 1 FROM tasks WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')",
            (instance.scope, row.id),
        )
    ]


# ---------------------------------------------------------- letting go

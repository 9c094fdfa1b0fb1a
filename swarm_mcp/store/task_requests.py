"""Handing work over, one task or a batch, and claiming it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarm_hook_core.lookup import storable
from swarm_hook_core.paths import LONGEST
from swarm_mcp.domain import (
    APPROVAL_REQUIRED,
    BATCH_LIMIT,
    BLOCKED,
    CANCELLED,
    CLAIMED,
    IN_PROGRESS,
    OPEN,
    REMOTE,
    TASK_COLUMNS,
    TYPES,
    Session,
    Task,
    new_id,
)
from swarm_mcp.errors import Refused
from swarm_mcp.folders import file_of
from swarm_mcp.store import messages, reactions, session_table
from swarm_mcp.store import task_life as states
from swarm_mcp.store import task_reading as rows
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.messages import may_meet, name_of
from swarm_mcp.store.task_life import is_about, tell_assigned, tell_assigned_together
from swarm_mcp.store.values import names_entry

LARGEST = 10**12
LINKS = ("parent_task_id", "review_of_task_id", "fixes_task_id")
_LINK_NAMES = {"parent_task_id": "Parent", "review_of_task_id": "Reviewed", "fixes_task_id": "Fixed"}


class _Wrong(Exception):
    """One field of a specification cannot be accepted."""

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field


def request(db: Database, requester: Session, spec: dict[str, Any], notify: bool = True) -> dict[str, Any]:
    """Create a task: ``{task, existing, notices}``.

    `spec` has the arguments of ``request_task``. Where its idempotency key is taken, the task that has
    it is returned untouched (`existing`). Raises Refused.
    """
    try:
        # Files are resolved outside of the transaction, since that asks the file system, and only if needed.
        if _is_taken(db, requester, spec):
            task = None
        else:
            task = _composed(requester, spec)
        with db.writing() as tx:
            reactions.require(tx, requester.id)
            sight = rows.Sight(tx, requester)
            known = _existing(tx, requester, spec, sight)
            if known:
                return {"task": known, "existing": True, "notices": []}
            task = task or _composed(requester, spec)
            _check_assignee(tx, task)
            _check_links(tx, task, sight)
            _insert(tx, task)
            made = Task(task)
            if notify:
                told = tell_assigned(tx, requester, made)
            else:
                told = []
            return {"task": made, "existing": False, "notices": told}
    except _Wrong as wrong:
        raise Refused(str(wrong)) from None


def request_batch(db: Database, requester: Session, specs: list[dict[str, Any]]) -> dict[str, Any]:
    """Create several tasks or none: ``{tasks: [{id, status, [idempotency_key], new}], notices}``.

    ``$N`` in `depends_on` and links means the batch's Nth item, counted from 1, before the one that
    says so. Raises Refused; `answer` then has ``details`` [{task_index, field, message}].
    """
    if not 1 <= len(specs) <= BATCH_LIMIT:
        raise Refused(f"A batch has 1 to {BATCH_LIMIT} tasks, not {len(specs)}")
    details: list[dict[str, Any]] = []
    drafts = [
        None if _is_taken(db, requester, spec) else _collected(details, index, _composed, requester, spec)
        for index, spec in enumerate(specs)
    ]
    faulty = {detail["task_index"] for detail in details}
    _find_repeats(specs, details)
    made: list[dict[str, Any] | None] = []
    created: list[dict[str, Any]] = []

    def fulfilled(index: int) -> dict[str, Any]:
        known = _existing(db, requester, specs[index], sight)
        if known:
            return known
        task = drafts[index] or _composed(requester, specs[index])
        created.append(_placed(db, task, index, made, len(specs), sight))
        return task

    with db.writing() as tx:
        reactions.require(tx, requester.id)
        sight = rows.Sight(tx, requester)
        for index in range(len(specs)):
            made.append(None if index in faulty else _collected(details, index, fulfilled, index))
        if details:
            details.sort(key=lambda detail: detail["task_index"])
            raise Refused("Validation failed", details=details)
        told = tell_assigned_together(tx, requester, [Task(task) for task in created])
    new = {task["id"] for task in created}
    return {"tasks": [_brief(task, task["id"] in new) for task in made if task], "notices": told}


# --------------------------------------------------------------------------------------- one task's tx


def _composed(requester: Session, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the row that `spec` asks for, as far as it can be told without the store. Raises _Wrong."""
    kind, title = spec.get("type") or "other", (spec.get("title") or "").strip()
    if kind not in TYPES:
        raise _Wrong("type", f'Invalid task type "{kind}". Expected one of: {", ".join(TYPES)}')
    if not title:
        raise _Wrong("title", "A task needs a title")
    priority = spec.get("priority") or 0
    if abs(priority) > LARGEST:
        raise _Wrong("priority", f"A priority lies between -{LARGEST} and {LARGEST}")
    task = dict.fromkeys(TASK_COLUMNS)
    for name in ("description", "assignee", "idempotency_key", "tracker_provider", *LINKS):
        value = spec.get(name) or ""
        task[name] = (value if name == "description" else value.strip()) or None
    named_in = (task["idempotency_key"], title, task["description"])
    task.update(
        id=new_id(),
        scope=requester.scope,
        type=kind,
        title=title,
        requester=requester.id,
        status=APPROVAL_REQUIRED if spec.get("approval_required") else OPEN,
        files=resolved(requester, spec.get("files") or [], "files") or None,
        priority=int(priority),
        depends_on=list(dict.fromkeys(item.strip() for item in spec.get("depends_on") or [])) or None,
        tracker_required=int(bool(spec.get("tracker_required") or any(map(names_entry, named_in)))),
    )
    return task


def resolved(instance: Session, files: list[str], field: str) -> list[str]:
    """Return the files that a session means, absolute, without repeats. Raises Refused where one is no path."""
    found = []
    for file in files:
        if not file.strip() or "\0" in file or len(file) > LONGEST or not storable(file):
            raise Refused(f"{field}: {file[:60]!r} is not the path of a file")
        found.append(file_of(instance, file))
    return list(dict.fromkeys(found))


def _key(spec: dict[str, Any]) -> str:
    return (spec.get("idempotency_key") or "").strip()


def _is_taken(tx: Transaction, requester: Session, spec: dict[str, Any]) -> bool:
    """Return True if there is a task with this key already; then nothing else in `spec` matters."""
    sql = "SELECT 1 FROM tasks WHERE scope = ? AND idempotency_key = ?"
    return bool(_key(spec)) and tx.row(sql, (requester.scope, _key(spec))) is not None


def _existing(tx: Transaction, requester: Session, spec: dict[str, Any], sight: rows.Sight) -> dict[str, Any] | None:
    """Return the task that has this key. Raises _Wrong where the requester may not know of it."""
    key = _key(spec)
    if key:
        found = rows.find(tx, "scope = ? AND idempotency_key = ?", (requester.scope, key))
    else:
        found = []
    if found and not sight.sees(found[0]):
        raise _Wrong(
            "idempotency_key",
            f'Cross-identity coordination blocked: the idempotency key "{key}" is that of a task of another identity;'
            " choose another one",
        )
    if found:
        return found[0]
    return None


def _check_assignee(tx: Transaction, task: dict[str, Any]) -> None:
    assignee = task["assignee"]
    if not assignee:
        return
    row, requester = session_table.live(tx, assignee), session_table.get(tx, task["requester"])
    if row is None or row.scope != task["scope"]:
        raise _Wrong("assignee", f"Instance {assignee} is not active in this scope")
    if not may_meet(requester.label if requester else None, row.label):
        raise _Wrong(
            "assignee",
            f"Cross-identity coordination blocked: session {assignee} works under another identity;"
            " only a shell with SWARM_MCP_ALLOW_CROSS_IDENTITY=1 may hand it work",
        )


def _check_links(tx: Transaction, task: dict[str, Any], sight: rows.Sight) -> None:
    """A task names only those that its requester may see."""
    wanted = [("depends_on", "Dependency", task_id) for task_id in task["depends_on"] or ()]
    wanted += [(field, _LINK_NAMES[field], task[field]) for field in LINKS if task[field]]
    there = tx.rows(
        f"SELECT id, requester, assignee FROM tasks WHERE id IN {rows.AMONG} AND +scope = ?",
        (states.as_json([task_id for *_, task_id in wanted]), task["scope"]),
    )
    known = {row.id for row in there if sight.sees(row)}
    for field, what, task_id in wanted:
        if task_id not in known:
            raise _Wrong(field, f"{what} task {task_id} not found in scope")


def _insert(tx: Transaction, task: dict[str, Any], batch_index: int | None = None) -> None:
    standing = states.dependencies_of(tx, task)
    task["created_at"] = tx.now()
    if standing.failed:
        task.update(status=CANCELLED, result=states.because_of(standing))
    elif task["status"] == OPEN:
        task["status"] = states.ready_status(task) if standing.met else BLOCKED
    payload = {"task_type": task["type"]}
    names = ("title", "description", "status", "assignee", *LINKS, "depends_on", "files", "priority", "result")
    payload.update({name: task[name] for name in names})
    payload.update(tracker_required=bool(task["tracker_required"]), tracker_provider=task["tracker_provider"])
    if batch_index is not None:
        payload["batch_index"] = batch_index
    states.create(tx, task, task["requester"], payload)


# ------------------------------------------------------------------------------------------------ batches


def _collected(details: list[dict[str, Any]], index: int, step: Callable[..., Any], *values: Any) -> Any:
    """Return the result of `step`; its complaints go to `details`."""
    try:
        return step(*values)
    except _Wrong as wrong:
        details.append({"task_index": index, "field": wrong.field, "message": str(wrong)})
    except Refused as refusal:
        field = str(refusal).partition(":")[0]
        details.append({"task_index": index, "field": field, "message": str(refusal)})
    return None


def _placed(
    tx: Transaction, task: dict[str, Any], index: int, made: list[dict[str, Any] | None], count: int, sight: rows.Sight
) -> dict[str, Any]:
    """Check one item and insert it: later ones may name it. A complaint about any item undoes all in the end."""
    if task["depends_on"]:
        meant = [_referred("depends_on", item, index, made, count) for item in task["depends_on"]]
        task["depends_on"] = list(dict.fromkeys(item for item in meant if item)) or None
    for field in LINKS:
        if task[field]:
            task[field] = _referred(field, task[field], index, made, count) or None
    _check_assignee(tx, task)
    _check_links(tx, task, sight)
    _insert(tx, task, index)
    return task


def _referred(field: str, text: str, index: int, made: list[dict[str, Any] | None], count: int) -> str:
    """Return the id that `text` means: itself, or for ``$N`` that of the Nth item; empty where that one was refused."""
    digits = text[1:]
    if not text.startswith("$") or not (digits.isascii() and digits.isdigit()):
        return text
    number = int(digits[:9])
    if not 1 <= number <= count:
        raise _Wrong(field, f"{text} is out of range: this batch has tasks $1 to ${count}")
    if number == index + 1:
        raise _Wrong(field, f"{text} is a self-reference")
    if number > index:
        raise _Wrong(field, f"{text} is a forward reference: task {index + 1} may only name tasks before it")
    task = made[number - 1]
    if task:
        return str(task["id"])
    return ""


def _find_repeats(specs: list[dict[str, Any]], details: list[dict[str, Any]]) -> None:
    first: dict[str, int] = {}
    for index, key in enumerate(map(_key, specs)):
        if not key:
            continue
        if key in first:
            message = f'Idempotency key "{key}" is also that of task {first[key] + 1} in this batch'
            details.append({"task_index": index, "field": "idempotency_key", "message": message})
        first.setdefault(key, index)


def _brief(task: dict[str, Any], new: bool) -> dict[str, Any]:
    brief = {"id": task["id"], "status": task["status"]}
    if task["idempotency_key"]:
        brief["idempotency_key"] = task["idempotency_key"]
    return {**brief, "new": new}


# Claiming tasks. Each task has a single winner.
#
# A task is read once more in the transaction that begins it. So of any number of sessions that reach for it one gets
# it, and the others see that it is taken. The search comes before: it may have a long way to go past unfit tasks, and
# must not keep others from writing meanwhile. It walks along indexes in the queue's own order, and never reads ended
# tasks or those that others hold.

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
        reactions.require(tx, instance.id)
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
            reactions.require(tx, instance.id)
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
        reactions.require(tx, instance.id)
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

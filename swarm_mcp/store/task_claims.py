"""Taking work: a named task, or the most urgent one that fits. Each task has a single winner.

Look and change happen in one immediate transaction, so of any number of sessions that reach for a task
one gets it and the others see that it is taken. The queue is walked along an index in its own order;
what has ended, and what others hold, is never read.
"""

from __future__ import annotations

from swarm_mcp.errors import Refused
from swarm_mcp.store import removal
from swarm_mcp.store import task_notices as notices
from swarm_mcp.store import task_rows as rows
from swarm_mcp.store import task_states as states
from swarm_mcp.store.task_requests import resolved

INBOX_GLANCE = 200

# The same words as the partial indexes, which serve only a query that repeats their condition. The plus
# signs keep SQLite from the indexes on status and assignee, whatever statistics say: they are not in order.
MINE = (
    "scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress') AND +status = 'claimed'{more}"
    f" ORDER BY {rows.ORDER} LIMIT ?"
)
QUEUE = "scope = ? AND status = 'open' AND +assignee IS NULL{more}" + f" ORDER BY {rows.ORDER} LIMIT ?"


def claim(store, instance: dict, task_id: str, ignore_unread: bool = False) -> dict:
    """Begin a task: ``{task, prior_status}``. Raises Refused, and says which unread messages come first."""
    with store.writing():
        store.instances.require(instance["id"])
        task = rows.seen(store, instance, task_id)
        if task is None:
            raise Refused("Task not found")
        task = _without_dead_holder(store, task)
        _refuse_unless_possible(task, instance)
        return _begin(store, instance, task, ignore_unread, {})


def claim_next(
    store, instance: dict, types: list[str] | None = None, files: list[str] | None = None, ignore_unread: bool = False
) -> dict:
    """Begin the most urgent task that fits, one's own assigned ones first: ``{task, prior_status}``.

    `types` and `files` narrow the choice: a task of one of the types, that names one of the files.
    Raises Refused where there is none.
    """
    paths = resolved(instance, files or [], "files")
    # An idle worker asks again and again; where there is nothing, it need not keep others from writing.
    if not _Wanted(store, instance, types or [], paths).next() and not _dead_holders(store, instance):
        raise Refused("No claimable task found")
    with store.writing():
        store.instances.require(instance["id"])
        wanted = _Wanted(store, instance, types or [], paths)
        task = wanted.next()
        if task is None:
            for row in _dead_holders(store, instance):
                removal.remove(store, row, "reclaimed")
            task = wanted.next()
        if task is None:
            raise Refused("No claimable task found")
        return _begin(store, instance, task, ignore_unread, {"claim_next": True})


def reserve(store, task_id: str, worker: dict) -> dict:
    """Keep an open task for a worker that a dispatch has found or started; the task. Raises Refused."""
    with store.writing():
        task = rows.get(store, worker["scope"], task_id)
        if task is None:
            raise Refused("Task not found")
        payload = {"prior_status": task["status"], "status": states.CLAIMED}
        return states.move(store, task, states.CLAIMED, "reserve", worker["id"], payload, assignee=worker["id"])


def claimable(store, instance: dict, limit: int) -> list[dict]:
    """The next few tasks that `claim_next` would choose from, in its order."""
    return _Wanted(store, instance, [], []).first(limit)


class _Wanted:
    """What a session looks for in the queue."""

    def __init__(self, store, instance: dict, types: list[str], files: list[str]):
        self.store = store
        self.instance = instance
        # Nobody has an open task, so its requester alone decides who may see it.
        self.strangers = sorted(rows.Sight(store, instance).strangers)
        self.of_friends = f" AND requester NOT IN ({_marks(self.strangers)})" if self.strangers else ""
        self.narrow = f" AND type IN ({_marks(types)})" if types else ""
        if files:
            named = rows.ITEMS.format("tasks.files")
            self.narrow += f" AND EXISTS (SELECT 1 FROM {named} named WHERE named.value IN ({_marks(files)}))"
        self.values = (*types, *files)

    def next(self) -> dict | None:
        """The most urgent such task."""
        found = self.first(1)
        return found[0] if found else None

    def first(self, limit: int) -> list[dict]:
        """The most urgent few: those assigned to the session, then open ones."""
        own = (self.instance["scope"], self.instance["id"], *self.values, limit)
        found = rows.find(self.store, MINE.format(more=self.narrow), own)
        if len(found) < limit:
            values = (self.instance["scope"], *self.strangers, *self.values, limit - len(found))
            found += rows.find(self.store, QUEUE.format(more=self.of_friends + self.narrow), values)
        return found


def _begin(store, instance: dict, task: dict, ignore_unread: bool, more: dict) -> dict:
    if not ignore_unread:
        _refuse_while_unread(store, instance, task["id"])
    payload = {"prior_status": task["status"], "status": states.IN_PROGRESS, **more}
    begun = states.move(store, task, states.IN_PROGRESS, "claim", instance["id"], payload, assignee=instance["id"])
    return {"task": begun, "prior_status": task["status"]}


def _refuse_unless_possible(task: dict, instance: dict) -> None:
    why = states.refusal(task, states.IN_PROGRESS, "claim", instance["id"])
    if not why and task["status"] == states.OPEN and task["assignee"] not in (None, instance["id"]):
        why = "Task is assigned to another session"
    if why:
        raise Refused(why)


def _refuse_while_unread(store, instance: dict, task_id: str) -> None:
    """New work waits until the mail has been read, which may be about that work.

    The notice that one has been given this very task is no reason to wait.
    """
    glance = store.messages.peek(instance, INBOX_GLANCE)
    if all(notices.about(message["content"], task_id) for message in glance):
        return
    latest = (
        store.row(
            "SELECT id, sender FROM messages WHERE scope = ? AND recipient = ? AND read = 0 ORDER BY id DESC LIMIT 1",
            (instance["scope"], instance["id"]),
        )
        or glance[-1]
    )
    count = store.messages.unread_count(instance)
    raise Refused(
        f"Read your mail first: {count} unread message{'s' if count != 1 else ''}, the latest #{latest['id']} from"
        f" {latest['sender']}. Call poll_messages (or bootstrap), then claim again; ignore_unread_messages skips this.",
        unread_message_count=count,
        latest_message_id=latest["id"],
        latest_message_sender=latest["sender"],
    )


def _without_dead_holder(store, task: dict) -> dict:
    """`task`, open again where the session that has it is gone and nobody has noticed yet."""
    holder = task["assignee"]
    if task["status"] not in (states.CLAIMED, states.IN_PROGRESS) or not holder or store.instances.live(holder):
        return task
    row = store.instances.get(holder)
    if row:
        removal.remove(store, row, "reclaimed")
    else:
        from swarm_mcp.store.task_departures import release

        release(store, task)
    return rows.get(store, task["scope"], task["id"]) or task


def _dead_holders(store, instance: dict) -> list[dict]:
    """Sessions of this scope that have gone and still hold tasks, which would be free otherwise."""
    return [
        row
        for row in store.instances.gone()
        if store.row(
            "SELECT 1 FROM tasks WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')",
            (instance["scope"], row["id"]),
        )
    ]


def _marks(values: list[str]) -> str:
    return ", ".join("?" * len(values))

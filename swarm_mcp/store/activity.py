"""What has happened in a scope since a moment, as far as it concerns one session.

Everything here is found through an index: asking costs the same with 100 000 rows as with none.

A session's own changes are no news to it: it made them. The event rows tell whose a change was. Nor are
those of sessions of another identity, but for their locks: that a file is held is never hidden.
"""

from __future__ import annotations

from typing import NamedTuple

from swarm_mcp.domain.lock import MUTEX_PREFIX
from swarm_mcp.store.acquaintance import Acquaintance
from swarm_mcp.store.task_rows import Sight, find

EVENTS_AT_ONCE = 1000
LOCKS_TOLD = 100
_LOCK_CHANGES = {"context.lock_acquired": "acquired", "context.lock_released": "released"}


class Moment(NamedTuple):
    """How far a session has seen: each field grows, or at least differs, with a change of its kind."""

    event: int
    message: int
    task: int
    instances: tuple[int, int]
    kv: int


class News(NamedTuple):
    """What is new, and the moment up to which. `locks` as ``wait_for_activity`` shows them."""

    moment: Moment
    messages: bool = False
    tasks: bool = False
    instances: bool = False
    kv: bool = False
    locks: tuple[dict, ...] = ()

    @property
    def changes(self) -> list[str]:
        """The contract's names of what is new."""
        found = {
            "new_messages": self.messages,
            "task_updates": self.tasks,
            "instance_changes": self.instances,
            "kv_updates": self.kv,
            "lock_updates": bool(self.locks),
        }
        return [name for name, is_new in found.items() if is_new]


class Activity:
    """The embedded store's answer to: what is new?"""

    def __init__(self, store):
        self.store = store

    def moment(self, instance: dict) -> Moment:
        """Now, as this session sees it."""
        scope, instance_id = instance["scope"], instance["id"]
        row = self.store.row(
            "SELECT (SELECT max(id) FROM events WHERE scope = ?1) AS event,"
            " (SELECT max(id) FROM messages WHERE scope = ?1 AND recipient = ?2 AND read = 0) AS message,"
            " (SELECT max(changed_at) FROM tasks WHERE scope = ?1) AS task,"
            " (SELECT count(*) FROM instances WHERE scope = ?1) AS here,"
            " (SELECT max(registered_at) FROM instances WHERE scope = ?1) AS newest,"
            " (SELECT changed_at FROM kv_scope_updates WHERE scope = ?1) AS kv",
            (scope, instance_id),
        )
        known = {name: value or 0 for name, value in (row or {}).items()}
        instances = (known["here"], known["newest"])
        return Moment(known["event"], known["message"], known["task"], instances, known["kv"])

    def since(self, instance: dict, before: Moment) -> News:
        """What is new to this session since `before`."""
        now = self.moment(instance)
        if now == before:
            return News(now)
        events = self._events(instance["scope"], before.event, now.event)
        known = Acquaintance(instance["label"])
        known.learn(events)
        moved = {
            "task.": now.task != before.task,
            "instance.": now.instances != before.instances,
            "kv.": now.kv != before.kv,
        }
        if len(events) < EVENTS_AT_ONCE:  # else more than anybody reads one by one: all that moved is news
            for group in moved:
                mine = [event for event in events if event["type"].startswith(group)]
                if mine:
                    sight = Sight(self.store, instance)
                    moved[group] = any(self._concerns(instance, event, known, sight) for event in mine)
        tasks, instances, kv = moved.values()
        locks = self._locks(instance, events, known)
        return News(now, now.message > before.message, tasks, instances, kv, locks)

    def sweep(self) -> None:
        """Notice what nobody announces: sessions that died, and locks that went without a word of ours.

        Both end what others wait for. Costs one read while there is nothing of the kind.
        """
        store = self.store
        store.leases.some()
        if store.instances.gone() or store.denials.are_due() or store.locks.rows.ended_holds():
            with store.writing():
                store.instances.reclaim()
                store.locks.rows.reaped(store.locks.rows.ended_holds())
                store.locks.key_foreign_rows(2000)  # or a lock by another spelling would be due again and again
                store.denials.settle()

    # -------------------------------------------------------------- innards

    def _events(self, scope: str, after: int, until: int) -> list[dict]:
        """The newest events in between, oldest first."""
        rows = self.store.rows(
            "SELECT id, type, actor, subject, payload FROM events WHERE scope = ? AND id > ? AND id <= ?"
            " ORDER BY id DESC LIMIT ?",
            (scope, after, until, EVENTS_AT_ONCE),
        )
        return rows[::-1]

    def _concerns(self, instance: dict, event: dict, known: Acquaintance, sight: Sight) -> bool:
        # What the system does to a session is that session's doing here: it joined, or is gone.
        doer = event["subject"] if event["type"].startswith("instance.") else event["actor"]
        if doer == instance["id"]:
            return False
        if event["type"].startswith("task."):
            task = find(self.store, "id = ?", (event["subject"],))
            return not task or sight.sees(task[0])
        return known.may_meet(self.store, doer)

    def _locks(self, instance: dict, events: list[dict], known: Acquaintance) -> tuple[dict, ...]:
        """What became of which file in the end; files that only this session has touched not."""
        last: dict[str, dict] = {}
        for event in events:
            file = event["subject"] or ""
            if event["type"] in _LOCK_CHANGES and not file.startswith(MUTEX_PREFIX):
                last.pop(file, None)
                if event["actor"] != instance["id"]:
                    last[file] = event
        told = []
        for file, event in list(last.items())[-LOCKS_TOLD:]:
            holder = event["actor"] if known.may_meet(self.store, event["actor"]) else None
            told.append({"file": file, "change": _LOCK_CHANGES[event["type"]], "instance_id": holder})
        return tuple(told)

"""Events since a moment, as far as they concern one session.

All questions go through indexes: they cost the same with 100 000 rows as with one.

A session is not told of its own changes. It is not told of changes of another identity either, except of locks: a
locked file is never hidden.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.state import turn_mark
from swarm_mcp.domain import MUTEX_PREFIX, Event, Moment, News, Session, onlooker
from swarm_mcp.store import lock_finder, lock_rows, locks, reactions, refusals, session_table, task_reading
from swarm_mcp.store.database import Database, Transaction, object_in
from swarm_mcp.store.messages import may_meet

EVENTS_AT_ONCE = 1000
LOCKS_TOLD = 100
_LOCK_CHANGES = {"context.lock_acquired": "acquired", "context.lock_released": "released"}


FEED_AT_ONCE = 500
LOOKED_THROUGH = 20_000  # events of one timeline
LOCKS_AND_SESSIONS = ("context", "instance", "protection")
# Group of events -> the name that ``wait_for_activity`` has for a change of that kind.
CHANGES = {
    "message": "new_messages",
    "task": "task_updates",
    "instance": "instance_changes",
    "kv": "kv_updates",
    "context": "lock_updates",
}
# Fields of a lock's event about its holder.
_OF_THE_HOLDER = ("content", "note", "holder", "holder_label", "said")


class Feed:
    """Events of `scope` after the one with id `last` (None: from now on).

    `identity` is the identity of the viewer, empty without one.
    """

    def __init__(self, tx: Transaction, scope: str, identity: str, last: int | None):
        self._tx = tx
        self.scope = scope
        if last is None:
            self.last = self._newest()
        else:
            self.last = last
        self._viewer = onlooker(identity, scope)
        self._known = Acquaintance(tx, self._viewer.label)

    def _newest(self) -> int:
        """Return the id of the newest event, 0 without events."""
        row = self._tx.row("SELECT max(id) AS id FROM events WHERE scope = ?", (self.scope,))
        return (row and row.id) or 0

    def read(self) -> list[dict[str, Any]]:
        if self._newest() < self.last:
            self.last = 0  # another store has taken the place of the one before
        rows = self._tx.rows(
            "SELECT id, type, actor, subject, payload, facts, created_at FROM events WHERE scope = ? AND id > ?"
            " ORDER BY id LIMIT ?",
            (self.scope, self.last, FEED_AT_ONCE),
            Event,
        )
        self._known.learn(rows)
        if rows:
            self.last = rows[-1].id
        return [self._seen(row) for row in rows]

    def _seen(self, row: Event) -> dict[str, Any]:
        group, payload = row.type.partition(".")[0], payload_of(row)
        if group == "instance":
            doer = row.subject
        else:
            doer = row.actor
        open_to_viewer = self._known.may_meet(doer)
        if group == "message":
            shown = open_to_viewer and self._known.may_meet(row.subject)
        elif group == "task":
            tasks = task_reading.find(self._tx, "id = ?", (row.subject,))
            if tasks:
                shown = task_reading.Sight(self._tx, self._viewer).sees(tasks[0])
            else:
                shown = open_to_viewer
        elif group == "context":
            shown = not (row.subject or "").startswith(MUTEX_PREFIX)
            if not (open_to_viewer and self._known.may_meet(payload.get("holder"))):
                payload = {name: value for name, value in payload.items() if name not in _OF_THE_HOLDER}
        else:
            shown = open_to_viewer or group == "instance"
        if not shown:
            return {"id": row.id}
        if open_to_viewer or group == "instance":
            actor = row.actor
        else:
            actor = None
        if group == "instance" and not open_to_viewer:
            payload = {"label": None}
        if actor and open_to_viewer:
            label = self._known.label_of(actor)
        else:
            label = None
        facts = {"actor": actor, "actor_label": label, "subject": row.subject, "payload": payload}
        return {"id": row.id, "at": row.created_at, "change": CHANGES.get(group), "type": row.type, **facts}


def moment(tx: Transaction, instance: Session) -> Moment:
    """Now, as this session sees it."""
    scope, instance_id = instance.scope, instance.id
    row = tx.row(
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


def since(tx: Transaction, instance: Session, before: Moment) -> News:
    """Return all news of this session since `before`."""
    now = moment(tx, instance)
    if now == before:
        return News(now)
    # The newest events in between, oldest first
    rows = tx.rows(
        "SELECT id, type, actor, subject, payload, facts FROM events WHERE scope = ? AND id > ? AND id <= ?"
        " ORDER BY id DESC LIMIT ?",
        (instance.scope, before.event, now.event, EVENTS_AT_ONCE),
        Event,
    )
    events = rows[::-1]
    known = Acquaintance(tx, instance.label)
    known.learn(events)
    moved = {
        "task.": now.task != before.task,
        "instance.": now.instances != before.instances,
        "kv.": now.kv != before.kv,
    }
    # else there are more than a reader goes through one by one: each kind that moved is news
    if len(events) < EVENTS_AT_ONCE:
        for group in moved:
            mine = [event for event in events if event.type.startswith(group)]
            if mine:
                sight = task_reading.Sight(tx, instance)
                moved[group] = any(_concerns(tx, instance, event, known, sight) for event in mine)
    tasks, instances, kv = moved.values()
    locks = _locks(instance, events, known)
    return News(now, now.message > before.message, tasks, instances, kv, locks)


def feed(tx: Transaction, scope: str, identity: str, last: int | None = None) -> Feed:
    """Return the events of `scope` after the one with id `last`, as `identity` may see them. Default: from now on."""
    return Feed(tx, scope, identity, last)


def acquaintance(tx: Transaction, label: str | None) -> Acquaintance:
    """Return the sessions in events as a viewer with this label may know them."""
    return Acquaintance(tx, label, for_one_answer=True)


def of_locks(tx: Transaction, before: int | None, limit: int) -> list[Event]:
    """Return the newest events about locks, of all scopes; those before the one with id `before` where given."""
    condition, values = ("AND id < ?", (before,)) if before is not None else ("", ())
    rows = tx.rows(
        "SELECT id, type, actor, subject, payload, facts, created_at FROM events"
        f" WHERE type >= 'context.' AND type < 'context/' {condition} ORDER BY id DESC LIMIT {limit}",
        values,
        Event,
    )
    if not os.path.lexists(turn_mark()):
        return rows  # no session here was ever at level `turn`

    return lock_finder.with_turns(tx, rows, before, rows[-1].created_at if len(rows) == limit else 0)


def timeline(
    tx: Transaction, scope: str, since: int, until: int, limit: int, groups: tuple[str, ...] = LOCKS_AND_SESSIONS
) -> list[Event]:
    """Return the newest events of `scope` (empty: all) in these seconds, newest first.

    `groups` of them: ``context`` (locks), ``instance`` (sessions), ``breaches``, ``domain``.
    """
    within, values = ("AND scope = ?", (scope,)) if scope else ("", ())
    # Of a busy store's events most are about other things: so many are looked through, not more.
    some = (
        "SELECT id, scope, type, actor, subject, payload, facts, created_at FROM events"
        " INDEXED BY events_created_at_idx"
        f" WHERE created_at BETWEEN ? AND ? {within} ORDER BY created_at DESC, id DESC LIMIT {LOOKED_THROUGH}"
    )
    shown = " OR ".join(f"(type >= '{group}.' AND type < '{group}/')" for group in groups)
    no_file = f"{MUTEX_PREFIX}%"
    return tx.rows(
        f"SELECT * FROM ({some}) WHERE ({shown}) AND coalesce(subject, '') NOT LIKE ? LIMIT ?",
        (since, until, *values, no_file, limit),
        Event,
    )


def of_sessions(tx: Transaction, ids: list[str]) -> list[Event]:
    """Return when these sessions joined and left, oldest first."""
    return tx.rows(
        "SELECT type, subject, payload, facts FROM events WHERE type >= 'instance.' AND type < 'instance/'"
        f" AND subject IN ({','.join('?' * len(ids))}) ORDER BY id",
        ids,
        Event,
    )


def sweep(db: Database) -> None:
    """Notice changes that no process announces: sessions that died, and locks that another program deleted.

    Both end waits of other sessions. Costs one read while there is nothing of the kind.
    """
    locks.let_lapse(db)
    if session_table.some_gone(db) or refusals.are_due(db) or lock_rows.ended_holds(db):
        foreign = lock_rows.foreign_keys(db)
        with db.writing() as tx:
            reactions.reclaim(tx)
            locks.reaped(tx, lock_rows.ended_holds(tx))
            lock_rows.give_keys(tx, foreign)  # or a lock by another spelling would be due again and again
            refusals.settle(tx)


def _concerns(tx: Transaction, instance: Session, event: Event, known: Acquaintance, sight: task_reading.Sight) -> bool:
    # The subject of an instance's event counts as its doer: it joined, or is gone.
    if event.type.startswith("instance."):
        doer = event.subject
    else:
        doer = event.actor
    if doer == instance.id:
        return False
    if event.type.startswith("task."):
        task = task_reading.find(tx, "id = ?", (event.subject,))
        return not task or sight.sees(task[0])
    return known.may_meet(doer)


def _locks(instance: Session, events: list[Event], known: Acquaintance) -> tuple[dict[str, Any], ...]:
    """Return the last change of each lock; without files that only this session has touched."""
    last: dict[str, Event] = {}
    for event in events:
        file = event.subject or ""
        if event.type in _LOCK_CHANGES and not file.startswith(MUTEX_PREFIX):
            last.pop(file, None)
            if event.actor != instance.id:
                last[file] = event
    told = []
    for file, newest in list(last.items())[-LOCKS_TOLD:]:
        if known.may_meet(newest.actor):
            holder = newest.actor
        else:
            holder = None
        told.append({"file": file, "change": _LOCK_CHANGES[newest.type], "instance_id": holder})
    return tuple(told)


def payload_of(event: Event) -> dict[str, Any]:
    """Return an event's payload and facts; empty if it has none, or unreadable ones."""
    return {**object_in(event.payload), **object_in(event.facts)}


class Acquaintance:
    """The sessions in events, as far as a viewer with `label` may know them. Learns the labels of sessions that leave.

    `for_one_answer`: look each session up once, since the object is made for each answer.
    """

    def __init__(self, tx: Transaction, label: str | None, for_one_answer: bool = False):
        self._tx = tx
        self.label = label
        self._labels: dict[str, str | None] = {}
        if for_one_answer:
            self._rows: dict[str, Session | None] | None = {}
        else:
            self._rows = None

    def learn(self, events: list[Event]) -> None:
        for event in events:
            if event.type.startswith("instance.") and event.subject:
                label = payload_of(event).get("label")
                self._labels[event.subject] = label if isinstance(label, str) else None

    def label_of(self, instance_id: str) -> str | None:
        row = self._row(instance_id)
        if row:
            return row.label
        return self._labels.get(instance_id)

    def may_meet(self, instance_id: str | None) -> bool:
        if instance_id in (None, "system"):
            return True
        row = self._row(instance_id)
        if row is None and instance_id not in self._labels:
            return may_meet(self.label, "identity:?")
        return may_meet(self.label, row.label if row else self._labels[instance_id])

    def _row(self, instance_id: str) -> Session | None:
        if self._rows is None:
            return session_table.get(self._tx, instance_id)
        if instance_id not in self._rows:
            self._rows[instance_id] = session_table.get(self._tx, instance_id)
        return self._rows[instance_id]

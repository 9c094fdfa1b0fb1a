"""Waiting for locks: taking a place in the line, giving it up, and finding circles of waiters."""

from __future__ import annotations

import os
from itertools import islice

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import start_time
from swarm_mcp.domain.record import Record
from swarm_mcp.errors import Deadlock
from swarm_mcp.store import lock_finder, lock_queue, session_table
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_queue import Holder
from swarm_mcp.store.lock_request import LockRequest
from swarm_mcp.store.naming import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.domain.lock import Lock, Waiter
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database, Transaction
    from swarm_mcp.store.lock_request import Reach


_OF_OTHERS = "c.instance_id || ' ' || coalesce(c.agent, '') NOT IN (SELECT value FROM json_each(?))"


def lengths(tx: Transaction) -> dict[str, int]:
    """Return the number of waiters for each contested lock, by its id, without its own holder."""
    found: dict[str, int] = {}
    for row in lock_queue.waiting(tx):
        met = {lock.id: lock for reach in row.reaches for lock in lock_finder.meeting(tx, reach)}
        for lock in met.values():
            if lock_queue.holder_of(lock) != (row.instance_id, row.agent):
                found[lock.id] = found.get(lock.id, 0) + 1
    return found


def obstacles(tx: Transaction, row: Waiter, limit: int = 20) -> list[Lock | Waiter]:
    """Return the obstacles of a waiter: one lock of each holder that keeps it out, then the waiters before it."""
    holder = Holder(row.instance_id, row.agent)
    asked = LockRequest(row.reaches, mode=row.mode, agent=row.agent, ticket=row.ticket)
    held = _one_of_each(tx, holder, row.mode, row.reaches, limit).values()
    return [*islice(held, limit), *islice(lock_queue.ahead(tx, holder, asked), limit)]


def join(db: Database, instance: Session, wanted: LockRequest, seconds: float | None) -> int:
    """Take a place behind all waiters; return its ticket. `seconds` is the longest wait, None for any time.

    Raises Deadlock if every session in a circle would wait for the next.
    """
    wants = [
        {
            "file": reach.file,
            "path_key": reach.key,
            "keys": reach.keys,
            "pattern": reach.pattern,
            "base": reach.base,
            **({"repository": reach.names[0]} if reach.names else {}),
        }
        for reach in wanted.reaches
    ]
    now = clock.now()
    values: dict[str, Any] = {"instance_id": instance.id, "agent": wanted.agent, "scope": instance.scope}
    values.update(host=db.here, pid=os.getpid(), start=start_time(os.getpid()), mode=wanted.mode)
    values.update(wants=dumps(wants), since=now, until=None if seconds is None else now + seconds)
    values["seen"] = clock.awake()
    from swarm_mcp.store import session_life  # a list of locks only counts waiters

    with db.writing() as tx:
        session_life.require(tx, instance.id)
        lock_queue.sweep(tx)
        circle = _circle(tx, Holder(instance.id, wanted.agent), wanted)
        if not circle:
            values["fence"] = (tx.row("SELECT last FROM swarm_fence") or Record(last=0)).last
            marks = ", ".join("?" * len(values))
            return tx.insert(f"INSERT INTO swarm_waiters ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        tx.add_event(instance.scope, "context.lock_deadlock", instance.id, wanted.reaches[0].file,
            {"circle": [list(holder) for holder in circle]},
        )  # fmt: skip
    raise Deadlock([_named(db, holder) for holder in circle])


def require_end(tx: Transaction, instance: Session, wanted: LockRequest) -> None:
    """Raise Deadlock for the last waiter of a circle, whose wait has no end any more.

    A circle arises after its waiters have joined only if a lock was handed to a waiter.
    """
    me = Holder(instance.id, wanted.agent)
    circle = _circle(tx, me, wanted)
    tickets = [row.ticket for row in lock_queue.waiting(tx) if Holder(row.instance_id, row.agent) in circle]
    if circle and max(tickets, default=0) <= wanted.ticket:
        raise Deadlock([_named(tx, holder) for holder in circle])


def leave(db: Database, ticket: int) -> None:
    """Outside a transaction: give a place up without having got the lock; no error if the place is not there.

    Sessions that were denied the file are told, if it is free now without other waiters.
    """
    if ticket:
        from swarm_mcp.store import reactions

        with db.writing() as tx:
            lock_queue.give_up(tx, ticket)
            reactions.place_left(tx)


def show_life(tx: Transaction, instance: Session, ticket: int) -> bool:
    """Note that this waiting session is awake; return False if its place has been given up meanwhile.

    Raises SwarmError if the session has gone.
    """
    from swarm_mcp.store import session_life

    session_life.require(tx, instance.id)
    return bool(tx.change("UPDATE swarm_waiters SET seen = ? WHERE ticket = ?", (clock.awake(), ticket)))


def _keeping(tx: Transaction, holder: Holder, mode: str, reaches: tuple[Reach, ...]) -> list[Holder]:
    """Return the holders of locks that keep `holder` from these."""
    return list(_one_of_each(tx, holder, mode, reaches))


def _one_of_each(
    tx: Transaction, holder: Holder, mode: str, reaches: tuple[Reach, ...], limit: float = float("inf")
) -> dict[Holder, Lock]:
    """Return the holders that keep `holder` from these, each with one of the locks; stop after `limit` of them."""
    found: dict[Holder, Lock] = {}
    while True:
        # One lock of each holder suffices; look again for holders without a lock among those found so far.
        known = dumps([" ".join(one) for one in found])
        asking = Asking(*holder, mode, _OF_OTHERS if found else "", (known,) if found else ())
        new = {lock_queue.holder_of(lock): lock for lock in lock_queue.locks_in_the_way(tx, asking, reaches)}
        if new.keys() <= found.keys() or len(found) >= limit:
            return found
        found = {**found, **new}


def _circle(tx: Transaction, start: Holder, wanted: LockRequest) -> list[Holder]:
    """Return the circle of holders that a wait of `start` would close, beginning with it; empty without one."""
    waiting: dict[Holder, list[Waiter]] = {}
    for row in lock_queue.waiting(tx):
        waiting.setdefault(Holder(row.instance_id, row.agent), []).append(row)

    def next_of(holder: Holder) -> list[Holder]:
        found = []
        for row in waiting.get(holder, ()):
            asked = wanted._replace(reaches=row.reaches, mode=row.mode, ticket=row.ticket)
            found += _keeping(tx, holder, row.mode, row.reaches)
            found += [Holder(other.instance_id, other.agent) for other in lock_queue.ahead(tx, holder, asked)]
        return found

    first = _keeping(tx, start, wanted.mode, wanted.reaches)
    first += [Holder(row.instance_id, row.agent) for row in lock_queue.ahead(tx, start, wanted)]
    seen: set[Holder] = set()
    pending = [(holder, [start]) for holder in first]
    while pending:
        holder, path = pending.pop()
        if holder == start:
            return path
        if holder not in seen:
            seen.add(holder)
            pending += [(after, [*path, holder]) for after in next_of(holder)]
    return []


def _named(tx: Transaction, holder: Holder) -> str:
    row = session_table.get(tx, holder.instance_id)
    if row:
        name = name_of(row)
    else:
        name = holder_name("", holder.instance_id)
    if holder.agent:
        return f"{name} (agent {holder.agent})"
    return name

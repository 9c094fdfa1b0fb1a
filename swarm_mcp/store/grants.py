"""Granting locks, and waiting for them.

Most requests run into nothing: no waiters, no lock in the way, no lapsed lease. Such a request is granted at once; else
each thing that the statement has found is looked at.
"""

from __future__ import annotations

import os
import time
from itertools import islice
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import start_time
from swarm_mcp.domain import AUTO, EXCLUSIVE, Lock, Record, Session, Waiter, new_id
from swarm_mcp.errors import Deadlock
from swarm_mcp.store import lock_finder, lock_listing, lock_rows, reactions, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.lock_listing import Holder
from swarm_mcp.store.lock_request import LockRequest, Reach
from swarm_mcp.store.lock_rows import ON_FILES, Asking, facts, first_look, numbered
from swarm_mcp.store.messages import name_of

MOST = 20  # locks of one request that are asked about together: SQLite takes no more than some hundred questions in one
MOST_KNOWN = 1000  # grants that a process remembers, to release them by their ids

_LOCK = "EXISTS (SELECT 1 FROM context WHERE type = 'lock' AND"
_SOME_OF_ALL = (
    "EXISTS (SELECT 1 FROM swarm_waiters) AS waiters, EXISTS (SELECT 1 FROM swarm_lapses) AS lapses,"
    f" {_LOCK} repository IS NOT NULL) AS logical,"
    f" EXISTS (SELECT 1 FROM context WHERE path_key IS NULL AND {ON_FILES}) AS keyless"
)
_SOME_OF_ITS_OWN = (
    f"{_LOCK} ttl IS NOT NULL AND instance_id = i.id) AS leased,"
    " EXISTS (SELECT 1 FROM swarm_denials WHERE instance_id = i.id) AS denied"
)


class Surroundings(Session):
    """The session that asks, as ``EVIDENCE`` has it, and the existence of rows of each kind (1 or 0).

    waiters  places in the line, of any session
    lapses   records of locks that lapsed under their holders
    logical  locks that hold in every work tree of a repository
    keyless  locks that another implementation has stored without a key
    leased   locks of this session that lapse
    denied   refusals that this session is still to be told about
    met      locks that may meet the request, in the same work tree, and keep it out or be its own
    """

    __slots__ = ()

    waiters: int
    lapses: int
    logical: int
    keyless: int
    leased: int
    denied: int
    met: int


def surroundings(tx: Transaction, reaches: tuple[Reach, ...], asking: Asking) -> Surroundings:
    """Return the surroundings of a request for these `reaches`; empty if its session is not registered."""
    single = len(reaches) == 1 and not reaches[0].pattern and (reaches[0], asking)  # a parsed pattern has no hash
    sql, values = _known.get(single) or _statement(reaches, asking)
    if single:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[single] = sql, values
    return tx.row(sql, values, Surroundings) or Surroundings()


_known: dict[Any, tuple[str, tuple[Any, ...]]] = {}  # statements of `surroundings`: see ``lock_rows``


def _statement(reaches: tuple[Reach, ...], asking: Asking) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of `surroundings`, and its values."""
    met = "1"
    values: list[Any] = []
    if 0 < len(reaches) <= MOST:
        looks = [first_look(reach, asking) for reach in reaches]
        met = " OR ".join(look for look, _ in looks)
        values = [value for _, own in looks for value in own]
    return numbered(
        f"SELECT {EVIDENCE}, {_SOME_OF_ALL}, {_SOME_OF_ITS_OWN}, ({met}) AS met"
        " FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id WHERE i.id = ?",
        [*values, asking.instance_id],
    )


def grant(
    tx: Transaction,
    instance: Session,
    wanted: LockRequest,
    met: list[list[Lock]] | None = None,
    around: Surroundings | None = None,
) -> list[Lock]:
    """Inside a transaction that has found the way free: grant the locks; return their rows, as `acquire_all`.

    `met`: the locks that each wanted reach meets now, if known; so `around`.
    """
    waited = 0.0
    if around is None or around.waiters:
        waited = lock_listing.waited(tx, wanted.ticket)
        lock_listing.pass_over(tx, instance, wanted)
        lock_listing.give_up(tx, wanted.ticket)
    if around is None or around.denied:
        from swarm_mcp.store import refusals

        refusals.forget(tx, instance.id, keys_of(wanted))
    granted = [
        _grant(tx, instance, wanted, reach, lock_finder.same(tx, reach) if met is None else met[number], waited)
        for number, reach in enumerate(wanted.reaches)
    ]
    if around is None or around.lapses:
        reactions.locks_granted(tx, instance, granted)
    return granted


def _grant(
    tx: Transaction, instance: Session, wanted: LockRequest, reach: Reach, met: list[Lock], waited: float = 0.0
) -> Lock:
    """Inside a transaction: the lock's row, in place of the one among `met` that is this very lock already.

    `waited`: for how many seconds it was waited for, for the record.
    """
    own = None
    for row in met:
        is_own = row.instance_id == instance.id and (row.agent or "") == wanted.agent and row.mode != AUTO
        if is_own and lock_finder.is_same(row, reach):
            own = row
            break
    mode = None if wanted.mode == EXCLUSIVE else wanted.mode
    lock: dict[str, Any] = {
        "id": new_id(),
        "content": wanted.note,
        "task_id": wanted.task_id,
        "created_at": tx.now(),
        "path_key": reach.key,
        "mode": mode,
        "expected_end": wanted.expected_end,
        "base": reach.base or None,
        "repository": reach.names[0] if reach.names else None,
        "ttl": wanted.ttl,
        "renewed": None,
        "booted": None,
        "wall_until": None,
        "warned": None,
    }
    if wanted.ttl is not None:
        lock.update(renewed=clock.now(), booted=clock.boot(tx.here), wall_until=time.time() + wanted.ttl)
    if own:
        # Held all along, it is the same grant, unless it is now one of another kind.
        same = own.mode == mode
        lock["fence"] = own.fence if own.fence and same else lock_rows.next_fence(tx)
        lock["team_fence"] = own.team_fence if same else None  # another kind is confirmed anew
        names = ", ".join(f"{name} = ?" for name in lock)
        tx.change(f"UPDATE context SET {names} WHERE id = ?", (*lock.values(), own.id))
        lock = {**own, **lock}
    else:
        lock.update(scope=instance.scope, instance_id=instance.id, type="lock", fence=lock_rows.next_fence(tx))
        lock.update(agent=wanted.agent or None, pattern=reach.pattern or None)
        lock_rows.insert(tx, lock, reach.file)
    lock["file"] = reach.file
    more = {name: lock[name] for name in ("ttl", "task_id") if lock.get(name)}
    more.update(facts(lock))
    if own:
        more["was"] = own.mode or EXCLUSIVE
    if waited:
        more["waited"] = waited
    payload = {"id": lock["id"], "content": wanted.note}
    tx.add_event(lock["scope"], "context.lock_acquired", instance.id, reach.file, payload, more)
    if len(tx.granted) >= MOST_KNOWN:
        tx.granted.clear()
    tx.granted[instance.id, reach.file, lock["fence"]] = lock["id"]
    return Lock(lock)


def keys_of(wanted: LockRequest) -> list[str]:
    return [key for reach in wanted.reaches for key in reach.keys]


# Waiting for locks: taking a place in the line, giving it up, and finding circles of waiters.

_OF_OTHERS = "c.instance_id || ' ' || coalesce(c.agent, '') NOT IN (SELECT value FROM json_each(?))"


def lengths(tx: Transaction) -> dict[str, int]:
    """Return the number of waiters for each contested lock, by its id, without its own holder."""
    found: dict[str, int] = {}
    for row in lock_listing.waiting(tx):
        met = {lock.id: lock for reach in row.reaches for lock in lock_finder.meeting(tx, reach)}
        for lock in met.values():
            if lock_listing.holder_of(lock) != (row.instance_id, row.agent):
                found[lock.id] = found.get(lock.id, 0) + 1
    return found


def obstacles(tx: Transaction, row: Waiter, limit: int = 20) -> list[Lock | Waiter]:
    """Return the obstacles of a waiter: one lock of each holder that keeps it out, then the waiters before it."""
    holder = Holder(row.instance_id, row.agent)
    asked = LockRequest(row.reaches, mode=row.mode, agent=row.agent, ticket=row.ticket)
    held = _one_of_each(tx, holder, row.mode, row.reaches, limit).values()
    return [*islice(held, limit), *islice(lock_listing.ahead(tx, holder, asked), limit)]


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
    with db.writing() as tx:
        reactions.require(tx, instance.id)
        lock_listing.sweep(tx)
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
    tickets = [row.ticket for row in lock_listing.waiting(tx) if Holder(row.instance_id, row.agent) in circle]
    if circle and max(tickets, default=0) <= wanted.ticket:
        raise Deadlock([_named(tx, holder) for holder in circle])


def leave(db: Database, ticket: int) -> None:
    """Outside a transaction: give a place up without having got the lock; no error if the place is not there.

    Sessions that were denied the file are told, if it is free now without other waiters.
    """
    if ticket:
        with db.writing() as tx:
            lock_listing.give_up(tx, ticket)
            reactions.place_left(tx)


def show_life(tx: Transaction, instance: Session, ticket: int) -> bool:
    """Note that this waiting session is awake; return False if its place has been given up meanwhile.

    Raises SwarmError if the session has gone.
    """
    reactions.require(tx, instance.id)
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
        new = {lock_listing.holder_of(lock): lock for lock in lock_listing.locks_in_the_way(tx, asking, reaches)}
        if new.keys() <= found.keys() or len(found) >= limit:
            return found
        found = {**found, **new}


def _circle(tx: Transaction, start: Holder, wanted: LockRequest) -> list[Holder]:
    """Return the circle of holders that a wait of `start` would close, beginning with it; empty without one."""
    waiting: dict[Holder, list[Waiter]] = {}
    for row in lock_listing.waiting(tx):
        waiting.setdefault(Holder(row.instance_id, row.agent), []).append(row)

    def next_of(holder: Holder) -> list[Holder]:
        found = []
        for row in waiting.get(holder, ()):
            asked = wanted._replace(reaches=row.reaches, mode=row.mode, ticket=row.ticket)
            found += _keeping(tx, holder, row.mode, row.reaches)
            found += [Holder(other.instance_id, other.agent) for other in lock_listing.ahead(tx, holder, asked)]
        return found

    first = _keeping(tx, start, wanted.mode, wanted.reaches)
    first += [Holder(row.instance_id, row.agent) for row in lock_listing.ahead(tx, start, wanted)]
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

"""Granting locks: one statement that looks around a request, and the rows of the granted locks.

Most requests run into nothing: no waiters, no lock in the way, no lapsed lease. Such a request is granted at once; else
each thing that the statement has found is looked at.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import Session
from swarm_mcp.store import lock_finder, lock_rows, reactions
from swarm_mcp.store.lock_candidates import first_look, numbered
from swarm_mcp.store.lock_rows import ON_FILES, facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Transaction
    from swarm_mcp.store.lock_candidates import Asking
    from swarm_mcp.store.lock_request import LockRequest, Reach

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


_known: dict[Any, tuple[str, tuple[Any, ...]]] = {}  # statements of `surroundings`: see ``lock_candidates``


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
        from swarm_mcp.store import lock_queue

        waited = lock_queue.waited(tx, wanted.ticket)
        lock_queue.pass_over(tx, instance, wanted)
        lock_queue.give_up(tx, wanted.ticket)
    if around is None or around.denied:
        from swarm_mcp.store import denials

        denials.forget(tx, instance.id, keys_of(wanted))
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
    payload: dict[str, Any] = {"id": lock["id"], "content": wanted.note, "fence": lock["fence"]}
    payload.update({name: lock[name] for name in ("mode", "agent", "ttl", "task_id") if lock.get(name)})
    payload.update(facts(lock))
    if own:
        payload["was"] = own.mode or EXCLUSIVE
    if waited:
        payload["waited"] = waited
    tx.add_event(lock["scope"], "context.lock_acquired", instance.id, reach.file, payload)
    if len(tx.granted) >= MOST_KNOWN:
        tx.granted.clear()
    tx.granted[instance.id, reach.file, lock["fence"]] = lock["id"]
    return Lock(lock)


def keys_of(wanted: LockRequest) -> list[str]:
    return [key for reach in wanted.reaches for key in reach.keys]

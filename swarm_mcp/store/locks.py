"""Locks: taken, released and renewed.

A lock is a row of ``context``, as the contract has it. Our additions stand in columns that other implementations
ignore. To them a shared lock is several rows on spellings of one path, and a pattern a row on a path of that name.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.labels import token
from swarm_hook_core.lookup import plain
from swarm_hook_core.state import has_turn_files
from swarm_mcp.domain.lock import AUTO, Lock, Waiter, is_mutex, keeps_out
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.folders import file_of
from swarm_mcp.store import grants, lock_finder, lock_rows, reactions, session_life
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_finder import unfit
from swarm_mcp.store.lock_request import (
    LockRequest,
    Reach,
    checked,
    checked_ttl,
    reach_in,
    reach_of,
    request,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.errors import Refused
    from swarm_mcp.store.database import Database, Transaction
    from swarm_mcp.store.grants import Surroundings


def acquire(
    db: Database,
    instance: Session,
    file: str,
    note: str = "",
    exclusive: bool = False,
    task_id: str | None = None,
    tool: str = "lock_file",
) -> Lock:
    """Lock `file`, as the session names it; return the lock's row. As `acquire_all`, of one.

    With `exclusive` one's own lock is refused like any other.
    """
    wanted = request(instance, [file], note=note, once=exclusive, task_id=task_id, tool=tool)
    return acquire_all(db, instance, wanted)[0]


def acquire_all(db: Database, instance: Session, wanted: LockRequest) -> list[Lock]:
    """Take all locks of a request, or not one; return the rows, in the request's order, each with its ``fence``.

    A lock that the holder has already is renewed in place, so that no peer can slip in between. Waiters
    (``lock_queue``) go first. Raises LockRefused; then the session is told when the file is free.
    """
    granted = _acquire(db, instance, wanted, None)
    if granted is None:  # the disk is asked for the keys while other processes can write
        granted = _acquire(db, instance, wanted, lock_rows.foreign_keys(db))
    return granted or []


def _acquire(db: Database, instance: Session, wanted: LockRequest, keys: list[Any] | None) -> list[Lock] | None:
    """Do as `acquire_all`; return None if locks of other implementations need their keys first.

    `keys` are those keys, of ``lock_rows.foreign_keys``; None for not asked yet.
    """
    # Locks that meet a pattern may take long to find, so they are looked for before the transaction.
    look, version = None, (0, 0)
    if any(reach.pattern for reach in wanted.reaches):
        version, look = db.version(), _look(db, instance, wanted)
    with db.writing(before_waiting=lambda: _refuse_known(db, instance, wanted)) as tx:
        if keys:
            lock_rows.give_keys(tx, keys)
        if look is None or keys or has_turn_files() or version != tx.version():
            look = _look(tx, instance, wanted)
        around, found = look
        if session_life.renew(tx, instance.id, around, bool(around.leased)) and any(found):
            found = _look(tx, instance, wanted)[1]  # its own locks were looked at as a silent session's
        if around.keyless and keys is None and _are_keys_due(tx, wanted):
            return None
        if around.waiters and tx.swept_at != tx.now():
            from swarm_mcp.store import lock_queue

            tx.swept_at = tx.now()  # once a second: reading dead waiters takes its time
            lock_queue.sweep(tx)
        met = found
        if any(found):
            met = _reaped_for(tx, instance, wanted, found)
        refusal: Lock | Waiter | None = _first_other(instance, wanted, met)
        if refusal is None and around.waiters:
            from swarm_mcp.store import lock_queue

            refusal = lock_queue.ahead_of(tx, instance, wanted)
        if refusal is None:
            # Where something of others had to be removed first, there is more now than was seen around it.
            granted = grants.grant(tx, instance, wanted, met, around if met == found else None)
        else:
            is_known = _note_refusal(tx, instance, wanted, refusal)
    if refusal is None:
        if has_yielded(db, _new_among(granted, met)):
            return _acquire(db, instance, wanted, keys)
        return granted
    if is_known:
        from swarm_mcp.store import denials

        denials.count(instance, refusal)
    raise _refusal(db, instance, refusal)


def has_yielded(db: Database, granted: list[Lock]) -> bool:
    """Outside a transaction: take back these new locks, now committed, if a write has taken a file of theirs meanwhile.

    Return True if they were taken back.
    """
    if not granted or not has_turn_files():
        return False
    from swarm_mcp.store import turn_locks

    if not turn_locks.are_taken(db, granted):
        return False
    with db.writing() as tx:
        held = lock_rows.select(tx, "AND c.instance_id = ?", (granted[0].instance_id,))
        reactions.end_locks(tx, [row for row in held if row.id in {lock.id for lock in granted}])
    return True


def _new_among(granted: list[Lock], met: list[list[Lock]]) -> list[Lock]:
    """Return the locks that the session has not held all along. `met`: those that each request met before."""
    return [
        lock
        for lock, rows in zip(granted, met)
        if not any((row.instance_id, row.file) == (lock.instance_id, lock.file) for row in rows)
    ]


def _reaped_for(tx: Transaction, instance: Session, wanted: LockRequest, found: list[list[Lock]]) -> list[list[Lock]]:
    """Inside a transaction: return the locks of `found` that still hold, having removed the others."""
    from swarm_mcp.store import lock_endings

    tx.taker = (instance.id, grants.keys_of(wanted))
    try:
        return [lock_endings.reaped(tx, rows) for rows in found]
    finally:
        tx.taker = ("", [])


def in_the_way(tx: Transaction, instance: Session, wanted: LockRequest) -> Lock | None:
    """Return the first lock that keeps this request from being granted, or None. Only looks."""
    asking = Asking(instance.id, wanted.agent, wanted.mode)
    met = [lock_rows.live(tx, lock_finder.meeting(tx, reach, asking)) for reach in wanted.reaches]
    return _first_other(instance, wanted, met)


def release(db: Database, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
    """Release this session's lock on `file`; return the number of rows (0 is no error).

    With `agent` only that subagent's lock. With `fence`, the number of a grant, only that very grant: Refused if it is
    not held any more, since its present holder must not lose it to a latecomer.
    """
    if fence is not None:
        lock_id = db.granted.pop((instance.id, file_of(instance, checked(file)), fence), "")
        released = _release_granted(db, instance, file, agent, lock_id)
        if released:
            return released
    from swarm_mcp.store import lock_endings

    reach = reach_of(instance, file, is_new=False)
    refusal = None
    with db.writing() as tx:
        released = lock_endings.release(tx, instance, reach, agent, fence)
        if fence is None or released:
            released += end_for_turn(tx, instance, reach, agent, is_told=not released)
        if not released and fence is not None:
            refusal = unfit(
                reach,
                lock_finder.own_among(lock_endings.reaped(tx, lock_finder.same(tx, reach)), instance, agent),
                fence,
            )
    if refusal:  # raised out here, so that messages about lapses stay
        raise refusal
    return released


def _release_granted(db: Database, instance: Session, file: str, agent: str, lock_id: str) -> int:
    """Release a lock that this process was granted, by its id; return 0 without one, or if another process changed it.

    Its path was resolved when it was taken. It is not resolved again.
    """
    if not lock_id:
        return 0
    from swarm_mcp.store.lock_endings import release_granted

    with db.writing() as tx:
        released = release_granted(tx, instance, lock_id, agent)
        if released and has_turn_files():
            end_for_turn(tx, instance, reach_of(instance, file, is_new=False), agent)
    return released


def end_for_turn(tx: Transaction, instance: Session, reach: Reach, agent: str = "", is_told: bool = False) -> int:
    """Let a session have the file for its turn no longer. Return 1 if it had it, and others shall be told of that."""
    if not has_turn_files():
        return 0
    from swarm_mcp.store import turn_locks

    ended = turn_locks.release(tx, instance.id, reach, agent)
    if not is_told or not ended:
        return 0
    reactions.locks_ended(tx, ended, "")
    return 1


def release_all(db: Database, instance: Session, agent: str = "") -> list[str]:
    """Give up all locks on files that this session, or with `agent` that subagent of it, holds; the files."""
    from swarm_mcp.store import lock_endings

    with db.writing() as tx:
        rows = lock_rows.select(tx, "AND c.instance_id = ? AND coalesce(c.agent, '') = ?", (instance.id, agent))
        mine = [row for row in lock_endings.reaped(tx, rows) if not is_mutex(row.file)]
        mine += [row for row in lock_finder.of_turns(tx, holder=instance.id) if (row.agent or "") == agent]
        reactions.end_locks(tx, mine)
        for reach in filter(None, map(reach_in, mine)):
            end_for_turn(tx, instance, reach, agent)
    return [plain(row.file) for row in mine]


def release_of_agent(db: Database, instance: Session, agent: str) -> list[str]:
    """Release all locks of one of this session's agents, because it has ended; return the files."""
    with db.writing() as tx:
        theirs = lock_rows.select(tx, "AND c.instance_id = ? AND c.agent = ?", (instance.id, agent))
        theirs += [row for row in lock_finder.of_turns(tx, holder=instance.id) if row.agent == agent]
        reactions.end_locks(tx, theirs, "agent_ended", agent=agent)
        reactions.turn_ended(tx, instance, agent=agent)
    return [plain(row.file) for row in theirs]


def _look(tx: Transaction, instance: Session, wanted: LockRequest) -> tuple[Surroundings, list[list[Lock]]]:
    """Return the surroundings of a request, and for each reach the locks that it meets."""
    asking = Asking(instance.id, wanted.agent, wanted.mode)
    around = grants.surroundings(tx, wanted.reaches, asking)
    if around.logical or any(reach.names for reach in wanted.reaches) or has_turn_files():
        return around, [lock_finder.meeting(tx, reach, asking) for reach in wanted.reaches]
    return around, [lock_rows.in_place(tx, reach, asking) if around.met else [] for reach in wanted.reaches]


def _are_keys_due(tx: Transaction, wanted: LockRequest) -> bool:
    """Return True if locks without a key get theirs now: without one only its very name finds a lock."""
    now, deep = tx.now(), any(reach.base for reach in wanted.reaches)
    due = deep or tx.keys_sought_at != now  # once a second is enough for a request for one file
    tx.keys_sought_at = now
    return due


def _first_other(instance: Session, wanted: LockRequest, met: list[list[Lock]]) -> Lock | None:
    """Return the first of the locks `met` for each that is wanted that keeps this request waiting."""
    for reach, rows in zip(wanted.reaches, met):
        for row in rows:
            own = (
                wanted.once and row.instance_id == instance.id and row.mode != AUTO and lock_finder.is_same(row, reach)
            )
            if own or keeps_out(row, instance.id, wanted.agent, wanted.mode):
                return row
    return None


def _refuse_known(tx: Transaction, instance: Session, wanted: LockRequest) -> None:
    """Refuse a repeated request at once, without waiting for the store, if it is still refused."""
    from swarm_mcp.store import denials, lock_queue

    if wanted.ticket or not denials.are_recent(tx, instance.id):
        return
    refusal = in_the_way(tx, instance, wanted) or lock_queue.ahead_of(tx, instance, wanted)
    if refusal and denials.is_known(tx, instance, refusal, wanted.reaches[0].file, wanted.tool):
        denials.count(instance, refusal)
        raise _refusal(tx, instance, refusal)


def _note_refusal(tx: Transaction, instance: Session, wanted: LockRequest, refusal: Lock | Waiter) -> bool:
    """Inside a transaction: write the refusal down; return True if it `is_known`, and only counts."""
    from swarm_mcp.store import denials, refusals
    from swarm_mcp.store.attempts import of_request

    if refusal.instance_id == instance.id:
        if (refusal.agent or "") not in ("", wanted.agent):
            refusals.report_sibling(tx, instance, [refusal], of_request(instance, wanted))
    elif not wanted.ticket:
        if denials.is_known(tx, instance, refusal, wanted.reaches[0].file, wanted.tool):
            return True
        refusals.record(tx, instance, refusal, of_request(instance, wanted))
    return False


def _refusal(tx: Transaction, instance: Session, refusal: Lock | Waiter) -> LockRefused:
    from swarm_mcp.store import lock_listing, lock_queue

    viewer = token(instance.label or "", "identity")
    if isinstance(refusal, Lock):
        return LockRefused(lock_listing.describe(tx, refusal, viewer))
    return LockRefused(lock_queue.described(refusal, viewer))


def renew_lock(
    db: Database, instance: Session, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
) -> Lock:
    """Renew this session's lock on `file`, from now on with a lease of `ttl` seconds where that is given; its row.

    Refused where it is not held any more, or not by that grant (`fence`): it is for the holder to notice.
    """
    reach, ttl = reach_of(instance, file), checked_ttl(ttl)
    refusal: Refused | None = None
    with db.writing() as tx:
        session_life.require(tx, instance.id)
        mine = [row for row in lock_finder.own(tx, instance, reach, agent) if row.mode != AUTO]
        refusal = unfit(reach, mine, fence)
        if refusal is None and ttl is not None:
            tx.change(
                "UPDATE context SET ttl = ?, renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
                (ttl, clock.now(), clock.boot(tx.here), time.time() + ttl, mine[0].id),
            )
            told = {"id": mine[0].id, "fence": mine[0].fence, "ttl": ttl}
            tx.add_event(mine[0].scope, "context.lock_renewed", instance.id, reach.file, told)
    if refusal:  # raised out here, so that messages about lapses stay
        raise refusal
    return lock_finder.own(db, instance, reach, agent)[0]

"""The line of waiters for locks: first come, first served, across processes.

A waiter is a row from the moment it joins until it has its locks, gives up, or its process is gone. A later request for
some of the same has to wait as well, even for a free file: no waiter is overtaken. One exception: a session that has
held, since before the waiter came, a lock that the waiter waits for may go first, since it would wait for itself
otherwise. It may do so only while it keeps that lock, so no wait is endless.
"""

from __future__ import annotations

import os

from swarm_hook_core import clock
from swarm_hook_core.json_text import loads
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.process import gone
from swarm_mcp.domain.lock import AUTO, SHARED, Lock, Waiter, keeps_out
from swarm_mcp.store import lock_finder, lock_rows, session_table
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_request import LockRequest, Reach, meet, reach_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NamedTuple

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Transaction
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

_OF_HOLDER_BEFORE = "+c.instance_id = ? AND coalesce(c.agent, '') = ? AND coalesce(c.fence, 0) <= ?"
SILENT_SECONDS = 30.0  # without a sign of life of a waiter; a waiter shows one every ten seconds


class Holder(NamedTuple):
    """A session, or one of its agents, that holds or waits."""

    instance_id: str
    agent: str = ""


def waiting(tx: Transaction) -> list[Waiter]:
    """Return all waiters, first come first."""
    return [row for row in _places(tx) if not _is_void(tx, row)]


def waiting_for(tx: Transaction, *reaches: Reach) -> list[Waiter]:
    """Return the waiters for something that meets any of `reaches`, first come first."""
    met = [row for row in _places(tx) if any(meet(one, other) for one in reaches for other in row.reaches)]
    return [row for row in met if not _is_void(tx, row)]


def has(tx: Transaction, ticket: int, instance_id: str) -> bool:
    """Return True if the place with this ticket is still there: another process may have taken it for given up."""
    sql = "SELECT 1 FROM swarm_waiters WHERE ticket = ? AND instance_id = ? AND pid = ?"
    return tx.row(sql, (ticket, instance_id, os.getpid())) is not None


def waited(tx: Transaction, ticket: int) -> float:
    """Return the seconds waited in this place; 0 for a place that is not there."""
    if ticket:
        row = tx.row("SELECT since FROM swarm_waiters WHERE ticket = ?", (ticket,))
    else:
        row = None
    if row:
        return float(max(0.0, round(clock.now() - row.since, 1)))
    return 0.0


def is_there(tx: Transaction, ticket: int) -> bool:
    """Return True if the place with this ticket is there."""
    return tx.row("SELECT 1 FROM swarm_waiters WHERE ticket = ?", (ticket,)) is not None


def ahead_of(tx: Transaction, instance: Session, wanted: LockRequest) -> Waiter | None:
    """Return the live waiter with an earlier right to a part of the request, or None.

    It is in the shape of a lock: ``file`` is the contested file, ``ticket`` tells it from a lock.
    """
    row = next(ahead(tx, Holder(instance.id, wanted.agent), wanted), None)
    if row is None:
        return None
    reach = next(own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches))
    return row.replace(file=reach.file, path_key=reach.key, id=None, content="", created_at=None)


def is_silent(tx: Transaction, row: Waiter) -> bool:
    """Return True if a waiter has shown no life for so long that it keeps no session off a free file."""
    if row.seen is None or clock.boot(row.host) != clock.boot(tx.here):
        return False  # that place's clock is not ours: an unknown waiter counts as alive
    return clock.awake() - row.seen >= SILENT_SECONDS


def described(row: Waiter, viewer_identity: str) -> dict[str, Any]:
    """Return a waiter that `ahead_of` found, in the shape of a refusal's ``active``."""
    if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
        return {"hidden": True, "reason": "cross_identity", "file": row.file, "waiting": True}
    owner = {"id": row.instance_id, "label": row.owner_label}
    shown = {"ticket": row.ticket, "instance_id": row.instance_id, "file": row.file}
    return {**shown, "content": "", "waiting": True, "mode": row.mode, "owner": owner, "active_tasks": []}


def pass_over(tx: Transaction, instance: Session, wanted: LockRequest) -> None:
    """Inside a transaction that grants `wanted`: give up the places of silent waiters that came before it."""
    for row in _before(tx, Holder(instance.id, wanted.agent), wanted):
        if is_silent(tx, row):
            give_up(tx, row.ticket)


def sweep(tx: Transaction) -> None:
    """Inside a transaction: remove the places of waiters that are gone, or have waited long enough."""
    for row in _places(tx):
        if _is_void(tx, row):
            give_up(tx, row.ticket)


def _places(tx: Transaction, before: int | None = None) -> Iterator[Waiter]:
    """Return every place, or those before a ticket, first come first; not all of them are still waited in."""
    rows = tx.rows(
        "SELECT w.*, i.label AS owner_label, i.id AS owner_id FROM swarm_waiters w"
        " LEFT JOIN instances i ON i.id = w.instance_id WHERE ? IS NULL OR w.ticket < ? ORDER BY w.ticket",
        (before, before),
        Waiter,
    )
    return (row.replace(reaches=reaches_of(row)) for row in rows)


def ahead(tx: Transaction, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
    """Yield the waiters that this request has to wait for."""
    return (row for row in _before(tx, holder, wanted) if not is_silent(tx, row))


def _before(tx: Transaction, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
    """Return the waiters whose turn comes before that of this request."""
    for row in _places(tx, wanted.ticket or None):
        if Holder(row.instance_id, row.agent) == holder:
            continue
        if row.mode == SHARED and wanted.mode == SHARED:
            continue
        common = [own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches)]
        if common and not _is_void(tx, row) and not _may_pass(tx, holder, wanted.mode, common, row):
            yield row


def _may_pass(tx: Transaction, holder: Holder, mode: str, common: list[Reach], row: Waiter) -> bool:
    """Return True if `holder` may have `common` before a waiter: see the docstring of this module."""
    waiter = Asking(row.instance_id, row.agent, row.mode, _OF_HOLDER_BEFORE, (*holder, row.fence))
    kept = locks_in_the_way(tx, waiter, row.reaches)
    if any(holder_of(lock) == holder and (lock.fence or 0) <= row.fence for lock in kept):
        return True
    return all(_has(tx, holder, mode, reach) for reach in common)


def _has(tx: Transaction, holder: Holder, mode: str, reach: Reach) -> bool:
    """Return True if `holder` has that very lock already, so that asking again gives it no more."""
    own = [lock for lock in lock_finder.same(tx, reach) if holder_of(lock) == holder]
    return any(not lock_rows.is_void(tx, lock) and lock.mode in (None, AUTO, mode) for lock in own)


def locks_in_the_way(tx: Transaction, asking: Asking, reaches: tuple[Reach, ...]) -> Iterator[Lock]:
    """Yield locks that keep it from these: some, where there are any; of each reach apart."""
    for reach in reaches:
        for lock in lock_rows.live(tx, lock_finder.meeting(tx, reach, asking)):
            if keeps_out(lock, *asking[:3]):
                yield lock


def _is_void(tx: Transaction, row: Waiter) -> bool:
    if row.owner_id is None or (row.until is not None and row.until < clock.now()):
        return True
    if gone(row.host, row.pid, row.start, tx.here):
        return True
    return session_table.live(tx, row.owner_id) is None  # a session that has gone waits no more than it holds


def holder_of(lock: Lock) -> Holder:
    return Holder(lock.instance_id, lock.agent or "")


def reaches_of(row: Waiter) -> tuple[Reach, ...]:
    """Return the reaches that the row of a place waits for."""
    try:
        wants = loads(row.wants)
        if isinstance(wants, list):
            return tuple(reach for want in wants if (reach := reach_in(want)))
        return ()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ()  # nothing of ours stores such a row: it waits for nothing, and stops no session


def give_up(tx: Transaction, ticket: int) -> None:
    """Inside a transaction: remove a place in the line; no error if it is not there."""
    if ticket:
        tx.change("DELETE FROM swarm_waiters WHERE ticket = ?", (ticket,))

"""How locks end: released, reaped after their holders have gone or ended, and lapsed in time."""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_hook_core.lookup.process_holders import has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.untrusted_text import named
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import DETACHED, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import lock_rows, reactions, session_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database, Transaction
    from swarm_mcp.store.lock_request import Reach

# One join finds the evidence about the holder. A DELETE with RETURNING would ask for each of its columns, and keep the
# answer in a table of its own: that takes three times as long as these two statements.
# Each column takes a microsecond, so only those that the end of a lock needs are read.
_HELD = (
    "SELECT c.id, c.scope, c.instance_id, c.file, c.path_key, c.mode, c.agent, c.pattern, c.base, c.ttl, c.renewed,"
    f" c.booted, c.wall_until, c.fence, c.repository, i.id AS owner_id, {EVIDENCE},"
    " EXISTS (SELECT 1 FROM swarm_denials) AS some_were_denied"
    " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
    " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id WHERE c.type = 'lock' AND +c.instance_id = ?"
)
_GRANTED = f"{_HELD} AND c.id = ? AND (? = '' OR c.agent = ?)"

AT_ONCE = 200  # leases that are looked at together


def release(tx: Transaction, instance: Session, reach: Reach, agent: str, fence: int | None) -> int:
    """Inside a transaction: delete this session's locks on that very path or pattern; how many it still held.

    `agent` and `fence` as in ``locks.release``.
    """
    return _end(tx, instance, _found(tx, instance, reach, agent, fence))


def release_granted(tx: Transaction, instance: Session, lock_id: str, agent: str) -> int:
    """Do as `release`, for the one lock of this id."""
    return _end(tx, instance, tx.rows(_GRANTED, (instance.id, lock_id, agent, agent), Lock))


def _end(tx: Transaction, instance: Session, locks: list[Lock]) -> int:
    """Delete `locks` of this session, as `_HELD` has them, and note their ends; return the number that still held."""
    ends: dict[str, list[Lock]] = {"": [], "reclaimed": [], "ended": [], "lapsed": []}
    for lock in locks:
        tx.change("DELETE FROM context WHERE id = ?", (lock.id,))
        ends[_reason(tx, lock)].append(lock)
    for reason, some in ends.items():
        if some:
            lock_rows.note_ends(tx, some, reason)
            if any(lock["some_were_denied"] or lock["runtime"] == DETACHED for lock in some):
                reactions.locks_ended(tx, some, reason)
    if ends["lapsed"]:
        reactions.locks_lapsed(tx, ends["lapsed"])
    if ends["reclaimed"] and (holder := session_table.get(tx, instance.id)):
        reactions.session_gone(tx, holder, "reclaimed")
    return len(ends[""])


def _reason(tx: Transaction, lock: Lock) -> str:
    """Return the reason for which a lock did not hold any more; empty if it did."""
    if lock_rows.has_gone(tx, lock):
        return "reclaimed"
    if has_ended(lock.agent, tx.here):
        return "ended"
    if lock_rows.has_lapsed(tx, lock):
        return "lapsed"
    return ""


def _found(tx: Transaction, instance: Session, reach: Reach, agent: str, fence: int | None) -> list[Lock]:
    names = (reach.key,) if reach.pattern else reach.keys
    marks, some = ",".join("?" * len(names)), "SELECT rowid FROM context WHERE type = 'lock' AND"
    # By how it was spelled: a mutex, and where links on the way have changed since.
    named = f"{some} path_key IN ({marks}) UNION ALL {some} path_key IS NOT file AND file IN ({marks})"
    return tx.rows(
        f"{_HELD} AND c.rowid IN ({named}) AND coalesce(c.pattern, '') = ? AND (? = '' OR coalesce(c.base, '') = ?)"
        " AND (? = '' OR c.agent = ?) AND (? IS NULL OR c.fence = ?) ORDER BY c.rowid",
        (
            instance.id, *names, *names, reach.pattern, reach.pattern, reach.base, agent, agent, fence, fence,
        ),
        Lock,
    )  # fmt: skip


def reaped(tx: Transaction, rows: list[Lock]) -> list[Lock]:
    """Inside a transaction: return the locks of `rows` that still hold; remove the rest, with all of gone sessions."""
    void = [row for row in rows if lock_rows.is_void(tx, row)]
    for holder_id in {row.instance_id for row in void if lock_rows.has_gone(tx, row)}:
        holder = session_table.get(tx, holder_id)
        if holder:
            reactions.session_gone(tx, holder, "reclaimed")
        else:
            reactions.end_locks(tx, [row for row in void if row.instance_id == holder_id], "reclaimed")
    left = [row for row in void if not lock_rows.has_gone(tx, row)]
    ended = [row for row in left if has_ended(row.agent, tx.here)]
    reactions.end_locks(tx, ended, "ended")
    reactions.lapse_locks(tx, [row for row in left if row not in ended])
    ids = {row.id for row in void}
    return [row for row in rows if row.id not in ids]


def let_lapse(db: Database) -> bool:
    """Outside a transaction: warn of leases that are nearly over, end lapsed locks; return True if there were any.

    Costs one read while nothing is due. A busy store is left alone until the next time.
    """
    from swarm_mcp.store import leases

    if not leases.due(db, 1):
        return False
    try:
        with db.hurried(), db.writing() as tx:
            settle_leases(tx)
    except SwarmError:  # busy: the next process does it
        return False
    return True


def settle_leases(tx: Transaction) -> None:
    """Do as `let_lapse`, inside a transaction."""
    from swarm_mcp.store import leases

    for lock_id in leases.due(tx, AT_ONCE):
        for row in reaped(tx, lock_rows.select(tx, "AND c.id = ?", (lock_id,))):
            _warn(tx, row)


def _warn(tx: Transaction, row: Lock) -> None:
    tx.change("UPDATE context SET warned = 1 WHERE id = ?", (row.id,))
    holder, left = session_table.get(tx, row.instance_id), lock_rows.left(tx, row) or 0.0
    if holder:
        text = (
            f"[auto] Your lock on {named(plain(row.file))} lapses in {left:.0f} s. Anything this session does"
            " renews it; if you need it no longer, release it: others may be waiting."
        )
        from swarm_mcp.store import messages

        messages.post(tx, holder.scope, "system", holder.id, text)

"""Leases: rows of locks that lapse, and records of lapsed locks.

The end of a lease is read from the boot clock (``clock``) whenever a lock is looked at. So a lapsed lock stops holding
without anything happening here; this module writes down and tells people about it.

The record of a lapse stands for a day, or until its session is given that lock again or leaves. While it stands, and
another session has had the file since, the commit guard refuses a commit of that file by the former holder, since its
knowledge of the file is old.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.domain import Lapse, Lock, Session
from swarm_mcp.store import lock_rows, messages, session_table
from swarm_mcp.store.database import Transaction
from swarm_mcp.store.lock_request import meet, reach_in
from swarm_mcp.store.messages import may_meet, name_of

WARNED_AT = 0.2  # of a lease is left when its holder is warned; ``swarm_lock_due_idx`` counts on it
RENEWED_EVERY = 3  # signs of life in the time of a lease, from clients that give them unasked
LAPSES_KEPT_SECONDS = 86400

_LEASED = "type = 'lock' AND ttl IS NOT NULL"


def is_any_renewable(tx: Transaction, instance_id: str) -> bool:
    """Return True if this session has a lease that its signs of life renew."""
    return tx.has(f"context WHERE {_LEASED} AND instance_id = ?", instance_id)


def lapsed_of(tx: Transaction, instance_id: str) -> list[Lock]:
    """Return the locks of this session with a lease that is over."""
    rows = lock_rows.select(tx, "AND c.ttl IS NOT NULL AND c.instance_id = ?", (instance_id,))
    return [row for row in rows if lock_rows.has_lapsed(tx, row)]


def renew(tx: Transaction, instance_id: str) -> None:
    """Let the leases of this session begin anew: it has shown life, and those that were over have ended."""
    tx.change(
        f"UPDATE context SET renewed = ?, booted = ?, wall_until = ? + ttl, warned = NULL"
        f" WHERE {_LEASED} AND instance_id = ?",
        (clock.now(), clock.boot(tx.here), time.time(), instance_id),
    )


def is_due(tx: Transaction, instance_id: str) -> bool:
    """Return True if `keep` would write: a third of one of this session's leases is over."""
    left = until_due(tx, instance_id)
    return left is not None and left <= 0


def next_due(tx: Transaction) -> float | None:
    """Return the seconds until a holder is to be warned, or a lease is over; None without leases."""
    rows = tx.rows(
        f"SELECT ttl, renewed, warned FROM context WHERE {_LEASED} AND booted = ?"
        " ORDER BY renewed + ttl * 0.8 LIMIT 50",
        (clock.boot(tx.here),),
    )
    ends = [row.renewed + row.ttl * (1 if row.warned else 1 - WARNED_AT) for row in rows]
    if ends:
        return float(min(ends) - clock.now())
    return None


def note_lapse(tx: Transaction, locks: list[Lock]) -> None:
    """Inside a transaction that has removed these locks: write them down, and tell each holder."""

    for lock in locks:
        left = lock_rows.time_left(tx, lock) or 0.0
        lapsed_at = int(time.time() + left)
        holder = session_table.get(tx, lock.instance_id)
        if holder is None:
            continue
        file = plain(lock.file)
        row = {name: lock[name] for name in ("instance_id", "path_key", "pattern", "base", "fence")}
        row.update(file=file, agent=lock.agent or "", lapsed_at=lapsed_at)
        row["message_id"] = messages.post_notice(tx, holder, _words(lock.replace(file=file), lapsed_at), file)
        marks = ", ".join("?" * len(row))
        tx.change(f"INSERT OR REPLACE INTO swarm_lapses ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def note_grant(tx: Transaction, instance: Session, locks: list[Lock]) -> None:
    """Inside a transaction that has granted these locks: note the new holder with lapses of the same files."""
    for lapse in tx.rows("SELECT * FROM swarm_lapses", (), Lapse):
        for lock in locks:
            if lapse.instance_id == instance.id:
                if lapse.file == lock.file and lapse.agent == (lock.agent or ""):
                    tx.change(
                        "DELETE FROM swarm_lapses WHERE instance_id = ? AND file = ? AND agent = ?",
                        (lapse.instance_id, lapse.file, lapse.agent),
                    )
            elif lapse.taken_fence is None and _same_place(lapse, lock):
                _taken(tx, lapse, instance, lock)
                break


def overtaken(tx: Transaction, instance_id: str) -> list[Lapse]:
    """Return lapsed locks of this session that another session has taken since."""
    return tx.rows(
        "SELECT * FROM swarm_lapses WHERE instance_id = ? AND taken_fence IS NOT NULL ORDER BY lapsed_at",
        (instance_id,),
        Lapse,
    )


def forget_lapses_of(tx: Transaction, instance_id: str) -> None:
    """Inside a transaction: drop those of a session that has gone."""
    tx.change("DELETE FROM swarm_lapses WHERE instance_id = ?", (instance_id,))


def forget_old_lapses(tx: Transaction, after: str, limit: int) -> str:
    """Inside a transaction: drop records older than a day, and those of sessions that have gone.

    Looks at the next `limit` behind `after`. Return the last one looked at, empty at the end.
    """
    rows = tx.rows(
        f"SELECT rowid AS place FROM swarm_lapses WHERE rowid > ? ORDER BY rowid LIMIT {limit}", (int(after or 0),)
    )
    if rows:
        tx.change(
            "DELETE FROM swarm_lapses WHERE rowid > ? AND rowid <= ? AND (lapsed_at < ?"
            " OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = instance_id))",
            (int(after or 0), rows[-1].place, tx.now() - LAPSES_KEPT_SECONDS),
        )
    if len(rows) == limit:
        return str(rows[-1].place)
    return ""


def until_due(tx: Transaction, instance_id: str) -> float | None:
    """Return the seconds until a third of this session's first lease is over; None without leases."""
    rows = tx.rows(
        f"SELECT ttl, renewed, booted, wall_until FROM context WHERE {_LEASED} AND instance_id = ?",
        (instance_id,),
        Lock,
    )
    waits = [left - (row.ttl or 0.0) * (1 - 1 / RENEWED_EVERY) for row in rows
             if (left := lock_rows.time_left(tx, row)) is not None]  # fmt: skip
    return min(waits, default=None)


def due(tx: Transaction, limit: int) -> list[str]:
    """Return the ids of locks that have lapsed, or whose holders are to be warned."""
    boot, now, wall = clock.boot(tx.here), clock.now(), time.time()
    found = f"SELECT id FROM context WHERE {_LEASED} AND"
    rows = tx.rows(
        f"{found} booted = ? AND renewed + ttl * 0.8 <= ? AND (warned IS NULL OR renewed + ttl <= ?) LIMIT ?",
        (boot, now, now, limit),
    )
    for other in ("<", ">"):  # of an earlier start of the machine; apart, for the index
        rows += tx.rows(
            f"{found} booted {other} ? AND wall_until - ttl * 0.2 <= ? AND (warned IS NULL OR wall_until <= ?) LIMIT ?",
            (boot, wall, wall, limit),
        )
    return [row.id for row in rows]


def _taken(tx: Transaction, lapse: Lapse, taker: Session, lock: Lock) -> None:
    tx.change(
        "UPDATE swarm_lapses SET taken_fence = ?, taken_by = ?, taken_label = ?"
        " WHERE instance_id = ? AND file = ? AND agent = ?",
        (lock.fence, taker.id, taker.label, lapse.instance_id, lapse.file, lapse.agent),
    )
    former = session_table.get(tx, lapse.instance_id)
    known = former and may_meet(former.label, taker.label)
    own = name_of(taker)
    if known:
        name = own
    else:
        name = "a session of another identity"
    more = f" Since then {name} has been given {named(lock.file)}: read before you write."
    tx.change("UPDATE messages SET content = content || ? WHERE id = ? AND read = 0", (more, lapse.message_id))


def _same_place(lapse: Lapse, lock: Lock) -> bool:
    one, other = reach_in(lapse), reach_in(lock)
    return bool(one and other and meet(one, other))


def _words(lock: Lock, lapsed_at: int) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(lapsed_at))
    if lock.agent:
        held = f" (agent {named(lock.agent)})"
    else:
        held = ""
    if lock.fence:
        fence = f", fence {lock.fence}"
    else:
        fence = ""
    return (
        f"[auto] Your lock on {named(lock.file)}{held} lapsed at {moment}: there was no sign of life for"
        f" {duration(lock.ttl or 0.0)}{fence}. It may have changed; lock it again before you go on with it."
    )

"""Signs of life of sessions, their leases, and reactions: the effects of one change on others, each by name, in order.

They happen in the transaction of the change itself. Each change renews the session that makes it, and its leases.

The end of a lease is read from the boot clock (``clock``) whenever a lock is looked at. So a lapsed lock stops holding
without anything happening here; this module writes that down and tells people about it. The record of a lapse stands
for a day, or until its session is given that lock again or leaves. While it stands, and another session has had the
file since, the commit guard refuses a commit of that file by the former holder, since its knowledge of the file is old.

Hooks wait for sessions that join, take turns and leave, and models wait for locks. So a reaction asks first if the
tables of a part hold anything for it, and loads the module of that part only then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from swarm_hook_core import clock
from swarm_hook_core.lookup import AUTO, plain
from swarm_hook_core.process import departed, living
from swarm_hook_core.state import has_turn_files
from swarm_hook_core.untrusted_text import named
from swarm_mcp.domain import DETACHED, Lapse, Lock, Session
from swarm_mcp.errors import Refused, SwarmError, UnknownInstance
from swarm_mcp.store import session_table
from swarm_mcp.store.database import Database, Transaction

CLEANUP_PAUSE_SECONDS = 30  # between two passes of ``cleanup``, of any process
RECLAIMED_AT_ONCE = 20  # gone sessions that one registration removes
WARNED_AT = 0.2  # of a lease is left when its holder is warned; ``swarm_lock_due_idx`` counts on it
RENEWED_EVERY = 3  # signs of life in the time of a lease, from clients that give them unasked
LAPSES_KEPT_SECONDS = 86400
_LEASE = "type = 'lock' AND ttl IS NOT NULL"
ANY_LEASED = f"context WHERE {_LEASE}"
_LEASED = f"{ANY_LEASED} AND instance_id = ?"
SIGN_SECONDS = 5  # between two signs of life that are written down; less where a lease is that short
LONGEST = 65536  # bytes of a message


# ---------------------------------------------------------------- signs of life


def keep(db: Database, instance_id: str, was_seen: bool = True) -> float | None:
    """Outside a transaction: renew this session's locks if a third of a lease is over, for a process that vouches for
    it.

    Without `was_seen` the session counts as silent all the same. Return the seconds until the next call is due, None
    without leases. Raises SwarmError if the session has gone. Costs one read while there is nothing to do.
    """
    if is_due(db, instance_id):
        with db.writing() as tx:
            if was_seen:
                require(tx, instance_id)
            else:
                session_alive(tx, instance_id)
    return _until_due(db, instance_id)


def require(tx: Transaction, instance_id: str) -> None:
    """Inside a transaction: renew a session that is about to change something.

    A lapsed lease is forgiven while no other session has taken its place. Raises SwarmError if the session has gone.
    """
    found = session_table.evidence_where(tx, "WHERE i.id = ?", (instance_id,))
    renew(tx, instance_id, found[0] if found else Session())


def renew(tx: Transaction, instance_id: str, row: Session, has_leases: bool = True) -> bool:
    """Do as `require`, with the `row` of the session and its ``EVIDENCE`` just read.

    Return True if its sign of life was written down. `has_leases`: False if it is known to hold no lock that lapses.
    """
    now = tx.now()
    if not row:
        has_gone = True
    elif row.last_seen is not None:
        has_gone = bool(row.client_pid) and not living(row.host, session_table.clients_of(row), tx.here)
    else:
        has_gone = departed(row, now, tx.here)
    if has_gone:
        raise SwarmError(f"instance {instance_id} is no longer registered; register again")
    if has_leases:
        session_alive(tx, instance_id)
    known_for = min(SIGN_SECONDS, (row.lease_seconds or 0) / 1000)
    if row.last_seen is not None and 0 <= now - row.last_seen <= known_for:
        return False  # said already; a session that works fast would pay for it each time
    tx.change("UPDATE swarm_sessions SET last_seen = ? WHERE instance_id = ?", (now, instance_id))
    if row.last_seen is not None and row.lease_seconds:
        lease_until = now + row.lease_seconds
        values = (now, lease_until, instance_id)
        tx.change("UPDATE instances SET heartbeat = ?, lease_until = ? WHERE id = ?", values)
    return True


# ---------------------------------------------------------------- leases


def is_due(tx: Transaction, instance_id: str) -> bool:
    """Return True if `keep` would write: a third of one of this session's leases is over."""
    left = _until_due(tx, instance_id)
    return left is not None and left <= 0


def _until_due(tx: Transaction, instance_id: str) -> float | None:
    """Return the seconds until a third of this session's first lease is over; None without leases."""
    from swarm_mcp.store import lock_rows

    rows = tx.rows(
        f"SELECT ttl, renewed, booted, wall_until FROM context WHERE {_LEASE} AND instance_id = ?",
        (instance_id,),
        Lock,
    )
    waits = [left - (row.ttl or 0.0) * (1 - 1 / RENEWED_EVERY) for row in rows
             if (left := lock_rows.time_left(tx, row)) is not None]  # fmt: skip
    return min(waits, default=None)


def next_due(tx: Transaction) -> float | None:
    """Return the seconds until a holder is to be warned, or a lease is over; None without leases."""
    rows = tx.rows(
        f"SELECT ttl, renewed, warned FROM context WHERE {_LEASE} AND booted = ? ORDER BY renewed + ttl * 0.8 LIMIT 50",
        (clock.boot(tx.here),),
    )
    ends = [row.renewed + row.ttl * (1 if row.warned else 1 - WARNED_AT) for row in rows]
    if ends:
        return float(min(ends) - clock.now())
    return None


def due(tx: Transaction, limit: int) -> list[str]:
    """Return the ids of locks that have lapsed, or whose holders are to be warned."""
    boot, now, wall = clock.boot(tx.here), clock.now(), time.time()
    found = f"SELECT id FROM context WHERE {_LEASE} AND"
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


def overtaken(tx: Transaction, instance_id: str) -> list[Lapse]:
    """Return lapsed locks of this session that another session has taken since."""
    return tx.rows(
        "SELECT * FROM swarm_lapses WHERE instance_id = ? AND taken_fence IS NOT NULL ORDER BY lapsed_at",
        (instance_id,),
        Lapse,
    )


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


# ---------------------------------------------------------------- a session


def session_alive(tx: Transaction, instance_id: str) -> None:
    """A session has shown life: renew its leases. A lease that is over stays over."""
    if not tx.has(_LEASED, instance_id):
        return
    from swarm_mcp.store import lock_rows

    rows = lock_rows.select(tx, "AND c.ttl IS NOT NULL AND c.instance_id = ?", (instance_id,))
    lapse_locks(tx, [row for row in rows if lock_rows.has_lapsed(tx, row)])
    tx.change(
        "UPDATE context SET renewed = ?, booted = ?, wall_until = ? + ttl, warned = NULL"
        f" WHERE {_LEASE} AND instance_id = ?",
        (clock.now(), clock.boot(tx.here), time.time(), instance_id),
    )


def turn_ended(
    tx: Transaction, session: Session, over_ns: int = 0, agent: str | None = "", reason: str = "turn_ended"
) -> None:
    """A turn of a session's `agent` (None: of all) was over at that moment (ns; 0: now): its files are free.

    The hook has noted that in the journals, if it could. Sessions that were denied these files are told.
    """
    if has_turn_files():
        from swarm_hook_core.traces import turn_files

        names = "SELECT runtime, session_id FROM swarm_sessions WHERE instance_id = ?"
        for row in tx.rows(names, (session.id,)):
            try:
                turn_files.end(row.runtime, row.session_id, agent, over_ns)
            except OSError:
                continue  # they are free in ten minutes
    if tx.has("swarm_denials WHERE holder_id = ?", session.id):
        from swarm_mcp.store import refusals

        refusals.settle_of(tx, session.id, reason)


def session_settled(tx: Transaction, session: Session, before: Session | None) -> None:
    """A session has joined, or was renewed; `before` is its row until then. It may take the plan, or leave it."""
    # Most sessions never plan, and need not load the planner.
    if "role:planner" in f"{session.label} {before.label if before else ''}":
        from swarm_mcp.store import values

        values.settle_plan(tx, session, before)


def session_moved(tx: Transaction, session: Session) -> None:
    """A session has left the scope of `session`, its row until now: free its locks and tasks there."""
    from swarm_mcp.store import lock_rows, task_life

    end_locks(tx, [lock for lock in lock_rows.of(tx, session.id) if lock.scope == session.scope], "moved")
    task_life.vacate(tx, session)


def session_gone(tx: Transaction, session: Session, reason: str) -> None:
    """A session leaves (``deregistered``) or was found to have gone (``reclaimed``): remove all that it has."""
    gone = session.id
    if tx.has("swarm_denials WHERE instance_id = ?", gone):
        from swarm_mcp.store import refusals

        refusals.forget(tx, gone)
    if tx.has("swarm_notices WHERE instance_id = ?", gone):
        from swarm_mcp.store import messages

        messages.forget_notices_of(tx, gone)
    if tx.has("swarm_lapses WHERE instance_id = ?", gone):
        tx.change("DELETE FROM swarm_lapses WHERE instance_id = ?", (gone,))
    if tx.has("context WHERE type = 'lock' AND instance_id = ?", gone):
        from swarm_mcp.store import lock_rows

        end_locks(tx, lock_rows.of(tx, gone), reason)
    turn_ended(tx, session, agent=None, reason=reason)
    if tx.has("tasks"):
        from swarm_mcp.store import task_life

        task_life.leave(tx, session, reason)
    if tx.has("messages WHERE scope = ? AND recipient = ?", session.scope, gone):
        from swarm_mcp.store import messages

        messages.forget_of(tx, session)
    if tx.has("kv WHERE key IN (?, ?)", f"identity/workspace/herdr/{gone}", f"identity/herdr/{gone}"):
        from swarm_mcp.store import user_interface

        user_interface.withdraw(tx, gone)
    session_table.delete(tx, session, reason)
    if "role:planner" in (session.label or ""):
        from swarm_mcp.store import values

        values.leave_plan(tx, session)


def reclaim(tx: Transaction, spare: str = "") -> list[Session]:
    """Inside a transaction: remove sessions that have gone, bar instance `spare`; their rows.

    Some of those that have been silent the longest. Where there are very many, cleaning goes round to the others.
    """
    rows = [row for row in session_table.some_gone(tx) if row.id != spare][:RECLAIMED_AT_ONCE]
    for row in rows:
        session_gone(tx, row, "reclaimed")
    return rows


# ---------------------------------------------------------------- locks


def locks_granted(tx: Transaction, session: Session, locks: list[Lock]) -> None:
    """A session was given these locks: note it with former holders, if their leases on the same files lapsed."""
    if locks and tx.has("swarm_lapses"):
        for lapse in tx.rows("SELECT * FROM swarm_lapses", (), Lapse):
            for lock in locks:
                if lapse.instance_id == session.id:
                    if lapse.file == lock.file and lapse.agent == (lock.agent or ""):
                        tx.change(
                            "DELETE FROM swarm_lapses WHERE instance_id = ? AND file = ? AND agent = ?",
                            (lapse.instance_id, lapse.file, lapse.agent),
                        )
                elif lapse.taken_fence is None and _same_place(lapse, lock):
                    _taken(tx, lapse, session, lock)
                    break


def end_locks(tx: Transaction, /, locks: list[Lock], reason: str = "", **payload: object) -> None:
    """Delete `locks` (of ``lock_rows.of``), each with its event, and let others know.

    `reason` and `payload` go into the events: ``task_terminal`` with its ``task_id``, ``deregistered``, ``moved``,
    ``reclaimed``, ``lapsed``, ``stolen``, ``agent_ended``, ``turn_ended``; no reason for an ordinary release.
    """
    if locks:
        from swarm_mcp.store import lock_rows

        of_turns = [lock for lock in locks if lock.mode == AUTO]
        lock_rows.delete(tx, [lock for lock in locks if lock not in of_turns], reason, **payload)
        if of_turns:
            from swarm_mcp.store import lock_finder

            lock_finder.give_up(tx, of_turns)
        locks_ended(tx, locks, reason)


def locks_ended(tx: Transaction, locks: list[Lock], reason: str) -> None:
    """These locks were deleted: tell sessions that were denied their files, dismiss holders that came for them alone.

    `reason` as in their events, empty for an ordinary release.
    """
    if tx.has("swarm_denials"):
        from swarm_mcp.store import refusals

        refusals.tell(tx, locks, reason)
    if reason not in ("deregistered", "reclaimed"):  # else they are on their way out as it is
        dismiss(tx, {lock.instance_id for lock in locks})


def lapse_locks(tx: Transaction, lapsed: list[Lock]) -> None:
    """End these locks, since their leases are over, and tell their holders."""
    if lapsed:
        end_locks(tx, lapsed, "lapsed")
        locks_lapsed(tx, lapsed)


def locks_lapsed(tx: Transaction, locks: list[Lock]) -> None:
    """The leases of these locks are over, and they were deleted: write that down, and tell their holders."""
    from swarm_mcp.store import lock_rows, messages

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


def _taken(tx: Transaction, lapse: Lapse, taker: Session, lock: Lock) -> None:
    tx.change(
        "UPDATE swarm_lapses SET taken_fence = ?, taken_by = ?, taken_label = ?"
        " WHERE instance_id = ? AND file = ? AND agent = ?",
        (lock.fence, taker.id, taker.label, lapse.instance_id, lapse.file, lapse.agent),
    )
    from swarm_mcp.store.messages import may_meet, name_of

    former = session_table.get(tx, lapse.instance_id)
    if former and may_meet(former.label, taker.label):
        name = name_of(taker)
    else:
        name = "a session of another identity"
    more = f" Since then {name} has been given {named(lock.file)}: read before you write."
    tx.change("UPDATE messages SET content = content || ? WHERE id = ? AND read = 0", (more, lapse.message_id))


def _same_place(lapse: Lapse, lock: Lock) -> bool:
    from swarm_mcp.store.lock_request import meet, reach_in

    one, other = reach_in(lapse), reach_in(lock)
    return bool(one and other and meet(one, other))


def _words(lock: Lock, lapsed_at: int) -> str:
    from swarm_hook_core.wording import duration

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


def place_left(tx: Transaction) -> None:
    """A waiter has left the line for a lock without it: tell sessions that were denied the file, if it is free now."""
    from swarm_mcp.store import refusals

    refusals.settle(tx)


def dismiss(tx: Transaction, ids: Iterable[str]) -> None:
    """Remove those of these sessions that are there for their locks alone, and have no lock left."""
    for instance_id in ids:
        sql = (
            "SELECT 1 FROM swarm_sessions s WHERE s.instance_id = ? AND s.runtime = ?"
            " AND NOT EXISTS (SELECT 1 FROM context c WHERE c.type = 'lock' AND c.instance_id = s.instance_id)"
        )
        if tx.row(sql, (instance_id, DETACHED)):
            found = session_table.get(tx, instance_id)
        else:
            found = None
        if found:
            session_gone(tx, found, "deregistered")


# ---------------------------------------------------------------- messages that it sends: signs of life, too


def send(db: Database, sender: Session, recipient_id: str, content: str) -> int:
    """Send one message from session `sender`; return its id.

    Raises UnknownInstance where the recipient is not (or no longer) in the sender's scope, Refused
    where identities keep the two apart, or the message is blank.
    """
    from swarm_mcp.store import messages

    _require_words(content)
    with db.writing() as tx:
        require(tx, sender.id)
        recipient = session_table.live(tx, recipient_id)
        if recipient is None or recipient.scope != sender.scope:
            raise UnknownInstance(f"Instance {recipient_id} is not active in this scope")
        if not messages.may_meet(sender.label, recipient.label):
            raise Refused(
                f"Cross-identity coordination blocked: session {recipient_id} works under another identity;"
                " only a shell with SWARM_MCP_ALLOW_CROSS_IDENTITY=1 may write to it"
            )
        return messages.post(tx, sender.scope, sender.id, recipient_id, content)


def broadcast(db: Database, sender: Session, content: str) -> list[str]:
    """Send one message to every other live session of the scope that `sender` may meet; return their ids."""
    from swarm_mcp.store import messages

    _require_words(content)
    with db.writing() as tx:
        require(tx, sender.id)
        return messages.announce(tx, sender, content)


def _require_words(content: str) -> None:
    if not content.strip():
        raise Refused("an empty message cannot be sent")
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > LONGEST:
        raise SwarmError(f"a message has at most {LONGEST} bytes, not {size}: put the rest into a file and name that")


# ---------------------------------------------------------------- time


def is_cleanup_due(tx: Transaction) -> bool:
    """Return True if the last pass of ``cleanup`` was long enough ago."""
    row = tx.row("SELECT done_at FROM swarm_upkeep WHERE what = 'pass'")
    return row is None or not 0 <= tx.now() - row.done_at < CLEANUP_PAUSE_SECONDS

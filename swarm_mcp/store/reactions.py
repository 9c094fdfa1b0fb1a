"""Signs of life of sessions, and reactions: the effects of one change on others, each by name, in order.

They happen in the transaction of the change itself. Each change renews the session that makes it, and its leases.

Hooks wait for sessions that join, take turns and leave, and models wait for locks. So a reaction asks first if the
tables of a part hold anything for it, and loads the module of that part only then.
"""

from __future__ import annotations

from collections.abc import Iterable

from swarm_hook_core.lookup import AUTO
from swarm_hook_core.process import departed, living
from swarm_hook_core.state import has_turn_files
from swarm_mcp.domain import DETACHED, Lock, Session
from swarm_mcp.errors import Refused, SwarmError, UnknownInstance
from swarm_mcp.store import session_table
from swarm_mcp.store.database import Database, Transaction

CLEANUP_PAUSE_SECONDS = 30  # between two passes of ``cleanup``, of any process
RECLAIMED_AT_ONCE = 20  # gone sessions that one registration removes
ANY_LEASED = "context WHERE type = 'lock' AND ttl IS NOT NULL"
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
    from swarm_mcp.store import leases

    if leases.is_due(db, instance_id):
        with db.writing() as tx:
            if was_seen:
                require(tx, instance_id)
            else:
                session_alive(tx, instance_id)
    return leases.until_due(db, instance_id)


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


# ---------------------------------------------------------------- a session


def session_alive(tx: Transaction, instance_id: str) -> None:
    """A session has shown life: renew its leases. A lease that is over stays over."""
    if not tx.has(_LEASED, instance_id):
        return
    from swarm_mcp.store import leases

    if leases.is_any_renewable(tx, instance_id):
        lapse_locks(tx, leases.lapsed_of(tx, instance_id))
        leases.renew(tx, instance_id)


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
        from swarm_mcp.store import leases

        leases.forget_lapses_of(tx, gone)
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
        from swarm_mcp.store import leases

        leases.note_grant(tx, session, locks)


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
    from swarm_mcp.store import leases

    leases.note_lapse(tx, locks)


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

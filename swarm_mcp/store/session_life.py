"""Signs of life: each change renews the session that makes it, and its leases."""

from __future__ import annotations

from swarm_hook_core.process import departed, living
from swarm_mcp.domain import Session
from swarm_mcp.errors import Refused, SwarmError, UnknownInstance
from swarm_mcp.store import messages, reactions, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.messages import may_meet

SIGN_SECONDS = 5  # between two signs of life that are written down; less where a lease is that short


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
                reactions.session_alive(tx, instance_id)
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
        reactions.session_alive(tx, instance_id)
    known_for = min(SIGN_SECONDS, (row.lease_seconds or 0) / 1000)
    if row.last_seen is not None and 0 <= now - row.last_seen <= known_for:
        return False  # said already; a session that works fast would pay for it each time
    tx.change("UPDATE swarm_sessions SET last_seen = ? WHERE instance_id = ?", (now, instance_id))
    if row.last_seen is not None and row.lease_seconds:
        lease_until = now + row.lease_seconds
        values = (now, lease_until, instance_id)
        tx.change("UPDATE instances SET heartbeat = ?, lease_until = ? WHERE id = ?", values)
    return True


def show_life(tx: Transaction, instance_id: str) -> None:
    """Renew a session. Raises SwarmError where it has gone."""
    require(tx, instance_id)


def forget(tx: Transaction, instance_id: str) -> None:
    """Forget a session that was made for its locks alone and has none of them left."""
    reactions.dismiss(tx, {instance_id})


# Messages that a session sends: each is a sign of life of its sender.

LONGEST = 65536  # bytes of a message


def send(db: Database, sender: Session, recipient_id: str, content: str) -> int:
    """Send one message from session `sender`; return its id.

    Raises UnknownInstance where the recipient is not (or no longer) in the sender's scope, Refused
    where identities keep the two apart, or the message is blank.
    """
    _require_words(content)
    with db.writing() as tx:
        require(tx, sender.id)
        recipient = session_table.live(tx, recipient_id)
        if recipient is None or recipient.scope != sender.scope:
            raise UnknownInstance(f"Instance {recipient_id} is not active in this scope")
        if not may_meet(sender.label, recipient.label):
            raise Refused(
                f"Cross-identity coordination blocked: session {recipient_id} works under another identity;"
                " only a shell with SWARM_MCP_ALLOW_CROSS_IDENTITY=1 may write to it"
            )
        return messages.post(tx, sender.scope, sender.id, recipient_id, content)


def broadcast(db: Database, sender: Session, content: str) -> list[str]:
    """Send one message to every other live session of the scope that `sender` may meet; return their ids."""
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

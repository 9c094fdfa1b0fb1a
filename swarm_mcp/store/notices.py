"""Messages about its locks that a session's next hook tells its model."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.naming import holder_name
from swarm_mcp.domain.message import Notice
from swarm_mcp.domain.session import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database, Transaction

NOTICES_AT_ONCE = 10  # in one hook's words


def post(tx: Transaction, instance: Session, content: str, file: str = "", sender: str = SYSTEM) -> int:
    """Inside a transaction: add a message to `instance`, told by its next hook; return the message's id.

    With absolute `file`, the hook names the file's holder at that moment besides.
    """
    from swarm_mcp.store import messages

    message_id = messages.post(tx, instance.scope, sender, instance.id, content, told=True, file=file)
    tx.change(
        "INSERT INTO swarm_notices (message_id, instance_id, file) VALUES (?, ?, ?)",
        (message_id, instance.id, file or None),
    )
    return message_id


def tell(db: Database, instance: Session, content: str) -> bool:
    """Have the next hook of a session tell its model `content`; False where the session has gone."""
    with db.writing() as tx:
        is_there = tx.row("SELECT 1 FROM instances WHERE id = ?", (instance.id,)) is not None
        if is_there:
            post(tx, instance, content)
    return is_there


def unread(tx: Transaction, instance: Session, sender: str, file: str) -> bool:
    """Return True if a notice of this sender about this file still waits for `instance`."""
    sql = (
        "SELECT 1 FROM swarm_notices n JOIN messages m ON m.id = n.message_id"
        " WHERE n.instance_id = ? AND n.file = ? AND m.sender = ? AND m.read = 0"
    )
    return tx.row(sql, (instance.id, file, sender)) is not None


def are_messages_unread(tx: Transaction, instance: Session) -> bool:
    """Return True if the session has unread messages besides the notices for its next hook."""
    sql = (
        "SELECT 1 FROM messages m WHERE m.scope = ? AND m.recipient = ? AND m.read = 0"
        " AND NOT EXISTS (SELECT 1 FROM swarm_notices n WHERE n.message_id = m.id) LIMIT 1"
    )
    return tx.row(sql, (instance.scope, instance.id)) is not None


def take(db: Database, instance: Session) -> list[Notice]:
    """Claim the notices for a session, oldest first: ``{id, text}``; `messages.acknowledge` once they have been told.

    No other process is given these messages meanwhile, as with `messages.take`.
    """
    if not db.row("SELECT 1 FROM swarm_notices WHERE instance_id = ? LIMIT 1", (instance.id,)):
        return []
    from swarm_mcp.store import messages

    with db.writing() as tx:
        about = {
            row.message_id: row.file
            for row in tx.rows(
                "SELECT message_id, file FROM swarm_notices WHERE instance_id = ? ORDER BY message_id",
                (instance.id,),
            )
        }
        claimed = messages.claim(tx, instance, list(about)[:NOTICES_AT_ONCE])
        gone = [name for name in list(about)[:NOTICES_AT_ONCE] if name not in {row.id for row in claimed}]
        for message_id in gone:  # read by a poll, deleted, or just on its way to one
            if tx.row("SELECT 1 FROM messages WHERE id = ? AND read = 0", (message_id,)) is None:
                tx.change("DELETE FROM swarm_notices WHERE message_id = ?", (message_id,))
    return [Notice(id=row.id, text=row.content + _now(db, instance, about[row.id])) for row in claimed]


def forget_of(tx: Transaction, instance_id: str) -> None:
    """Inside a transaction: drop those of a session that has gone."""
    tx.change("DELETE FROM swarm_notices WHERE instance_id = ?", (instance_id,))


def forget_old(tx: Transaction, after: str, limit: int) -> str:
    """Inside a transaction: drop notices of read or deleted messages, among the next `limit` from `after`.

    Return the last one looked at, empty at the end.
    """
    chosen = f"SELECT message_id FROM swarm_notices WHERE message_id > ? ORDER BY message_id LIMIT {limit}"
    rows = tx.rows(chosen, (int(after or 0),))
    if rows:
        tx.change(
            "DELETE FROM swarm_notices WHERE message_id > ? AND message_id <= ?"
            " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = message_id AND m.read = 0)",
            (int(after or 0), rows[-1].message_id),
        )
    if len(rows) == limit:
        return str(rows[-1].message_id)
    return ""


def _now(tx: Transaction, instance: Session, file: str | None) -> str:
    if not file:
        return ""
    from swarm_mcp.store import lock_finder

    locks = [lock for lock in lock_finder.on(tx, file) if lock.instance_id != instance.id]
    if not locks:
        if lock_finder.on(tx, file):
            return ""
        return " Nobody holds it now."
    mine, theirs = (token(one or "", "identity") for one in (instance.label, locks[0].owner_label))
    name = holder_name(locks[0].owner_label, locks[0].instance_id)
    return f" It is held by {name if same_circle(mine, theirs) else 'a session of another identity'} now."

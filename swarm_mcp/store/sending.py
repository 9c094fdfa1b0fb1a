"""Messages that a session sends: each is a sign of life of its sender."""

from __future__ import annotations

from swarm_mcp.errors import Refused, SwarmError, UnknownInstance
from swarm_mcp.store import messages, session_life, session_table
from swarm_mcp.store.naming import may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database


LONGEST = 65536  # bytes of a message


def send(db: Database, sender: Session, recipient_id: str, content: str) -> int:
    """Send one message from session `sender`; return its id.

    Raises UnknownInstance where the recipient is not (or no longer) in the sender's scope, Refused
    where identities keep the two apart, or the message is blank.
    """
    _require_words(content)
    with db.writing() as tx:
        session_life.require(tx, sender.id)
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
        session_life.require(tx, sender.id)
        return messages.announce(tx, sender, content)


def _require_words(content: str) -> None:
    if not content.strip():
        raise Refused("an empty message cannot be sent")
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > LONGEST:
        raise SwarmError(f"a message has at most {LONGEST} bytes, not {size}: put the rest into a file and name that")

"""Names of sessions in messages that the store writes, and the wall between identities."""

from __future__ import annotations

from swarm_hook_core.environment import is_on
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.naming import holder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session


def without_walls() -> bool:
    """Return True if ``SWARM_MCP_ALLOW_CROSS_IDENTITY`` lifts the barriers between identities."""
    return is_on("SWARM_MCP_ALLOW_CROSS_IDENTITY")


def may_meet(mine: str | None, theirs: str | None) -> bool:
    """Return True if sessions with these labels may see, message and task each other.

    Two different identities may not, unless the barriers are lifted.
    """
    return without_walls() or same_circle(token(mine or "", "identity"), token(theirs or "", "identity"))


def name_of(session: Session, own_id: str = "") -> str:
    """Return the name of a session for tables and pages. `own_id` is the reader's own session, empty without one.

    A session without a label, as those of another identity are shown, is only a number.
    """
    return holder_name(session.label, session.id, bool(own_id) and session.id == own_id)


def known_as(session: Session) -> str:
    """Return the name of a session for a sentence to another session, with the id to write to."""
    return f"{name_of(session)} (instance {session.id})"


def seconds_since(moment: object, now: int) -> int:
    """Return the age of a time column; 0 if another program stored no time there."""
    if isinstance(moment, (int, float)):
        return max(0, now - int(moment))
    return 0

"""What a viewer may see: sessions of another identity are there, but have no names and no mail."""

from __future__ import annotations

from swarm_hook_core.environment import is_on
from swarm_hook_core.labels import same_circle, token
from swarm_mcp.domain.session import Session


def without_walls() -> bool:
    """Whether ``SWARM_MCP_ALLOW_CROSS_IDENTITY`` lifts the barriers between identities."""
    return is_on("SWARM_MCP_ALLOW_CROSS_IDENTITY")


def may_meet(mine: str | None, theirs: str | None) -> bool:
    """Whether sessions with these labels may see, message and task each other.

    Two different identities may not, unless the barriers are lifted.
    """
    return without_walls() or same_circle(token(mine or "", "identity"), token(theirs or "", "identity"))


def veiled(rows: list[Session], viewer: str) -> list[Session]:
    """Instances as `viewer` (an identity, empty for none) may see them: others' labels are None."""
    return [row if same_circle(viewer, token(row.label or "", "identity")) else row.replace(label=None) for row in rows]

"""Visibility: a viewer meets sessions of another identity without their names and mail."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_mcp.domain.session import Session
from swarm_mcp.store.naming import may_meet, without_walls

__all__ = ["may_meet", "veiled", "without_walls"]


def veiled(rows: list[Session], viewer: str) -> list[Session]:
    """Return sessions as `viewer` (an identity, empty for none) may see them: labels of other identities are None."""
    return [row if same_circle(viewer, token(row.label or "", "identity")) else row.replace(label=None) for row in rows]

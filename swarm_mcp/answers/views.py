"""Instances as answers show them, on the command line and over MCP; to each viewer as far as it may know them."""

from __future__ import annotations

from swarm_hook_core.untrusted_text import same_circle, token
from swarm_mcp.domain import Session
from swarm_mcp.store.messages import known_as, may_meet, name_of, seconds_since, without_walls

__all__ = [
    "known_as", "known_shortly", "may_meet", "name_of", "public_instance", "registration", "seconds_since", "short",
    "veiled", "without_walls",
]  # fmt: skip


def known_shortly(row: Session) -> str:
    """Return the name of a session for a list to choose from, with the beginning of its id."""
    name = name_of(row)
    return name if short(row.id) in name else f"{name} (id {short(row.id)})"


def short(instance_id: str) -> str:
    """Return the first eight characters of an id, for people."""
    return instance_id[:8]


def public_instance(row: Session) -> dict[str, object]:
    """Return an instance in the shape that listings show."""
    names = ("id", "scope", "directory", "root", "file_root", "label", "pid", "registered_at", "heartbeat")
    return {name: row[name] for name in names}


def registration(row: Session) -> dict[str, object]:
    """Return an instance in the shape that ``register`` and ``whoami`` show."""
    names = ("id", "scope", "directory", "root", "file_root", "pid", "label")
    shown = {name: row[name] for name in names}
    return {**shown, "adopted": bool(row.adopted), "lease_until": row.lease_until}


def veiled(rows: list[Session], viewer: str) -> list[Session]:
    """Return sessions as `viewer` (an identity, empty for none) may see them: labels of other identities are None."""
    return [row if same_circle(viewer, token(row.label or "", "identity")) else row.replace(label=None) for row in rows]

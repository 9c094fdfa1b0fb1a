"""Instances as answers show them, on the command line and over MCP."""

from __future__ import annotations

from swarm_hook_core.naming import holder_name
from swarm_mcp.domain.session import Session


def known_as(row: Session) -> str:
    """What a session is called in a sentence to another one: its name, and the id to write to."""
    return f"{name_of(row)} (instance {row.id})"


def known_shortly(row: Session) -> str:
    """What a session is called where one is to be chosen: its name, and the beginning of its id."""
    name = name_of(row)
    return name if short(row.id) in name else f"{name} (id {short(row.id)})"


def name_of(row: Session, own_id: str = "") -> str:
    """What a session is called in tables and pages; `own_id` is the session of whoever reads it, empty for none.

    One without a label, as those of another identity are shown (``visibility.veiled``), is only a number.
    """
    return holder_name(row.label, row.id, bool(own_id) and row.id == own_id)


def short(instance_id: str) -> str:
    """The first eight characters of an id, for people."""
    return instance_id[:8]


def seconds_since(moment: object, now: int) -> int:
    """How long ago a time column says it was; 0 where another program has stored no time there."""
    return max(0, now - int(moment)) if isinstance(moment, (int, float)) else 0


def public_instance(row: Session) -> dict:
    """An instance in the shape that listings show."""
    names = ("id", "scope", "directory", "root", "file_root", "label", "pid", "registered_at", "heartbeat")
    return {name: row[name] for name in names}


def registration(row: Session) -> dict:
    """An instance in the shape that ``register`` and ``whoami`` show."""
    names = ("id", "scope", "directory", "root", "file_root", "pid", "label")
    shown = {name: row[name] for name in names}
    return {**shown, "adopted": bool(row.adopted), "lease_until": row.lease_until}

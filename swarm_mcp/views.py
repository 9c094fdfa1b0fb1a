"""Instances as answers show them, on the command line and over MCP."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.untrusted_text import label, named, quoted
from swarm_mcp.domain.session import Session

SUMMARY_LIMIT = 4  # peers, and locks, that `scope_summary` names


def known_as(row: dict) -> str:
    """What a session is called in a sentence to another one: its label, as its own words, and its id."""
    return f"{label(row['label']) if row['label'] else 'a session without a label'} (instance {row['id']})"


def short(instance_id: str) -> str:
    """The first eight characters of an id, for people."""
    return instance_id[:8]


def seconds_since(moment: object, now: int) -> int:
    """How long ago a time column says it was; 0 where another program has stored no time there."""
    return max(0, now - int(moment)) if isinstance(moment, (int, float)) else 0


def public_instance(row: dict) -> dict:
    """An instance in the shape that listings show."""
    names = ("id", "scope", "directory", "root", "file_root", "label", "pid", "registered_at", "heartbeat")
    return {name: row[name] for name in names}


def registration(row: dict) -> dict:
    """An instance in the shape that ``register`` and ``whoami`` show."""
    names = ("id", "scope", "directory", "root", "file_root", "pid", "label")
    shown = {name: row[name] for name in names}
    return {**shown, "adopted": bool(row["adopted"]), "lease_until": row["lease_until"]}


def scope_summary(store, row: Session) -> dict:
    """Return peers and locks of this session's scope in a few words, for its first message.

    ``{peer_count, peers: [text], lock_count, locks: [text]}``; sessions of another identity are
    counted only where they hold a lock, and then not named.
    """
    mine = token(row.label or "", "identity")
    peers = [peer for peer in store.instances.in_scope(row.scope) if peer["id"] != row.id]
    met = [p for p in peers if same_circle(mine, token(p["label"] or "", "identity"))]
    count, locks = store.locks.glance(row, SUMMARY_LIMIT, mine)
    texts = []
    for lock in locks:
        owner = label(lock["owner_label"]) if lock["owner_label"] else "another session"
        text = f"{named(lock['file'])} by {owner}"
        texts.append(f"{text} ({quoted(lock['content'], 80)})" if lock["content"].strip() else text)
    return {
        "peer_count": len(met),
        "peers": [label(peer["label"] or peer["id"]) for peer in met[:SUMMARY_LIMIT]],
        "lock_count": count,
        "locks": texts,
    }

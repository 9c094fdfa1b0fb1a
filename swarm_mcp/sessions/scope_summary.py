"""The summary of its scope for a session that starts: the other sessions, and the locks."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import named, quoted, same_circle, token
from swarm_mcp.domain import Session
from swarm_mcp.store import session_table
from swarm_mcp.store.database import Database

SUMMARY_LIMIT = 4  # peers, and locks, that are named


def scope_summary(db: Database, row: Session) -> dict[str, Any]:
    """Return peers and locks of the scope of a session that has just been registered, for its first message.

    ``{peer_count, peers: [text], lock_count, locks: [text]}``; sessions of another identity are
    counted only where they hold a lock, and then not named.
    """
    mine = token(row.label or "", "identity")
    met = [p for p in session_table.beside(db, row) if same_circle(mine, token(p.label or "", "identity"))]
    count, locks = session_table.held_beside(db, row, SUMMARY_LIMIT, mine)
    texts = []
    for lock in locks:
        if lock["owner_label"]:
            owner = holder_name(lock["owner_label"], lock["instance_id"])
        else:
            owner = "another session"
        text = f"{named(lock['file'])} by {owner}"
        texts.append(f"{text} ({quoted(lock['content'], 80)})" if lock["content"].strip() else text)
    return {
        "peer_count": len(met),
        "peers": [holder_name(peer.label, peer.id) for peer in met[:SUMMARY_LIMIT]],
        "lock_count": count,
        "locks": texts,
    }

"""Attempts to weaken the protection of others, and weakened protection: events for people, words for sessions."""

from __future__ import annotations

from swarm_mcp.domain.session import REMOTE
from swarm_mcp.store import notices, session_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database, Transaction

SAME_SECONDS = 60  # the same attempt of the same session within them is one event
ATTEMPTED, LOWERED = "protection.attempted", "protection.lowered"
LONGEST = 300  # characters of a command in an event


def attempted(db: Database, scope: str, actor: str | None, deed: str, path: str = "", tool: str = "") -> bool:
    """Write down that session `actor` (None: not known) tried `deed`, on `path` with `tool` if it named one.

    Return False if the same was written down within the last minute.
    """
    deed = deed[:LONGEST]
    with db.writing() as tx:
        same = tx.row(
            "SELECT 1 FROM events WHERE created_at > ? AND type = ? AND actor IS ? AND subject = ?",
            (tx.now() - SAME_SECONDS, ATTEMPTED, actor, path or deed),
        )
        if same is None:
            payload = {"deed": deed, "path": path, "tool": tool}
            told = {name: value for name, value in payload.items() if value}
            tx.add_event(scope, ATTEMPTED, actor, path or deed, told)
    return same is None


def lowered(tx: Transaction, scope: str, actor: str | None, what: str, words: str) -> None:
    """Write down that `what` protects the sessions of `scope` less than before, and tell them so in `words`.

    `actor` is the session behind it; None for a person, or if it is not known.
    """
    tx.add_event(scope, LOWERED, actor, what, {"deed": words})
    for row in session_table.in_scope(tx, scope):
        if row.id != actor and row.runtime != REMOTE and row.last_seen is not None:
            notices.post(tx, row, f"[auto] {words}")

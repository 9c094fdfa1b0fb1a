"""Attempts to weaken the protection of others, and what has been weakened: events for people, words for sessions."""

from __future__ import annotations

from swarm_mcp.domain.session import TEAM
from swarm_mcp.store import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.session_table import SessionTable

SAME_SECONDS = 60  # the same attempt of the same session within them is one event
ATTEMPTED, LOWERED = "protection.attempted", "protection.lowered"
LONGEST = 300  # characters of a command in an event


class Protection:
    """The embedded store's record of what only a person may do."""

    def __init__(self, db: Database, sessions: SessionTable, notices: Callable[[], Notices]):
        self._db = db
        self._sessions = sessions
        self._notices = notices

    def attempted(self, scope: str, actor: str | None, deed: str, path: str = "", tool: str = "") -> bool:
        deed = deed[:LONGEST]
        with self._db.writing():
            same = self._db.row(
                "SELECT 1 FROM events WHERE created_at > ? AND type = ? AND actor IS ? AND subject = ?",
                (self._db.now() - SAME_SECONDS, ATTEMPTED, actor, path or deed),
            )
            if same is None:
                payload = {"deed": deed, "path": path, "tool": tool}
                told = {name: value for name, value in payload.items() if value}
                events.add(self._db, scope, ATTEMPTED, actor, path or deed, told)
        return same is None

    def lowered(self, scope: str, actor: str | None, what: str, words: str) -> None:
        with self._db.writing():
            events.add(self._db, scope, LOWERED, actor, what, {"deed": words})
            for row in self._sessions.in_scope(scope):
                if row.id != actor and row.runtime != TEAM and row.last_seen is not None:
                    self._notices().post(row, f"[auto] {words}")

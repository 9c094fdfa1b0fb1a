"""The sessions and processes that hold the locks of one listing, each looked at once.

Looking at one costs a signal and a file of ``/proc``; a session may hold thousands of locks. What is remembered here
lives as long as the listing, so a listing is never wrong about a holder for longer than it takes.
"""

from __future__ import annotations

from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import BATCH
from swarm_hook_core.lookup.process_holders import has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_mcp.store.database import Database


class LockHolders:
    """Which of those who hold the locks of a listing are still there."""

    def __init__(self, db: Database):
        self._db = db
        self._gone: dict[str, bool] = {}
        self._ended: dict[str, bool] = {}

    def learn(self, ids: Iterable[str]) -> None:
        """Look at those of these sessions that are not known yet."""
        new = [one for one in dict.fromkeys(ids) if one not in self._gone]
        now, here = self._db.now(), self._db.here
        for at in range(0, len(new), BATCH):
            some = new[at : at + BATCH]
            self._gone.update((one, True) for one in some)  # who is not registered any more has gone
            rows = self._db.rows(
                f"SELECT i.id, {EVIDENCE} FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
                f" WHERE i.id IN ({','.join('?' * len(some))})",
                some,
            )
            self._gone.update((row["id"], departed(row, now, here)) for row in rows)

    def has_gone(self, instance_id: str) -> bool:
        """Tell whether a session that was looked at has gone."""
        return self._gone[instance_id]

    def has_ended(self, agent: str | None) -> bool:
        """Tell whether who holds as this agent was a process, which has ended."""
        if not agent:
            return False
        found = self._ended.get(agent)
        if found is None:
            found = self._ended[agent] = has_ended(agent, self._db.here)
        return found

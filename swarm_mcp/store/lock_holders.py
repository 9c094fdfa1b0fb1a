"""The sessions and processes that hold the locks of one listing, each looked at once.

Looking at one costs a signal and a file of ``/proc``; a session may hold thousands of locks. What is remembered here
lives as long as the listing, so a listing is never wrong about a holder for longer than it takes.
"""

from __future__ import annotations

from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup.process_holders import has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_mcp.domain.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm_mcp.store.database import Database

MOST_REMEMBERED = 20_000  # sessions; of more the oldest are looked at again where they come up again


class LockHolders:
    """What a listing knows of those who hold its locks."""

    def __init__(self, db: Database):
        self._db = db
        self._sessions: dict[str, tuple[str | None, bool]] = {}  # instance -> its label, whether it has gone
        self._agents: dict[str | None, bool] = {None: False}  # agent -> whether it was a process that has ended

    def learn(self, ids: Iterable[str]) -> None:
        """Look at those of these sessions that are not known yet: one question for all."""
        new = [one for one in dict.fromkeys(ids) if one not in self._sessions]
        if not new:
            return
        if len(self._sessions) > MOST_REMEMBERED:
            self._sessions.clear()
        rows = self._db.rows(
            f"SELECT i.id, i.label AS owner_label, {EVIDENCE} FROM instances i"
            f" LEFT JOIN swarm_sessions s ON s.instance_id = i.id WHERE i.id IN ({','.join('?' * len(new))})",
            new,
            Record,
        )
        now, here = self._db.now(), self._db.here
        self._sessions.update((one, (None, True)) for one in new)  # who is not registered any more has gone
        self._sessions.update((row["id"], (row["owner_label"], departed(row, now, here))) for row in rows)

    def label(self, instance_id: str) -> str | None:
        """Return the label of a session that was looked at."""
        return self._sessions[instance_id][0]

    def has_gone(self, instance_id: str) -> bool:
        """Tell whether a session that was looked at has gone."""
        return self._sessions[instance_id][1]

    def has_ended(self, agent: str | None) -> bool:
        """Tell whether who holds as this agent was a process, which has ended."""
        found = self._agents.get(agent)
        if found is None:
            if len(self._agents) > MOST_REMEMBERED:
                self._agents.clear()
            found = self._agents[agent] = has_ended(agent, self._db.here)
        return found

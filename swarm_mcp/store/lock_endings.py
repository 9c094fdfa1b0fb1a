"""How locks end: given up, lapsed, or left behind by sessions that have gone."""

from __future__ import annotations

from swarm_hook_core.lookup.process_holders import has_ended
from swarm_mcp.domain.lock import Lock
from swarm_mcp.store import events
from swarm_mcp.store.lock_table import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.signals import Signals


class LockEndings:
    """Deletes locks, inside transactions only, and lets those know whom it concerns."""

    def __init__(self, db: Database, finder: LockFinder, sessions: SessionTable, signals: Signals):
        self._db = db
        self._finder = finder
        self._sessions = sessions
        self._signals = signals

    def drop(self, locks: list[Lock], reason: str = "", **payload) -> None:
        """Inside a transaction: delete `locks` (of ``LockTable.of``), each with its event, and tell who waits for them.

        `reason` and `payload` go into the events: ``task_terminal`` with its ``task_id``,
        ``deregistered``, ``moved``, ``reclaimed``, ``lapsed``, ``stolen``, ``agent_ended``; no reason for an
        ordinary release.
        """
        told = {"released": 1, **({"reason": reason} if reason else {}), **payload}
        for lock in locks:
            self._db.change("DELETE FROM context WHERE id = ?", (lock["id"],))
            said = {**told, "lock": lock["id"], **facts(lock)}
            events.add(self._db, lock["scope"], "context.lock_released", lock["instance_id"], lock["file"], said)
        if locks:
            self._signals.locks_freed(locks, reason)

    def let_go(self, lapsed: list[Lock]) -> None:
        """Inside a transaction: remove these locks, whose leases are over, and tell who should know."""
        if lapsed:
            self.drop(lapsed, "lapsed")
            self._signals.locks_lapsed(lapsed)

    def reaped(self, rows: list[Lock]) -> list[Lock]:
        """Inside a transaction: those of `rows` that still hold. What is left of gone sessions is removed."""
        void = [row for row in rows if self._finder.is_void(row)]
        for holder_id in {row["instance_id"] for row in void if self._finder.has_gone(row)}:
            holder = self._sessions.get(holder_id)
            if holder:
                self._signals.session_gone(holder, "reclaimed")
            else:
                self.drop([row for row in void if row["instance_id"] == holder_id], "reclaimed")
        left = [row for row in void if not self._finder.has_gone(row)]
        ended = [row for row in left if has_ended(row["agent"], self._db.here)]
        self.drop(ended, "ended")
        self.let_go([row for row in left if row not in ended])
        ids = {row["id"] for row in void}
        return [row for row in rows if row["id"] not in ids]

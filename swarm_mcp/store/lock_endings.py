"""How locks end: given back, lapsed, taken away, or left by who has gone; each with its event and word to who waits."""

from __future__ import annotations

from swarm_hook_core.lookup.process_holders import has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import DETACHED, Session
from swarm_mcp.store import events
from swarm_mcp.store.lock_finder import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_request import Reach
    from swarm_mcp.store.session_table import SessionTable

# Of a row as it is deleted: what tells whether its holder is there, and whether anybody was kept out of anything.
_SESSION = "swarm_sessions s WHERE s.instance_id = context.instance_id"
_INSTANCE = "instances i WHERE i.id = context.instance_id"
_OF_THE_HOLDER = ", ".join(
    f"(SELECT {column} FROM {_SESSION if column.startswith('s.') else _INSTANCE}) AS {column[2:]}"
    for column in EVIDENCE.split(", ")
)
_DELETED = (
    f"*, {_OF_THE_HOLDER}, (SELECT i.id FROM {_INSTANCE}) AS owner_id,"
    " EXISTS (SELECT 1 FROM swarm_denials) AS some_were_denied"
)


class LockEndings:
    """Deletes locks, inside transactions only, and lets those know whom it concerns."""

    def __init__(self, db: Database, finder: LockFinder, sessions: SessionTable, signals: Signals):
        self._db = db
        self._finder = finder
        self._sessions = sessions
        self._signals = signals

    def drop(self, locks: list[Lock], reason: str = "", **payload) -> None:
        """Inside a transaction: delete `locks` (of ``LockFinder.of``), each with its event, and tell who waits.

        `reason` and `payload` go into the events: ``task_terminal`` with its ``task_id``,
        ``deregistered``, ``moved``, ``reclaimed``, ``lapsed``, ``stolen``, ``agent_ended``, ``turn_ended``; no reason
        for an ordinary release.
        """
        for lock in locks:
            self._db.change("DELETE FROM context WHERE id = ?", (lock.id,))
        self._tell(locks, reason, **payload)
        if locks:
            self._signals.locks_freed(locks, reason)

    def release(self, instance: Session, reach: Reach, agent: str, fence: int | None) -> int:
        """Inside a transaction: delete this session's locks on that very path or pattern; how many it still held.

        `agent` and `fence` as in ``Locks.release``.
        """
        deleted = self._deleted(instance, reach, agent, fence)
        gone = [lock for lock in deleted if self._finder.has_gone(lock)]
        ended = [lock for lock in deleted if lock not in gone and has_ended(lock.agent, self._db.here)]
        lapsed = [lock for lock in deleted if lock not in (*gone, *ended) and self._finder.has_lapsed(lock)]
        held = [lock for lock in deleted if lock not in (*gone, *ended, *lapsed)]
        for locks, reason in ((held, ""), (gone, "reclaimed"), (ended, "ended"), (lapsed, "lapsed")):
            self._tell(locks, reason)
            if any(lock["some_were_denied"] or lock["runtime"] == DETACHED for lock in locks):
                self._signals.locks_freed(locks, reason)
        if lapsed:
            self._signals.locks_lapsed(lapsed)
        holder = self._sessions.get(instance.id) if gone else None
        if holder:
            self._signals.session_gone(holder, "reclaimed")
        return len(held)

    def _deleted(self, instance: Session, reach: Reach, agent: str, fence: int | None) -> list[Lock]:
        names = (reach.key,) if reach.pattern else reach.keys
        marks, some = ",".join("?" * len(names)), "SELECT rowid FROM context WHERE type = 'lock' AND"
        # By how it was spelled: a mutex, and where links on the way have changed since.
        named = f"{some} path_key IN ({marks}) UNION ALL {some} path_key IS NOT file AND file IN ({marks})"
        return self._db.rows(
            f"DELETE FROM context WHERE rowid IN ({named}) AND type = 'lock' AND instance_id = ?"
            " AND coalesce(pattern, '') = ? AND (? = '' OR coalesce(base, '') = ?) AND (? = '' OR agent = ?)"
            f" AND (? IS NULL OR fence = ?) RETURNING {_DELETED}",
            (
                *names, *names, instance.id, reach.pattern, reach.pattern, reach.base, agent, agent, fence, fence,
            ),
            Lock,
        )  # fmt: skip

    def _tell(self, locks: list[Lock], reason: str, **payload: object) -> None:
        told = {"released": 1, **({"reason": reason} if reason else {}), **payload}
        for lock in locks:
            said = {**told, "lock": lock.id, **facts(lock)}
            events.add(self._db, lock.scope, "context.lock_released", lock.instance_id, lock.file, said)

    def let_go(self, lapsed: list[Lock]) -> None:
        """Inside a transaction: remove these locks, whose leases are over, and tell who should know."""
        if lapsed:
            self.drop(lapsed, "lapsed")
            self._signals.locks_lapsed(lapsed)

    def reaped(self, rows: list[Lock]) -> list[Lock]:
        """Inside a transaction: those of `rows` that still hold. What is left of gone sessions is removed."""
        void = [row for row in rows if self._finder.is_void(row)]
        for holder_id in {row.instance_id for row in void if self._finder.has_gone(row)}:
            holder = self._sessions.get(holder_id)
            if holder:
                self._signals.session_gone(holder, "reclaimed")
            else:
                self.drop([row for row in void if row.instance_id == holder_id], "reclaimed")
        left = [row for row in void if not self._finder.has_gone(row)]
        ended = [row for row in left if has_ended(row.agent, self._db.here)]
        self.drop(ended, "ended")
        self.let_go([row for row in left if row not in ended])
        ids = {row.id for row in void}
        return [row for row in rows if row.id not in ids]

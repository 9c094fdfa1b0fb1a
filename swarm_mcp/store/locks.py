"""Locks: which session keeps which files still.

A lock is a row of ``context``, as the contract has it; what ours can do beyond that stands in columns that other
implementations ignore. To them a lock that several share is several rows on spellings of one path, and a pattern
a row on a path of that name.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.labels import token
from swarm_hook_core.lookup import plain
from swarm_hook_core.lookup.process_holders import has_ended
from swarm_mcp.domain.lock import EXCLUSIVE, Lock, Waiter, keeps_out
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import events
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_finder import facts, unfit
from swarm_mcp.store.lock_listing import LockListing
from swarm_mcp.store.lock_request import LockRequest, Reach, of_request, reach_of, request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NamedTuple

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_queue import LockQueue
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.user_interface import Panes
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

# What most stores have none of, and nobody then need look for.
_THERE = (
    "SELECT EXISTS (SELECT 1 FROM swarm_waiters) AS waiters,"
    " EXISTS (SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL) AS logical"
)


def _asking(instance: Session, wanted: LockRequest) -> Asking:
    return Asking(instance.id, wanted.agent, wanted.mode)


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
        ``deregistered``, ``moved``, ``reclaimed``, ``lapsed``, ``stolen``, ``agent_ended``; no reason for an
        ordinary release.
        """
        told = {"released": 1, **({"reason": reason} if reason else {}), **payload}
        for lock in locks:
            self._db.change("DELETE FROM context WHERE id = ?", (lock.id,))
            said = {**told, "lock": lock.id, **facts(lock)}
            events.add(self._db, lock.scope, "context.lock_released", lock.instance_id, lock.file, said)
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


class Look(NamedTuple):
    """What a request met when it was looked at.

    version  of the store then: another with every commit of somebody else, and with the file
    met      the locks it meets, for each that it wants
    refusal  what is in its way: a lock, or a place in the queue; None for nothing
    is_good  whether, while the store is of that version, it can be granted by this alone
    """

    version: tuple[int, int]
    met: list[list[Lock]]
    refusal: Lock | Waiter | None
    is_good: bool


class Locks(LockListing):
    """The embedded store's locks: how they are taken and given up."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: Callable[[], LockEndings],
        sessions: SessionTable,
        panes: Panes,
        queue: Callable[[], LockQueue],
        denials: Callable[[], Denials],
        signals: Signals,
    ):
        # Those that only list locks, as hooks do, need not load what granting them takes: hence the functions.
        super().__init__(db, finder, panes)
        self._endings = endings
        self._sessions = sessions
        self._queue = queue
        self._denials = denials
        self._signals = signals
        self._looked_for_foreign = 0

    # ------------------------------------------------------------------ grant

    def acquire(
        self,
        instance: Session,
        file: str,
        note: str = "",
        exclusive: bool = False,
        task_id: str | None = None,
        tool: str = "lock_file",
    ) -> Lock:
        wanted = request(instance, [file], note=note, once=exclusive, task_id=task_id, tool=tool)
        return self.acquire_all(instance, wanted)[0]

    def acquire_all(self, instance: Session, wanted: LockRequest) -> list[Lock]:
        self._key_foreign(wanted)
        # A look before the write lock: who is refused over and over need not queue for it.
        look = self._look(instance, wanted)
        if look.refusal and wanted.ticket:
            raise self._refusal(instance, look.refusal)
        if look.refusal:
            own = look.refusal.instance_id == instance.id
            known = not own and self._denials().is_known(instance, look.refusal, wanted.reaches[0].file)
            if known:
                self._denials().count(instance, look.refusal)
            elif own and (look.refusal.agent or "") not in ("", wanted.agent):
                with self._db.writing():
                    self._denials().report_sibling(instance, [look.refusal], of_request(instance, wanted))
            if own or known:
                raise self._refusal(instance, look.refusal)
        keys = [key for reach in wanted.reaches for key in reach.keys]
        with self._db.writing():
            self._sessions.require(instance.id)
            self._denials().forget(instance.id, keys)
            if look.is_good and self._is_as(look):
                return self.grant(instance, wanted, look.met)
            self._denials().taker = (instance.id, keys)
            refusal: Lock | Waiter | None
            try:
                refusal = self._first_other(instance, wanted, self._endings().reaped)
            finally:
                self._denials().taker = ("", [])
            refusal = refusal or self._queue().ahead_of(instance, wanted)
            if refusal is None:
                return self.grant(instance, wanted)
            if refusal.instance_id != instance.id and not wanted.ticket:
                self._denials().record(instance, refusal, of_request(instance, wanted))
        raise self._refusal(instance, refusal)

    def grant(self, instance: Session, wanted: LockRequest, met: list[list[Lock]] | None = None) -> list[Lock]:
        """Inside a transaction that has seen that nothing is in the way: the locks' rows, as of `acquire_all`.

        `met`: what ``LockRows.meeting`` says now of each that is wanted, where that is known.
        """
        self._queue().pass_over(instance, wanted)
        self._queue().leave(wanted.ticket)
        granted = [
            self._grant(instance, wanted, reach, self._finder.same(reach) if met is None else met[number])
            for number, reach in enumerate(wanted.reaches)
        ]
        self._signals.locks_granted(instance, granted)
        return granted

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        return self._first_other(instance, wanted, self._finder.live)

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        reach = reach_of(instance, file)
        with self._db.writing():
            mine = self._finder.own(instance, reach, agent, self._endings().reaped)
            refusal = unfit(reach, mine, fence) if fence is not None else None
            if refusal is None:
                self._endings().drop(mine)
        if refusal:  # raised out here, so that what has lapsed stays told
            raise refusal
        return len(mine)

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        with self._db.writing():
            theirs = self._finder.select("AND c.instance_id = ? AND c.agent = ?", (instance.id, agent))
            self._endings().drop(theirs, "agent_ended", agent=agent)
        return [plain(row.file) for row in theirs]

    # -------------------------------------------------------------- innards

    def _key_foreign(self, wanted: LockRequest) -> None:
        """See that rows of other implementations have their keys, without which only their very name finds them."""
        now, deep = self._db.now(), any(reach.base for reach in wanted.reaches)
        if deep or self._looked_for_foreign != now:
            self._looked_for_foreign = now  # once a second is enough for those who ask for one file
            if self._finder.without_key(1):
                with self._db.writing():
                    self._finder.key_foreign_rows(2000)

    def _look(self, instance: Session, wanted: LockRequest) -> Look:
        """Return what a request meets now, outside of a transaction."""
        version = (id(self._db.connection), self._db.rows("PRAGMA data_version")[0].data_version)
        there = self._db.rows(_THERE)[0]
        alone = not there.logical and not any(reach.names for reach in wanted.reaches)
        asking, find = _asking(instance, wanted), self._finder.in_place if alone else self._finder.meeting
        met = [find(reach, asking) for reach in wanted.reaches]
        refusal: Lock | Waiter | None = next(
            (row for reach, rows in zip(wanted.reaches, met) for row in self._finder.live(rows)
             if self._is_in_the_way(row, instance, wanted, reach)),
            None,
        )  # fmt: skip
        if there.waiters:
            refusal = refusal or self._queue().ahead_of(instance, wanted)
        # Nothing to be removed first, nothing that could lapse before it is renewed.
        plain = all(row.ttl is None and not self._finder.is_void(row) for rows in met for row in rows)
        return Look(version, met, refusal, refusal is None and plain)

    def _is_as(self, look: Look) -> bool:
        """Inside a transaction: whether nobody else has committed anything since, and the file is the same."""
        connection = self._db.connection
        return look.version == (id(connection), connection.execute("PRAGMA data_version").fetchone()[0])

    def _first_other(self, instance: Session, wanted: LockRequest, counted) -> Lock | None:
        """Return the first lock that keeps this request waiting; `counted` sorts out those that no longer hold."""
        for reach in wanted.reaches:
            for row in counted(self._finder.meeting(reach, _asking(instance, wanted))):
                if self._is_in_the_way(row, instance, wanted, reach):
                    return row
        return None

    def _is_in_the_way(self, row: Lock, instance: Session, wanted: LockRequest, reach: Reach) -> bool:
        own = wanted.once and row.instance_id == instance.id and self._finder.is_same(row, reach)
        return own or keeps_out(row, instance.id, wanted.agent, wanted.mode)

    def _refusal(self, instance: Session, refusal: Lock | Waiter) -> LockRefused:
        viewer = token(instance.label or "", "identity")
        if isinstance(refusal, Lock):
            return LockRefused(self.describe(refusal, viewer))
        return LockRefused(self._queue().described(refusal, viewer))

    def _grant(self, instance: Session, wanted: LockRequest, reach: Reach, met: list[Lock]) -> Lock:
        """Inside a transaction: the lock's row, in place of the one among `met` that is this very lock already."""
        mine = [row for row in met if row.instance_id == instance.id and (row.agent or "") == wanted.agent]
        own = next((row for row in mine if self._finder.is_same(row, reach)), None)
        mode = None if wanted.mode == EXCLUSIVE else wanted.mode
        now = self._db.now()
        lock: dict = {"id": new_id(), "content": wanted.note, "task_id": wanted.task_id, "created_at": now}
        lock.update(path_key=reach.key, mode=mode, expected_end=wanted.expected_end, ttl=wanted.ttl, warned=None)
        lock.update(base=reach.base or None, repository=reach.names[0] if reach.names else None)
        leased = wanted.ttl is not None
        lock.update(renewed=clock.now() if leased else None, booted=clock.boot(self._db.here) if leased else None)
        lock.update(wall_until=time.time() + wanted.ttl if wanted.ttl is not None else None)
        if own:
            # Held all along, it is the same grant, unless it is now one of another kind.
            lock["fence"] = own.fence if own.fence and own.mode == mode else self.next_fence()
            names = ", ".join(f"{name} = ?" for name in lock)
            self._db.change(f"UPDATE context SET {names} WHERE id = ?", (*lock.values(), own.id))
            lock = {**own, **lock}
        else:
            lock.update(scope=instance.scope, instance_id=instance.id, type="lock", fence=self.next_fence())
            lock.update(agent=wanted.agent or None, pattern=reach.pattern or None)
            self._insert(lock, reach.file)
        payload: dict = {"id": lock["id"], "content": wanted.note, "fence": lock["fence"]}
        payload.update({name: lock[name] for name in ("mode", "agent", "ttl", "task_id") if lock.get(name)})
        payload.update(facts(lock), **({"was": own.mode or EXCLUSIVE} if own else {}))
        events.add(self._db, lock["scope"], "context.lock_acquired", instance.id, reach.file, payload)
        return Lock({**lock, "file": reach.file})

    def next_fence(self) -> int:
        """Inside a transaction: the number of the next grant."""
        return self._db.rows("UPDATE swarm_fence SET last = last + 1 RETURNING last")[0].last

    def _insert(self, lock: dict, file: str) -> None:
        """Add the row, under a way to write `file` that no lock of this scope has: the contract has one row each."""
        folder, name = os.path.split(file)
        insert = f"INSERT OR IGNORE INTO context (file, {', '.join(lock)}) VALUES (?{', ?' * len(lock)})"
        while not self._db.change(insert, (file, *lock.values())):
            folder += "/."
            file = os.path.join(folder, name)

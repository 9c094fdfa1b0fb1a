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
from swarm_hook_core.state import has_claims
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock, Waiter, is_mutex, keeps_out
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import events
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_finder import facts, unfit
from swarm_mcp.store.lock_listing import LockListing
from swarm_mcp.store.lock_request import LockRequest, Reach, of_request, reach_in, reach_of, request
from swarm_mcp.store.lock_surroundings import surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_mcp.store.automatic_locks import AutomaticLocks
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_queue import LockQueue
    from swarm_mcp.store.lock_surroundings import Surroundings
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.user_interface import Panes


class Locks(LockListing):
    """The embedded store's locks: how they are taken and given up."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: Callable[[], LockEndings],
        sessions: SessionTable,
        panes: Callable[[], Panes],
        queue: Callable[[], LockQueue],
        denials: Callable[[], Denials],
        signals: Signals,
        automatic: Callable[[], AutomaticLocks],
    ):
        # Those that list locks need not load what granting them takes, nor the others what showing them does.
        super().__init__(db, finder, panes)
        self._endings = endings
        self._sessions = sessions
        self._queue = queue
        self._denials = denials
        self._signals = signals
        self._automatic = automatic
        self._looked_for_foreign = self._swept = 0

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
        granted = self._acquire(instance, wanted, None)
        if granted is None:  # the keys are asked of the disk, while everybody else can write
            granted = self._acquire(instance, wanted, self._finder.foreign_keys(2000))
        return granted or []

    def _acquire(self, instance: Session, wanted: LockRequest, keys: list | None) -> list[Lock] | None:
        """Do as `acquire_all`; None where other implementations' locks need their keys first.

        `keys` are those, of ``LockFinder.foreign_keys``; None for not asked yet.
        """
        # What a pattern meets may take long to find, and nobody else could write meanwhile: it is looked for before.
        look, version = None, (0, 0)
        if any(reach.pattern for reach in wanted.reaches):
            version, look = self._db.version(), self._look(instance, wanted)
        with self._db.writing(before_waiting=lambda: self._refuse_known(instance, wanted)):
            if keys:
                self._finder.give_keys(keys)
            adopted = self._finder.adopt()
            if look is None or keys or adopted or version != self._db.version():
                look = self._look(instance, wanted)
            around, found = look
            if self._sessions.renew(instance.id, around, bool(around.leased)) and any(found):
                found = self._look(instance, wanted)[1]  # what it holds was looked at as a silent session's
            if around.keyless and keys is None and self._are_keys_due(wanted):
                return None
            if around.waiters and self._swept != self._db.now():
                self._swept = self._db.now()  # once a second is enough, lest everybody read dead waiters for ever
                self._queue().sweep()
            met = self._reaped_for(instance, wanted, found) if any(found) else found
            refusal: Lock | Waiter | None = self._first_other(instance, wanted, met)
            if refusal is None and around.waiters:
                refusal = self._queue().ahead_of(instance, wanted)
            if refusal is None:
                # Where something of others had to be removed first, there is more now than was seen around it.
                return self.grant(instance, wanted, met, around if met == found else None)
            is_known = self._note_refusal(instance, wanted, refusal)
        if is_known:
            self._denials().count(instance, refusal)
        raise self._refusal(instance, refusal)

    def _reaped_for(self, instance: Session, wanted: LockRequest, found: list[list[Lock]]) -> list[list[Lock]]:
        """Inside a transaction: those of `found` that still hold. Who hears of the others is not told of this taker."""
        self._denials().taker = (instance.id, _keys(wanted))
        try:
            return [self._endings().reaped(rows) for rows in found]
        finally:
            self._denials().taker = ("", [])

    def grant(
        self,
        instance: Session,
        wanted: LockRequest,
        met: list[list[Lock]] | None = None,
        around: Surroundings | None = None,
    ) -> list[Lock]:
        """Inside a transaction that has seen that nothing is in the way: the locks' rows, as of `acquire_all`.

        `met`: what ``LockFinder.meeting`` says now of each that is wanted, where that is known; so `around`.
        """
        waited = 0.0
        if around is None or around.waiters:
            waited = self._queue().waited(wanted.ticket)
            self._queue().pass_over(instance, wanted)
            self._queue().leave(wanted.ticket)
        if around is None or around.denied:
            self._denials().forget(instance.id, _keys(wanted))
        granted = [
            self._grant(instance, wanted, reach, self._finder.same(reach) if met is None else met[number], waited)
            for number, reach in enumerate(wanted.reaches)
        ]
        if around is None or around.lapses:
            self._signals.locks_granted(instance, granted)
        return granted

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        self._finder.adopt()
        return self._obstacle(instance, wanted)

    def _obstacle(self, instance: Session, wanted: LockRequest) -> Lock | None:
        asking = Asking(instance.id, wanted.agent, wanted.mode)
        met = [self._finder.live(self._finder.meeting(reach, asking)) for reach in wanted.reaches]
        return self._first_other(instance, wanted, met)

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        reach = reach_of(instance, file, is_new=False)
        refusal = None
        with self._db.writing():
            self._finder.adopt()
            released = self._endings().release(instance, reach, agent, fence)
            if released and has_claims():
                self._automatic().forget(instance, reach)
            if not released and fence is not None:
                refusal = unfit(reach, self._finder.own(instance, reach, agent, self._endings().reaped), fence)
        if refusal:  # raised out here, so that what has lapsed stays told
            raise refusal
        return released

    def release_all(self, instance: Session, agent: str = "") -> list[str]:
        with self._db.writing():
            self._finder.adopt()
            rows = self._finder.select("AND c.instance_id = ? AND coalesce(c.agent, '') = ?", (instance.id, agent))
            mine = [row for row in self._endings().reaped(rows) if not is_mutex(row.file)]
            self._endings().drop(mine)
            for row in mine if has_claims() else ():
                reach = reach_in(row)
                if reach:
                    self._automatic().forget(instance, reach)
        return [plain(row.file) for row in mine]

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        with self._db.writing():
            self._finder.adopt()
            theirs = self._finder.select("AND c.instance_id = ? AND c.agent = ?", (instance.id, agent))
            self._endings().drop(theirs, "agent_ended", agent=agent)
            if has_claims():
                self._automatic().end(instance, agent)
        return [plain(row.file) for row in theirs]

    # -------------------------------------------------------------- innards

    def _look(self, instance: Session, wanted: LockRequest) -> tuple[Surroundings, list[list[Lock]]]:
        """Return what a request finds around it, and the locks that it meets, for each that it wants."""
        asking = Asking(instance.id, wanted.agent, wanted.mode)
        around = surroundings(self._db, self._finder, instance, wanted.reaches, asking)
        if around.logical or any(reach.names for reach in wanted.reaches):
            return around, [self._finder.meeting(reach, asking) for reach in wanted.reaches]
        return around, [self._finder.in_place(reach, asking) if around.met else [] for reach in wanted.reaches]

    def _are_keys_due(self, wanted: LockRequest) -> bool:
        """Tell whether locks without a key get theirs now: without one only its very name finds a lock."""
        now, deep = self._db.now(), any(reach.base for reach in wanted.reaches)
        due = deep or self._looked_for_foreign != now  # once a second is enough for those who ask for one file
        self._looked_for_foreign = now
        return due

    def _first_other(self, instance: Session, wanted: LockRequest, met: list[list[Lock]]) -> Lock | None:
        """Return the first of the locks `met` for each that is wanted that keeps this request waiting."""
        for reach, rows in zip(wanted.reaches, met):
            for row in rows:
                if self._is_in_the_way(row, instance, wanted, reach):
                    return row
        return None

    def _refuse_known(self, instance: Session, wanted: LockRequest) -> None:
        """Refuse at once what was refused just now and still is: who asks over and over need not wait for the store."""
        if wanted.ticket or not self._denials().are_recent(instance.id):
            return
        refusal = self._obstacle(instance, wanted) or self._queue().ahead_of(instance, wanted)
        if refusal and self._denials().is_known(instance, refusal, wanted.reaches[0].file, wanted.tool):
            self._denials().count(instance, refusal)
            raise self._refusal(instance, refusal)

    def _note_refusal(self, instance: Session, wanted: LockRequest, refusal: Lock | Waiter) -> bool:
        """Inside a transaction: write the refusal down; whether it `is_known`, and only counts."""
        if refusal.instance_id == instance.id:
            if (refusal.agent or "") not in ("", wanted.agent):
                self._denials().report_sibling(instance, [refusal], of_request(instance, wanted))
        elif not wanted.ticket:
            if self._denials().is_known(instance, refusal, wanted.reaches[0].file, wanted.tool):
                return True
            self._denials().record(instance, refusal, of_request(instance, wanted))
        return False

    def _is_in_the_way(self, row: Lock, instance: Session, wanted: LockRequest, reach: Reach) -> bool:
        own = wanted.once and row.instance_id == instance.id and row.mode != AUTO and self._finder.is_same(row, reach)
        return own or keeps_out(row, instance.id, wanted.agent, wanted.mode)

    def _refusal(self, instance: Session, refusal: Lock | Waiter) -> LockRefused:
        viewer = token(instance.label or "", "identity")
        if isinstance(refusal, Lock):
            return LockRefused(self.describe(refusal, viewer))
        return LockRefused(self._queue().described(refusal, viewer))

    def _grant(
        self, instance: Session, wanted: LockRequest, reach: Reach, met: list[Lock], waited: float = 0.0
    ) -> Lock:
        """Inside a transaction: the lock's row, in place of the one among `met` that is this very lock already.

        `waited`: for how many seconds it was waited for, for the record.
        """
        mine = [row for row in met if row.instance_id == instance.id and (row.agent or "") == wanted.agent]
        own = next((row for row in mine if self._finder.is_same(row, reach)), None)
        mode = None if wanted.mode == EXCLUSIVE else wanted.mode
        leased = wanted.ttl is not None
        lock: dict = {
            "id": new_id(),
            "content": wanted.note,
            "task_id": wanted.task_id,
            "created_at": self._db.now(),
            "path_key": reach.key,
            "mode": mode,
            "expected_end": wanted.expected_end,
            "base": reach.base or None,
            "repository": reach.names[0] if reach.names else None,
            "ttl": wanted.ttl,
            "renewed": clock.now() if leased else None,
            "booted": clock.boot(self._db.here) if leased else None,
            "wall_until": time.time() + wanted.ttl if wanted.ttl is not None else None,
            "warned": None,
        }
        if own:
            # Held all along, it is the same grant, unless it is now one of another kind.
            same = own.mode == mode or (own.mode, mode) == (AUTO, None)
            lock["fence"] = own.fence if own.fence and same else self.next_fence()
            lock["team_fence"] = own.team_fence if same else None  # of another kind, the team has to confirm it anew
            names = ", ".join(f"{name} = ?" for name in lock)
            self._db.change(f"UPDATE context SET {names} WHERE id = ?", (*lock.values(), own.id))
            lock = {**own, **lock}
        else:
            lock.update(scope=instance.scope, instance_id=instance.id, type="lock", fence=self.next_fence())
            lock.update(agent=wanted.agent or None, pattern=reach.pattern or None)
            self.insert(lock, reach.file)
        payload: dict = {"id": lock["id"], "content": wanted.note, "fence": lock["fence"]}
        payload.update({name: lock[name] for name in ("mode", "agent", "ttl", "task_id") if lock.get(name)})
        payload.update(facts(lock), **({"was": own.mode or EXCLUSIVE} if own else {}))
        payload.update({"waited": waited} if waited else {})
        events.add(self._db, lock["scope"], "context.lock_acquired", instance.id, reach.file, payload)
        return Lock({**lock, "file": reach.file})

    def next_fence(self) -> int:
        """Inside a transaction: the number of the next grant."""
        return self._db.column("UPDATE swarm_fence SET last = last + 1 RETURNING last")[0]

    def insert(self, lock: dict, file: str) -> None:
        """Inside a transaction: add a row, under a way to write `file` that no lock of its scope has.

        The contract has one row each.
        """
        folder, name = os.path.split(file)
        insert = f"INSERT OR IGNORE INTO context (file, {', '.join(lock)}) VALUES (?{', ?' * len(lock)})"
        while not self._db.change(insert, (file, *lock.values())):
            folder += "/."
            file = os.path.join(folder, name)


def _keys(wanted: LockRequest) -> list[str]:
    return [key for reach in wanted.reaches for key in reach.keys]

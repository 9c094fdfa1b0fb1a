"""Who waits for which locks: first come, first served, across processes.

A waiter is a row from when it joins until it has what it wants, gives up, or its process is gone. Whoever comes
later and wants some of the same has to wait as well, were it free: nobody is overtaken. Only who has held, since
before a waiter came, what that one waits for goes before it, since it would wait for itself otherwise; and it can
do so for as long only as it keeps that hold, so nobody waits for ever.
"""

from __future__ import annotations

import os
from itertools import islice

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import gone, start_time
from swarm_mcp.domain.lock import AUTO, SHARED, Lock, Waiter, keeps_out
from swarm_mcp.domain.record import Record
from swarm_mcp.errors import Deadlock
from swarm_mcp.store import events
from swarm_mcp.store.lock_candidates import Asking
from swarm_mcp.store.lock_request import LockRequest, Reach, meet, reach_in
from swarm_mcp.views import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.session_table import SessionTable
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple

_OF_HOLDER_BEFORE = "+c.instance_id = ? AND coalesce(c.agent, '') = ? AND coalesce(c.fence, 0) <= ?"
_OF_OTHERS = "c.instance_id || ' ' || coalesce(c.agent, '') NOT IN (SELECT value FROM json_each(?))"
SILENT_SECONDS = 30.0  # without a sign of life of somebody who shows one every ten seconds


class Holder(NamedTuple):
    """Who can hold and wait: a session, or one of its agents."""

    instance_id: str
    agent: str = ""


class LockQueue:
    """The embedded store's queue. Rows are those of ``swarm_waiters`` with ``reaches`` and ``owner_label``."""

    def __init__(self, db: Database, finder: LockFinder, sessions: SessionTable, signals: Signals):
        self._db = db
        self._finder = finder
        self._sessions = sessions
        self._signals = signals

    # ------------------------------------------------------------------ ask

    def waiting(self) -> list[Waiter]:
        return [row for row in self._places() if not self._is_void(row)]

    def waiting_for(self, *reaches: Reach) -> list[Waiter]:
        met = [row for row in self._places() if any(meet(one, other) for one in reaches for other in row.reaches)]
        return [row for row in met if not self._is_void(row)]

    def has(self, ticket: int, instance_id: str) -> bool:
        sql = "SELECT 1 FROM swarm_waiters WHERE ticket = ? AND instance_id = ? AND pid = ?"
        return self._db.row(sql, (ticket, instance_id, os.getpid())) is not None

    def waited(self, ticket: int) -> float:
        """Return for how many seconds somebody has waited in this place; 0 where it is not there."""
        row = self._db.row("SELECT since FROM swarm_waiters WHERE ticket = ?", (ticket,)) if ticket else None
        return max(0.0, round(clock.now() - row.since, 1)) if row else 0.0

    def is_there(self, ticket: int) -> bool:
        return self._db.row("SELECT 1 FROM swarm_waiters WHERE ticket = ?", (ticket,)) is not None

    def lengths(self) -> dict[str, int]:
        found: dict[str, int] = {}
        self._finder.adopt()
        for row in self.waiting():
            met = {lock.id: lock for reach in row.reaches for lock in self._finder.meeting(reach)}
            for lock in met.values():
                if _holder_of(lock) != (row.instance_id, row.agent):
                    found[lock.id] = found.get(lock.id, 0) + 1
        return found

    def ahead_of(self, instance: Session, wanted: LockRequest) -> Waiter | None:
        row = next(self._ahead(Holder(instance.id, wanted.agent), wanted), None)
        if row is None:
            return None
        reach = next(own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches))
        return row.replace(file=reach.file, path_key=reach.key, id=None, content="", created_at=None)

    def obstacles(self, row: Waiter, limit: int = 20) -> list[Lock | Waiter]:
        holder = Holder(row.instance_id, row.agent)
        asked = LockRequest(row.reaches, mode=row.mode, agent=row.agent, ticket=row.ticket)
        held = self._one_of_each(holder, row.mode, row.reaches, limit).values()
        return [*islice(held, limit), *islice(self._ahead(holder, asked), limit)]

    def is_silent(self, row: Waiter) -> bool:
        if row.seen is None or clock.boot(row.host) != clock.boot(self._db.here):
            return False  # that place's clock is not ours: what cannot be known counts as alive
        return clock.awake() - row.seen >= SILENT_SECONDS

    def described(self, row: Waiter, viewer_identity: str) -> dict:
        """Return a waiter that `ahead_of` found, in the shape of a refusal's ``active``."""
        if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
            return {"hidden": True, "reason": "cross_identity", "file": row.file, "waiting": True}
        owner = {"id": row.instance_id, "label": row.owner_label}
        shown = {"ticket": row.ticket, "instance_id": row.instance_id, "file": row.file}
        return {**shown, "content": "", "waiting": True, "mode": row.mode, "owner": owner, "active_tasks": []}

    # --------------------------------------------------------------- change

    def join(self, instance: Session, wanted: LockRequest, seconds: float | None) -> int:
        wants = [
            {
                "file": reach.file,
                "path_key": reach.key,
                "keys": reach.keys,
                "pattern": reach.pattern,
                "base": reach.base,
                **({"repository": reach.names[0]} if reach.names else {}),
            }
            for reach in wanted.reaches
        ]
        now = clock.now()
        values: dict = {"instance_id": instance.id, "agent": wanted.agent, "scope": instance.scope}
        values.update(host=self._db.here, pid=os.getpid(), start=start_time(os.getpid()), mode=wanted.mode)
        values.update(wants=dumps(wants), since=now, until=None if seconds is None else now + seconds)
        values["seen"] = clock.awake()
        with self._db.writing():
            self._finder.adopt()
            self._sessions.require(instance.id)
            self.sweep()
            circle = self._circle(Holder(instance.id, wanted.agent), wanted)
            if not circle:
                values["fence"] = (self._db.row("SELECT last FROM swarm_fence") or Record(last=0)).last
                marks = ", ".join("?" * len(values))
                self._db.change(
                    f"INSERT INTO swarm_waiters ({', '.join(values)}) VALUES ({marks})", list(values.values())
                )
                return int(self._db.rows("SELECT last_insert_rowid() AS ticket")[0].ticket)
            events.add(
                self._db, instance.scope, "context.lock_deadlock", instance.id, wanted.reaches[0].file,
                {"circle": [list(holder) for holder in circle]},
            )  # fmt: skip
        raise Deadlock([self._named(holder) for holder in circle])

    def require_end(self, instance: Session, wanted: LockRequest) -> None:
        me = Holder(instance.id, wanted.agent)
        circle = self._circle(me, wanted)
        tickets = [row.ticket for row in self.waiting() if Holder(row.instance_id, row.agent) in circle]
        if circle and max(tickets, default=0) <= wanted.ticket:
            raise Deadlock([self._named(holder) for holder in circle])

    def leave(self, ticket: int) -> None:
        if not ticket:
            return
        if self._db.connection.in_transaction:
            self._db.change("DELETE FROM swarm_waiters WHERE ticket = ?", (ticket,))
            return
        with self._db.writing():
            self._db.change("DELETE FROM swarm_waiters WHERE ticket = ?", (ticket,))
            self._signals.place_left()

    def show_life(self, instance: Session, ticket: int) -> bool:
        with self._db.writing():
            self._sessions.require(instance.id)
            return bool(self._db.change("UPDATE swarm_waiters SET seen = ? WHERE ticket = ?", (clock.awake(), ticket)))

    def pass_over(self, instance: Session, wanted: LockRequest) -> None:
        """Inside a transaction that grants `wanted`: give up the places of silent waiters that came before it."""
        for row in self._before(Holder(instance.id, wanted.agent), wanted):
            if self.is_silent(row):
                self.leave(row.ticket)

    def sweep(self) -> None:
        """Inside a transaction: remove the places of waiters that are gone, or have waited long enough."""
        for row in self._places():
            if self._is_void(row):
                self.leave(row.ticket)

    # -------------------------------------------------------------- innards

    def _places(self, before: int | None = None) -> Iterator[Waiter]:
        """Return every place, or those before a ticket, first come first; not all of them are still waited in."""
        rows = self._db.rows(
            "SELECT w.*, i.label AS owner_label, i.id AS owner_id FROM swarm_waiters w"
            " LEFT JOIN instances i ON i.id = w.instance_id WHERE ? IS NULL OR w.ticket < ? ORDER BY w.ticket",
            (before, before),
            Waiter,
        )
        return (row.replace(reaches=reaches_of(row)) for row in rows)

    def _ahead(self, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
        """Yield the waiters that this request has to wait for."""
        return (row for row in self._before(holder, wanted) if not self.is_silent(row))

    def _before(self, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
        """Return the waiters whose turn comes before that of this request."""
        for row in self._places(wanted.ticket or None):
            if Holder(row.instance_id, row.agent) == holder:
                continue
            if row.mode == SHARED and wanted.mode == SHARED:
                continue
            common = [own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches)]
            if common and not self._is_void(row) and not self._may_pass(holder, wanted.mode, common, row):
                yield row

    def _may_pass(self, holder: Holder, mode: str, common: list[Reach], row: Waiter) -> bool:
        """Tell whether `holder` may have `common` before a waiter: see this module's beginning."""
        waiter = Asking(row.instance_id, row.agent, row.mode, _OF_HOLDER_BEFORE, (*holder, row.fence))
        kept = self._in_the_way(waiter, row.reaches)
        if any(_holder_of(lock) == holder and (lock.fence or 0) <= row.fence for lock in kept):
            return True
        return all(self._has(holder, mode, reach) for reach in common)

    def _has(self, holder: Holder, mode: str, reach: Reach) -> bool:
        """Tell whether `holder` has that very lock already, so that asking again gives it no more."""
        own = [lock for lock in self._finder.same(reach) if _holder_of(lock) == holder]
        return any(not self._finder.is_void(lock) and lock.mode in (None, AUTO, mode) for lock in own)

    def _keeping(self, holder: Holder, mode: str, reaches) -> list[Holder]:
        """Return who holds what keeps `holder` from these."""
        return list(self._one_of_each(holder, mode, reaches))

    def _one_of_each(self, holder: Holder, mode: str, reaches, limit: float = float("inf")) -> dict[Holder, Lock]:
        """Return who holds what keeps `holder` from these, each with one of these locks; `limit` of them are enough."""
        found: dict[Holder, Lock] = {}
        while True:
            # One lock of each tells; another look for those who hold none of what was found so far.
            known = dumps([" ".join(one) for one in found])
            asking = Asking(*holder, mode, _OF_OTHERS if found else "", (known,) if found else ())
            new = {_holder_of(lock): lock for lock in self._in_the_way(asking, reaches)}
            if new.keys() <= found.keys() or len(found) >= limit:
                return found
            found = {**found, **new}

    def _in_the_way(self, asking: Asking, reaches) -> Iterator[Lock]:
        """Yield locks that keep it from these: some, where there are any; of each reach apart."""
        for reach in reaches:
            for lock in self._finder.live(self._finder.meeting(reach, asking)):
                if keeps_out(lock, *asking[:3]):
                    yield lock

    def _circle(self, start: Holder, wanted: LockRequest) -> list[Holder]:
        """Return the circle of holders that a wait of `start` would close, beginning with it; empty for none."""
        waiting: dict[Holder, list[Waiter]] = {}
        for row in self.waiting():
            waiting.setdefault(Holder(row.instance_id, row.agent), []).append(row)

        def next_of(holder: Holder) -> list[Holder]:
            found = []
            for row in waiting.get(holder, ()):
                asked = wanted._replace(reaches=row.reaches, mode=row.mode, ticket=row.ticket)
                found += self._keeping(holder, row.mode, row.reaches)
                found += [Holder(other.instance_id, other.agent) for other in self._ahead(holder, asked)]
            return found

        first = self._keeping(start, wanted.mode, wanted.reaches)
        first += [Holder(row.instance_id, row.agent) for row in self._ahead(start, wanted)]
        seen: set[Holder] = set()
        pending = [(holder, [start]) for holder in first]
        while pending:
            holder, path = pending.pop()
            if holder == start:
                return path
            if holder not in seen:
                seen.add(holder)
                pending += [(after, [*path, holder]) for after in next_of(holder)]
        return []

    def _named(self, holder: Holder) -> str:
        row = self._sessions.get(holder.instance_id)
        name = name_of(row) if row else holder_name("", holder.instance_id)
        return f"{name} (agent {holder.agent})" if holder.agent else name

    def _is_void(self, row: Waiter) -> bool:
        if row.owner_id is None or (row.until is not None and row.until < clock.now()):
            return True
        if gone(row.host, row.pid, row.start, self._db.here):
            return True
        return self._sessions.live(row.owner_id) is None  # who has gone waits no more than it holds


def _holder_of(lock: Lock) -> Holder:
    return Holder(lock.instance_id, lock.agent or "")


def reaches_of(row: Waiter) -> tuple[Reach, ...]:
    """Return what the row of a place says that is waited for there."""
    try:
        wants = loads(row.wants)
        return tuple(reach for want in wants if (reach := reach_in(want))) if isinstance(wants, list) else ()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ()  # nothing of ours stores such a row: it waits for nothing, and stops nobody

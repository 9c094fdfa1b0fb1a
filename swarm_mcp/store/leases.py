"""Locks that lapse: renewed by any sign of life of their session, warned about, and let go.

Whether a lease is over is asked of the boot clock (``clock``) whenever a lock is looked at, so nothing here has to
happen in time for a lapsed lock to stop holding. What happens here is what people should hear of it.

The record of a lapse stands until its session is given that lock again, has left, or a day is over. While it stands,
and another has had the file, the commit guard lets that session commit no such file: what it knows of it is old.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.domain.lock import AUTO, Lapse, Lock
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store import events
from swarm_mcp.store.lock_finder import unfit
from swarm_mcp.store.lock_request import checked_ttl, meet, reach_in, reach_of
from swarm_mcp.views import name_of
from swarm_mcp.visibility import may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.session_table import SessionTable

WARNED_AT = 0.2  # of a lease is left when its holder is warned; ``swarm_lock_due_idx`` counts on it
RENEWED_EVERY = 3  # signs of life in the time of a lease, of whoever gives them without being asked
AT_ONCE = 200
LAPSES_KEPT_SECONDS = 86400

_LEASED = "type = 'lock' AND ttl IS NOT NULL"
_RENEWABLE = f"{_LEASED} AND mode IS NOT '{AUTO}'"  # by signs of life: an automatic lock is, by further writes


class Leases:
    """The embedded store's leases."""

    def __init__(
        self, db: Database, finder: LockFinder, endings: LockEndings, sessions: SessionTable, messages: Messages,
        notices: Notices,
    ):  # fmt: skip
        self._db = db
        self._finder = finder
        self._endings = endings
        self._sessions = sessions
        self._messages = messages
        self._notices = notices

    # ---------------------------------------------------------------- holders

    def renew(self, instance_id: str) -> None:
        """Inside a transaction: a sign of life of this session, which keeps its locks. What has lapsed has lapsed."""
        if not self._db.row(f"SELECT 1 FROM context WHERE {_RENEWABLE} AND instance_id = ? LIMIT 1", (instance_id,)):
            return  # the common case
        rows = self._finder
        self._endings.let_go([r for r in rows.select("AND c.ttl IS NOT NULL AND c.instance_id = ?", (instance_id,))
                     if rows.has_lapsed(r)])  # fmt: skip
        self._db.change(
            f"UPDATE context SET renewed = ?, booted = ?, wall_until = ? + ttl, warned = NULL"
            f" WHERE {_RENEWABLE} AND instance_id = ?",
            (clock.now(), clock.boot(self._db.here), time.time(), instance_id),
        )

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        if self.is_due(instance_id):
            with self._db.writing():
                (self._sessions.require if was_seen else self.renew)(instance_id)
        return self._until_due(instance_id)

    def is_due(self, instance_id: str) -> bool:
        left = self._until_due(instance_id)
        return left is not None and left <= 0

    def renew_lock(
        self, instance: Session, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
    ) -> Lock:
        reach, ttl = reach_of(instance, file), checked_ttl(ttl)
        refusal: Refused | None = None
        with self._db.writing():
            self._finder.adopt()
            self._sessions.require(instance.id)
            mine = self._finder.own(instance, reach, agent)
            refusal = unfit(reach, mine, fence)
            if refusal is None and ttl is not None:
                self._db.change(
                    "UPDATE context SET ttl = ?, renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
                    (ttl, clock.now(), clock.boot(self._db.here), time.time() + ttl, mine[0].id),
                )
                told = {"id": mine[0].id, "fence": mine[0].fence, "ttl": ttl}
                events.add(self._db, mine[0].scope, "context.lock_renewed", instance.id, reach.file, told)
        if refusal:  # raised out here, so that what has lapsed stays told
            raise refusal
        return self._finder.own(instance, reach, agent)[0]

    # ------------------------------------------------------------ whoever is around

    def some(self) -> bool:
        if not self._due(1):
            return False
        try:
            with self._db.hurried(), self._db.writing():
                self.settle()
        except SwarmError:
            return False
        return True

    def next_due(self) -> float | None:
        rows = self._db.rows(
            f"SELECT ttl, renewed, warned FROM context WHERE {_LEASED} AND booted = ?"
            " ORDER BY renewed + ttl * 0.8 LIMIT 50",
            (clock.boot(self._db.here),),
        )
        ends = [row.renewed + row.ttl * (1 if row.warned else 1 - WARNED_AT) for row in rows]
        return min(ends) - clock.now() if ends else None

    def settle(self) -> None:
        """Inside a transaction: the same."""
        for lock_id in self._due(AT_ONCE):
            rows = self._finder
            for row in self._endings.reaped(rows.select("AND c.id = ?", (lock_id,))):
                self._warn(row)

    # ------------------------------------------------------------------- lapsed

    def note_lapse(self, locks: list[Lock]) -> None:
        """Inside a transaction that has removed these locks: write them down, and tell each holder."""
        for lock in locks:
            if lock.mode == AUTO:
                continue  # nobody has asked for it, or counts on it
            left = self._finder.left(lock) or 0.0
            lapsed_at = int(time.time() + left)
            holder = self._sessions.get(lock.instance_id)
            if holder is None:
                continue
            file = plain(lock.file)
            row = {name: lock[name] for name in ("instance_id", "path_key", "pattern", "base", "fence")}
            row.update(file=file, agent=lock.agent or "", lapsed_at=lapsed_at)
            row["message_id"] = self._notices.post(holder, _words(lock.replace(file=file), lapsed_at), file)
            marks = ", ".join("?" * len(row))
            self._db.change(
                f"INSERT OR REPLACE INTO swarm_lapses ({', '.join(row)}) VALUES ({marks})", list(row.values())
            )

    def note_grant(self, instance: Session, locks: list[Lock]) -> None:
        """Inside a transaction that has granted these locks: whose they were before, if they lapsed."""
        for lapse in self._db.rows("SELECT * FROM swarm_lapses", (), Lapse):
            for lock in locks:
                if lapse.instance_id == instance.id:
                    if lapse.file == lock.file and lapse.agent == (lock.agent or ""):
                        self._forget(lapse)
                elif lapse.taken_fence is None and _same_place(lapse, lock):
                    self._taken(lapse, instance, lock)
                    break

    def overtaken(self, instance_id: str) -> list[Lapse]:
        return self._db.rows(
            "SELECT * FROM swarm_lapses WHERE instance_id = ? AND taken_fence IS NOT NULL ORDER BY lapsed_at",
            (instance_id,),
            Lapse,
        )

    def forget_lapses_of(self, instance_id: str) -> None:
        """Inside a transaction: drop those of a session that has gone."""
        self._db.change("DELETE FROM swarm_lapses WHERE instance_id = ?", (instance_id,))

    def forget_old_lapses(self, after: str, limit: int) -> str:
        """Inside a transaction: drop what is more than a day old, or of no session that is here.

        Among the next `limit` behind `after`. Return the last one looked at, empty at the end.
        """
        rows = self._db.rows(
            f"SELECT rowid AS place FROM swarm_lapses WHERE rowid > ? ORDER BY rowid LIMIT {limit}", (int(after or 0),)
        )
        if rows:
            self._db.change(
                "DELETE FROM swarm_lapses WHERE rowid > ? AND rowid <= ? AND (lapsed_at < ?"
                " OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = instance_id))",
                (int(after or 0), rows[-1].place, self._db.now() - LAPSES_KEPT_SECONDS),
            )
        return str(rows[-1].place) if len(rows) == limit else ""

    # -------------------------------------------------------------- innards

    def _until_due(self, instance_id: str) -> float | None:
        """Return the seconds until a third of this session's first lease is over; None where it has none."""
        rows = self._db.rows(
            f"SELECT ttl, renewed, booted, wall_until FROM context WHERE {_RENEWABLE} AND instance_id = ?",
            (instance_id,),
            Lock,
        )
        waits = [left - (row.ttl or 0.0) * (1 - 1 / RENEWED_EVERY) for row in rows
                 if (left := self._finder.left(row)) is not None]  # fmt: skip
        return min(waits, default=None)

    def _due(self, limit: int) -> list[str]:
        """Return the ids of locks whose holders are to be warned, or that have lapsed."""
        boot, now, wall = clock.boot(self._db.here), clock.now(), time.time()
        found = f"SELECT id FROM context WHERE {_LEASED} AND"
        rows = self._db.rows(
            f"{found} booted = ? AND renewed + ttl * 0.8 <= ? AND (warned IS NULL OR renewed + ttl <= ?) LIMIT ?",
            (boot, now, now, limit),
        )
        for other in ("<", ">"):  # of an earlier start of the machine; apart, for the index
            rows += self._db.rows(
                f"{found} booted {other} ? AND wall_until - ttl * 0.2 <= ? AND (warned IS NULL OR wall_until <= ?)"
                " LIMIT ?",
                (boot, wall, wall, limit),
            )
        return [row.id for row in rows]

    def _warn(self, row: Lock) -> None:
        self._db.change("UPDATE context SET warned = 1 WHERE id = ?", (row.id,))
        holder, left = self._sessions.get(row.instance_id), self._finder.left(row) or 0.0
        if holder and row.mode != AUTO:
            text = (
                f"[auto] Your lock on {named(plain(row.file))} lapses in {left:.0f} s. Anything this session does"
                " renews it; if you need it no longer, release it: others may be waiting."
            )
            self._messages.post(holder.scope, "system", holder.id, text)

    def _forget(self, lapse: Lapse) -> None:
        self._db.change(
            "DELETE FROM swarm_lapses WHERE instance_id = ? AND file = ? AND agent = ?",
            (lapse.instance_id, lapse.file, lapse.agent),
        )

    def _taken(self, lapse: Lapse, taker: Session, lock: Lock) -> None:
        self._db.change(
            "UPDATE swarm_lapses SET taken_fence = ?, taken_by = ?, taken_label = ?"
            " WHERE instance_id = ? AND file = ? AND agent = ?",
            (lock.fence, taker.id, taker.label, lapse.instance_id, lapse.file, lapse.agent),
        )
        former = self._sessions.get(lapse.instance_id)
        known = former and may_meet(former.label, taker.label)
        own = name_of(taker)
        name = own if known else "a session of another identity"
        more = f" Since then {name} has been given {named(lock.file)}: read before you write."
        self._db.change(
            "UPDATE messages SET content = content || ? WHERE id = ? AND read = 0", (more, lapse.message_id)
        )


def _same_place(lapse: Lapse, lock: Lock) -> bool:
    one, other = reach_in(lapse), reach_in(lock)
    return bool(one and other and meet(one, other))


def _words(lock: Lock, lapsed_at: int) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(lapsed_at))
    held = f" (agent {named(lock.agent)})" if lock.agent else ""
    fence = f", fence {lock.fence}" if lock.fence else ""
    return (
        f"[auto] Your lock on {named(lock.file)}{held} lapsed at {moment}: there was no sign of life for"
        f" {duration(lock.ttl or 0.0)}{fence}. It may have changed; lock it again before you go on with it."
    )

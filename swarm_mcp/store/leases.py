"""Locks that lapse: renewed by any sign of life of their session, warned about, and let go.

Whether a lease is over is asked of the boot clock (``clock``) whenever a lock is looked at, so nothing here has to
happen in time for a lapsed lock to stop holding. What happens here is what people should hear of it.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import named
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.store import events
from swarm_mcp.store.lock_reach import reach_of
from swarm_mcp.store.lock_request import checked_ttl

WARNED_AT = 0.2  # of a lease is left when its holder is warned; ``swarm_lock_due_idx`` counts on it
RENEWED_EVERY = 3  # signs of life in the time of a lease, of whoever gives them without being asked
AT_ONCE = 200
PATIENCE_SECONDS = 0.05  # a busy store has more urgent things to do

_LEASED = "type = 'lock' AND ttl IS NOT NULL"


class Leases:
    """The embedded store's leases."""

    def __init__(self, store):
        self.store = store

    # ---------------------------------------------------------------- holders

    def renew(self, instance_id: str) -> None:
        """Inside a transaction: a sign of life of this session, which keeps its locks. What has lapsed has lapsed."""
        if not self.store.row(f"SELECT 1 FROM context WHERE {_LEASED} AND instance_id = ? LIMIT 1", (instance_id,)):
            return  # the common case
        rows = self.store.locks.rows
        self.let_go([r for r in rows.select("AND c.ttl IS NOT NULL AND c.instance_id = ?", (instance_id,))
                     if rows.has_lapsed(r)])  # fmt: skip
        self.store.change(
            f"UPDATE context SET renewed = ?, booted = ?, wall_until = ? + ttl, warned = NULL"
            f" WHERE {_LEASED} AND instance_id = ?",
            (clock.now(), clock.boot(self.store.here), time.time(), instance_id),
        )

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        """Outside a transaction: renew this session's locks if a third of a lease is over, for whoever vouches for it.

        Without `was_seen` it counts as silent all the same, since nobody speaks for it yet. Seconds until this should
        be asked again, None where the session has no lease. Raises SwarmError where it has gone. Costs one read while
        there is nothing to do.
        """
        if self.is_due(instance_id):
            with self.store.writing():
                (self.store.instances.require if was_seen else self.renew)(instance_id)
        return self._until_due(instance_id)

    def is_due(self, instance_id: str) -> bool:
        """Whether `keep` would write: a third of one of this session's leases is over."""
        left = self._until_due(instance_id)
        return left is not None and left <= 0

    def renew_lock(
        self, instance: dict, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
    ) -> dict:
        """Renew this session's lock on `file`, from now on with a lease of `ttl` seconds where that is given; its row.

        Refused where it is not held any more, or not by that grant (`fence`): it is for the holder to notice.
        """
        reach, ttl = reach_of(instance, file), checked_ttl(ttl)
        refusal: Refused | None = None
        with self.store.writing():
            self.store.instances.require(instance["id"])
            mine = self.store.locks.own(instance, reach, agent)
            refusal = self.store.locks.unfit(reach, mine, fence)
            if refusal is None and ttl is not None:
                self.store.change(
                    "UPDATE context SET ttl = ?, renewed = ?, booted = ?, wall_until = ? WHERE id = ?",
                    (ttl, clock.now(), clock.boot(self.store.here), time.time() + ttl, mine[0]["id"]),
                )
                told = {"id": mine[0]["id"], "fence": mine[0]["fence"], "ttl": ttl}
                events.add(self.store, mine[0]["scope"], "context.lock_renewed", instance["id"], reach.file, told)
        if refusal:  # raised out here, so that what has lapsed stays told
            raise refusal
        return self.store.locks.own(instance, reach, agent)[0]

    # ------------------------------------------------------------ whoever is around

    def some(self) -> bool:
        """Outside a transaction: warn of leases that are nearly over, let go what has lapsed; whether there was any.

        Costs one read while nothing is due. A busy store is left alone; somebody will be around again.
        """
        if not self._due(1):
            return False
        store = self.store
        patience, store.busy_seconds = store.busy_seconds, min(store.busy_seconds, PATIENCE_SECONDS)
        try:
            with store.writing():
                self.settle()
        except SwarmError:
            return False
        finally:
            store.busy_seconds = patience
        return True

    def next_due(self) -> float | None:
        """Seconds until somebody is to be warned, or a lease is over; None where there is no lease."""
        rows = self.store.rows(
            f"SELECT ttl, renewed, warned FROM context WHERE {_LEASED} AND booted = ?"
            " ORDER BY renewed + ttl * 0.8 LIMIT 50",
            (clock.boot(self.store.here),),
        )
        ends = [row["renewed"] + row["ttl"] * (1 if row["warned"] else 1 - WARNED_AT) for row in rows]
        return min(ends) - clock.now() if ends else None

    def settle(self) -> None:
        """Inside a transaction: the same."""
        for lock_id in self._due(AT_ONCE):
            rows = self.store.locks.rows
            for row in rows.reaped(rows.select("AND c.id = ?", (lock_id,))):
                self._warn(row)

    def let_go(self, lapsed: list[dict]) -> None:
        """Inside a transaction: remove these locks, whose leases are over, and tell who should know."""
        if lapsed:
            self.store.locks.drop(lapsed, "lapsed")
            self.store.lapses.note(lapsed)

    # -------------------------------------------------------------- innards

    def _until_due(self, instance_id: str) -> float | None:
        """Seconds until a third of this session's first lease is over; None where it has none."""
        rows = self.store.rows(
            f"SELECT ttl, renewed, booted, wall_until FROM context WHERE {_LEASED} AND instance_id = ?", (instance_id,)
        )
        waits = [left - row["ttl"] * (1 - 1 / RENEWED_EVERY) for row in rows
                 if (left := self.store.locks.rows.left(row)) is not None]  # fmt: skip
        return min(waits, default=None)

    def _due(self, limit: int) -> list[str]:
        """Ids of locks whose holders are to be warned, or that have lapsed."""
        boot, now, wall = clock.boot(self.store.here), clock.now(), time.time()
        found = f"SELECT id FROM context WHERE {_LEASED} AND"
        rows = self.store.rows(
            f"{found} booted = ? AND renewed + ttl * 0.8 <= ? AND (warned IS NULL OR renewed + ttl <= ?) LIMIT ?",
            (boot, now, now, limit),
        )
        for other in ("<", ">"):  # of an earlier start of the machine; apart, for the index
            rows += self.store.rows(
                f"{found} booted {other} ? AND wall_until - ttl * 0.2 <= ? AND (warned IS NULL OR wall_until <= ?)"
                " LIMIT ?",
                (boot, wall, wall, limit),
            )
        return [row["id"] for row in rows]

    def _warn(self, row: dict) -> None:
        self.store.change("UPDATE context SET warned = 1 WHERE id = ?", (row["id"],))
        holder, left = self.store.instances.get(row["instance_id"]), self.store.locks.rows.left(row) or 0.0
        if holder:
            text = (
                f"[auto] Your lock on {named(plain(row['file']))} lapses in {left:.0f} s. Anything this session does renews"
                " it; if you need it no longer, release it: others may be waiting."
            )
            self.store.messages.post(holder["scope"], "system", holder["id"], text)

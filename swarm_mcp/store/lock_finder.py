"""Finding locks by what they reach, and telling which of them still hold."""

from __future__ import annotations

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import BATCH, GLOB, ascii_lower, storable
from swarm_hook_core.lookup.process_holders import PREFIX, has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE, NAME_OF_FILE
from swarm_hook_core.paths import LONGEST, NO_CASE, above, finder, key_of
from swarm_hook_core.state import has_claims
from swarm_mcp.domain.lock import MUTEX_PREFIX, OF_THE_HOLDER, Lock, keeps_out
from swarm_mcp.domain.session import Session, anywhere
from swarm_mcp.errors import Refused
from swarm_mcp.store.lock_candidates import Asking, question
from swarm_mcp.store.lock_request import Reach, forms, meet, reach_in, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.worktree_locks import WorktreeLocks

FEW = 50  # locks that may be in somebody's way and are looked at first: one that is suffices
# What tells whether a lock is met: of the many that are not, no more is read.
_COMPARED = "c.rowid, c.file, c.path_key, c.pattern, c.base, c.repository"
OWN = tuple(name for name in Lock.__annotations__ if name not in OF_THE_HOLDER)  # columns of ``context``
# A note that another program or an earlier release stored may be of any length.
_COLUMNS = ", ".join(f"c.{name}" for name in OWN).replace("c.content", "substr(c.content, 1, 2048) AS content")
ON_FILES = f"type = 'lock' AND substr(file, 1, {len(MUTEX_PREFIX)}) <> '{MUTEX_PREFIX}'"
_SELECT = (
    f"SELECT {_COLUMNS}, i.label AS owner_label, i.id AS owner_id, {EVIDENCE}"
    " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
    " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id WHERE c.type = 'lock'"
)


class LockFinder:
    """Finding locks by what they reach, in their own work tree and through others of the same repository.

    What asks for rows gets every lock that fits, whether or not it still holds; `live` leaves out those that do not.
    """

    def __init__(self, db: Database, adopt: Callable[[], bool] | None = None):
        self._db = db
        self._adopt = adopt
        self._worktrees: WorktreeLocks | None = None

    @property
    def worktrees(self) -> WorktreeLocks:
        """Locks that hold in every work tree: loaded where one is asked for, not by those that only list."""
        if self._worktrees is None:
            from swarm_mcp.store.worktree_locks import WorktreeLocks

            self._worktrees = WorktreeLocks(self._db, self)
        return self._worktrees

    def adopt(self) -> bool:
        """Make locks of what writes have claimed, before anything is found; whether there was any such.

        Costs one look at the disk where nobody has ever claimed anything.
        """
        return self._adopt is not None and has_claims() and self._adopt()

    def select(self, condition: str, values: tuple) -> list[Lock]:
        """Return every lock that fits, live or not, oldest first."""
        return self._db.rows(f"{_SELECT} {condition} ORDER BY c.created_at, c.rowid", values, Lock)

    def near(self, reach: Reach, asking: Asking | None = None) -> tuple[str, list]:
        """Return the SELECT, and its values, of the rowids of what may meet `reach`: see ``lock_candidates``."""
        return question(reach, asking)

    def with_rowids(self, places: list[int]) -> list[Lock]:
        """Return the locks in these rows, oldest first."""
        places = sorted(places)
        some = [places[start : start + BATCH] for start in range(0, len(places), BATCH)]
        found = [row for ids in some for row in self.select(f"AND c.rowid IN ({','.join('?' * len(ids))})", tuple(ids))]
        return sorted(found, key=lambda row: row.created_at) if len(some) > 1 else found

    def named(self, keys: tuple[str, ...] | list[str]) -> list[Lock]:
        """Return locks on a path by any of its names."""
        some, marks = "SELECT rowid FROM context WHERE type = 'lock' AND", ",".join("?" * len(keys))
        last = list({ascii_lower(key.rsplit("/", 1)[-1]) for key in keys})
        # Apart, because SQLite reads every lock there is for an OR over several partial indexes.
        asked = f"{some} path_key IN ({marks}) UNION ALL {some} path_key IS NOT file AND file IN ({marks})"
        unkeyed = (
            " FROM context INDEXED BY swarm_lock_name_idx WHERE type = 'lock' AND path_key IS NULL"
            f" AND {NAME_OF_FILE} IN ({','.join('?' * len(last))}) AND file NOT IN ({marks})"
        )
        asked += f" UNION ALL SELECT * FROM (SELECT rowid{unkeyed} LIMIT 1)"
        rows = self.select(f"AND c.rowid IN ({asked})", (*keys, *keys, *last, *keys))
        found = [row for row in rows if row.path_key or row.file in keys]
        if len(found) == len(rows):
            return found
        # What another implementation has stored without a key may be meant by it; of one name there may be any number.
        key_in = finder(keys)
        many = self._db.rows(f"SELECT rowid, file{unkeyed}", (*last, *keys), Lock)
        met = [row["rowid"] for row in many if is_readable(row.file) and key_in(row.file)]
        return sorted([*found, *self.with_rowids(met)], key=lambda row: row.created_at)

    def in_place(self, reach: Reach, asking: Asking | None = None) -> list[Lock]:
        """Return those that meet it by their paths, oldest first; with `asking` as `meeting`."""
        sql, values = question(reach, asking, _COMPARED)
        found: list[Lock] = []
        for most in (FEW, -1) if asking else (-1,):
            rows = _keyed(self._db.rows(f"{sql} LIMIT {most}", values, Lock), reach)
            met = (row["rowid"] for row in rows if (there := reach_in(row)) and meet(reach, there))
            found = self.with_rowids(list(dict.fromkeys(met)))
            if len(rows) < FEW or (asking and any(keeps_out(row, *asking[:3]) for row in self.live(found))):
                break
        return found

    def live(self, rows: list[Lock]) -> list[Lock]:
        """Return those of `rows` that still hold. Each session that has some is looked at once."""
        gone: dict[str, bool] = {}
        for row in rows:
            if row.instance_id not in gone:
                gone[row.instance_id] = self.has_gone(row)
        here = self._db.here
        left = [row for row in rows if not gone[row.instance_id]]
        return [row for row in left if not self.has_lapsed(row) and not has_ended(row.agent, here)]

    def ended_holds(self) -> list[Lock]:
        """Return locks of processes that have ended, though their sessions live: see ``process_holders``."""
        held = "SELECT rowid FROM context WHERE type = 'lock' AND agent >= ? AND agent < ?"
        sql = f"SELECT DISTINCT agent FROM context WHERE rowid IN ({held})"
        rows = self._db.rows(sql, (PREFIX, PREFIX[:-1] + ";"))
        ended = [row.agent for row in rows if has_ended(row.agent, self._db.here)]
        return self.select(f"AND c.agent IN ({','.join('?' * len(ended))})", tuple(ended)) if ended else []

    def is_void(self, row: Lock) -> bool:
        """Tell whether a lock no longer holds: its session has gone, its lease has lapsed, or who held it has ended."""
        return self.has_gone(row) or self.has_lapsed(row) or has_ended(row.agent, self._db.here)

    def has_gone(self, row: Lock) -> bool:
        """Tell whether the session that took a lock has gone."""
        if row.owner_id is None:
            return True
        return departed(row, self._db.now(), self._db.here)

    def has_lapsed(self, row: Lock) -> bool:
        """Tell whether a lock's lease is over."""
        left = self.left(row)
        return left is not None and left <= 0

    def left(self, row: Lock) -> float | None:
        """Return the seconds until a lock's lease is over; None for one without a lease."""
        if row.get("ttl") is None:
            return None  # the common case
        lease = (row.ttl, row.renewed, row.booted, row.wall_until)
        return clock.left(lease, self._db.here, time.time())

    def on(self, file: str) -> list[Lock]:
        """Return live locks that keep absolute `file` still: itself, a folder over it, a pattern; in any scope."""
        return self.live(self.covering(reach_of(anywhere(), file, as_pattern=False)))

    def covering(self, reach: Reach) -> list[Lock]:
        """Return locks that keep the path of `reach` still: itself, a folder over it, a pattern, another tree's."""
        if reach.key is None:
            return self.named(reach.keys)
        names = list(dict.fromkeys(name for key in reach.keys for name in (key, *above(key))))
        found = {row.id: row for row in self.named(names)}
        exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
        tops = (*(GLOB + name for name in names), GLOB + "/", GLOB + NO_CASE + "/")
        for row in self.select(f"AND c.path_key IN ({','.join('?' * len(tops))})", tops):
            there = reach_in(row)
            if there and meet(exact, there):
                found[row.id] = row
        found.update((row.id, row) for row in self.worktrees.covering(reach))
        return sorted(found.values(), key=lambda row: (row.created_at, row.id))

    def meeting(self, reach: Reach, asking: Asking | None = None) -> list[Lock]:
        """Return locks that meet `reach`, here or in another work tree, live or not.

        With `asking` what never keeps that one out may be left out, but for its own lock on that very path or
        pattern; and where something does, and still holds, others may be.
        """
        here, elsewhere = self.in_place(reach, asking), self.worktrees.meeting(reach)
        if not elsewhere:
            return here
        found = {row.id: row for row in (*here, *elsewhere)}
        return sorted(found.values(), key=lambda row: (row.created_at, row.id))

    def same(self, reach: Reach) -> list[Lock]:
        """Return every lock on that very path or pattern, live or not."""
        if reach.pattern:
            rows = self.select("AND c.path_key = ?", (reach.key,))
            return [row for row in rows if (row.pattern, row.base) == (reach.pattern, reach.base)]
        return [row for row in self.named(reach.keys) if not row.pattern]

    def is_same(self, row: Lock, reach: Reach) -> bool:
        """Tell whether a lock is on that very path, by whatever name, or on that very pattern."""
        if reach.pattern or row.pattern:
            return (row.pattern, row.base) == (reach.pattern, reach.base)
        return row.file in reach.keys or (row.path_key or key_of(row.file)) in reach.keys

    def own(
        self,
        instance: Session,
        reach: Reach,
        agent: str = "",
        counted: Callable[[list[Lock]], list[Lock]] | None = None,
    ) -> list[Lock]:
        """This session's live locks on that very path or pattern, of one `agent` where given.

        `counted` sorts out what no longer holds: `live`, or ``LockEndings.reaped`` inside a transaction.
        """
        rows = (counted or self.live)(self.same(reach))
        return [row for row in rows if row.instance_id == instance.id and agent in ("", row.agent or "")]

    def of(self, instance_id: str) -> list[Lock]:
        """Return every lock this session holds, mutexes too, with the columns that are the lock's own."""
        return self._db.rows(
            "SELECT id, scope, instance_id, file, content, task_id, created_at, path_key, fence, mode, agent, pattern,"
            " base, repository"
            " FROM context WHERE instance_id = ? AND type = 'lock' ORDER BY created_at, rowid",
            (instance_id,),
            Lock,
        )

    def vanished_holders(self, after: str, limit: int) -> tuple[list[str], str]:
        """Return which of the next `limit` lock holders from `after` on are not registered, and the last one looked at.

        That is empty at the end. Hops from holder to holder along an index, however many locks each has.
        """
        next_one = "SELECT min(instance_id) FROM context WHERE type = 'lock' AND instance_id"
        rows = self._db.rows(
            f"WITH RECURSIVE holders(id) AS ({next_one} >= ? UNION ALL"
            f" SELECT ({next_one} > holders.id) FROM holders WHERE holders.id IS NOT NULL)"
            " SELECT id, EXISTS (SELECT 1 FROM instances i WHERE i.id = holders.id) AS known"
            f" FROM holders WHERE id IS NOT NULL LIMIT {limit}",
            (after,),
        )
        return [row.id for row in rows if not row.known], str(rows[-1].id) if len(rows) == limit else ""

    def without_key(self, limit: int) -> list[Lock]:
        """Return some locks that another implementation stored without a key."""
        return self._db.rows(
            f"SELECT id, file FROM context WHERE path_key IS NULL AND {ON_FILES} LIMIT ?", (limit,), Lock
        )

    def foreign_keys(self, limit: int) -> list[tuple[str, str | None, str]]:
        """Return ``(key, key if it is a folder's, id)`` of some locks that another implementation stored without one.

        Asks the disk, so it should be called before the transaction that stores the keys.
        """
        rows = [row for row in self.without_key(limit) if is_readable(row.file) and storable(row.file)]
        keys = [key_of(row.file) for row in rows]
        return [(key, key if os.path.isdir(row.file) else None, row.id) for row, key in zip(rows, keys)]

    def give_keys(self, found: list[tuple[str, str | None, str]]) -> None:
        """Inside a transaction: store what `foreign_keys` has found."""
        for values in found:
            self._db.change("UPDATE context SET path_key = ?, base = ? WHERE id = ? AND path_key IS NULL", values)


def is_readable(file: object) -> bool:
    """Tell whether what another program has stored can be a path."""
    return isinstance(file, str) and "\0" not in file and len(file) <= LONGEST


def _keyed(rows: list[Lock], reach: Reach) -> list[Lock]:
    """Return `rows` with a key each: a place of `reach`, or of a folder over it, that a link leads to, or its file."""
    if all(row.path_key for row in rows) or reach.key is None:
        return rows
    places = forms(reach)
    key_in = finder([name for place in places for name in (place, *above(place))])
    keys = ((row, row.path_key or (is_readable(row.file) and key_in(row.file)) or row.file) for row in rows)
    return [row if row.path_key else row.replace(path_key=key) for row, key in keys]


def unfit(reach: Reach, mine: list[Lock], fence: int | None) -> Refused | None:
    """Return why `mine`, what `own` found, is not the one grant that is meant (`fence`), None where it is."""
    if fence is not None and [row.fence for row in mine] != [fence]:
        held = f"; it is held with fence {mine[0].fence}" if mine else ""
        return Refused(f"fence {fence} is no longer good for {reach.file}{held}")
    return None if mine else Refused(f"this session holds no lock on {reach.file}")


def facts(lock: dict) -> dict:
    """Return what an event says of a lock, so that its history can be told later; nothing that there is nothing of."""
    named = ("fence", "mode", "agent", "pattern", "base", "repository")
    return {"key": lock.get("path_key"), **{name: lock[name] for name in named if lock.get(name)}}

"""The live locks of a scope, however many there are: one after the other, or counted.

The order is that of their rows, in which they were first taken: a lock that is renewed meanwhile keeps its place, so no
lock is met twice. No question to the store stays open while its answer is used, however slowly that is: nobody who
writes is kept from shortening the log.
"""

from __future__ import annotations

from swarm_hook_core.lookup import BATCH
from swarm_hook_core.lookup.process_holders import PREFIX
from swarm_mcp.domain.lock import Lock, is_mutex
from swarm_mcp.store.lock_finder import ON_FILES
from swarm_mcp.store.lock_holders import LockHolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_finder import LockFinder

FEW_OF_ONE = 50  # locks of a session, of which it is looked at what they are on
FEW, MANY = 1000, 100_000  # places looked up at once: few for the first rows, then more, each time through the index

_LEASE = "ttl, renewed, booted, wall_until"
# What a listing shows of a lock, and what tells whether it still holds.
_SHOWN = (
    "c.rowid AS place, c.id, c.instance_id, c.file, substr(c.content, 1, 2048) AS content, c.created_at, c.mode,"
    " c.agent, c.pattern, c.fence, c.expected_end, c.repository, c.machine, c.team_fence, c.ttl, c.renewed, c.booted,"
    " c.wall_until, i.label AS owner_label"
)


class LockPages:
    """Going through the live locks on files of a scope (None: of all scopes), and counting them."""

    def __init__(self, db: Database, finder: LockFinder):
        self._db = db
        self._finder = finder

    def each(self, scope: str | None, after: int = 0) -> Iterator[Lock]:
        """Yield all from behind place `after` on, each with its ``place``; 0: from the beginning."""
        return self._walk(*_in_scope(scope), LockHolders(self._db), after)

    def counts(self, scope: str | None) -> dict[str, int]:
        """Return how many there are: ``live``, and ``void``, which nobody has tidied away yet."""
        holders = LockHolders(self._db)
        held = self._by_holder(scope, holders)
        live = self._live_of(held, scope, holders)
        return {"live": live, "void": sum(held.values()) - live}

    def foremost(self, scope: str, limit: int, own_id: str, waited_for: Iterable[str]) -> tuple[int, list[Lock]]:
        """Return how many live ones there are, and `limit` of them.

        First those that session `own_id` holds, then those with the ids `waited_for`, then the newest.
        """
        holders = LockHolders(self._db)
        held = self._by_holder(scope, holders)
        there = [holder for holder in held if not holders.has_gone(holder)]
        within, values = _in_scope(scope)
        some = list(waited_for)[:BATCH]
        asked = [(f"{within} AND instance_id = ?", [*values, own_id])] if own_id in held else []
        if some:
            asked.append((f"{within} AND id IN ({_marks(some)})", [*values, *some]))
        if len(there) < len(held) and len(there) <= BATCH:  # passing over the others' one by one takes long
            within, values = f"{within} AND instance_id IN ({_marks(there)})", [*values, *there]
        found: dict[int, Lock] = {}
        for condition, given in (*asked, (within, values)):
            for row in self._walk(condition, given, holders, newest_first=True) if len(found) < limit else ():
                found.setdefault(row["place"], row)
                if len(found) == limit:
                    break
        return self._live_of(held, scope, holders), list(found.values())

    def recent_of(self, sessions: list[str], limit: int, first: Iterable[str]) -> list[Lock]:
        """Return live ones: those with the ids `first`, then the newest of these sessions, `limit` of them at most."""
        some = list(first)[:BATCH]
        places = self._db.column(f"SELECT rowid FROM context WHERE {ON_FILES} AND id IN ({_marks(some)})", some)
        newest: list[int] = []
        for one in sessions:  # each along the index of holders, which has no more to be sorted
            of_one = "SELECT rowid FROM context WHERE type = 'lock' AND instance_id = ? ORDER BY rowid DESC LIMIT ?"
            newest += self._db.column(of_one, (one, limit))
        places += sorted(set(newest).difference(places), reverse=True)
        holders, found = LockHolders(self._db), dict[int, Lock]()
        for at in range(0, len(places), BATCH):
            asked = places[at : at + BATCH]
            rows = {row["place"]: row for row in self._live(asked, "", holders) if not is_mutex(row["file"])}
            found.update((place, rows[place]) for place in asked if place in rows)
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def counts_of(self, sessions: list[str], most: int) -> dict[str, int]:
        """Return how many locks each of these has, counted up to `most`; of few, those on files alone."""
        found = {}
        for one in sessions:
            some = f"SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ? LIMIT {most}"
            found[one] = self._db.column(f"SELECT count(*) FROM ({some})", (one,))[0]
            if 0 < found[one] < min(most, FEW_OF_ONE):
                on_files = f"SELECT count(*) FROM context WHERE {ON_FILES} AND instance_id = ?"
                found[one] = self._db.column(on_files, (one,))[0]
        return found

    # -------------------------------------------------------------- innards

    def _walk(
        self, condition: str, values: list, holders: LockHolders, after: int = 0, newest_first: bool = False
    ) -> Iterator[Lock]:
        """Yield the live ones that fit, from behind place `after` on."""
        way, sign = (" DESC", "<") if newest_first else ("", ">")
        few = FEW
        while True:
            behind, given = (f" AND rowid {sign} ?", [*values, after]) if after else ("", values)
            sql = f"SELECT rowid FROM context WHERE {condition}{behind} ORDER BY rowid{way} LIMIT {few}"
            places = self._db.column(sql, given)
            for at in range(0, len(places), BATCH):
                yield from self._live(places[at : at + BATCH], way, holders)
            if len(places) < few:
                return
            after, few = places[-1], min(few * 10, MANY)

    def _live(self, places: list[int], way: str, holders: LockHolders) -> Iterator[Lock]:
        """Yield what is in these places and still holds."""
        rows = self._db.rows(
            f"SELECT {_SHOWN} FROM context c LEFT JOIN instances i ON i.id = c.instance_id WHERE c.type = 'lock'"
            f" AND c.rowid IN ({_marks(places)}) ORDER BY c.rowid{way}",
            places,
            Lock,
        )
        holders.learn(row["instance_id"] for row in rows)
        for row in rows:
            if not (
                holders.has_gone(row["instance_id"])
                or holders.has_ended(row["agent"])
                or (row["ttl"] is not None and self._finder.has_lapsed(row))
            ):
                yield row

    def _by_holder(self, scope: str | None, holders: LockHolders) -> dict[str, int]:
        """Return how many locks, live or void, each session has, whether or not that has gone."""
        condition, values = _in_scope(scope)
        rows = self._db.rows(
            f"SELECT instance_id, count(*) AS locks FROM context WHERE {condition} GROUP BY instance_id", values
        )
        holders.learn(row.instance_id for row in rows)
        return {row.instance_id: row.locks for row in rows}

    def _live_of(self, held: dict[str, int], scope: str | None, holders: LockHolders) -> int:
        """Return how many of the locks in `held` (`_by_holder`) are live."""
        condition, values = _in_scope(scope)
        some = "SELECT rowid FROM context WHERE type = 'lock' AND"
        # Of those that a live session has, only one with a lease or of a process may be void.
        rows = self._db.rows(
            f"SELECT instance_id, agent, {_LEASE}, count(*) AS locks FROM context WHERE rowid IN ({some} ttl IS NOT"
            f" NULL UNION {some} agent >= ? AND agent < ?) AND {condition} GROUP BY instance_id, agent, {_LEASE}",
            [PREFIX, PREFIX[:-1] + ";", *values],
            Lock,
        )
        holders.learn(row["instance_id"] for row in rows)
        over = [row for row in rows if holders.has_ended(row["agent"]) or self._finder.has_lapsed(row)]
        live = sum(number for holder, number in held.items() if not holders.has_gone(holder))
        return live - sum(row["locks"] for row in over if not holders.has_gone(row["instance_id"]))


def _in_scope(scope: str | None) -> tuple[str, list]:
    """Return the condition that a lock is on a file and of this scope (None: of any), and its values."""
    return (ON_FILES, []) if scope is None else (f"{ON_FILES} AND scope = ?", [scope])


def _marks(values: list) -> str:
    return ",".join("?" * len(values))

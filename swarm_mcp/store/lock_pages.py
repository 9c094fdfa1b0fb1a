"""The live locks of a scope, however many: one after the other, or counted.

The order is that of their rows, in which they were first taken: a renewed lock keeps its place, so that no lock is met
twice. No question to the store stays open while its answer is used, however slowly: writers can shorten the log.
"""

from __future__ import annotations

from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import BATCH
from swarm_hook_core.lookup.process_holders import PREFIX, has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_mcp.domain.lock import Lock, is_mutex
from swarm_mcp.store import lock_finder, lock_rows
from swarm_mcp.store.database import range_end
from swarm_mcp.store.lock_rows import ON_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from swarm_mcp.store.database import Transaction

FEW_OF_ONE = 50  # a session with fewer locks is counted without mutexes
FEW, MANY = 1000, 100_000  # places looked up at once: few for the first rows, then more, each time through the index

_LEASE = "ttl, renewed, booted, wall_until"
# The columns that a listing shows, and those that tell a live lock.
_SHOWN = (
    "c.rowid AS place, c.id, c.instance_id, c.file, substr(c.content, 1, 2048) AS content, c.created_at, c.mode,"
    " c.agent, c.pattern, c.fence, c.expected_end, c.repository, c.machine, c.team_fence, c.ttl, c.renewed, c.booted,"
    " c.wall_until, i.label AS owner_label"
)


def each(tx: Transaction, scope: str | None, after: int = 0) -> Iterator[Lock]:
    """Yield all from behind place `after` on, each with its ``place``; 0: from the beginning."""
    yield from _walk(tx, *_in_scope(scope), LockHolders(tx), after)
    yield from (row for row in lock_finder.of_turns(tx, scope) if row["place"] > after)


def counts(tx: Transaction, scope: str | None) -> dict[str, int]:
    """Return the numbers of locks of a scope (None: all): ``live``, and ``void`` locks that are still to be removed."""
    holders = LockHolders(tx)
    held = _by_holder(tx, scope, holders)
    live = _live_of(tx, held, scope, holders)
    return {"live": live + len(lock_finder.of_turns(tx, scope)), "void": sum(held.values()) - live}


def foremost(tx: Transaction, scope: str, limit: int, own_id: str, waited_for: Iterable[str]) -> tuple[int, list[Lock]]:
    """Return how many live ones there are, and `limit` of them.

    First those that session `own_id` holds, then those with the ids `waited_for`, then the newest.
    """
    holders = LockHolders(tx)
    held = _by_holder(tx, scope, holders)
    there = [holder for holder in held if not holders.has_gone(holder)]
    within, values = _in_scope(scope)
    some = list(waited_for)[:BATCH]
    if own_id in held:
        asked = [(f"{within} AND instance_id = ?", [*values, own_id])]
    else:
        asked = []
    if some:
        asked.append((f"{within} AND id IN ({_marks(some)})", [*values, *some]))
    if len(there) < len(held) and len(there) <= BATCH:  # passing over the others' one by one takes long
        within, values = f"{within} AND instance_id IN ({_marks(there)})", [*values, *there]
    of_turns = lock_finder.of_turns(tx, scope)[::-1]
    first = [row for row in of_turns if row.instance_id == own_id or row.id in some]
    found: dict[int, Lock] = {row["place"]: row for row in first[:limit]}
    for condition, given in (*asked, (within, values)):
        if condition == within:
            found.update((row["place"], row) for row in of_turns[: limit - len(found)])
        for row in _walk(tx, condition, given, holders, newest_first=True) if len(found) < limit else ():
            found.setdefault(row["place"], row)
            if len(found) == limit:
                break
    return _live_of(tx, held, scope, holders) + len(of_turns), list(found.values())


def recent_of(tx: Transaction, sessions: list[str], limit: int, first: Iterable[str]) -> list[Lock]:
    """Return live ones: those with the ids `first`, then the newest of these sessions, `limit` of them at most."""
    some = list(first)[:BATCH]
    places = tx.column(f"SELECT rowid FROM context WHERE {ON_FILES} AND id IN ({_marks(some)})", some)
    newest: list[int] = []
    for one in sessions:  # each along the index of holders, which needs no sorting
        of_one = "SELECT rowid FROM context WHERE type = 'lock' AND instance_id = ? ORDER BY rowid DESC LIMIT ?"
        newest += tx.column(of_one, (one, limit))
    places += sorted(set(newest).difference(places), reverse=True)
    of_turns = [row for row in lock_finder.of_turns(tx)[::-1] if row.id in some or row.instance_id in sessions]
    holders, found = LockHolders(tx), {row["place"]: row for row in of_turns}
    for at in range(0, len(places), BATCH):
        asked = places[at : at + BATCH]
        rows = {row["place"]: row for row in _live(tx, asked, "", holders) if not is_mutex(row["file"])}
        found.update((place, rows[place]) for place in asked if place in rows)
        if len(found) >= limit:
            break
    return list(found.values())[:limit]


def counts_of(tx: Transaction, sessions: list[str], most: int) -> dict[str, int]:
    """Return how many locks each of these sessions has on record, counted no further than `most`.

    Of a session with few of them, only those on files count.
    """
    found = {}
    for one in sessions:
        some = f"SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ? LIMIT {most}"
        found[one] = tx.count(f"({some})", one)
        if 0 < found[one] < min(most, FEW_OF_ONE):
            found[one] = tx.count(f"context WHERE {ON_FILES} AND instance_id = ?", one)
    for row in lock_finder.of_turns(tx):
        if row.instance_id in found:
            found[row.instance_id] += 1
    return found


def _walk(
    tx: Transaction, condition: str, values: list[Any], holders: LockHolders, after: int = 0, newest_first: bool = False
) -> Iterator[Lock]:
    """Yield the live ones that fit, from behind place `after` on."""
    way, sign = (" DESC", "<") if newest_first else ("", ">")
    few = FEW
    while True:
        behind, given = (f" AND rowid {sign} ?", [*values, after]) if after else ("", values)
        sql = f"SELECT rowid FROM context WHERE {condition}{behind} ORDER BY rowid{way} LIMIT {few}"
        places = tx.column(sql, given)
        for at in range(0, len(places), BATCH):
            yield from _live(tx, places[at : at + BATCH], way, holders)
        if len(places) < few:
            return
        after, few = places[-1], min(few * 10, MANY)


def _live(tx: Transaction, places: list[int], way: str, holders: LockHolders) -> Iterator[Lock]:
    """Yield the live locks in these places."""
    rows = tx.rows(
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
            or (row["ttl"] is not None and lock_rows.has_lapsed(tx, row))
        ):
            yield row


def _by_holder(tx: Transaction, scope: str | None, holders: LockHolders) -> dict[str, int]:
    """Return the number of locks, live or void, of each session, gone or not."""
    condition, values = _in_scope(scope)
    rows = tx.rows(f"SELECT instance_id, count(*) AS locks FROM context WHERE {condition} GROUP BY instance_id", values)
    holders.learn(row.instance_id for row in rows)
    return {row.instance_id: row.locks for row in rows}


def _live_of(tx: Transaction, held: dict[str, int], scope: str | None, holders: LockHolders) -> int:
    """Return how many of the locks in `held` (`_by_holder`) are live."""
    condition, values = _in_scope(scope)
    some = "SELECT rowid FROM context WHERE type = 'lock' AND"
    # Of those that a live session has, only one with a lease or of a process may be void.
    rows = tx.rows(
        f"SELECT instance_id, agent, {_LEASE}, count(*) AS locks FROM context WHERE rowid IN ({some} ttl IS NOT"
        f" NULL UNION {some} agent >= ? AND agent < ?) AND {condition} GROUP BY instance_id, agent, {_LEASE}",
        [PREFIX, range_end(PREFIX), *values],
        Lock,
    )
    holders.learn(row["instance_id"] for row in rows)
    over = [row for row in rows if holders.has_ended(row["agent"]) or lock_rows.has_lapsed(tx, row)]
    live = sum(number for holder, number in held.items() if not holders.has_gone(holder))
    void: int = sum(row["locks"] for row in over if not holders.has_gone(row["instance_id"]))
    return live - void


def _in_scope(scope: str | None) -> tuple[str, list[Any]]:
    """Return the condition that a lock is on a file and of this scope (None: of any), and its values."""
    if scope is None:
        return (ON_FILES, [])
    return (f"{ON_FILES} AND scope = ?", [scope])


def _marks(values: list[Any]) -> str:
    return ",".join("?" * len(values))


class LockHolders:
    """The holders of the locks in a listing: gone or still there."""

    def __init__(self, tx: Transaction):
        self._tx = tx
        self._gone: dict[str, bool] = {}
        self._ended: dict[str, bool] = {}

    def learn(self, ids: Iterable[str]) -> None:
        """Look at those of these sessions that are not known yet."""
        new = [one for one in dict.fromkeys(ids) if one not in self._gone]
        now, here = self._tx.now(), self._tx.here
        for at in range(0, len(new), BATCH):
            some = new[at : at + BATCH]
            self._gone.update((one, True) for one in some)  # a session that is not registered any more has gone
            rows = self._tx.rows(
                f"SELECT i.id, {EVIDENCE} FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
                f" WHERE i.id IN ({','.join('?' * len(some))})",
                some,
            )
            self._gone.update((row["id"], departed(row, now, here)) for row in rows)

    def has_gone(self, instance_id: str) -> bool:
        """Return True if a session that was looked at has gone."""
        return self._gone[instance_id]

    def has_ended(self, agent: str | None) -> bool:
        """Return True if the holder with this agent was a process, and has ended."""
        if not agent:
            return False
        found = self._ended.get(agent)
        if found is None:
            found = self._ended[agent] = has_ended(agent, self._tx.here)
        return found

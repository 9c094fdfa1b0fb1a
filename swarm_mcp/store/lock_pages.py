"""The live locks of a scope, however many there are: one after the other, or counted.

The order is that of their rows, in which they were first taken: a lock that is renewed meanwhile keeps its place, so no
lock is met twice. No question to the store stays open while its answer is used, however slowly that is: nobody who
writes is kept from shortening the log.
"""

from __future__ import annotations

from swarm_hook_core.lookup.process_holders import PREFIX
from swarm_mcp.domain.lock import MUTEX_PREFIX, Lock
from swarm_mcp.store.lock_holders import LockHolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.lock_finder import LockFinder

ROWS = 400  # locks read at once
FEW, MANY = 1000, 100_000  # places looked up at once: few for the first rows, then more, each time through the index

_FILES = f"type = 'lock' AND substr(file, 1, {len(MUTEX_PREFIX)}) <> '{MUTEX_PREFIX}'"
_LEASE = "ttl, renewed, booted, wall_until"
_SHOWN = "id, instance_id, file, type, substr(content, 1, 2048) AS content, created_at, mode, agent, pattern, fence"
_SHOWN += f", expected_end, repository, path_key, base, scope, task_id, {_LEASE}"


class LockPages:
    """Going through the live locks on files of a scope (None: of all scopes), and counting them."""

    def __init__(self, db: Database, finder: LockFinder):
        self._db = db
        self._finder = finder

    def each(self, scope: str | None, after: int = 0, newest_first: bool = False) -> Iterator[Lock]:
        """Yield all from behind place `after` on, each with its ``place``; 0: from the beginning."""
        holders, few = LockHolders(self._db), FEW
        while True:
            places = self._places(scope, after, newest_first, few)
            for at in range(0, len(places), ROWS):
                yield from self._live(places[at : at + ROWS], newest_first, holders)
            if len(places) < few:
                return
            after, few = places[-1], min(few * 10, MANY)

    def counts(self, scope: str | None) -> dict[str, int]:
        """Return how many there are: ``live``, and ``void``, which nobody has tidied away yet."""
        within, values = ("AND scope = ?", (scope,)) if scope is not None else ("", ())
        holders = LockHolders(self._db)
        held = self._db.rows(
            f"SELECT instance_id, count(*) AS locks FROM context WHERE {_FILES} {within} GROUP BY instance_id", values
        )
        holders.learn(row.instance_id for row in held)
        live = {row.instance_id: row.locks for row in held if not holders.has_gone(row.instance_id)}
        # Of those that a live session has, only one with a lease or of a process may be void.
        some = "SELECT rowid FROM context WHERE type = 'lock' AND"
        may_be_void = self._db.rows(
            f"SELECT instance_id, agent, {_LEASE}, count(*) AS locks FROM context WHERE rowid IN ({some} ttl IS NOT"
            f" NULL UNION {some} agent >= ? AND agent < ?) AND {_FILES} {within} GROUP BY instance_id, agent, {_LEASE}",
            (PREFIX, PREFIX[:-1] + ";", *values),
            Lock,
        )
        for row in may_be_void:
            if row.instance_id in live and (holders.has_ended(row.agent) or self._finder.has_lapsed(row)):
                live[row.instance_id] -= row["locks"]
        known = sum(live.values())
        return {"live": known, "void": sum(row.locks for row in held) - known}

    # -------------------------------------------------------------- innards

    def _places(self, scope: str | None, after: int, newest_first: bool, limit: int) -> list[int]:
        """Return the next places behind `after`."""
        condition, values = _FILES, []
        if scope is not None:
            condition, values = f"{condition} AND scope = ?", [scope]
        if after:
            condition, values = f"{condition} AND rowid {'<' if newest_first else '>'} ?", [*values, after]
        order = "rowid DESC" if newest_first else "rowid"
        rows = self._db.rows(
            f"SELECT rowid AS place FROM context WHERE {condition} ORDER BY {order} LIMIT {limit}", values
        )
        return [row["place"] for row in rows]

    def _live(self, places: list[int], newest_first: bool, holders: LockHolders) -> Iterator[Lock]:
        """Yield what is in these places and still holds."""
        rows = self._db.rows(
            f"SELECT rowid AS place, {_SHOWN} FROM context WHERE rowid IN ({','.join('?' * len(places))})"
            f" AND type = 'lock' ORDER BY rowid{' DESC' if newest_first else ''}",
            places,
            Lock,
        )
        holders.learn(row.instance_id for row in rows)
        for row in rows:
            gone = holders.has_gone(row.instance_id) or holders.has_ended(row.agent) or self._finder.has_lapsed(row)
            if not gone:
                yield row.replace(owner_label=holders.label(row.instance_id), owner_id=row.instance_id)

"""Rows of locks: read, told from those that no longer hold, added and deleted."""

from __future__ import annotations

import os
import time

from swarm_hook_core import clock
from swarm_hook_core.labels import LONGEST
from swarm_hook_core.liveness import departed
from swarm_hook_core.lookup import BATCH, ascii_lower, storable
from swarm_hook_core.lookup.process_holders import PREFIX, has_ended
from swarm_hook_core.lookup.sqlite import EVIDENCE, NAME_OF_FILE
from swarm_hook_core.paths import above, finder, key_of
from swarm_mcp.domain.lock import MUTEX_PREFIX, OF_THE_HOLDER, Lock, keeps_out
from swarm_mcp.store.database import range_end
from swarm_mcp.store.lock_candidates import question
from swarm_mcp.store.lock_request import forms, meet, reach_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Transaction
    from swarm_mcp.store.lock_candidates import Asking
    from swarm_mcp.store.lock_request import Reach


FEW = 50  # locks that may be in the way and are looked at first: a single one in the way suffices
# The columns that tell if a lock is met: of the many that are not, no more is read.
_COMPARED = "c.rowid, c.file, c.path_key, c.pattern, c.base, c.repository"
OWN = tuple(name for name in Lock.__annotations__ if name not in OF_THE_HOLDER)  # columns of ``context``
# A note that another program or an earlier release stored may be of any length.
COLUMNS = ", ".join(f"c.{name}" for name in OWN).replace("c.content", "substr(c.content, 1, 2048) AS content")
ON_FILES = f"type = 'lock' AND substr(file, 1, {len(MUTEX_PREFIX)}) <> '{MUTEX_PREFIX}'"
_SELECT = (
    f"SELECT {COLUMNS}, i.label AS owner_label, i.id AS owner_id, {EVIDENCE}"
    " FROM context c LEFT JOIN instances i ON i.id = c.instance_id"
    " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id WHERE c.type = 'lock'"
)


_inserts: dict[tuple[str, ...], str] = {}  # columns of a new row -> the statement, one object for the driver to find


def next_fence(tx: Transaction) -> int:
    """Inside a transaction: the number of the next grant."""
    return int(tx.column("UPDATE swarm_fence SET last = last + 1 RETURNING last")[0])


def insert(tx: Transaction, lock: dict[str, Any], file: str) -> None:
    """Inside a transaction: add a row, under a way to write `file` that no lock of its scope has.

    The contract has one row each. Raises the driver's IntegrityError for a row that the table does not take.
    """
    # Empty columns are left out: the driver takes ten times as long for an empty value as for a text.
    given = {name: value for name, value in lock.items() if value is not None}
    names = tuple(given)
    sql = _inserts.get(names)
    if sql is None:
        columns, marks = ", ".join(("file", *names)), ", ?" * len(names)
        sql = _inserts[names] = f"INSERT OR IGNORE INTO context ({columns}) VALUES (?{marks})"
    folder, name = "", ""
    while not tx.change(sql, (file, *given.values())):
        if not tx.row("SELECT id FROM context WHERE scope = ? AND file = ? AND type = 'lock'", (lock["scope"], file)):
            # This raises: another way to write the file would not help.
            tx.change(sql.replace(" OR IGNORE", ""), (file, *given.values()))
        if not folder:
            folder, name = os.path.split(file)
        folder += "/."
        file = os.path.join(folder, name)


def select(tx: Transaction, condition: str, values: tuple[Any, ...]) -> list[Lock]:
    """Return every lock that fits, live or not, oldest first."""
    return tx.rows(f"{_SELECT} {condition} ORDER BY c.created_at, c.rowid", values, Lock)


def with_rowids(tx: Transaction, places: list[int]) -> list[Lock]:
    """Return the locks in these rows, oldest first."""
    places = sorted(places)
    some = [places[start : start + BATCH] for start in range(0, len(places), BATCH)]
    found = [row for ids in some for row in select(tx, f"AND c.rowid IN ({','.join('?' * len(ids))})", tuple(ids))]
    if len(some) > 1:
        return sorted(found, key=lambda row: row.created_at)
    return found


def named(tx: Transaction, keys: tuple[str, ...] | list[str]) -> list[Lock]:
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
    rows = select(tx, f"AND c.rowid IN ({asked})", (*keys, *keys, *last, *keys))
    found = [row for row in rows if row.path_key or row.file in keys]
    if len(found) == len(rows):
        return found
    # A lock that another implementation has stored without a key may be meant; there may be many of one name.
    key_in = finder(keys)
    many = tx.rows(f"SELECT rowid, file{unkeyed}", (*last, *keys), Lock)
    met = [row["rowid"] for row in many if is_readable(row.file) and key_in(row.file)]
    return sorted([*found, *with_rowids(tx, met)], key=lambda row: row.created_at)


def in_place(tx: Transaction, reach: Reach, asking: Asking | None = None) -> list[Lock]:
    """Return those that meet it by their paths, oldest first; with `asking` as `meeting`."""
    sql, values = question(reach, asking, _COMPARED)
    found: list[Lock] = []
    for most in (FEW, -1) if asking else (-1,):
        rows = _keyed(tx.rows(f"{sql} LIMIT {most}", values, Lock), reach)
        met = (row["rowid"] for row in rows if (there := reach_in(row)) and meet(reach, there))
        found = with_rowids(tx, list(dict.fromkeys(met)))
        if len(rows) < FEW or (asking and any(keeps_out(row, *asking[:3]) for row in live(tx, found))):
            break
    return found


def live(tx: Transaction, rows: list[Lock]) -> list[Lock]:
    """Return those of `rows` that still hold. Each session that has some is looked at once."""
    gone: dict[str, bool] = {}
    for row in rows:
        if row.instance_id not in gone:
            gone[row.instance_id] = has_gone(tx, row)
    here = tx.here
    left = [row for row in rows if not gone[row.instance_id]]
    return [row for row in left if not has_lapsed(tx, row) and not has_ended(row.agent, here)]


def ended_holds(tx: Transaction) -> list[Lock]:
    """Return locks of processes that have ended, though their sessions live: see ``process_holders``."""
    held = "SELECT rowid FROM context WHERE type = 'lock' AND agent >= ? AND agent < ?"
    sql = f"SELECT DISTINCT agent FROM context WHERE rowid IN ({held})"
    rows = tx.rows(sql, (PREFIX, range_end(PREFIX)))
    ended = [row.agent for row in rows if has_ended(row.agent, tx.here)]
    if ended:
        return select(tx, f"AND c.agent IN ({','.join('?' * len(ended))})", tuple(ended))
    return []


def is_void(tx: Transaction, row: Lock) -> bool:
    """Return True if a lock no longer holds: its session has gone, its lease has lapsed, or its process has ended."""
    return has_gone(tx, row) or has_lapsed(tx, row) or has_ended(row.agent, tx.here)


def has_gone(tx: Transaction, row: Lock) -> bool:
    """Return True if the session of a lock has gone."""
    if row.owner_id is None:
        return True
    return departed(row, tx.now(), tx.here)


def has_lapsed(tx: Transaction, row: Lock) -> bool:
    """Return True if a lock's lease is over."""
    seconds = left(tx, row)
    return seconds is not None and seconds <= 0


def left(tx: Transaction, row: Lock) -> float | None:
    """Return the seconds until a lock's lease is over, None without a lease."""
    if row.get("ttl") is None:
        return None  # the common case
    lease = (row.ttl, row.renewed, row.booted, row.wall_until)
    seconds: float | None = clock.left(lease, tx.here, time.time())
    return seconds


def of(tx: Transaction, instance_id: str) -> list[Lock]:
    """Return every lock this session holds, mutexes too, with the columns that are the lock's own."""
    return tx.rows(
        "SELECT id, scope, instance_id, file, content, task_id, created_at, path_key, fence, mode, agent, pattern,"
        " base, repository"
        " FROM context WHERE instance_id = ? AND type = 'lock' ORDER BY created_at, rowid",
        (instance_id,),
        Lock,
    )


def vanished_holders(tx: Transaction, after: str, limit: int) -> tuple[list[str], str]:
    """Return the unregistered ones of the next `limit` lock holders from `after` on, and the last one looked at.

    The latter is empty at the end. Hops from holder to holder along an index, however many locks each has.
    """
    next_one = "SELECT min(instance_id) FROM context WHERE type = 'lock' AND instance_id"
    rows = tx.rows(
        f"WITH RECURSIVE holders(id) AS ({next_one} >= ? UNION ALL"
        f" SELECT ({next_one} > holders.id) FROM holders WHERE holders.id IS NOT NULL)"
        " SELECT id, EXISTS (SELECT 1 FROM instances i WHERE i.id = holders.id) AS known"
        f" FROM holders WHERE id IS NOT NULL LIMIT {limit}",
        (after,),
    )
    return [row.id for row in rows if not row.known], str(rows[-1].id) if len(rows) == limit else ""


def foreign_keys(tx: Transaction) -> list[tuple[str, str | None, str]]:
    """Return ``(key, key if it is a folder's, id)`` of some locks that another implementation stored without one.

    Asks the disk, so it should be called before the transaction that stores the keys.
    """
    sql = f"SELECT id, file FROM context WHERE path_key IS NULL AND {ON_FILES} LIMIT 2000"
    rows = [row for row in tx.rows(sql, (), Lock) if is_readable(row.file) and storable(row.file)]
    keys = [key_of(row.file) for row in rows]
    return [(key, key if os.path.isdir(row.file) else None, row.id) for row, key in zip(rows, keys)]


def give_keys(tx: Transaction, found: list[tuple[str, str | None, str]]) -> None:
    """Inside a transaction: store the result of `foreign_keys`."""
    for values in found:
        tx.change("UPDATE context SET path_key = ?, base = ? WHERE id = ? AND path_key IS NULL", values)


def delete(tx: Transaction, locks: list[Lock], reason: str, **payload: object) -> None:
    """Delete the rows of `locks`, each with its event. ``reactions.end_locks`` lets others know besides."""
    for lock in locks:
        tx.change("DELETE FROM context WHERE id = ?", (lock.id,))
    note_ends(tx, locks, reason, **payload)


def note_ends(tx: Transaction, locks: list[Lock], reason: str, **payload: object) -> None:
    """Add the events of locks that were deleted."""
    told = {"released": 1, **({"reason": reason} if reason else {}), **payload}
    for lock in locks:
        said = {**told, "lock": lock.id, **facts(lock)}
        tx.add_event(lock.scope, "context.lock_released", lock.instance_id, lock.file, said)


def is_readable(file: object) -> bool:
    """Return True if a value of another program can be a path."""
    return isinstance(file, str) and "\0" not in file and len(file) <= LONGEST


def _keyed(rows: list[Lock], reach: Reach) -> list[Lock]:
    """Return `rows` with a key each: a place of `reach`, or of a folder over it, that a link leads to, or its file."""
    if all(row.path_key for row in rows) or reach.key is None:
        return rows
    places = forms(reach)
    key_in = finder([name for place in places for name in (place, *above(place))])
    keys = ((row, row.path_key or (is_readable(row.file) and key_in(row.file)) or row.file) for row in rows)
    return [row if row.path_key else row.replace(path_key=key) for row, key in keys]


def facts(lock: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about a lock that go into events, so that its history can be told later; without empty ones."""
    named = ("fence", "mode", "agent", "pattern", "base", "repository")
    return {"key": lock.get("path_key"), **{name: lock[name] for name in named if lock.get(name)}}

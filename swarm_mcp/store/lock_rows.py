"""Rows of locks: read, added and deleted; in several work trees; and those that may meet a reach."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from swarm_hook_core import clock, repository, wildcards
from swarm_hook_core.lookup import BATCH, GLOB, HOLD_PREFIX, ascii_lower, has_ended, storable
from swarm_hook_core.lookup.sqlite import EVIDENCE, NAME_OF_FILE, SPELLED, below, is_in, takes_part
from swarm_hook_core.paths import NO_CASE, above, finder, key_of
from swarm_hook_core.process import departed
from swarm_hook_core.repository import Tree
from swarm_hook_core.untrusted_text import LONGEST
from swarm_mcp.domain import EXCLUSIVE, MUTEX_PREFIX, OF_THE_HOLDER, SHARED, Lock, anywhere, keeps_out
from swarm_mcp.store.database import Transaction, range_end
from swarm_mcp.store.lock_request import (
    GIT_SECONDS,
    Reach,
    forms,
    ignores_case,
    meet,
    reach_in,
    reach_of,
    segments_of,
    tree_of,
)

# Candidates: locks that may meet a reach, found by one question that indexes answer.
#
# The question finds every lock that meets, and some that do not: ``lock_request.meet`` tells them apart. Below a folder
# there may be any number of locks. So SQLite leaves out locks that a pattern cannot cover, and locks that cannot keep
# the asker out.


# In the very words of its index, or SQLite does not take it.
_UNKEYED = f"c.path_key IS NULL AND {NAME_OF_FILE.replace('file', 'c.file')}"
_TOPS = ["/", NO_CASE + "/"]
# A pattern as a GLOB, and the condition for patterns that are plain enough for that: see `_not_beside`.
_AS_GLOB = "'*' || replace(c.pattern, '**/', '*') || CASE WHEN c.pattern GLOB '*/' THEN '*' ELSE '' END"
_PLAIN = " AND ".join(f"c.pattern NOT GLOB '{odd}'" for odd in ("*[[\\]*", "*//*", "*/.*", ".*"))


_known: dict[Any, tuple[str, list[Any]]] = {}  # questions: a session asks the same of a file over and over
MOST_KNOWN = 500
_texts: dict[str, str] = {}  # statements by their own words


class Asking(NamedTuple):
    """The session that asks for a lock, and the mode: locks that can never keep it out need not be found.

    `only`, SQL of ``context`` as `c` with its values `given`: only such locks count.
    """

    instance_id: str
    agent: str = ""
    mode: str = EXCLUSIVE
    only: str = ""
    given: tuple[Any, ...] = ()


def question(reach: Reach, asking: Asking | None = None, columns: str = "c.rowid") -> tuple[str, list[Any]]:
    """Return the SELECT, and its values, of locks that may meet `reach`; the same row may come more than once.

    With `asking`, locks that cannot keep it out are left out, except its own lock on that very path or pattern.
    """
    known = not reach.pattern and (reach, asking, columns)  # a parsed pattern has no hash
    if known and known in _known:
        return _known[known]
    parts: list[str] = []
    values: list[Any] = []
    only, given = (f" AND {asking.only}", asking.given) if asking and asking.only else ("", ())
    for condition, some in _places(reach, asking):
        parts.append(f"SELECT {columns} FROM context c{condition}{only}")
        values += [*some, *given]
    found = " UNION ALL ".join(parts), values
    if known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[known] = found
    return found


def first_look(reach: Reach, asking: Asking) -> tuple[str, list[Any]]:
    """Return a condition, and its values, that is true if locks may meet `reach`: `question` says which.

    Mostly all locks on paths are keyed as they are spelled, and letter case counts for all of them or for none. Then
    one form of the path and of the folders over it is looked up: the many other places are only asked about where a
    lock of another kind exists.
    """
    found, values = question(reach, asking)
    full = f"EXISTS ({found})"
    caseless = (reach.key or "").startswith(NO_CASE)
    if reach.pattern or reach.key is None or not reach.key.startswith((NO_CASE + "/", "/")):
        return full, values
    where, (others, who) = "SELECT 1 FROM context c WHERE c.type = 'lock' AND", _others(asking)
    same, named = _or_same(reach, others)
    places = [place for place in forms(reach) if place.startswith(NO_CASE) == caseless]
    names = list(dict.fromkeys([*(name for place in places for name in (place, *above(place))), _TOPS[caseless]]))
    looks = [f"{where} c.path_key IN ({','.join('?' * len(names))}){same}"]
    given = [*names, *who, *named]
    for place in places:
        looks.append(f"{where} c.path_key >= ? AND c.path_key < ?{others}")
        given += [place.rstrip("/") + "/", place.rstrip("/") + "0", *who]
    # Left to itself SQLite would look through every lock.
    odd = [f"{where.replace(' WHERE', ' INDEXED BY swarm_lock_spelling_idx WHERE')} {SPELLED}"]
    for low, high in ((GLOB, range_end(GLOB)), ("/", "0") if caseless else (NO_CASE, range_end(NO_CASE))):
        odd.append(f"{where} c.path_key >= '{low}' AND c.path_key < '{high}'")
    some = " OR ".join(f"EXISTS ({one})" for one in odd)
    return f"(EXISTS ({' UNION ALL '.join(looks)}) OR (({some}) AND {full}))", [*given, *values]


def numbered(sql: str, values: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a statement in which a value that comes more than once is given once.

    Two statements with the same words are one object: SQLite's driver finds a prepared statement by its words, and
    would read a long text for its hash each time.
    """
    numbers = {value: str(at) for at, value in enumerate(dict.fromkeys(values), 1)}
    parts = sql.split("?")
    text = parts[0] + "".join(f"?{numbers[value]}{part}" for value, part in zip(values, parts[1:]))
    if len(_texts) >= MOST_KNOWN:
        _texts.clear()
    return _texts.setdefault(text, text), tuple(numbers)


def _places(reach: Reach, asking: Asking | None) -> Iterator[tuple[str, list[Any]]]:
    """Yield where to look: each a condition, from its WHERE on, and the values in it."""
    if reach.key is None:
        yield f" WHERE c.type = 'lock' AND {SPELLED} AND c.file = ?", [reach.file]
        return
    where, (others, who) = " WHERE c.type = 'lock' AND ", _others(asking)
    same, named = _or_same(reach, others)
    places = forms(reach)
    names = list(dict.fromkeys([*(name for place in places for name in (place, *above(place))), *_TOPS]))
    marks = ",".join("?" * len(names))
    yield f"{where}c.path_key IN ({marks}){same}", [*names, *who, *named]
    yield f"{where}{SPELLED} AND c.file IN ({marks}){same}", [*names, *who, *named]
    # Without a key, and perhaps by a link. Left to itself SQLite would read every lock without a key.
    last = list({ascii_lower(name.rsplit("/", 1)[-1]) for name in names})
    in_it = f"{_UNKEYED} IN ({','.join('?' * len(last))})"
    yield f" INDEXED BY swarm_lock_name_idx{where}{in_it}", last
    # Patterns, by the folder that all they cover is in.
    deep = bool(reach.pattern) or reach.segments[-1:] == (wildcards.DEEP,)
    covering, paths = ("", []) if deep else _not_beside(reach)
    tops = [GLOB + name for name in names]
    yield f"{where}c.path_key IN ({marks}){same}{covering}", [*tops, *who, *named, *paths]
    for place in places:
        low, high = place.rstrip("/") + "/", place.rstrip("/") + "0"
        if deep:
            yield f"{where}c.path_key >= ? AND c.path_key < ?{others}", [GLOB + low, GLOB + high, *who]
        if reach.pattern:
            for condition, some in _covered(reach, place):
                yield f"{where}{condition}{others}", [*some, *who]
        else:
            yield f"{where}c.path_key >= ? AND c.path_key < ?{others}", [low, high, *who]
            if not place.startswith(NO_CASE):
                yield f"{where}{SPELLED} AND c.file >= ? AND c.file < ?{others}", [low, high, *who]


def _others(asking: Asking | None) -> tuple[str, list[Any]]:
    """Return a condition, and its values, for locks that can keep `asking` out: as ``domain.keeps_out``."""
    if asking is None:
        return "", []
    if asking.mode == SHARED:
        shared = f" AND c.mode IS NOT '{SHARED}'"
    else:
        shared = ""
    own = "c.instance_id = ? AND coalesce(c.agent, '') IN ('', ?)"
    return f" AND NOT ({own}){shared}", [asking.instance_id, asking.agent]


def _or_same(reach: Reach, others: str) -> tuple[str, list[Any]]:
    """Return `others` with an exception for locks on this very path or pattern, and the further values."""
    if not others:
        return "", []
    if reach.pattern:
        return f" AND (TRUE{others} OR c.pattern = ?)", [reach.pattern]
    marks = ",".join("?" * len(reach.keys))
    return f" AND (TRUE{others} OR +c.path_key IN ({marks}) OR +c.file IN ({marks}))", [*reach.keys, *reach.keys]


def _covered(reach: Reach, place: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield where to look below the folder `place`, a form of the one that all a pattern covers is in."""
    between = [place.rstrip("/") + "/", place.rstrip("/") + "0"]
    in_range = "c.path_key >= ? AND c.path_key < ?"
    if ignores_case(reach) and not place.startswith(NO_CASE):
        yield in_range, between  # a place of letter case inside of one without: nearly never
        return
    files, folders, too_deep = globs(segments_of(reach, place.startswith(NO_CASE)), place)
    within, values = (
        (f"{in_range} AND c.path_key NOT GLOB ?", [*between, too_deep]) if too_deep else (in_range, between)
    )
    yield f"{within} AND c.path_key GLOB ?", [*values, files]
    some = " OR ".join(["c.path_key GLOB ?"] * len(folders))
    yield f"c.base IS NOT NULL AND {within} AND ({some})", [*values, *folders]
    if not place.startswith(NO_CASE):
        # By another name than its key; those that share a file stand under spellings of it, with `/./`.
        spelled = f"{SPELLED} AND c.file >= ? AND c.file < ?"
        yield f"{spelled} AND (c.file GLOB ? OR c.file GLOB '*/./*') AND c.pattern IS NULL", [*between, files]
        yield f"{spelled} AND c.base IS NOT NULL AND c.pattern IS NULL", between


def _not_beside(reach: Reach) -> tuple[str, list[str]]:
    """Return the condition, and its values, without most patterns that do not cover the path of `reach`.

    Only plain patterns are told so. Between the letters of a GLOB a pattern's ``**/`` is any letters; a pattern that
    ends in a slash covers the files below.
    """
    if ignores_case(reach):
        return "", []
    paths = list(dict.fromkeys(key for key in (reach.key or "", *reach.keys) if not key.startswith(NO_CASE)))
    beside = " AND ".join([f"? NOT GLOB {_AS_GLOB}"] * len(paths))
    return f" AND (c.base NOT GLOB '{NO_CASE}*' AND {_PLAIN} AND {beside}) IS NOT TRUE", paths


def globs(segments: tuple[Any, ...], folder: str) -> tuple[str, list[str], str]:
    """Return SQLite's GLOBs for a parsed pattern below `folder`; the ``*`` of a GLOB crosses slashes.

    One GLOB for the files, some for folders that may hold a covered file, and one for paths that are too deep to be
    either (empty without such a limit).
    """
    begun = len([part for part in folder.removeprefix(NO_CASE).split("/") if part])
    text = start = _literal(folder.rstrip("/"))
    folders: list[str] = []
    deep = glued = False
    for part in segments[begun:]:
        if part is wildcards.DEEP:
            text, glued = text + "/*", True
            if not deep:
                folders.append(text)
            deep = True
        else:
            if isinstance(part, str):
                segment = _literal(part)
            else:
                exact = [ranges[0][0] if ranges and ranges[0][0] == ranges[-1][1] else None for ranges in part]
                segment = "".join("*" if code is None else _literal(chr(code)) for code in exact)
            text, glued = text + ("" if glued else "/") + segment, False
            if not deep:
                folders.append(text)
    return text, folders, "" if deep else start + "/*" * (len(segments) - begun + 1)


def _literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


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
        folder = f"{folder}/." if folder else "."  # a name that is no file
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


def under_keys(tx: Transaction, keys: tuple[str, ...] | list[str]) -> list[Lock]:
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
    """Return locks of processes that have ended, though their sessions live: see ``lookup.has_ended``."""
    held = "SELECT rowid FROM context WHERE type = 'lock' AND agent >= ? AND agent < ?"
    sql = f"SELECT DISTINCT agent FROM context WHERE rowid IN ({held})"
    rows = tx.rows(sql, (HOLD_PREFIX, range_end(HOLD_PREFIX)))
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
    seconds = time_left(tx, row)
    return seconds is not None and seconds <= 0


def time_left(tx: Transaction, row: Lock) -> float | None:
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
        more = {"lock": lock.id, **facts(lock)}
        tx.add_event(lock.scope, "context.lock_released", lock.instance_id, lock.file, told, more)


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


# Locks that hold in every work tree of a repository: their stored form, and the ones that meet a reach.
#
# Such a lock also has a name in its repository (``repository``, see ``swarm_hook_core.repository``). A request for a
# file in another work tree that takes part, or a write of it, meets the lock under the same name. A pattern is a matter
# of one work tree, but meets others' locks on files as usual.


def exist(tx: Transaction) -> bool:
    """Return True if there is such a lock. One step into an index that has nothing else."""
    sql = "SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL LIMIT 1"
    return tx.row(sql) is not None


def meeting_elsewhere(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks of any holder that meet `reach` through another work tree, live or not."""
    if reach.key is None or not (reach.names or exist(tx)):
        return []
    tree = tree_of(reach)
    if tree is None:
        return []
    found = {}
    if reach.names or _takes_part(tx, tree):
        # Names, and ranges of names, under which locks that meet `reach` are found
        own = forms(reach)
        names = [name for form in own for key in (form, *above(form)) for name in repository.names_of(key, tree)]
        ranges = [below(name) for form in own for name in repository.names_of(form, tree)]
        for row, here in _of_others(tx, tree, *(list(dict.fromkeys(names)), ranges)):
            if meet(reach, here):
                found[row.id] = row
    for there in _elsewhere(tx, reach, tree) if reach.names else ():
        for row in in_place(tx, there):
            found[row.id] = row
    return list(found.values())


def reaches_elsewhere(tx: Transaction, reach: Reach) -> list[Reach]:
    """Return a path that is to hold in every work tree, as it is in the others."""
    tree = tree_of(reach)
    return _elsewhere(tx, reach, tree) if tree is not None else []


def covering_elsewhere(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks of other work trees that hold the path of `reach` here, live or not."""
    if reach.key is None or not exist(tx):
        return []
    tree = tree_of(reach)
    if tree is None or not _takes_part(tx, tree):
        return []
    keys = dict.fromkeys(name for key in (reach.key, *reach.keys) for name in (key, *above(key)))
    names = [name for key in keys for name in repository.names_of(key, tree)]
    return [row for row, _here in _of_others(tx, tree, names, [])]


def seen_in(tx: Transaction, folder: str) -> dict[str, str]:
    """Return, of other work trees' locks that hold in the one around `folder`: id -> their path there."""
    if exist(tx):
        tree = repository.tree_over(os.path.realpath(folder))
    else:
        tree = None
    if tree is None or not _takes_part(tx, tree):
        return {}
    found = _of_others(tx, tree, [], [(one + ":", one + ";") for one in repository.ids(tree)])
    places = {row.id: _place(row.repository or "", tree).removeprefix(NO_CASE) for row, _here in found}
    return {lock: os.path.join(tree.top, place) if place else tree.top for lock, place in places.items()}


def _takes_part(tx: Transaction, tree: Tree) -> bool:
    if repository.opted_in(tree):
        repository.learn(tree, GIT_SECONDS)
    return takes_part(tree, lambda low, high: [row.path_key for row in _between(tx, low, high)])


def _between(tx: Transaction, low: str, high: str) -> list[Lock]:
    return select(tx, "AND c.repository >= ? AND c.repository < ?", (low, high))


def _of_others(tx: Transaction, tree: Tree, names: list[str], ranges: list[Any]) -> list[tuple[Lock, Reach]]:
    """Return ``(row, its reach in this work tree)`` of locks under these names that are not of this work tree."""
    rows = select(tx, f"AND c.repository IN ({','.join('?' * len(names))})", tuple(names))
    for low, high in ranges:
        rows += _between(tx, low, high)
    found = {}
    for row in rows:
        if row.id in found or is_in(row.path_key or "", tree):
            continue
        # The key of the path `place` in the work tree with this top
        place = _place(row.repository or "", tree)
        path = f"{tree.top.rstrip('/')}/{place.removeprefix(NO_CASE)}".rstrip("/")
        if place.startswith(NO_CASE):
            key = NO_CASE + path.casefold()
        else:
            key = path
        # A folder counts as one if it was one when it was locked, even if it is not there here.
        file = key.removeprefix(NO_CASE)
        here = reach_in({"file": file, "path_key": key, "base": key if row.base else ""})
        if here:
            found[row.id] = (row, here)
    return list(found.values())


def _elsewhere(tx: Transaction, reach: Reach, tree: Tree) -> list[Reach]:
    """Return the same path in the other work trees that take part."""
    tops: dict[str, None] = {}
    for one in repository.ids(tree):
        for row in _between(tx, one + ":", one + ";"):
            over = repository.tree_over((row.path_key or "").removeprefix(NO_CASE))
            if over is not None:
                tops[over.top] = None
    for top in repository.trees_beside(tree):
        other = repository.tree_at(top)
        if other is not None and other.common == tree.common and repository.opted_in(other):
            tops[top] = None
    tops.pop(tree.top, None)
    place = _place(reach.names[0], tree).removeprefix(NO_CASE)
    deep = bool(reach.segments) and reach.segments[-1] is wildcards.DEEP
    found = []
    for top in tops:
        there = reach_of(anywhere(), os.path.join(top, place) + ("/" if deep else ""), as_pattern=False)
        found.append(there)
    return found


def _place(name: str, tree: Tree) -> str:
    """Return the path from the top in a name of this repository."""
    return next((name[len(one) + 1 :] for one in repository.ids(tree) if name.startswith(one + ":")), name)

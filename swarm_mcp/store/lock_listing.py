"""Locks and their waiters as callers ask about them, and as answers show them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup import BATCH, GLOB, HOLD_PREFIX, has_ended, plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.process import departed, gone
from swarm_hook_core.untrusted_text import same_circle, token
from swarm_mcp.domain import (
    AUTO,
    MUTEX_PREFIX,
    SHARED,
    STALE_SECONDS,
    Lock,
    Session,
    Waiter,
    is_mutex,
    is_name,
    keeps_out,
    onlooker,
)
from swarm_mcp.folders import file_of
from swarm_mcp.store import cursors, lock_finder, lock_rows, session_table
from swarm_mcp.store.database import Transaction, range_end
from swarm_mcp.store.lock_request import LockRequest, Reach, checked, meet, reach_in, reach_of
from swarm_mcp.store.lock_rows import ON_FILES, OWN, Asking
from swarm_mcp.store.messages import seconds_since

# The live locks of a scope, however many: one after the other, or counted.
#
# The order is that of their rows, in which they were first taken: a renewed lock keeps its place, so that no lock is
# met twice. No question to the store stays open while its answer is used, however slowly: writers can shorten the log.

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
    """Return the numbers of locks of a scope (None: all): ``run``, and ``void`` locks that are still to be removed."""
    holders = LockHolders(tx)
    held = _by_holder(tx, scope, holders)
    live = _live_of(tx, held, scope, holders)
    return {"live": live + len(lock_finder.of_turns(tx, scope)), "void": sum(held.values()) - live}


def foremost_rows(
    tx: Transaction, scope: str, limit: int, own_id: str, waited_for: Iterable[str]
) -> tuple[int, list[Lock]]:
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


def recent_rows_of(tx: Transaction, sessions: list[str], limit: int, first: Iterable[str]) -> list[Lock]:
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
        [HOLD_PREFIX, range_end(HOLD_PREFIX), *values],
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


NAMES = 300  # names in one question, which has each of them three times; old releases of SQLite take 999 values
_MORE = ("mode", "agent", "pattern", "fence", "expected_end", "repository", "machine", "team_fence")


def by_name(tx: Transaction, names: Iterable[str]) -> list[Lock]:
    """Return the live locks with one of these names (paths, and keys of ``paths``), in any scope, oldest first.

    With them all that may hold by another name: those on patterns, and those of every work tree.
    """
    asked = list(dict.fromkeys(names))
    found = [row for at in range(0, len(asked), NAMES) for row in lock_rows.under_keys(tx, asked[at : at + NAMES])]
    found += lock_rows.select(tx, "AND c.path_key >= ? AND c.path_key < ?", (GLOB, range_end(GLOB)))
    found += lock_rows.select(tx, "AND c.repository IS NOT NULL", ())
    found += [row for row in lock_finder.of_turns(tx) if not {row.file, row.path_key}.isdisjoint(asked)]
    unique = {row.id: row for row in found}.values()
    return lock_rows.live(tx, sorted(unique, key=lambda row: (row.created_at, row.fence or 0)))


def meeting(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks of any mode that meet `reach`, here or in another work tree."""
    return lock_rows.live(tx, lock_finder.meeting(tx, reach))


def covering(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks that keep the path of `reach` still, also those on the same path of another work tree."""
    return lock_rows.live(tx, lock_finder.covering(tx, reach))


def exactly(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return live locks of any session on that very path or pattern."""
    return lock_rows.live(tx, lock_finder.same(tx, reach))


def is_held(tx: Transaction, lock_id: str, instance_id: str) -> bool:
    """Return True if the grant with this id is there and still this session's, lapsed or not."""
    sql = "SELECT 1 FROM context WHERE id = ? AND instance_id = ?"
    if tx.row(sql, (lock_id, instance_id)) is not None:
        return True
    return any(row.id == lock_id for row in lock_finder.of_turns(tx, holder=instance_id))


def fences_held(tx: Transaction, instance_id: str, fences: list[int]) -> set[int]:
    """Return those of these grants that this session still holds."""
    condition = f"AND c.instance_id = ? AND c.fence IN ({','.join('?' * len(fences))})"
    found = lock_rows.live(tx, lock_rows.select(tx, condition, (instance_id, *fences)))
    return {lock.fence for lock in found if lock.fence is not None}


def path_of(tx: Transaction, instance: Session, file: str) -> str:
    """Return the file, or the name's key, that `file` means for a session. Raises SwarmError for any other text."""
    if is_name(file):
        return str(reach_of(instance, file).key)
    return file_of(instance, checked(file))


def held(tx: Transaction, scope: str | None, viewer_identity: str = "") -> Iterator[dict[str, Any]]:
    """Yield live locks of a scope (None: all), in the order of their first grant, with ``owner_label``.

    Locks of another identity are listed without names and notes. Rows are read as they are asked for: each at most
    once, and locks taken after the first read may be missing.
    """
    return (listed(tx, row, viewer_identity) for row in each(tx, scope))


def walk(
    tx: Transaction, scope: str | None, viewer_identity: str = "", after: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the locks of `held`, in its order, each with its cursor."""
    place = cursors.place_of(after, (int,)) or [0]
    for row in each(tx, scope, place[0]):
        yield cursors.cursor(row["place"]), listed(tx, row, viewer_identity)


def walk_of(tx: Transaction, instance_id: str, after: str = "") -> Iterator[tuple[str, Lock]]:
    """Yield the locks on files that this session holds, in the order of their first grant."""

    def read(behind: str, place: list[Any], number: int) -> list[Lock]:
        sql = (
            f"SELECT rowid AS place, {', '.join(OWN)} FROM context WHERE {ON_FILES} AND instance_id = ?"
            f" {behind} ORDER BY rowid LIMIT {number}"
        )
        return tx.rows(sql, (instance_id, *place), Lock)

    yield from cursors.rows_after(after, (int,), "AND rowid > ?", read, lambda row: [row["place"]])
    place = cursors.place_of(after, (int,)) or [0]
    for row in lock_finder.of_turns(tx, holder=instance_id):
        if row["place"] > place[0]:
            yield cursors.cursor(row["place"]), row


def count_of(tx: Transaction, instance_id: str) -> int:
    """Return how many locks `walk_of` has."""
    # From indexes alone: all of them, without the few that are on no file.
    held = tx.count("context WHERE type = 'lock' AND instance_id = ?", instance_id)
    mutexes = "context WHERE type = 'lock' AND file >= ? AND file < ? AND +instance_id = ?"
    held -= tx.count(mutexes, MUTEX_PREFIX, range_end(MUTEX_PREFIX), instance_id)
    return held + len(lock_finder.of_turns(tx, holder=instance_id))


def foremost(
    tx: Transaction, scope: str, viewer_identity: str, limit: int, own_id: str, waited_for: Iterable[str]
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many live locks a scope has, and `limit` of them, as `held` shows them, newest first.

    First those that session `own_id` holds, then those with the ids `waited_for` (``queue.lengths``), then others.
    """
    live, found = foremost_rows(tx, scope, limit, own_id, waited_for)
    return live, [listed(tx, row, viewer_identity) for row in found]


def recent_of(
    tx: Transaction, holders: list[str], viewer_identity: str, limit: int, first: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return up to `limit` live locks on files, as `held` shows them.

    Locks with the ids `first` come first, of any holder, then the newest of the sessions `holders`. The cost for a
    session does not depend on the number of its locks.
    """
    return [listed(tx, row, viewer_identity) for row in recent_rows_of(tx, holders, limit, first)]


def active_on(tx: Transaction, file: str, viewer_identity: str) -> dict[str, Any] | None:
    """Return the holder of absolute `file`, in the shape of a refusal's ``active``; None for a free file."""
    held = lock_finder.on(tx, file)
    if held:
        return describe(tx, held[0], viewer_identity)
    return None


def listed(tx: Transaction, row: Lock, viewer_identity: str) -> dict[str, Any]:
    """Return a lock found by `on`, in the shape of a listing (`held`)."""
    shown = _shown(row)
    shown["owner_label"] = row["owner_label"]
    _add_more(tx, shown, row)
    if viewer_identity and not same_circle(viewer_identity, token(row["owner_label"] or "", "identity")):
        shown.update(content="", owner_label=None, hidden=True)
        shown.pop("machine", None)
    return shown


def describe(tx: Transaction, row: Lock, viewer_identity: str) -> dict[str, Any]:
    """Return a lock found by `on`, in the shape of a refusal's ``active``."""
    if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
        return {"hidden": True, "reason": "cross_identity", "file": plain(row.file)}
    age = seconds_since(row.heartbeat, tx.now())
    # A live session that is merely quiet is not stale: its client is there, or its lease runs.
    quiet = row.last_seen is None and age > STALE_SECONDS
    owner = {"id": row.instance_id, "label": row.owner_label, "heartbeat": row.heartbeat}
    owner.update(heartbeat_age_seconds=age, stale=quiet, reclaimable=False, active=not quiet)
    tasks = tx.rows(
        "SELECT id, type, title, status, requester, assignee FROM tasks"
        " WHERE scope = ? AND assignee = ? AND status IN ('claimed', 'in_progress')"
        " ORDER BY priority DESC, created_at, id LIMIT 5",
        (row.scope, row.instance_id),
    )
    if tasks:
        # ``{id, type, title, status}`` of those tasks that identity `viewer_identity` may see
        from swarm_mcp.store import task_reading  # of a refusal alone

        sight = task_reading.Sight(tx, onlooker(viewer_identity))
        names = ("id", "type", "title", "status")
        active = [{name: task[name] for name in names} for task in tasks if sight.sees(task)]
    else:
        active = []
    shown = _shown(row)
    from swarm_mcp.store import user_interface  # of a refusal alone: lists do without

    place = user_interface.with_lock(tx, {"instance_id": row.instance_id})
    owner.update((name, place[name]) for name in user_interface.PANE_COLUMNS if place.get(name))
    if "workspace" in place:
        workspace = {"workspace": place["workspace"]}
    else:
        workspace = {}
    answer = {**shown, "owner": owner, **workspace, "active_tasks": active}
    _add_more(tx, answer, row)
    return answer


def _shown(row: Lock) -> dict[str, Any]:
    """Return a lock in the contract's words."""
    return {
        "id": row["id"],
        "instance_id": row["instance_id"],
        "file": plain(row["file"]),
        "type": "lock",
        "content": row["content"],
        "created_at": row["created_at"],
    }


def _add_more(tx: Transaction, shown: dict[str, Any], row: Lock) -> None:
    """Add the facts about a lock that the contract does not name."""
    for name in _MORE:
        value = row.get(name)
        if value:
            shown[name] = value
    left = lock_rows.time_left(tx, row)
    if left is not None:
        shown.update(ttl=row.ttl, lapses_in=round(max(0.0, left), 1))


# The line of waiters for locks: first come, first served, across processes.
#
# A waiter is a row from the moment it joins until it has its locks, gives up, or its process is gone. A later request
# for some of the same has to wait as well, even for a free file: no waiter is overtaken. One exception: a session that
# has held, since before the waiter came, a lock that the waiter waits for may go first, since it would wait for itself
# otherwise. It may do so only while it keeps that lock, so no wait is endless.


_OF_HOLDER_BEFORE = "+c.instance_id = ? AND coalesce(c.agent, '') = ? AND coalesce(c.fence, 0) <= ?"
SILENT_SECONDS = 30.0  # without a sign of life of a waiter; a waiter shows one every ten seconds


class Holder(NamedTuple):
    """A session, or one of its agents, that holds or waits."""

    instance_id: str
    agent: str = ""


def waiting(tx: Transaction) -> list[Waiter]:
    """Return all waiters, first come first."""
    return [row for row in _places(tx) if not _is_void(tx, row)]


def waiting_for(tx: Transaction, *reaches: Reach) -> list[Waiter]:
    """Return the waiters for something that meets any of `reaches`, first come first."""
    met = [row for row in _places(tx) if any(meet(one, other) for one in reaches for other in row.reaches)]
    return [row for row in met if not _is_void(tx, row)]


def has(tx: Transaction, ticket: int, instance_id: str) -> bool:
    """Return True if the place with this ticket is still there: another process may have taken it for given up."""
    sql = "SELECT 1 FROM swarm_waiters WHERE ticket = ? AND instance_id = ? AND pid = ?"
    return tx.row(sql, (ticket, instance_id, os.getpid())) is not None


def waited(tx: Transaction, ticket: int) -> float:
    """Return the seconds waited in this place; 0 for a place that is not there."""
    if ticket:
        row = tx.row("SELECT since FROM swarm_waiters WHERE ticket = ?", (ticket,))
    else:
        row = None
    if row:
        return float(max(0.0, round(clock.now() - row.since, 1)))
    return 0.0


def is_there(tx: Transaction, ticket: int) -> bool:
    """Return True if the place with this ticket is there."""
    return tx.row("SELECT 1 FROM swarm_waiters WHERE ticket = ?", (ticket,)) is not None


def ahead_of(tx: Transaction, instance: Session, wanted: LockRequest) -> Waiter | None:
    """Return the live waiter with an earlier right to a part of the request, or None.

    It is in the shape of a lock: ``views`` is the contested file, ``ticket`` tells it from a lock.
    """
    row = next(ahead(tx, Holder(instance.id, wanted.agent), wanted), None)
    if row is None:
        return None
    reach = next(own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches))
    return row.replace(file=reach.file, path_key=reach.key, id=None, content="", created_at=None)


def is_silent(tx: Transaction, row: Waiter) -> bool:
    """Return True if a waiter has shown no life for so long that it keeps no session off a free file."""
    if row.seen is None or clock.boot(row.host) != clock.boot(tx.here):
        return False  # that place's clock is not ours: an unknown waiter counts as alive
    return clock.awake() - row.seen >= SILENT_SECONDS


def described(row: Waiter, viewer_identity: str) -> dict[str, Any]:
    """Return a waiter that `ahead_of` found, in the shape of a refusal's ``active``."""
    if not same_circle(viewer_identity, token(row.owner_label or "", "identity")):
        return {"hidden": True, "reason": "cross_identity", "file": row.file, "waiting": True}
    owner = {"id": row.instance_id, "label": row.owner_label}
    shown = {"ticket": row.ticket, "instance_id": row.instance_id, "file": row.file}
    return {**shown, "content": "", "waiting": True, "mode": row.mode, "owner": owner, "active_tasks": []}


def pass_over(tx: Transaction, instance: Session, wanted: LockRequest) -> None:
    """Inside a transaction that grants `wanted`: give up the places of silent waiters that came before it."""
    for row in _before(tx, Holder(instance.id, wanted.agent), wanted):
        if is_silent(tx, row):
            give_up(tx, row.ticket)


def sweep(tx: Transaction) -> None:
    """Inside a transaction: remove the places of waiters that are gone, or have waited long enough."""
    for row in _places(tx):
        if _is_void(tx, row):
            give_up(tx, row.ticket)


def _places(tx: Transaction, before: int | None = None) -> Iterator[Waiter]:
    """Return every place, or those before a ticket, first come first; not all of them are still waited in."""
    rows = tx.rows(
        "SELECT w.*, i.label AS owner_label, i.id AS owner_id FROM swarm_waiters w"
        " LEFT JOIN instances i ON i.id = w.instance_id WHERE ? IS NULL OR w.ticket < ? ORDER BY w.ticket",
        (before, before),
        Waiter,
    )
    return (row.replace(reaches=reaches_of(row)) for row in rows)


def ahead(tx: Transaction, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
    """Yield the waiters that this request has to wait for."""
    return (row for row in _before(tx, holder, wanted) if not is_silent(tx, row))


def _before(tx: Transaction, holder: Holder, wanted: LockRequest) -> Iterator[Waiter]:
    """Return the waiters whose turn comes before that of this request."""
    for row in _places(tx, wanted.ticket or None):
        if Holder(row.instance_id, row.agent) == holder:
            continue
        if row.mode == SHARED and wanted.mode == SHARED:
            continue
        common = [own for own in wanted.reaches if any(meet(own, theirs) for theirs in row.reaches)]
        if common and not _is_void(tx, row) and not _may_pass(tx, holder, wanted.mode, common, row):
            yield row


def _may_pass(tx: Transaction, holder: Holder, mode: str, common: list[Reach], row: Waiter) -> bool:
    """Return True if `holder` may have `common` before a waiter: see the docstring of this module."""
    waiter = Asking(row.instance_id, row.agent, row.mode, _OF_HOLDER_BEFORE, (*holder, row.fence))
    kept = locks_in_the_way(tx, waiter, row.reaches)
    if any(holder_of(lock) == holder and (lock.fence or 0) <= row.fence for lock in kept):
        return True
    return all(_has(tx, holder, mode, reach) for reach in common)


def _has(tx: Transaction, holder: Holder, mode: str, reach: Reach) -> bool:
    """Return True if `holder` has that very lock already, so that asking again gives it no more."""
    own = [lock for lock in lock_finder.same(tx, reach) if holder_of(lock) == holder]
    return any(not lock_rows.is_void(tx, lock) and lock.mode in (None, AUTO, mode) for lock in own)


def locks_in_the_way(tx: Transaction, asking: Asking, reaches: tuple[Reach, ...]) -> Iterator[Lock]:
    """Yield locks that keep it from these: some, where there are any; of each reach apart."""
    for reach in reaches:
        for lock in lock_rows.live(tx, lock_finder.meeting(tx, reach, asking)):
            if keeps_out(lock, *asking[:3]):
                yield lock


def _is_void(tx: Transaction, row: Waiter) -> bool:
    if row.owner_id is None or (row.until is not None and row.until < clock.now()):
        return True
    if gone(row.host, row.pid, row.start, tx.here):
        return True
    return session_table.live(tx, row.owner_id) is None  # a session that has gone waits no more than it holds


def holder_of(lock: Lock) -> Holder:
    return Holder(lock.instance_id, lock.agent or "")


def reaches_of(row: Waiter) -> tuple[Reach, ...]:
    """Return the reaches that the row of a place waits for."""
    try:
        wants = loads(row.wants)
        if isinstance(wants, list):
            return tuple(reach for want in wants if (reach := reach_in(want)))
        return ()
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return ()  # nothing of ours stores such a row: it waits for nothing, and stops no session


def give_up(tx: Transaction, ticket: int) -> None:
    """Inside a transaction: remove a place in the line; no error if it is not there."""
    if ticket:
        tx.change("DELETE FROM swarm_waiters WHERE ticket = ?", (ticket,))

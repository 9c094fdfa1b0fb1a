"""Finding locks by their reach, those included that sessions have for a turn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.lookup import GLOB, storable
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.paths import NO_CASE, above, key_of
from swarm_hook_core.process import departed
from swarm_hook_core.state import TURN_SECONDS, has_turn_files
from swarm_hook_core.traces import turn_files
from swarm_hook_core.traces.turn_files import TurnFile
from swarm_hook_core.watching.records import digest_of
from swarm_mcp.domain import AUTO, EXCLUSIVE, Event, Lock, Record, Session, anywhere, keeps_out
from swarm_mcp.errors import Refused
from swarm_mcp.store import lock_rows
from swarm_mcp.store.database import Transaction
from swarm_mcp.store.lock_request import Reach, meet, reach_in, reach_of
from swarm_mcp.store.lock_rows import Asking


def on(tx: Transaction, file: str) -> list[Lock]:
    """Return live locks that keep absolute `file` still: itself, a folder over it, a pattern; in any scope."""
    return lock_rows.live(tx, covering(tx, reach_of(anywhere(), file, as_pattern=False)))


def covering(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks that keep the path of `reach` still: itself, a folder over it, a pattern, another tree's."""
    if reach.key is None:
        return lock_rows.under_keys(tx, reach.keys)
    names = list(dict.fromkeys(name for key in reach.keys for name in (key, *above(key))))
    found = {row.id: row for row in lock_rows.under_keys(tx, names)}
    exact = reach._replace(segments=tuple(part for part in reach.segments if part is not None))
    tops = (*(GLOB + name for name in names), GLOB + "/", GLOB + NO_CASE + "/")
    for row in lock_rows.select(tx, f"AND c.path_key IN ({','.join('?' * len(tops))})", tops):
        there = reach_in(row)
        if there and meet(exact, there):
            found[row.id] = row
    found.update((row.id, row) for row in lock_rows.covering_elsewhere(tx, reach))
    found.update((row.id, row) for row in _of_turns(tx, exact))
    return sorted(found.values(), key=lambda row: (row.created_at, row.id))


def meeting(tx: Transaction, reach: Reach, asking: Asking | None = None) -> list[Lock]:
    """Return locks that meet `reach`, here or in another work tree, live or not.

    With `asking`, locks that never keep it out may be left out, except its own lock on that very path or pattern. If a
    live lock keeps it out, other locks may be left out too.
    """
    here, elsewhere = lock_rows.in_place(tx, reach, asking), lock_rows.meeting_elsewhere(tx, reach)
    elsewhere = [*elsewhere, *_of_turns(tx, reach)]
    if not elsewhere:
        return here
    found = {row.id: row for row in (*here, *elsewhere)}
    return sorted(found.values(), key=lambda row: (row.created_at, row.id))


def same(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return every lock on that very path or pattern, live or not."""
    if reach.pattern:
        rows = lock_rows.select(tx, "AND c.path_key = ?", (reach.key,))
        return [row for row in rows if (row.pattern, row.base) == (reach.pattern, reach.base)]
    found = [row for row in lock_rows.under_keys(tx, reach.keys) if not row.pattern]
    return [*found, *(row for row in _of_turns(tx, reach) if is_same(row, reach))]


def of_turns(tx: Transaction, scope: str | None = None, holder: str = "") -> list[Lock]:
    """Return `standing`; mostly there are none."""
    if not has_turn_files():
        return []

    return standing(tx, scope, holder)


def _of_turns(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return the files that sessions have for their turns and that meet `reach`."""
    if not has_turn_files() or reach.key is None:
        return []

    return turn_locks_meeting(tx, reach)


def is_same(row: Lock, reach: Reach) -> bool:
    """Return True if a lock is on that very path, by any name, or on that very pattern."""
    if reach.pattern or row.pattern:
        return (row.pattern, row.base) == (reach.pattern, reach.base)
    return row.file in reach.keys or (row.path_key or key_of(row.file)) in reach.keys


def own(
    tx: Transaction,
    instance: Session,
    reach: Reach,
    agent: str = "",
) -> list[Lock]:
    """Return this session's live locks on that very path or pattern, of one `agent` where given."""
    return own_among(lock_rows.live(tx, same(tx, reach)), instance, agent)


def own_among(locks: list[Lock], instance: Session, agent: str = "") -> list[Lock]:
    """Return the locks that this session holds, of one `agent` where given."""
    return [lock for lock in locks if lock.instance_id == instance.id and agent in ("", lock.agent or "")]


def unfit(reach: Reach, mine: list[Lock], fence: int | None) -> Refused | None:
    """Return the refusal if `mine`, the result of `own`, is not the grant with this `fence`; else None."""
    if fence is not None and [row.fence for row in mine] != [fence]:
        if mine:
            held = f"; it is held with fence {mine[0].fence}"
        else:
            held = ""
        return Refused(f"fence {fence} is no longer good for {reach.file}{held}")
    if mine:
        return None
    return Refused(f"this session holds no lock on {reach.file}")


# Files that sessions have for their turns, as locks in mode `AUTO`: read from the journals.
#
# ``swarm_hook_core.traces.turn_files`` has the rule. The store has no rows for them: whoever asks for locks is given
# these as well. A lock of the store comes first: a session that has asked for the file has it by that lock; and where
# another session has locked it, the write is just being denied.

YIELD_SECONDS, YIELD_PAUSE = 0.3, 0.01  # a hook that meets a lock takes its note back within that time


def standing(tx: Transaction, scope: str | None = None, holder: str = "") -> list[Lock]:
    """Return the live ones of a `scope` (None: of all) and session (empty: of all), the earliest first.

    Each has its `place` behind all rows of the store, for listings.
    """
    found: dict[str | None, Lock] = {}
    for _one, row in _known_files(tx):
        if not _is_hidden(tx, row):
            found.setdefault(row.path_key, row)
    return [row for row in found.values() if scope in (None, row.scope) and holder in ("", row.instance_id)]


def _is_hidden(tx: Transaction, row: Lock) -> bool:
    """Return True if a lock covers that file: the lock counts, and is shown."""
    return bool(lock_rows.live(tx, _stored(tx, _reach(row))))


def turn_locks_meeting(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return those that meet `reach`, here or in another work tree."""
    rows = standing(tx)
    places = [reach, *(lock_rows.reaches_elsewhere(tx, reach) if rows and reach.names else ())]
    return [row for row in rows if any(meet(place, _reach(row)) for place in places)]


def give_up(tx: Transaction, locks: Iterable[Lock]) -> None:
    """Inside a transaction that ends these locks: note that their sessions have the files no longer."""
    ids = {lock.id for lock in locks}
    for one, row in _known_files(tx):
        if row.id in ids:
            _give(one)


def release(tx: Transaction, instance_id: str, reach: Reach, agent: str = "") -> list[Lock]:
    """Note that a session has that very path no longer, hidden behind a lock or not; return what was not hidden."""
    mine = [
        (one, row)
        for one, row in _known_files(tx)
        if row.instance_id == instance_id
        and agent in ("", row.agent or "")
        and not reach.pattern
        and (row.file in reach.keys or row.path_key in reach.keys)
    ]
    for one, _row in mine:
        _give(one)
    return [row for _one, row in mine if not _is_hidden(tx, row)]


def are_taken(tx: Transaction, locks: list[Lock]) -> bool:
    """Return True if another session has a file of these locks for its turn, though they have been committed.

    A hook notes first that it takes a file, and then looks at the store. If it looked before the commit, its write goes
    ahead, and its note stays. If it looked afterwards, it takes the note back: this waits for that.
    """
    ends, ids = time.monotonic() + YIELD_SECONDS, {lock.id for lock in locks}
    while any(_is_kept_out(tx, row, ids) for _one, row in _known_files(tx)):
        if time.monotonic() >= ends:
            return True
        time.sleep(YIELD_PAUSE)
    return False


def with_turns(tx: Transaction, rows: list[Event], before: int | None, since: int) -> list[Event]:
    """Return events about locks and turns, the newest first: after `since` (Unix seconds), before the id `before`.

    `rows`: those about locks. Only the journals tell of turns, as long as they are kept. Their events have the ids of
    those that come next.
    """
    sessions = _Sessions(tx)
    since_ns, found = since * 10**9, list[tuple[int, Event]]()
    for one in turn_files.noted_since(since_ns):
        session = sessions.of(one)
        if session is None:
            continue
        row, over_ns = _row(tx, one, session), one.ended
        if not over_ns and one.is_over(time.time_ns()):
            over_ns = one.written + TURN_SECONDS * 10**9
        told = {"key": one.key, "mode": AUTO, **({"agent": one.agent} if one.agent else {})}
        begun = _event(tx, row, "acquired", one.at, {"id": row.id, "content": row.content, **told})
        found.append((one.at, begun))
        if over_ns:
            reason = {"over": "turn_ended", "gives": ""}.get(one.end, "lapsed")
            ended = _event(tx, row, "released", over_ns, {"released": 1, "reason": reason, **told})
            found.append((over_ns, ended))
    found = [one for one in found if one[1].created_at >= since and (before is None or one[1].id < before)]
    found += [(0, row) for row in rows]
    found.sort(key=lambda one: (one[1].created_at, one[1].id, one[0]), reverse=True)
    return [row for _at_ns, row in found]


def _event(tx: Transaction, row: Lock, what: str, at_ns: int, payload: dict[str, Any]) -> Event:
    at = at_ns // 10**9
    known = tx.row("SELECT max(id) AS id FROM events WHERE created_at <= ?", (at,))
    number = ((known and known.id) or 0) + 1
    facts = {"id": number, "type": f"context.lock_{what}", "actor": row.instance_id, "subject": row.file}
    return Event({**facts, "payload": dumps(payload), "created_at": at})


def _is_kept_out(tx: Transaction, row: Lock, ids: set[str]) -> bool:
    """Return True if the session of `row` has taken a file that only locks with these ids keep it out of."""
    met = lock_rows.live(tx, _stored(tx, _reach(row)))
    # A file that lets the lock be, as the session's own is for its subagent, would not refuse it the next time either.
    return all(lock.id in ids for lock in met) and any(
        keeps_out(lock, row.instance_id, row.agent or "", EXCLUSIVE)
        and keeps_out(row, lock.instance_id, lock.agent or "", lock.mode or EXCLUSIVE)
        for lock in met
    )


def _stored(tx: Transaction, reach: Reach) -> list[Lock]:
    return [*lock_rows.in_place(tx, reach), *lock_rows.meeting_elsewhere(tx, reach)]


def _known_files(tx: Transaction) -> list[tuple[TurnFile, Lock]]:
    """Return all files that living sessions of this store have by the journals, each with its lock, earliest first."""
    sessions, found = _Sessions(tx), []
    for one in sorted(turn_files.lasting(time.time_ns()), key=lambda one: one.at):
        session = sessions.of(one)
        if session is None or departed(session, tx.now(), tx.here) or os.path.isdir(one.file):
            continue  # another store's, or gone; a folder, made by the write, would hold all that is in it
        if storable(one.key) and storable(one.file):
            found.append((one, _row(tx, one, session)))
    return found


class _Sessions:
    """The sessions that have files for their turns, each looked up once."""

    def __init__(self, tx: Transaction):
        self._tx = tx
        self._known: dict[tuple[str, str], Record | None] = {}

    def of(self, one: TurnFile) -> Record | None:
        """Return the session that has the file, with its ``EVIDENCE``; None for one of another store."""
        key = one.runtime, one.session_id
        if key not in self._known:
            self._known[key] = self._tx.row(
                f"SELECT i.id AS owner_id, i.scope, i.label AS owner_label, {EVIDENCE} FROM swarm_sessions s"
                " JOIN instances i ON i.id = s.instance_id WHERE s.runtime = ? AND s.session_id = ?",
                key,
            )
        return self._known[key]


def _row(tx: Transaction, one: TurnFile, session: Record) -> Lock:
    ago = max(0.0, time.time() - one.written / 10**9)
    name = f"{one.journal}\0{one.key}\0{one.at}".encode("utf-8", "surrogatepass")
    return Lock(
        {
            **session,
            "id": f"turn-{digest_of(name, 16)}",
            "instance_id": session["owner_id"],
            "file": one.file,
            "type": "lock",
            "content": turn_files.NOTE,
            "created_at": one.at // 10**9,
            "path_key": one.key,
            "mode": AUTO,
            "agent": one.agent or None,
            "base": None,
            "ttl": float(TURN_SECONDS),
            "renewed": clock.now() - ago,
            "booted": clock.boot(tx.here),
            "wall_until": time.time() - ago + TURN_SECONDS,
            "place": one.at,
        }
    )


def _reach(row: Lock) -> Reach:
    reach = reach_in(row)
    assert reach is not None  # a path without NUL
    return reach


def _give(one: TurnFile) -> None:
    try:
        turn_files.give(one)
    except OSError:
        return  # a full disk: it ends with the turn

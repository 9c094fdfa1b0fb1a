"""Locks and places of other machines as ordinary rows of this store, and the rows of this one for others.

Such a row has the name of its `machine`; a row of this machine has no name. A row of another machine never lapses, and
its session never counts as gone here: only that machine's word removes it (``swarm_mcp.team.replica``). All changes
happen inside a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.lookup import GLOB, plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.untrusted_text import bounded
from swarm_mcp.domain import EXCLUSIVE, REMOTE, Lock, Record, Session, Waiter, new_id
from swarm_mcp.store import lock_finder, lock_listing, lock_rows, messages, reactions, refusals, session_table
from swarm_mcp.store.database import Transaction
from swarm_mcp.store.lock_listing import reaches_of
from swarm_mcp.store.lock_request import Reach, name_folders
from swarm_mcp.store.lock_rows import facts
from swarm_mcp.store.refusals import key_of_lock

MISSING = "missing"  # state of a session of another machine that the server has lost
HOST = "team:"  # before the machine's name, in place of a host: no pid means anything here


class TeamRepository(Record):
    """The progress of this machine's replica of one repository: a row of ``swarm_team_repositories``."""

    __slots__ = ()

    id: str
    epoch: str | None
    version: int
    mark: int
    fresh_until: float | None
    booted: str | None
    state: str
    said_at: int | None
    scope: str | None


def repositories(tx: Transaction) -> dict[str, TeamRepository]:
    """Return the repositories that this machine shares, by id, with how far each replica has come."""
    rows = tx.rows("SELECT * FROM swarm_team_repositories ORDER BY id", (), TeamRepository)
    return {row.id: row for row in rows}


def trees(tx: Transaction) -> dict[str, str]:
    """Return the top of each work tree that takes part, with its repository."""
    rows = tx.rows("SELECT top, repository FROM swarm_team_trees ORDER BY top")
    return {row.top: row.repository for row in rows}


def set_trees(tx: Transaction, wanted: dict[str, str]) -> None:
    """Let these work trees take part, and no others."""
    known = trees(tx)
    for top in known.keys() - wanted.keys():
        tx.change("DELETE FROM swarm_team_trees WHERE top = ?", (top,))
    for top, repository in wanted.items():
        if known.get(top) != repository:
            tx.change("INSERT OR REPLACE INTO swarm_team_trees (top, repository) VALUES (?, ?)", (top, repository))
    left = set(wanted.values())
    for one in repositories(tx):
        if one not in left:
            tx.change("DELETE FROM swarm_team_repositories WHERE id = ?", (one,))
            # Delivered messages stay known: a machine that joins again is told of them again.
            tx.change(
                "DELETE FROM swarm_team_documents WHERE repository = ? AND (kind <> 'message' OR version = 0)",
                (one,),
            )


def leave(tx: Transaction, tops: Iterable[str]) -> None:
    """Remove all rows of other machines in these work trees, which take part no longer."""
    gone = tuple(tops)
    if not gone:
        return
    reactions.end_locks(tx, mirrored(tx, gone), "team_left")
    drop_places(tx, [one for one in mirrored_places(tx) if one.scope in gone])
    for session in mirrored_sessions(tx):
        if session.scope in gone:
            remove_session(tx, session)
    void_grants(tx, [row.id for row in own_locks(tx, gone)])
    for place in own_places(tx):
        place_posted(tx, place.ticket, None)


def note(tx: Transaction, /, repository: str, **columns: object) -> None:
    """Write down the state of a repository's replica: columns of ``swarm_team_repositories``."""
    tx.change("INSERT OR IGNORE INTO swarm_team_repositories (id, state) VALUES (?, 'joining')", (repository,))
    names = ", ".join(f"{name} = ?" for name in columns)
    tx.change(f"UPDATE swarm_team_repositories SET {names} WHERE id = ?", (*columns.values(), repository))


def own_locks(tx: Transaction, tops: Iterable[str]) -> list[Lock]:
    """Return locks in these work trees that were taken here and asked for, live or not: no automatic ones.

    Locks in a work tree inside of one of them are included.
    """
    found: dict[str, Lock] = {}
    for top in tops:
        forms = [form for place in (top, NO_CASE + top.casefold()) for form in (place, GLOB + place)]
        forms += name_folders(top)
        some = "SELECT rowid FROM context WHERE type = 'lock' AND path_key"
        inside = " UNION ALL ".join([f"{some} = ? UNION ALL {some} >= ? AND path_key < ?"] * len(forms))
        values = [text for form in forms for text in (form, form.rstrip("/") + "/", form.rstrip("/") + "0")]
        rows = lock_rows.select(tx, f"AND c.rowid IN ({inside}) AND c.machine IS NULL", tuple(values))
        found.update((row.id, row) for row in rows)
    return list(found.values())


def of_ids(tx: Transaction, ids: Iterable[str]) -> list[Lock]:
    """Return those of these locks that are there."""
    wanted = tuple(ids)
    if wanted:
        return lock_rows.select(tx, f"AND c.id IN ({','.join('?' * len(wanted))})", wanted)
    return []


def own_places(tx: Transaction) -> list[Waiter]:
    """Return the places in the line of waiters on this machine."""
    return [row for row in lock_listing.waiting(tx) if row.machine is None]


def living_in(tx: Transaction, tops: Iterable[str], more: Iterable[str] = ()) -> list[Session]:
    """Return the live sessions of this machine that work in these work trees, and those of `more` ids."""
    found = {row.id: row for top in tops for row in session_table.in_scope(tx, top)}
    for one in more:
        if one in found:
            row = None
        else:
            row = session_table.live(tx, one)
        if row is not None:
            found[row.id] = row
    return [row for row in found.values() if row.runtime != REMOTE]


def renumber(tx: Transaction, fence: int, new_fence: int, tops: Iterable[str]) -> None:
    """Give locks taken here the number that they have in the team from now on."""
    for row in own_locks(tx, tops):
        if row.team_fence == fence:
            tx.change("UPDATE context SET team_fence = ? WHERE id = ?", (new_fence, row.id))


def confirm(tx: Transaction, lock: Lock, team_fence: int) -> bool:
    """Note that the team has granted a lock; return True if it still is that lock."""
    return bool(
        tx.change(
            "UPDATE context SET team_fence = ?, takes = NULL WHERE id = ? AND instance_id = ? AND machine IS NULL",
            (team_fence, lock.id, lock.instance_id),
        )
    )


def restore(tx: Transaction, lock: Lock, told: Mapping[str, Any]) -> None:
    """Give a lock taken here the mode and number that it has in the team."""
    if told["mode"] == EXCLUSIVE:
        mode = None
    else:
        mode = told["mode"]
    tx.change("UPDATE context SET mode = ?, team_fence = ? WHERE id = ?", (mode, told["fence"], lock.id))


def void_grants(tx: Transaction, lock_ids: Iterable[str]) -> None:
    """Let these locks count as not confirmed. Those of other machines go on denying."""
    for one in lock_ids:
        tx.change("UPDATE context SET team_fence = NULL WHERE id = ?", (one,))


def place_posted(tx: Transaction, ticket: int, team_ticket: int | None) -> None:
    """Note the number that the team has given to a place in the line, None to clear it; of any machine."""
    tx.change("UPDATE swarm_waiters SET team_ticket = ? WHERE ticket = ?", (team_ticket, ticket))


def met(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks that meet `reach`, live ones."""
    return lock_rows.live(tx, lock_finder.meeting(tx, reach))


def tell(tx: Transaction, instance_id: str, text: str, file: str = "") -> None:
    """Add a message to a session of this machine, told by its next hook; nothing if it has gone."""
    session = session_table.live(tx, instance_id)
    if session is not None and session.runtime != REMOTE:
        messages.post_notice(tx, session, text, file)


def mirrored(tx: Transaction, tops: Iterable[str]) -> list[Lock]:
    """Return the replica's locks in these work trees."""
    wanted = tuple(tops)
    marks = ",".join("?" * len(wanted))
    return lock_rows.select(tx, f"AND c.machine IS NOT NULL AND c.scope IN ({marks})", wanted)


def add_lock(tx: Transaction, lock_id: str, top: str, reach: Reach, told: Mapping[str, Any]) -> None:
    """Add a row for a lock that another machine was granted, in the work tree with this `top`.

    `told`: the server's ``protocol.LockRow``.
    """
    lock = {
        **_told(tx, told),
        "id": lock_id,
        "scope": top,
        "type": "lock",
        "created_at": tx.now(),
        "path_key": reach.key,
        "pattern": reach.pattern or None,
        "base": reach.base or None,
    }
    lock_rows.insert(tx, lock, reach.file)
    _say_granted(tx, lock, reach.file)


def grant_anew(tx: Transaction, lock: Lock, lock_id: str, told: Mapping[str, Any]) -> None:
    """Change a row of another machine's lock to the server's present one: another mode, number, or holder."""
    _change(tx, {**_told(tx, told), "created_at": tx.now(), "id": lock_id}, lock)
    refusals.follow(tx, key_of_lock(lock), told["session"])


def take_over(tx: Transaction, lock: Lock, told: Mapping[str, Any]) -> None:
    """Make a row of another machine's lock one of this machine's: its session has been handed the lock."""
    columns = {**_told(tx, told), "created_at": tx.now(), "machine": None, "id": new_id()}
    if told["ttl"] is not None:  # its lease begins anew
        columns.update(ttl=told["ttl"], renewed=clock.now(), booted=clock.boot(tx.here))
        columns.update(wall_until=time.time() + told["ttl"])
    _change(tx, columns, lock)
    refusals.forget(tx, told["session"], [key_of_lock(lock)])
    refusals.follow(tx, key_of_lock(lock), told["session"])


def _told(tx: Transaction, told: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": told["session"],
        "content": told["note"] or "",
        "mode": None if told["mode"] == EXCLUSIVE else told["mode"],
        "agent": told["agent"] or None,
        "expected_end": told["expected_end"],
        "fence": lock_rows.next_fence(tx),
        "machine": told["machine"],
        "team_fence": told["fence"],
    }


def _change(tx: Transaction, columns: dict[str, Any], lock: Lock) -> None:
    names = ", ".join(f"{name} = ?" for name in columns)
    tx.change(f"UPDATE context SET {names} WHERE id = ?", (*columns.values(), lock.id))
    _say_granted(tx, {**lock, **columns}, lock.file)


def _say_granted(tx: Transaction, lock: dict[str, Any], file: str) -> None:
    said = {name: lock[name] for name in ("id", "content", "machine", "team_fence")}
    tx.add_event(lock["scope"], "context.lock_acquired", lock["instance_id"], plain(file), said, facts(lock))


def add_session(tx: Transaction, session_id: str, machine: str, label: str, scope: str) -> None:
    """See that the session of another machine is there, under this label. One of this machine stays as it is."""
    known = tx.row(
        "SELECT i.label, s.runtime, s.host, s.state FROM instances i"
        " LEFT JOIN swarm_sessions s ON s.instance_id = i.id WHERE i.id = ?",
        (session_id,),
    )
    shown = bounded(f"machine:{machine} {label}")
    if known is None:
        tx.change(
            "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, adopted)"
            " VALUES (?, ?, ?, ?, ?, 0, ?, 0)",
            (session_id, scope, scope, scope, scope, shown),
        )
        tx.change(
            "INSERT OR REPLACE INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid,"
            " client_start, state, last_seen, lease_seconds) VALUES (?, ?, ?, ?, 0, '', 'working', ?, 0)",
            (REMOTE, session_id, session_id, HOST + machine, tx.now()),
        )
    elif known.runtime == REMOTE and (known.label, known.host) != (shown, HOST + machine):
        tx.change("UPDATE instances SET label = ? WHERE id = ?", (shown, session_id))
        tx.change("UPDATE swarm_sessions SET host = ? WHERE instance_id = ?", (HOST + machine, session_id))
    if known is not None and known.runtime == REMOTE and known.state == MISSING:
        tx.change("UPDATE swarm_sessions SET state = 'working' WHERE instance_id = ?", (session_id,))


def mirrored_sessions(tx: Transaction) -> list[Session]:
    """Return the sessions of other machines."""
    return tx.rows(
        f"SELECT i.*, {EVIDENCE}, s.session_id FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
        " WHERE s.runtime = ?",
        (REMOTE,),
        Session,
    )


def miss_session(tx: Transaction, session: Session) -> None:
    """Mark a session of another machine as missing: a server that has lost rows does not know it, but may be told
    again.
    """
    tx.change("UPDATE swarm_sessions SET state = ? WHERE instance_id = ?", (MISSING, session.id))


def missing_sessions(tx: Transaction) -> list[Session]:
    """Return those of `miss_session` that have not been heard of since."""
    return [row for row in mirrored_sessions(tx) if row.state == MISSING]


def gather_sessions(tx: Transaction, tops: Iterable[str], scope: str) -> None:
    """Let the sessions of other machines that are in one of these work trees be in `scope`."""
    for top in tops:
        tx.change(
            "UPDATE instances SET scope = ? WHERE scope = ? AND id IN"
            " (SELECT instance_id FROM swarm_sessions WHERE runtime = ?)",
            (scope, top, REMOTE),
        )


def remove_session(tx: Transaction, session: Session, reason: str = "deregistered") -> None:
    """Remove a session of another machine that has left."""
    reactions.session_gone(tx, session, reason)


def mirrored_places(tx: Transaction) -> list[Waiter]:
    """Return the places in the line of waiters on other machines."""
    rows = tx.rows("SELECT * FROM swarm_waiters WHERE machine IS NOT NULL ORDER BY ticket", (), Waiter)
    return [row.replace(reaches=reaches_of(row)) for row in rows]


def add_place(
    tx: Transaction,
    scope: str,
    machine: str,
    reaches: list[Reach],
    holder_id: str,
    team_ticket: int,
    agent: str,
    mode: str,
) -> None:
    """Add the place of a waiter on another machine, behind all that are there."""
    wants = [
        {
            "file": reach.file,
            "path_key": reach.key,
            "keys": reach.keys,
            "pattern": reach.pattern,
            "base": reach.base,
        }
        for reach in reaches
    ]
    last = tx.column("SELECT last FROM swarm_fence")[0]
    values: dict[str, Any] = {
        "instance_id": holder_id,
        "agent": agent,
        "scope": scope,
        "host": HOST + machine,
        "pid": 0,
    }
    values.update(start="", mode=mode, wants=dumps(wants), since=clock.now(), until=None, fence=last, seen=None)
    values.update(machine=machine, team_ticket=team_ticket)
    marks = ", ".join("?" * len(values))
    tx.change(f"INSERT INTO swarm_waiters ({', '.join(values)}) VALUES ({marks})", list(values.values()))


def drop_own_place(tx: Transaction, team_ticket: int) -> None:
    """Remove the place of a waiter here that has this number in the team, live or not."""
    rows = tx.rows("SELECT ticket FROM swarm_waiters WHERE team_ticket = ? AND machine IS NULL", (team_ticket,))
    for row in rows:
        lock_listing.give_up(tx, row.ticket)


def drop_places(tx: Transaction, places: Iterable[Waiter]) -> None:
    """Remove places from the line."""
    for place in places:
        lock_listing.give_up(tx, place.ticket)

"""Locks and places of other machines as ordinary rows of this store, and which rows of this one others are to have.

Such a row has the name of its `machine`; one of this machine's own has none. A row of another machine never lapses, and
its session never counts as gone here: only what that machine says removes it (``swarm_mcp.team.replica``). All that
writes does so inside a transaction.
"""

from __future__ import annotations

import time

from swarm_hook_core import clock
from swarm_hook_core.json_text import dumps
from swarm_hook_core.labels import bounded
from swarm_hook_core.lookup import GLOB, plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.paths import NO_CASE
from swarm_mcp.domain.lock import AUTO, EXCLUSIVE, Lock, Waiter
from swarm_mcp.domain.record import Record, new_id
from swarm_mcp.domain.session import TEAM, Session
from swarm_mcp.store import events
from swarm_mcp.store.denials import key_of_lock
from swarm_mcp.store.lock_finder import facts
from swarm_mcp.store.lock_queue import reaches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_queue import LockQueue
    from swarm_mcp.store.lock_request import Reach
    from swarm_mcp.store.locks import Locks
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.session_table import SessionTable

MISSING = "missing"  # state of a session of another machine that the server has lost
HOST = "team:"  # before the machine's name, in place of a host: no pid means anything here


class TeamRepository(Record):
    """How far this machine's replica of one repository has come: a row of ``swarm_team_repositories``."""

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


class TeamRows:
    """The embedded store's part in a team."""

    def __init__(
        self,
        db: Database,
        finder: LockFinder,
        endings: LockEndings,
        sessions: SessionTable,
        queue: Callable[[], LockQueue],
        notices: Callable[[], Notices],
        locks: Callable[[], Locks],
        denials: Callable[[], Denials],
        signals: Signals,
    ):
        self._db = db
        self._finder = finder
        self._endings = endings
        self._sessions = sessions
        self._queue = queue
        self._notices = notices
        self._locks = locks
        self._denials = denials
        self._signals = signals

    def writing(self) -> AbstractContextManager[object]:
        """A transaction, for several of what is below."""
        return self._db.writing()

    # ------------------------------------------------- repositories and work trees

    def repositories(self) -> dict[str, TeamRepository]:
        rows = self._db.rows("SELECT * FROM swarm_team_repositories ORDER BY id", (), TeamRepository)
        return {row.id: row for row in rows}

    def trees(self) -> dict[str, str]:
        """Return the top of each work tree that takes part, with its repository."""
        rows = self._db.rows("SELECT top, repository FROM swarm_team_trees ORDER BY top")
        return {row.top: row.repository for row in rows}

    def set_trees(self, trees: dict[str, str]) -> None:
        """Let these work trees take part, and no others."""
        known = self.trees()
        for top in known.keys() - trees.keys():
            self._db.change("DELETE FROM swarm_team_trees WHERE top = ?", (top,))
        for top, repository in trees.items():
            if known.get(top) != repository:
                self._db.change(
                    "INSERT OR REPLACE INTO swarm_team_trees (top, repository) VALUES (?, ?)", (top, repository)
                )
        left = set(trees.values())
        for one in self.repositories():
            if one not in left:
                self._db.change("DELETE FROM swarm_team_repositories WHERE id = ?", (one,))
                # Which messages were delivered stays known: whoever joins again is told of them again.
                self._db.change(
                    "DELETE FROM swarm_team_documents WHERE repository = ? AND (kind <> 'message' OR version = 0)",
                    (one,),
                )

    def leave(self, tops: Iterable[str]) -> None:
        """Remove all that other machines have in these work trees, which take part no longer."""
        gone = tuple(tops)
        if not gone:
            return
        self.drop(self.mirrored(gone), "team_left")
        self.drop_places([one for one in self.mirrored_places() if one.scope in gone])
        for session in self.mirrored_sessions():
            if session.scope in gone:
                self.remove_session(session)
        self.void_grants([row.id for row in self.own_locks(gone)])
        for place in self.own_places():
            self.place_posted(place.ticket, None)

    def note(self, repository: str, **columns: object) -> None:
        """Write down what is now known of a repository's replica: columns of ``swarm_team_repositories``."""
        self._db.change(
            "INSERT OR IGNORE INTO swarm_team_repositories (id, state) VALUES (?, 'joining')", (repository,)
        )
        names = ", ".join(f"{name} = ?" for name in columns)
        self._db.change(f"UPDATE swarm_team_repositories SET {names} WHERE id = ?", (*columns.values(), repository))

    # --------------------------------------------------- what this machine holds

    def own_locks(self, tops: Iterable[str]) -> list[Lock]:
        """Return locks in these work trees that were taken here and asked for: no automatic ones. Live or not.

        What lies in a work tree inside of one of them is among them.
        """
        found: dict[str, Lock] = {}
        for top in tops:
            forms = [form for place in (top, NO_CASE + top.casefold()) for form in (place, GLOB + place)]
            some = "SELECT rowid FROM context WHERE type = 'lock' AND path_key"
            inside = " UNION ALL ".join([f"{some} = ? UNION ALL {some} >= ? AND path_key < ?"] * len(forms))
            values = [text for form in forms for text in (form, form.rstrip("/") + "/", form.rstrip("/") + "0")]
            rows = self._finder.select(
                f"AND c.rowid IN ({inside}) AND c.machine IS NULL AND c.mode IS NOT '{AUTO}'", tuple(values)
            )
            found.update((row.id, row) for row in rows)
        return list(found.values())

    def of_ids(self, ids: Iterable[str]) -> list[Lock]:
        """Return those of these locks that are there."""
        wanted = tuple(ids)
        return self._finder.select(f"AND c.id IN ({','.join('?' * len(wanted))})", wanted) if wanted else []

    def reaped(self, locks: list[Lock]) -> list[Lock]:
        """Return those of `locks` that still hold; the others are removed, and whom it concerns is told."""
        return self._endings.reaped(locks)

    def live(self, locks: list[Lock]) -> list[Lock]:
        """Return those of `locks` that still hold."""
        return self._finder.live(locks)

    def own_places(self) -> list[Waiter]:
        """Return the places in the line of those who wait on this machine."""
        return [row for row in self._queue().waiting() if row.machine is None]

    def living_in(self, tops: Iterable[str], more: Iterable[str] = ()) -> list[Session]:
        """Return the live sessions of this machine that work in these work trees, and those of `more` ids."""
        found = {row.id: row for top in tops for row in self._sessions.in_scope(top)}
        for one in more:
            row = None if one in found else self._sessions.live(one)
            if row is not None:
                found[row.id] = row
        return [row for row in found.values() if row.runtime != TEAM]

    def renumber(self, fence: int, new_fence: int, tops: Iterable[str]) -> None:
        """Give locks taken here the number that they have in the team from now on."""
        for row in self.own_locks(tops):
            if row.team_fence == fence:
                self._db.change("UPDATE context SET team_fence = ? WHERE id = ?", (new_fence, row.id))

    def confirm(self, lock: Lock, team_fence: int) -> bool:
        """Note that the team has granted a lock; whether it still is that lock."""
        return bool(
            self._db.change(
                "UPDATE context SET team_fence = ?, takes = NULL WHERE id = ? AND instance_id = ? AND machine IS NULL",
                (team_fence, lock.id, lock.instance_id),
            )
        )

    def restore(self, lock: Lock, told: Mapping[str, Any]) -> None:
        """Give a lock taken here the mode and number that it has in the team."""
        mode = None if told["mode"] == EXCLUSIVE else told["mode"]
        self._db.change("UPDATE context SET mode = ?, team_fence = ? WHERE id = ?", (mode, told["fence"], lock.id))

    def void_grants(self, lock_ids: Iterable[str]) -> None:
        """Let these locks count as not confirmed."""
        for one in lock_ids:
            self._db.change("UPDATE context SET team_fence = NULL WHERE id = ?", (one,))

    def place_posted(self, ticket: int, team_ticket: int | None) -> None:
        self._db.change("UPDATE swarm_waiters SET team_ticket = ? WHERE ticket = ?", (team_ticket, ticket))

    def met(self, reach: Reach) -> list[Lock]:
        """Return locks that meet `reach`, live ones."""
        return self._finder.live(self._finder.meeting(reach))

    def drop(self, locks: list[Lock], reason: str, **payload: object) -> None:
        """Remove locks, and tell whom it concerns: as ``LockEndings.drop``."""
        self._endings.drop(locks, reason, **payload)

    def tell(self, instance_id: str, text: str, file: str = "") -> None:
        """A message to a session of this machine, which its next hook tells; nothing where it has gone."""
        session = self._sessions.live(instance_id)
        if session is not None and session.runtime != TEAM:
            self._notices().post(session, text, file)

    # --------------------------------------------------- what other machines hold

    def mirrored(self, tops: Iterable[str]) -> list[Lock]:
        """Return the replica's locks in these work trees."""
        wanted = tuple(tops)
        marks = ",".join("?" * len(wanted))
        return self._finder.select(f"AND c.machine IS NOT NULL AND c.scope IN ({marks})", wanted)

    def same(self, reach: Reach) -> list[Lock]:
        """Return every lock on that very path or pattern, live or not."""
        return self._finder.same(reach)

    def add_lock(self, lock_id: str, top: str, reach: Reach, told: Mapping[str, Any]) -> None:
        """Add a row for what another machine has been granted, in the work tree with this `top`.

        `told`: what the server says of it, ``protocol.LockRow``.
        """
        lock = {
            **self._told(told),
            "id": lock_id,
            "scope": top,
            "type": "lock",
            "created_at": self._db.now(),
            "path_key": reach.key,
            "pattern": reach.pattern or None,
            "base": reach.base or None,
        }
        self._locks().insert(lock, reach.file)
        self._say_granted(lock, reach.file)

    def grant_anew(self, lock: Lock, told: Mapping[str, Any]) -> None:
        """Give a row of another machine's lock what the server says of it now: another mode, or another holder."""
        self._change({**self._told(told), "created_at": self._db.now()}, lock)
        self._denials().follow(key_of_lock(lock), told["session"])

    def take_over(self, lock: Lock, told: Mapping[str, Any]) -> None:
        """Make a row of another machine's lock one of this machine's, whose session has been handed it."""
        columns = {**self._told(told), "created_at": self._db.now(), "machine": None, "id": new_id()}
        if told["ttl"] is not None:  # its lease begins anew
            columns.update(ttl=told["ttl"], renewed=clock.now(), booted=clock.boot(self._db.here))
            columns.update(wall_until=time.time() + told["ttl"])
        self._change(columns, lock)
        self._denials().forget(told["session"], [key_of_lock(lock)])
        self._denials().follow(key_of_lock(lock), told["session"])

    def _told(self, told: Mapping[str, Any]) -> dict:
        return {
            "instance_id": told["session"],
            "content": told["note"] or "",
            "mode": None if told["mode"] == EXCLUSIVE else told["mode"],
            "agent": told["agent"] or None,
            "expected_end": told["expected_end"],
            "fence": self._locks().next_fence(),
            "machine": told["machine"],
            "team_fence": told["fence"],
        }

    def _change(self, columns: dict, lock: Lock) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        self._db.change(f"UPDATE context SET {names} WHERE id = ?", (*columns.values(), lock.id))
        self._say_granted({**lock, **columns}, lock.file)

    def _say_granted(self, lock: dict, file: str) -> None:
        said = {name: lock[name] for name in ("id", "content", "machine", "team_fence")}
        events.add(
            self._db, lock["scope"], "context.lock_acquired", lock["instance_id"], plain(file), {**said, **facts(lock)}
        )

    def add_session(self, session_id: str, machine: str, label: str, scope: str) -> None:
        """See that the session of another machine is there, under this label. One of this machine stays as it is."""
        known = self._db.row(
            "SELECT i.label, s.runtime, s.host, s.state FROM instances i"
            " LEFT JOIN swarm_sessions s ON s.instance_id = i.id WHERE i.id = ?",
            (session_id,),
        )
        shown = bounded(f"machine:{machine} {label}")
        if known is None:
            self._db.change(
                "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, adopted)"
                " VALUES (?, ?, ?, ?, ?, 0, ?, 0)",
                (session_id, scope, scope, scope, scope, shown),
            )
            self._db.change(
                "INSERT OR REPLACE INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid,"
                " client_start, state, last_seen, lease_seconds) VALUES (?, ?, ?, ?, 0, '', 'working', ?, 0)",
                (TEAM, session_id, session_id, HOST + machine, self._db.now()),
            )
        elif known.runtime == TEAM and (known.label, known.host) != (shown, HOST + machine):
            self._db.change("UPDATE instances SET label = ? WHERE id = ?", (shown, session_id))
            self._db.change("UPDATE swarm_sessions SET host = ? WHERE instance_id = ?", (HOST + machine, session_id))
        if known is not None and known.runtime == TEAM and known.state == MISSING:
            self._db.change("UPDATE swarm_sessions SET state = 'working' WHERE instance_id = ?", (session_id,))

    def mirrored_sessions(self) -> list[Session]:
        """Return the sessions of other machines."""
        return self._db.rows(
            f"SELECT i.*, {EVIDENCE}, s.session_id FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
            " WHERE s.runtime = ?",
            (TEAM,),
            Session,
        )

    def miss_session(self, session: Session) -> None:
        """A server that has lost something does not know a session of another machine, which may tell it again."""
        self._db.change("UPDATE swarm_sessions SET state = ? WHERE instance_id = ?", (MISSING, session.id))

    def missing_sessions(self) -> list[Session]:
        """Return those of `miss_session` that have not been heard of since."""
        return [row for row in self.mirrored_sessions() if row.state == MISSING]

    def gather_sessions(self, tops: Iterable[str], scope: str) -> None:
        """Let the sessions of other machines that are in one of these work trees be in `scope`."""
        for top in tops:
            self._db.change(
                "UPDATE instances SET scope = ? WHERE scope = ? AND id IN"
                " (SELECT instance_id FROM swarm_sessions WHERE runtime = ?)",
                (scope, top, TEAM),
            )

    def remove_session(self, session: Session, reason: str = "deregistered") -> None:
        """Remove a session of another machine, which has left."""
        self._signals.session_gone(session, reason)

    # ----------------------------------------------------------- places in the line

    def mirrored_places(self) -> list[Waiter]:
        rows = self._db.rows("SELECT * FROM swarm_waiters WHERE machine IS NOT NULL ORDER BY ticket", (), Waiter)
        return [row.replace(reaches=reaches_of(row)) for row in rows]

    def add_place(
        self, scope: str, machine: str, reaches: list[Reach], holder_id: str, team_ticket: int, agent: str, mode: str
    ) -> None:
        """Add the place of somebody who waits on another machine, behind all that are there."""
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
        last = self._db.column("SELECT last FROM swarm_fence")[0]
        values: dict = {"instance_id": holder_id, "agent": agent, "scope": scope, "host": HOST + machine, "pid": 0}
        values.update(start="", mode=mode, wants=dumps(wants), since=clock.now(), until=None, fence=last, seen=None)
        values.update(machine=machine, team_ticket=team_ticket)
        marks = ", ".join("?" * len(values))
        self._db.change(f"INSERT INTO swarm_waiters ({', '.join(values)}) VALUES ({marks})", list(values.values()))

    def drop_own_place(self, team_ticket: int) -> None:
        """Remove the place of somebody here that has this number in the team, whether it is waited in or not."""
        rows = self._db.rows(
            "SELECT ticket FROM swarm_waiters WHERE team_ticket = ? AND machine IS NULL", (team_ticket,)
        )
        for row in rows:
            self._queue().leave(row.ticket)

    def drop_places(self, places: Iterable[Waiter]) -> None:
        for place in places:
            self._queue().leave(place.ticket)

"""Sessions as their rows say: who takes part, and who has gone."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.liveness import RECLAIM_SECONDS, clients_in, departed, living
from swarm_hook_core.lookup import plain
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.process import gone
from swarm_mcp.domain.record import Record
from swarm_mcp.domain.session import DETACHED, STALE_SECONDS, TEAM, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarm_mcp.store.database import Database
    from swarm_mcp.store.events import Signals

SIGN_SECONDS = 5  # between two signs of life that are written down; less where a lease is that short
LOOKED_AT_ONCE = 200  # sessions that a registration looks at
RECLAIMED_AT_ONCE = 20
ALIKE = 1000  # sessions of which one name is said to be that of several


class SessionTable:
    """Finding sessions, and what any change asks of the one that makes it: a sign of life."""

    def __init__(self, db: Database, signals: Signals):
        self._db = db
        self._signals = signals

    # ------------------------------------------------------------------ ask

    def get(self, instance_id: str) -> Session | None:
        return self._db.row("SELECT * FROM instances WHERE id = ?", (instance_id,), Session)

    def live(self, instance_id: str) -> Session | None:
        found = self._live("WHERE i.id = ?", (instance_id,))
        return found[0] if found else None

    def with_evidence(self, instance_id: str) -> Session | None:
        found = self._with_evidence("WHERE i.id = ?", (instance_id,))
        return found[0][0] if found else None

    def in_scope(self, scope: str) -> list[Session]:
        return self._live(f"WHERE i.scope = ? AND s.runtime IS NOT '{TEAM}'", (scope,))

    def on_all_machines(self, scope: str) -> list[Session]:
        return self._live("WHERE i.scope = ?", (scope,))

    def walk(self, scope: str, after: str = "") -> Iterator[tuple[str, Session]]:
        from swarm_mcp.paging import walk

        def read(place: list | None, number: int) -> list[Session]:
            # First which rows, from the index alone; what they hold is looked up for those.
            behind = "AND (registered_at, rowid) > (?, ?)" if place else ""
            chosen = f"SELECT rowid FROM instances WHERE scope = ? {behind} ORDER BY registered_at, rowid"
            chosen += f" LIMIT {number}"
            return self._evidence(f"WHERE i.rowid IN ({chosen})", (scope, *(place or ())), ", i.rowid AS row")

        now, here = self._db.now(), self._db.here
        for place, row in walk(after, (object, int), read, lambda row: [row["registered_at"], row["row"]]):
            if not departed(row, now, here):
                yield place, Session({name: value for name, value in row.items() if name != "row"})

    def alike(self, scope: str, text: str) -> list[Session]:
        is_alike = "(substr(id, 1, ?) = ? OR instr(label, ?))"
        chosen = (
            f"SELECT rowid FROM instances WHERE scope = ? AND {is_alike} ORDER BY registered_at, rowid LIMIT {ALIKE}"
        )
        return self._live(f"WHERE i.rowid IN ({chosen})", (scope, len(text), text, text))

    def count(self, scope: str, words: str = "", viewer: str = "") -> int:
        condition, values = "scope = ?", [scope]
        if words:
            condition, values = f"{condition} AND instr(label, ?)", [*values, words]
        if viewer:
            condition += " AND NOT (instr(' ' || coalesce(label, ''), ' identity:')"
            condition += " AND NOT instr(' ' || label || ' ', ' identity:' || ? || ' '))"
            values.append(viewer)
        row = self._db.row(f"SELECT count(*) AS n FROM instances WHERE {condition}", values)
        return row.n if row else 0

    def scopes(self, limit: int) -> list[str]:
        sql = "SELECT scope FROM instances GROUP BY scope ORDER BY max(heartbeat) DESC, scope LIMIT ?"
        return [row.scope for row in self._db.rows(sql, (limit,))]

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        return self._db.row(
            "SELECT i.* FROM instances i JOIN swarm_sessions s ON s.instance_id = i.id"
            " WHERE s.runtime = ? AND s.session_id = ?",
            (runtime, session_id),
            Session,
        )

    def of_session_id(self, session_id: str) -> list[Session]:
        return self._live("WHERE s.session_id = ?", (session_id,))

    def of_client(self, pid: int, started: str) -> list[Session]:
        if not pid:
            return []
        return self._live(
            "WHERE s.host = ? AND (s.client_pid = ? AND s.client_start = ?"
            " OR instr(' ' || s.other_clients || ' ', ?) > 0)",
            (self._db.here, pid, started, f" {pid}:{started} "),
        )

    def is_session(self, instance_id: str) -> bool:
        return self._db.row("SELECT 1 FROM swarm_sessions WHERE instance_id = ?", (instance_id,)) is not None

    def terminal_of(self, runtime: str, session_id: str) -> tuple[int, str]:
        row = self._db.row(
            "SELECT host, terminal_pid, terminal_start FROM swarm_sessions WHERE runtime = ? AND session_id = ?",
            (runtime, session_id),
        )
        if not row or not row.terminal_pid:
            return 0, ""
        terminal = (row.terminal_pid, row.terminal_start)
        return (0, "") if gone(row.host, *terminal, self._db.here) else terminal

    def beside(self, instance: Session) -> list[Session]:
        sql = "SELECT * FROM instances WHERE scope = ? AND id <> ? ORDER BY registered_at, rowid"
        return self._db.rows(sql, (instance.scope, instance.id), Session)

    def held_beside(self, instance: Session, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        others = "FROM context WHERE type = 'lock' AND scope = ? AND instance_id <> ? LIMIT"
        values = (instance.scope, instance.id)
        counted = self._db.row(f"SELECT count(*) AS n FROM (SELECT 1 {others} 1000)", values)
        few = self._db.rows(
            "SELECT c.file, substr(c.content, 1, 2048) AS content, c.instance_id, i.label AS owner_label"
            f" FROM (SELECT file, content, instance_id, created_at {others} {limit}) c"
            " LEFT JOIN instances i ON i.id = c.instance_id ORDER BY c.created_at",
            values,
        )
        found = [{**row, "file": plain(row.file)} for row in few]
        for row in found:
            if not same_circle(viewer_identity, token(row["owner_label"] or "", "identity")):
                row.update(content="", owner_label=None)
        return counted.n if counted else 0, found

    def some_gone(self) -> list[Session]:
        """Return which of those that have been silent the longest have gone."""
        longest = f"SELECT id FROM instances ORDER BY heartbeat LIMIT {LOOKED_AT_ONCE}"
        return [row for row, has_gone in self._with_evidence(f"WHERE i.id IN ({longest})", ()) if has_gone]

    def gone(self) -> list[Session]:
        return [row for row, has_gone in self._with_evidence("", ()) if has_gone]

    def gone_after(self, after: str, limit: int) -> tuple[list[Session], str]:
        """Return which of the next `limit` sessions behind `after` have gone, and the last one looked at.

        That is empty at the end.
        """
        chosen = f"SELECT rowid FROM instances WHERE rowid > ? ORDER BY rowid LIMIT {limit}"
        rows = self._db.rows(chosen, (int(after or 0),))
        found = self._with_evidence(f"WHERE i.rowid IN ({chosen})", (int(after or 0),)) if rows else []
        return [row for row, has_gone in found if has_gone], str(rows[-1].rowid) if len(rows) == limit else ""

    # --------------------------------------------------------------- change

    def require(self, instance_id: str) -> None:
        """Inside a transaction: renew a session that is about to change something.

        A lapsed lease is forgiven while nobody has taken the session's place. Raises SwarmError where
        the session has gone.
        """
        found = self._evidence("WHERE i.id = ?", (instance_id,))
        self.renew(instance_id, found[0] if found else Session())

    def renew(self, instance_id: str, row: Session, has_leases: bool = True) -> bool:
        """Do as `require`, knowing the `row` that has just been read of the session with its ``EVIDENCE``.

        Tell whether its sign of life was written down. `has_leases`: whether it holds locks that lapse, where known.
        """
        now = self._db.now()
        if not row:
            has_gone = True
        elif row.last_seen is not None:
            has_gone = bool(row.client_pid) and not living(row.host, clients_of(row), self._db.here)
        else:
            has_gone = departed(row, now, self._db.here)
        if has_gone:
            raise SwarmError(f"instance {instance_id} is no longer registered; register again")
        if has_leases:
            self._signals.session_alive(instance_id)
        known_for = min(SIGN_SECONDS, (row.lease_seconds or 0) / 1000)
        if row.last_seen is not None and 0 <= now - row.last_seen <= known_for:
            return False  # said already; a session that works fast would pay for it each time
        self._db.change("UPDATE swarm_sessions SET last_seen = ? WHERE instance_id = ?", (now, instance_id))
        if row.last_seen is not None and row.lease_seconds:
            lease_until = now + row.lease_seconds
            values = (now, lease_until, instance_id)
            self._db.change("UPDATE instances SET heartbeat = ?, lease_until = ? WHERE id = ?", values)
        return True

    def show_life(self, instance_id: str) -> None:
        with self._db.writing():
            self.require(instance_id)

    def forget(self, instance_id: str) -> None:
        with self._db.writing():
            self.dismiss({instance_id})

    def dismiss(self, ids: Iterable[str]) -> None:
        """Inside a transaction: remove those of these instances that are there for their locks alone, and have none."""
        for instance_id in ids:
            sql = (
                "SELECT 1 FROM swarm_sessions s WHERE s.instance_id = ? AND s.runtime = ?"
                " AND NOT EXISTS (SELECT 1 FROM context c WHERE c.type = 'lock' AND c.instance_id = s.instance_id)"
            )
            found = self.get(instance_id) if self._db.row(sql, (instance_id, DETACHED)) else None
            if found:
                self._signals.session_gone(found, "deregistered")

    def reclaim(self, spare: str = "") -> list[Session]:
        """Inside a transaction: remove sessions that have gone, bar instance `spare`; their rows.

        Some of those that have been silent the longest. Where there are very many, cleaning goes round to the others.
        """
        rows = [row for row in self.some_gone() if row.id != spare][:RECLAIMED_AT_ONCE]
        for row in rows:
            self._signals.session_gone(row, "reclaimed")
        return rows

    def delete(self, session: Session, reason: str) -> None:
        """Inside a transaction: delete the row of a session, with its event.

        `reason` is ``deregistered`` or ``reclaimed``. What it leaves behind is the other parts' (``session_gone``).
        """
        self._db.change("DELETE FROM swarm_sessions WHERE instance_id = ?", (session.id,))
        self._db.change("DELETE FROM instances WHERE id = ?", (session.id,))
        payload = {"label": session.label, "pid": session.pid}
        if reason == "reclaimed":
            payload.update(last_heartbeat=session.heartbeat)
            payload.update(stale_threshold_secs=STALE_SECONDS, reclaim_threshold_secs=RECLAIM_SECONDS)
            events.add(self._db, session.scope, "instance.stale_reclaimed", "system", session.id, payload)
        else:
            events.add(self._db, session.scope, "instance.deregistered", session.id, session.id, payload)

    # -------------------------------------------------------------- innards

    def _live(self, where: str, values: tuple) -> list[Session]:
        return [row for row, has_gone in self._with_evidence(where, values) if not has_gone]

    def _with_evidence(self, where: str, values: tuple) -> list[tuple[Session, bool]]:
        now, here = self._db.now(), self._db.here
        return [(row, departed(row, now, here)) for row in self._evidence(where, values)]

    def _evidence(self, where: str, values: tuple, more: str = "") -> list[Session]:
        """Return rows, in order of registration, with all that is known of their clients; `more`: another column."""
        return self._db.rows(
            f"SELECT i.*, {EVIDENCE}, s.session_id{more} FROM instances i"
            f" LEFT JOIN swarm_sessions s ON s.instance_id = i.id {where} ORDER BY i.registered_at, i.rowid",
            values,
            Session,
        )


def clients_of(session: Record) -> list:
    """Return pid and start time of each client that a row of ``swarm_sessions`` names, the last that spoke first."""
    own = (session.client_pid, session.client_start)
    return [*([own] if own[0] else []), *clients_in(session.other_clients)]

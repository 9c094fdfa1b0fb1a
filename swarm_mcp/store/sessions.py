"""Sessions: who takes part, since when, and when they have gone."""

from __future__ import annotations

import os
import time

from swarm_hook_core.labels import bounded, merged, token
from swarm_hook_core.liveness import SERVER_RUNTIME, living
from swarm_hook_core.state import has_claims
from swarm_mcp.domain.record import Record, new_id
from swarm_mcp.domain.session import RUN_RUNTIME, TEAM, Session
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import allowed_roots, clean, git_root, inside_any, scope_of
from swarm_mcp.store import events
from swarm_mcp.store.session_table import SessionTable, clients_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm_mcp.domain.run import Run
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.events import Signals
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.runs import Runs

_UNKEYED = "SELECT 1 FROM context WHERE type = 'lock' AND path_key IS NULL LIMIT 1"


class Registration:
    """What a session says of itself when it registers. Empty values count as not given.

    `client` is ``(pid, start time)`` of the process whose end ends the session; `terminal` the same of
    the terminal in front of it, where the client outlives terminals; `pane` as ``user_interface.pane_in`` gives it;
    `turn_over` when a turn of its has ended, or the next one begins (ns), 0 where that is not why it registers; `by`
    which agent's shell registers it for somebody else (``agents_shell.mark_of_shell``).
    """

    __slots__ = (
        "directory", "label", "scope", "file_root", "lease_seconds", "adopt_id", "preassigned_id",
        "runtime", "session_id", "state", "client", "terminal", "pane", "turn_over", "by",
    )  # fmt: skip

    def __init__(self, directory: str, **given):
        self.directory = clean(directory)
        self.label = bounded(" ".join((given.get("label") or "").split())) or None
        self.scope = scope_of(self.directory, given.get("scope") or "")
        self.file_root = clean(given["file_root"]) if given.get("file_root") else self.directory
        self.lease_seconds = given.get("lease_seconds") or 0
        self.adopt_id = given.get("adopt_id") or ""
        self.preassigned_id = given.get("preassigned_id") or ""
        self.runtime = given.get("runtime") or ""
        self.session_id = given.get("session_id") or ""
        self.state = given.get("state") or "idle"
        self.client = given.get("client") or (0, "")
        self.terminal = given.get("terminal") or (0, "")
        self.pane = given.get("pane") or {}
        self.turn_over = given.get("turn_over") or 0
        self.by = given.get("by") or ""


class Sessions(SessionTable):
    """Sessions that join, move and leave."""

    def __init__(self, db: Database, finder: Callable[[], LockFinder], signals: Signals, runs: Callable[[], Runs]):
        super().__init__(db, signals)
        # Most sessions are of no run, and come to stores without locks of other implementations.
        self._finder = finder
        self._runs = runs

    # --------------------------------------------------------------- change

    def register(self, request: Registration) -> Session:
        self._respect_fence(request)
        foreign = self._finder().foreign_keys(2000) if self._db.row(_UNKEYED) else []
        with self._db.writing():
            # A session that is here to register has not gone, however long it was silent.
            known = self.of_session(request.runtime, request.session_id) if request.session_id else None
            self.reclaim(known.id if known else "")
            if foreign:
                self._finder().give_keys(foreign)
            if request.session_id:
                row = self._register_session(request)
            else:
                row = self._register_instance(request)
            if request.turn_over:
                self._signals.turn_ended(row, request.turn_over)
            if request.pane:
                self._signals.pane_seen(row, request.pane)
        self._signals.registered()  # whoever never runs a server has nothing else that cleans
        return row

    def adopt(self, row: Session, instance_id: str) -> Session | None:
        with self._db.writing():
            reserved = self.get(instance_id)
            place = (row.scope, row.directory)
            if not reserved or (reserved.scope, reserved.directory) != place or self.is_session(instance_id):
                return None
            now_ms, old, scope = self._db.now_ms(), row.id, row.scope
            for sql, values in (
                ("UPDATE context SET instance_id = ? WHERE instance_id = ? AND type = 'lock'", (instance_id, old)),
                ("UPDATE messages SET recipient = ? WHERE scope = ? AND recipient = ?", (instance_id, scope, old)),
                (
                    "UPDATE tasks SET assignee = ?, changed_at = ? WHERE scope = ? AND assignee = ?",
                    (instance_id, now_ms, scope, old),
                ),
                ("UPDATE tasks SET requester = ? WHERE scope = ? AND requester = ?", (instance_id, scope, old)),
                ("UPDATE swarm_sessions SET instance_id = ? WHERE instance_id = ?", (instance_id, old)),
                (
                    "UPDATE instances SET label = coalesce(label, ?), heartbeat = ?, pid = ?, adopted = 0,"
                    " lease_until = ? WHERE id = ?",
                    (row.label, self._db.now(), row.pid, row.lease_until, instance_id),
                ),
            ):
                self._db.change(sql, values)
            adopted = self.get(instance_id) or Session()
            events.registered(self._db, adopted, adopted=True)
            self._signals.session_gone(row, "deregistered")
            self._settle_plan(adopted, reserved)
        return adopted

    def remove(self, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
        with self._db.writing():
            row = self.get(instance_id)
            if row and self._db.row(
                "SELECT 1 FROM swarm_sessions WHERE instance_id = ? AND runtime = ?", (instance_id, TEAM)
            ):
                raise Refused(f"session {instance_id} is one of another machine, and is removed there")
            if row:
                self._signals.session_gone(row, reason)
                if by:
                    self._signals.session_removed(row, by)
        return row is not None

    def held_beside(self, instance: Session, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        if has_claims():  # else a session that starts need not load what finds locks
            self._finder().adopt()
        return super().held_beside(instance, limit, viewer_identity)

    def rename_session(self, instance_id: str, name: str, new_name: str) -> bool:
        with self._db.writing():
            return bool(
                self._db.change(
                    "UPDATE swarm_sessions SET session_id = ? WHERE instance_id = ? AND runtime = ? AND session_id = ?",
                    (new_name, instance_id, SERVER_RUNTIME, name),
                )
            )

    def end_session(self, row: Session, client: tuple[int, str] = (0, "")) -> bool:
        with self._db.writing():
            session = self._db.row(
                "SELECT host, client_pid, client_start, other_clients FROM swarm_sessions WHERE instance_id = ?",
                (row.id,),
            )
            clients = clients_of(session) if session else []
            # Hooks end every session here; few are of runs, and need the module that knows what those are.
            of_run = self._db.row("SELECT 1 FROM swarm_runs WHERE instance_id = ? AND state <> 'ended'", (row.id,))
            if session and client[0] and (client in clients or not of_run):
                left = living(session.host, [other for other in clients if other != client], self._db.here)
                if left:
                    self._leave_to(row.id, left)
                    return False
            if not of_run:
                found = self.get(row.id)
                if found:
                    self._signals.session_gone(found, "deregistered")
                return True
        with self._db.writing():
            self._signals.turn_ended(row, time.time_ns())
        return not self._runs().take_back(row.id) and self.remove(row.id)

    def _leave_to(self, instance_id: str, clients: list) -> None:
        """These are the clients of a session from now on."""
        (pid, started), *others = clients
        # The terminal was that of the client which spoke last.
        self._db.change(
            "UPDATE swarm_sessions SET other_clients = ?, terminal_pid = CASE WHEN client_pid = ? AND client_start = ?"
            " THEN terminal_pid ELSE 0 END, client_pid = ?, client_start = ? WHERE instance_id = ?",
            (_listed(others), pid, started, pid, started, instance_id),
        )
        self._db.change("UPDATE instances SET pid = ? WHERE id = ?", (pid, instance_id))

    # -------------------------------------------------------------- innards

    def _respect_fence(self, request: Registration) -> None:
        roots = allowed_roots(token(request.label or "", "identity"))
        for path in (request.directory, request.file_root):
            if roots and not inside_any(path, roots):
                raise SwarmError(f"{path} is outside the folders this identity is confined to: {', '.join(roots)}")

    def _register_session(self, request: Registration) -> Session:
        known = self._db.row(
            "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
            " WHERE runtime = ? AND session_id = ?",
            (request.runtime, request.session_id),
        )
        run = self._run_of(request)
        if run and not (known and known.instance_id == run.instance_id):
            known = self._adopt_run(request, run)
        known = known or self._joined_by_server(request)
        if known and known.client_pid and known.host == self._db.here and not request.client[0]:
            # A hook whose client was killed under it finds no client; the session is still that client's, and over.
            request.client = (known.client_pid, known.client_start)
        if run:
            # The supervisor answers for the instance, whatever becomes of its child.
            request.client = (run.supervisor_pid, run.supervisor_start)
            given = self.get(run.instance_id) or Session()
            request.label = bounded(merged(given.label or "", request.label or ""))
        now = self._db.now()
        lease_until = now + request.lease_seconds if request.lease_seconds else None
        row = self.get(known.instance_id) if known else self._reserved(request)
        if row and not known:
            self._db.change(
                "UPDATE instances SET label = coalesce(?, label), heartbeat = ?, pid = ?, adopted = 0,"
                " lease_until = ? WHERE id = ?",
                (request.label, now, request.client[0] or os.getpid(), lease_until, row.id),
            )
            instance_id = row.id
            events.registered(self._db, self.get(instance_id) or Session(), adopted=True)
        elif row:
            if row.scope != request.scope:
                self._move(row, request, known)
            # adopted stays 0 with a lease: implementations that know only heartbeats would reclaim
            # a quiet session after a minute otherwise.
            self._db.change(
                "UPDATE instances SET label = ?, directory = ?, root = ?, file_root = ?, scope = ?, heartbeat = ?,"
                " lease_until = ?, adopted = 0, pid = ? WHERE id = ?",
                (
                    request.label, request.directory, git_root(request.directory), request.file_root, request.scope,
                    now, lease_until, request.client[0] or row.pid, row.id,
                ),
            )  # fmt: skip
            instance_id = row.id
        else:
            instance_id = known.instance_id if known else self._free_id(request)
            self._insert(request, instance_id, now, adopted=0, lease_until=lease_until)
        self._signals.session_alive(instance_id)
        pid, started = request.client
        self._db.change(
            "INSERT INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid, client_start, state,"
            " last_seen, lease_seconds, terminal_pid, terminal_start, other_clients)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (runtime, session_id) DO UPDATE SET host = excluded.host, client_pid = excluded.client_pid,"
            " client_start = excluded.client_start, state = excluded.state, last_seen = excluded.last_seen,"
            " lease_seconds = excluded.lease_seconds, terminal_pid = excluded.terminal_pid,"
            " terminal_start = excluded.terminal_start, other_clients = excluded.other_clients",
            (
                request.runtime, request.session_id, instance_id, self._db.here, pid, started, request.state,
                now, request.lease_seconds, *request.terminal, _listed(self._others(known, request.client)),
            ),
        )  # fmt: skip
        renewed = self.get(instance_id) or Session()
        self._settle_plan(renewed, row)
        return renewed

    def _joined_by_server(self, request: Registration) -> Record | None:
        """Return the registration of the MCP server of the same client, made before any hook ran: now the session's."""
        pid, started = request.client
        if not pid or request.runtime == SERVER_RUNTIME:
            return None
        rows = self._db.rows(
            "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
            " WHERE runtime = ? AND client_pid = ? AND client_start = ? AND host = ?",
            (SERVER_RUNTIME, pid, started, self._db.here),
        )
        if len(rows) != 1:
            return None
        self._db.change(
            "UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?",
            (request.runtime, request.session_id, rows[0].instance_id),
        )
        return rows[0]

    def _run_of(self, request: Registration) -> Run | None:
        """Return the run whose child this session is; None for others. Costs nothing where none is named."""
        if not request.preassigned_id or request.runtime in (SERVER_RUNTIME, RUN_RUNTIME):
            return None
        return self._runs().admit(request.preassigned_id, request.client)

    def _adopt_run(self, request: Registration, run: Run) -> Record | None:
        """Return the run's registration, from now on in the name of the session that its child has reported."""
        values = (request.runtime, request.session_id, run.instance_id)
        self._db.change("DELETE FROM swarm_sessions WHERE runtime = ? AND session_id = ?", values[:2])
        if not self._db.change("UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?", values):
            return None
        client = {"client_pid": run.supervisor_pid, "client_start": run.supervisor_start, "other_clients": None}
        return Record(instance_id=run.instance_id, host=run.host, **client)

    def _others(self, known: Record | None, client: tuple[int, str]) -> list:
        """Return the clients beside `client` that have a session open which is `known` already.

        Of clients that cannot be looked at from here, the one that spoke last is the session's.
        """
        if not known or known.host != self._db.here:
            return []
        others = [other for other in clients_of(known) if other != client and other[1]]
        return living(known.host, others, self._db.here)

    def _move(self, row: Session, request: Registration, known: Record | None) -> None:
        """Session `row` works in another scope from now on. Its unread mail comes along.

        A client that lives has only changed its folder, and goes on with what it holds. Where the session was
        started anew elsewhere and no other client has it open, it has left: what it held in the old scope is free.
        """
        self._db.change(
            "UPDATE messages SET scope = ? WHERE scope = ? AND recipient = ? AND read = 0",
            (request.scope, row.scope, row.id),
        )
        same = known is not None and known.host == self._db.here and request.client in clients_of(known)
        if same or self._others(known, request.client):
            return
        self._signals.session_moved(row)

    def _reserved(self, request: Registration) -> Session | None:
        """Return the row that is waiting for this session, if it is nobody's yet."""
        row = self._adoptable(request) if request.preassigned_id or request.adopt_id else None
        return None if row and self.is_session(row.id) else row

    def _free_id(self, request: Registration) -> str:
        """Return the id reserved for this session, or a new one where that is taken."""
        wanted = request.preassigned_id or request.adopt_id
        taken = wanted and (self.get(wanted) or self.is_session(wanted))
        return new_id() if taken or not wanted else wanted

    def _register_instance(self, request: Registration) -> Session:
        now = self._db.now()
        lease_until = now + request.lease_seconds if request.lease_seconds > 0 else None
        before = self._adoptable(request)
        if before and self.is_session(before.id):
            # Of hooks, and named by its own id: a sign of life, and its lease stays what they made it.
            label = request.label or before.label
            self._db.change("UPDATE instances SET label = ? WHERE id = ?", (label, before.id))
            self.require(before.id)
        elif before:
            self._db.change(
                "UPDATE instances SET label = coalesce(?, label), heartbeat = ?, pid = ?, adopted = ?,"
                " lease_until = ? WHERE id = ?",
                (request.label, now, os.getpid(), 0 if lease_until else 1, lease_until, before.id),
            )
        instance_id = before.id if before else self._free_id(request)
        if before is None:
            self._insert(request, instance_id, now, adopted=0 if lease_until else 1, lease_until=lease_until)
        row = self.get(instance_id) or Session()
        if before:
            events.registered(self._db, row, adopted=True)
        self._settle_plan(row, before)
        return row

    def _adoptable(self, request: Registration) -> Session | None:
        if request.preassigned_id:
            return self.get(request.preassigned_id)
        if request.adopt_id:
            row = self.get(request.adopt_id)
            same = row and (row.scope, row.directory) == (request.scope, request.directory)
            return row if same else None
        if token(request.label or "", "session"):
            # The contract's rule for callers without a session id: the same whole label is the same session.
            return self._db.row(
                "SELECT i.* FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
                " WHERE i.scope = ? AND i.directory = ? AND i.label = ? AND s.instance_id IS NULL",
                (request.scope, request.directory, request.label),
                Session,
            )
        return None

    def _settle_plan(self, row: Session, before: Session | None) -> None:
        # Most sessions never plan, and need not load what planning is.
        if "role:planner" in f"{row.label} {before.label if before else ''}":
            self._signals.session_settled(row, before)

    def _insert(self, request: Registration, instance_id: str, now: int, adopted: int, lease_until: int | None) -> None:
        pid = request.client[0] or os.getpid()
        self._db.change(
            "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, registered_at, heartbeat,"
            " adopted, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                instance_id, request.scope, request.directory, git_root(request.directory), request.file_root, pid,
                request.label, now, now, adopted, lease_until,
            ),
        )  # fmt: skip
        events.registered(self._db, self.get(instance_id) or Session(), adopted=False, by=request.by)


def _listed(clients: list) -> str | None:
    """Return clients as ``swarm_sessions`` has those that did not speak last; None for none."""
    return " ".join(f"{pid}:{started}" for pid, started in clients) or None

"""Sessions: registered, adopted, moved, removed and ended."""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.paths import git_root
from swarm_hook_core.process import SERVER_RUNTIME, living
from swarm_hook_core.untrusted_text import bounded, merged, token
from swarm_mcp.domain import RUN_RUNTIME, Record, Session, new_id
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import allowed_roots, clean, inside_any, scope_of
from swarm_mcp.store import reactions, session_table
from swarm_mcp.store.database import Database, Transaction
from swarm_mcp.store.session_table import clients_text

_UNKEYED = "SELECT 1 FROM context WHERE type = 'lock' AND path_key IS NULL LIMIT 1"


class Registration:
    """The facts that a session registers with. Empty values count as not given.

    `client` is ``(pid, start time)`` of the process whose end ends the session; `terminal` the same of the terminal in
    front of it, if the client outlives terminals; `pane` as ``user_interface.pane_in`` gives it; `turn_over` the moment
    (ns) at which a turn ended or the next one begins, 0 for another reason to register; `by` the agent whose shell
    registers it for another session (``acting.mark_of_shell``).
    """

    __slots__ = (
        "directory", "label", "scope", "file_root", "lease_seconds", "adopt_id", "preassigned_id",
        "runtime", "session_id", "state", "client", "terminal", "pane", "turn_over", "by",
    )  # fmt: skip

    def __init__(self, directory: str, **given: Any):
        self.directory = clean(directory)
        self.label = bounded(" ".join((given.get("label") or "").split())) or None
        self.scope = scope_of(self.directory, given.get("scope") or "")
        if given.get("file_root"):
            self.file_root = clean(given["file_root"])
        else:
            self.file_root = self.directory
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


def register(db: Database, request: Registration, cleans: bool = True) -> Session:
    """Add, adopt or renew an instance; its row.

    A session of a runtime has one instance for life, found by its whole id. Unless it `cleans`, the caller sees to
    ``cleanup.some``.
    """
    roots = allowed_roots(token(request.label or "", "identity"))
    for path in (request.directory, request.file_root):
        if roots and not inside_any(path, roots):
            raise SwarmError(f"{path} is outside the folders this identity is confined to: {', '.join(roots)}")
    foreign: list[tuple[str, str | None, str]] = []
    if db.row(_UNKEYED):
        from swarm_mcp.store import lock_rows

        foreign = lock_rows.foreign_keys(db)  # asks the disk, and so comes before the transaction
    with db.writing() as tx:
        # A session that is here to register has not gone, however long it was silent.
        if request.session_id:
            known = session_table.of_session(tx, request.runtime, request.session_id)
        else:
            known = None
        reactions.reclaim(tx, known.id if known else "")
        if foreign:
            lock_rows.give_keys(tx, foreign)
        if request.session_id:
            row = _register_session(tx, request)
        else:
            row = _register_instance(tx, request)
        if request.turn_over:
            reactions.turn_ended(tx, row, request.turn_over)
        if request.pane:
            from swarm_mcp.store import user_interface

            user_interface.publish(tx, row, request.pane)
    if cleans and (reactions.is_cleanup_due(db) or db.has(reactions.ANY_LEASED)):
        from swarm_mcp.store import cleanup

        cleanup.some(db)  # a session that never runs a server has nothing else that cleans
    return row


def register_before_cleanup(db: Database, request: Registration) -> tuple[Session, bool]:
    """Do as `register`, and leave a cleanup that is due to the caller: the second value is True then.

    A store that never was cleaned, such as a new one, is cleaned at once. Leases that have lapsed end at once, too: the
    session is told of its own now.
    """
    if not db.has("swarm_upkeep WHERE what = 'pass'"):
        return register(db, request), False
    row = register(db, request, cleans=False)
    if db.has(reactions.ANY_LEASED):
        from swarm_mcp.store import locks

        locks.let_lapse(db)
    return row, reactions.is_cleanup_due(db)


def adopt(db: Database, row: Session, instance_id: str) -> Session | None:
    """Make the session of instance `row` instance `instance_id` instead; return its row.

    All that it held moves along. None if that instance is not free: it works in another scope or folder, or belongs to
    another session.
    """
    with db.writing() as tx:
        reserved = session_table.get(tx, instance_id)
        place = (row.scope, row.directory)
        if not reserved or (reserved.scope, reserved.directory) != place or session_table.is_session(tx, instance_id):
            return None
        now_ms, old, scope = tx.now_ms(), row.id, row.scope
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
                (row.label, tx.now(), row.pid, row.lease_until, instance_id),
            ),
        ):
            tx.change(sql, values)
        adopted = session_table.get(tx, instance_id) or Session()
        _note_registered(tx, adopted, adopted=True)
        reactions.session_gone(tx, row, "deregistered")
        reactions.session_settled(tx, adopted, reserved)
    return adopted


def rename_session(tx: Transaction, instance_id: str, name: str, new_name: str) -> bool:
    """Give an MCP server's session `name` to the server that calls itself `new_name`; return False without one."""
    return bool(
        tx.change(
            "UPDATE swarm_sessions SET session_id = ? WHERE instance_id = ? AND runtime = ? AND session_id = ?",
            (new_name, instance_id, SERVER_RUNTIME, name),
        )
    )


def _register_session(tx: Transaction, request: Registration) -> Session:
    """Register the session of a runtime, or renew it; its row."""
    known = _registration_of(tx, request)
    now = tx.now()
    lease_until = _lease_until(request, now)
    if known:
        row = session_table.get(tx, known.instance_id)
    else:
        row = _reserved(tx, request)
    if row is None:
        instance_id = known.instance_id if known else _free_id(tx, request)
        _insert(tx, request, instance_id, now, adopted=0, lease_until=lease_until)
    else:
        instance_id = row.id
        if known:
            _renew(tx, request, row, known, now, lease_until)
        else:
            _take_over(tx, request, row.id, now, adopted=0, lease_until=lease_until)
            _note_registered(tx, session_table.get(tx, row.id) or Session(), adopted=True)
    reactions.session_alive(tx, instance_id)
    pid, started = request.client
    tx.change(
        "INSERT INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid, client_start, state,"
        " last_seen, lease_seconds, terminal_pid, terminal_start, other_clients)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (runtime, session_id) DO UPDATE SET host = excluded.host, client_pid = excluded.client_pid,"
        " client_start = excluded.client_start, state = excluded.state, last_seen = excluded.last_seen,"
        " lease_seconds = excluded.lease_seconds, terminal_pid = excluded.terminal_pid,"
        " terminal_start = excluded.terminal_start, other_clients = excluded.other_clients",
        (
            request.runtime, request.session_id, instance_id, tx.here, pid, started, request.state,
            now, request.lease_seconds, *request.terminal, clients_text(_others(tx, known, request.client)),
        ),
    )  # fmt: skip
    renewed = session_table.get(tx, instance_id) or Session()
    reactions.session_settled(tx, renewed, row)
    return renewed


def _registration_of(tx: Transaction, request: Registration) -> Record | None:
    """Return the row that this session has in ``swarm_sessions``; None for a new one.

    It may be that of a run whose child it is, or of its client's MCP server: that is the session's from now on. In
    `request`, the client and label become those that the row asks for.
    """
    known = tx.row(
        "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
        " WHERE runtime = ? AND session_id = ?",
        (request.runtime, request.session_id),
    )
    # The run whose child this session is, or None. Costs nothing unless the request names an instance.
    if not request.preassigned_id or request.runtime in (SERVER_RUNTIME, RUN_RUNTIME):
        run = None
    else:
        from swarm_mcp.store import runs

        run = runs.admit(tx, request.preassigned_id, request.client)
    if run and not (known and known.instance_id == run.instance_id):
        # The run's registration, from now on in the name of the session that its child has reported
        values = (request.runtime, request.session_id, run.instance_id)
        tx.change("DELETE FROM swarm_sessions WHERE runtime = ? AND session_id = ?", values[:2])
        if not tx.change("UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?", values):
            known = None
        else:
            client = {"client_pid": run.supervisor_pid, "client_start": run.supervisor_start, "other_clients": None}
            known = Record(instance_id=run.instance_id, host=run.host, **client)
    known = known or _joined_by_server(tx, request)
    if known and known.client_pid and known.host == tx.here and not request.client[0]:
        # A hook whose client was killed under it finds no client; the session is still that client's, and over.
        request.client = (known.client_pid, known.client_start)
    if run:
        # The supervisor answers for the instance, however its child ends.
        request.client = (run.supervisor_pid, run.supervisor_start)
        given = session_table.get(tx, run.instance_id) or Session()
        request.label = bounded(merged(given.label or "", request.label or ""))
    return known


def _joined_by_server(tx: Transaction, request: Registration) -> Record | None:
    """Return the registration of the MCP server of the same client, made before any hook ran: now the session's."""
    pid, started = request.client
    if not pid or request.runtime == SERVER_RUNTIME:
        return None
    rows = tx.rows(
        "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
        " WHERE runtime = ? AND client_pid = ? AND client_start = ? AND host = ?",
        (SERVER_RUNTIME, pid, started, tx.here),
    )
    if len(rows) != 1:
        return None
    tx.change(
        "UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?",
        (request.runtime, request.session_id, rows[0].instance_id),
    )
    return rows[0]


def _others(tx: Transaction, known: Record | None, client: tuple[int, str]) -> list[Any]:
    """Return the clients beside `client` that have a `known` session open.

    Of clients that cannot be looked at from here, the one that spoke last is the session's.
    """
    if not known or known.host != tx.here:
        return []
    others = [other for other in session_table.clients_of(known) if other != client and other[1]]
    return living(known.host, others, tx.here)


def _renew(
    tx: Transaction, request: Registration, row: Session, known: Record, now: int, lease_until: int | None
) -> None:
    """Bring the row of a session that is registered up to date; `known` is its row in ``swarm_sessions``."""
    if row.scope != request.scope:
        _move(tx, row, request, known)
    # adopted stays 0 with a lease: implementations that know only heartbeats would reclaim
    # a quiet session after a minute otherwise.
    tx.change(
        "UPDATE instances SET label = ?, directory = ?, root = ?, file_root = ?, scope = ?, heartbeat = ?,"
        " lease_until = ?, adopted = 0, pid = ? WHERE id = ?",
        (
            request.label, request.directory, git_root(request.directory), request.file_root, request.scope,
            now, lease_until, request.client[0] or row.pid, row.id,
        ),
    )  # fmt: skip


def _take_over(
    tx: Transaction, request: Registration, instance_id: str, now: int, adopted: int, lease_until: int | None
) -> None:
    """Give an instance that waited for this session to it."""
    tx.change(
        "UPDATE instances SET label = coalesce(?, label), heartbeat = ?, pid = ?, adopted = ?, lease_until = ?"
        " WHERE id = ?",
        (request.label, now, request.client[0] or os.getpid(), adopted, lease_until, instance_id),
    )


def _move(tx: Transaction, row: Session, request: Registration, known: Record) -> None:
    """Session `row` works in another scope from now on. Its unread mail comes along.

    A client that lives has only changed its folder, and keeps its locks. If the session was started anew elsewhere and
    no other client has it open, it has left: its locks in the old scope are free.
    """
    tx.change(
        "UPDATE messages SET scope = ? WHERE scope = ? AND recipient = ? AND read = 0",
        (request.scope, row.scope, row.id),
    )
    same = known.host == tx.here and request.client in session_table.clients_of(known)
    if same or _others(tx, known, request.client):
        return
    reactions.session_moved(tx, row)


def _reserved(tx: Transaction, request: Registration) -> Session | None:
    """Return the row that waits for this session, if no session has it yet."""
    if request.preassigned_id or request.adopt_id:
        row = _adoptable(tx, request)
    else:
        row = None
    if row and session_table.is_session(tx, row.id):
        return None
    return row


def _free_id(tx: Transaction, request: Registration) -> str:
    """Return the id reserved for this session, or a new one where that is taken."""
    wanted = request.preassigned_id or request.adopt_id
    taken = wanted and (session_table.get(tx, wanted) or session_table.is_session(tx, wanted))
    if taken or not wanted:
        return new_id()
    return wanted


def _register_instance(tx: Transaction, request: Registration) -> Session:
    """Register a caller that names no session of a runtime, or take over the instance that it means; its row."""
    now = tx.now()
    lease_until = _lease_until(request, now)
    adopted = int(lease_until is None)
    before = _adoptable(tx, request)
    if before is None:
        instance_id = _free_id(tx, request)
        _insert(tx, request, instance_id, now, adopted, lease_until)
    else:
        instance_id = before.id
        if session_table.is_session(tx, before.id):
            # Registered by hooks, and named by its own id: a sign of life; its lease stays as they made it.
            label = request.label or before.label
            tx.change("UPDATE instances SET label = ? WHERE id = ?", (label, before.id))
            reactions.require(tx, before.id)
        else:
            _take_over(tx, request, before.id, now, adopted, lease_until)
    row = session_table.get(tx, instance_id) or Session()
    if before:
        _note_registered(tx, row, adopted=True)
    reactions.session_settled(tx, row, before)
    return row


def _lease_until(request: Registration, now: int) -> int | None:
    """Return the end of the lease that starts now; None without one."""
    if request.lease_seconds > 0:
        return now + int(request.lease_seconds)
    return None


def _adoptable(tx: Transaction, request: Registration) -> Session | None:
    if request.preassigned_id:
        return session_table.get(tx, request.preassigned_id)
    if request.adopt_id:
        row = session_table.get(tx, request.adopt_id)
        same = row and (row.scope, row.directory) == (request.scope, request.directory)
        if same:
            return row
        return None
    if token(request.label or "", "session"):
        # The contract's rule for callers without a session id: the same whole label is the same session.
        return tx.row(
            "SELECT i.* FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
            " WHERE i.scope = ? AND i.directory = ? AND i.label = ? AND s.instance_id IS NULL",
            (request.scope, request.directory, request.label),
            Session,
        )
    return None


def _insert(
    tx: Transaction, request: Registration, instance_id: str, now: int, adopted: int, lease_until: int | None
) -> None:
    pid = request.client[0] or os.getpid()
    tx.change(
        "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, registered_at, heartbeat,"
        " adopted, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            instance_id, request.scope, request.directory, git_root(request.directory), request.file_root, pid,
            request.label, now, now, adopted, lease_until,
        ),
    )  # fmt: skip
    _note_registered(tx, session_table.get(tx, instance_id) or Session(), adopted=False, by=request.by)


def _note_registered(tx: Transaction, row: Session, adopted: bool, by: str = "") -> None:
    """Add the event of a session that joined, or took an instance over (`adopted`). `by` as in `Registration`."""
    payload = {"label": row.label, "adopted": adopted, "pid": row.pid, "directory": row.directory}
    payload.update(root=row.root, file_root=row.file_root)
    if row.lease_until is not None:
        payload["lease_until"] = row.lease_until
    if by:
        payload["by"] = by
    tx.add_event(row.scope, "instance.registered", row.id, row.id, payload)


# Sessions removed and ended.


def remove(db: Database, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
    """Remove an instance with all that it holds; return True if it was there. `by` is named to its peers as the
    remover.
    """
    with db.writing() as tx:
        row = session_table.get(tx, instance_id)
        if row and session_table.is_remote(tx, instance_id):
            raise Refused(f"session {instance_id} is one of another machine, and is removed there")
        if row:
            reactions.session_gone(tx, row, reason)
            if by:
                from swarm_mcp.store import messages

                messages.announce_removal(tx, row, by)
    return row is not None


def end_session(db: Database, row: Session, client: tuple[int, str] = (0, "")) -> bool:
    """Note that the session of instance `row` has ended in `client`, or everywhere; return True if it has gone.

    It stays if another client has the session open, and if it is a run's.
    """
    with db.writing() as tx:
        session = tx.row(
            "SELECT host, client_pid, client_start, other_clients FROM swarm_sessions WHERE instance_id = ?",
            (row.id,),
        )
        if session:
            clients = session_table.clients_of(session)
        else:
            clients = []
        # Hooks end every session here; few are of runs, and need the module of runs.
        of_run = tx.has("swarm_runs WHERE instance_id = ? AND state <> 'ended'", row.id)
        if session and client[0] and (client in clients or not of_run):
            left = living(session.host, [other for other in clients if other != client], tx.here)
            if left:
                _leave_to(tx, row.id, left)
                return False
        if not of_run:
            found = session_table.get(tx, row.id)
            if found:
                reactions.session_gone(tx, found, "deregistered")
            return True
    with db.writing() as tx:
        reactions.turn_ended(tx, row, time.time_ns())
    from swarm_mcp.store import runs

    return not runs.take_back(db, row.id) and remove(db, row.id)


def _leave_to(tx: Transaction, instance_id: str, clients: list[Any]) -> None:
    """These are the clients of a session from now on."""
    (pid, started), *others = clients
    # The terminal belonged to the client that spoke last.
    tx.change(
        "UPDATE swarm_sessions SET other_clients = ?, terminal_pid = CASE WHEN client_pid = ? AND client_start = ?"
        " THEN terminal_pid ELSE 0 END, client_pid = ?, client_start = ? WHERE instance_id = ?",
        (clients_text(others), pid, started, pid, started, instance_id),
    )
    tx.change("UPDATE instances SET pid = ? WHERE id = ?", (pid, instance_id))

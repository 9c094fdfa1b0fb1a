"""Sessions: who takes part, since when, and when they have gone."""

from __future__ import annotations

import os

from swarm_hook_core import untrusted_text
from swarm_hook_core.labels import bounded, merged, same_circle, token
from swarm_hook_core.liveness import SERVER_RUNTIME, clients_in, departed, living
from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.process import gone
from swarm_mcp.domain.session import DETACHED, RUN_RUNTIME, Session
from swarm_mcp.errors import SwarmError
from swarm_mcp.scope import allowed_roots, git_root, inside_any
from swarm_mcp.store import events, panes, removal
from swarm_mcp.store.registration import Registration, new_id

SUMMARY_LIMIT = 4


class Instances:
    """The embedded store's sessions."""

    def __init__(self, store):
        self.store = store

    # ------------------------------------------------------------------ ask

    def get(self, instance_id: str) -> Session | None:
        """One row of ``instances``."""
        return self.store.row("SELECT * FROM instances WHERE id = ?", (instance_id,), Session)

    def live(self, instance_id: str) -> Session | None:
        """One row, None where that session has gone."""
        found = self._live("WHERE i.id = ?", (instance_id,))
        return found[0] if found else None

    def in_scope(self, scope: str) -> list[Session]:
        """Live rows of a scope, in order of registration."""
        return self._live("WHERE i.scope = ?", (scope,))

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        """The row of a runtime's session, looked up by the whole id."""
        return self.store.row(
            "SELECT i.* FROM instances i JOIN swarm_sessions s ON s.instance_id = i.id"
            " WHERE s.runtime = ? AND s.session_id = ?",
            (runtime, session_id),
            Session,
        )

    def of_session_id(self, session_id: str) -> list[Session]:
        """Live rows of every runtime's session with this whole id."""
        return self._live("WHERE s.session_id = ?", (session_id,))

    def of_client(self, pid: int, started: str) -> list[Session]:
        """Live rows of the sessions that are open in one client process, with their ``session_id``."""
        if not pid:
            return []
        return self._live(
            "WHERE s.host = ? AND (s.client_pid = ? AND s.client_start = ?"
            " OR instr(' ' || s.other_clients || ' ', ?) > 0)",
            (self.store.here, pid, started, f" {pid}:{started} "),
        )

    def is_session(self, instance_id: str) -> bool:
        """Whether a runtime's session has this instance, and not just a row that waits for one."""
        return self.store.row("SELECT 1 FROM swarm_sessions WHERE instance_id = ?", (instance_id,)) is not None

    def terminal_of(self, runtime: str, session_id: str) -> tuple[int, str]:
        """Pid and start time of the terminal recorded for a session, if it still runs; else ``(0, "")``."""
        row = self.store.row(
            "SELECT host, terminal_pid, terminal_start FROM swarm_sessions WHERE runtime = ? AND session_id = ?",
            (runtime, session_id),
        )
        if not row or not row["terminal_pid"]:
            return 0, ""
        terminal = (row["terminal_pid"], row["terminal_start"])
        return (0, "") if gone(row["host"], *terminal, self.store.here) else terminal

    def gone(self) -> list[Session]:
        """Rows of sessions that have provably or by their lease gone, in all scopes."""
        return [row for row, has_gone in self._with_evidence("", ()) if has_gone]

    # --------------------------------------------------------------- change

    def require(self, instance_id: str) -> None:
        """Inside a transaction: renew a session that is about to change something.

        A lapsed lease is forgiven while nobody has taken the session's place. Raises SwarmError where
        the session has gone.
        """
        found = self._with_evidence("WHERE i.id = ?", (instance_id,))
        row, has_gone = found[0] if found else (Session(), True)
        if row and row["last_seen"] is not None:
            has_gone = bool(row["client_pid"]) and not living(row["host"], _clients(row), self.store.here)
        if has_gone:
            raise SwarmError(f"instance {instance_id} is no longer registered; register again")
        self.store.leases.renew(instance_id)
        now = self.store.now()
        if row["last_seen"] == now:
            return  # said already this second; a session that works fast would pay for it each time
        self.store.change("UPDATE swarm_sessions SET last_seen = ? WHERE instance_id = ?", (now, instance_id))
        if row["last_seen"] is not None and row["lease_seconds"]:
            lease_until = now + row["lease_seconds"]
            values = (now, lease_until, instance_id)
            self.store.change("UPDATE instances SET heartbeat = ?, lease_until = ? WHERE id = ?", values)

    def register(self, request: Registration) -> Session:
        """Add, adopt or renew an instance; its row.

        A session of a runtime has one instance for life, found by its whole id.
        """
        self._respect_fence(request)
        with self.store.writing():
            # A session that is here to register has not gone, however long it was silent.
            known = self.of_session(request.runtime, request.session_id) if request.session_id else None
            self.reclaim(known["id"] if known else "")
            self.store.locks.key_foreign_rows(2000)
            if request.session_id:
                row = self._register_session(request)
            else:
                row = self._register_instance(request)
            if request.pane:
                panes.publish(self.store, row, request.pane)
        self.store.upkeep.some()  # whoever never runs a server has nothing else that cleans
        return row

    def adopt(self, row: dict, instance_id: str) -> Session | None:
        """Make the session of instance `row` instance `instance_id` instead; its row.

        What it held until now moves along. None where that instance is not there to be taken: it works in
        another scope or folder, or belongs to another session.
        """
        with self.store.writing():
            reserved = self.get(instance_id)
            place = (row["scope"], row["directory"])
            if not reserved or (reserved["scope"], reserved["directory"]) != place or self.is_session(instance_id):
                return None
            now_ms, old, scope = self.store.now_ms(), row["id"], row["scope"]
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
                    (row["label"], self.store.now(), row["pid"], row["lease_until"], instance_id),
                ),
            ):
                self.store.change(sql, values)
            adopted = self.get(instance_id) or Session()
            events.registered(self.store, adopted, adopted=True)
            removal.remove(self.store, row, "deregistered")
            self._settle_plan(adopted, reserved)
        return adopted

    def remove(self, instance_id: str, reason: str = "deregistered", by: dict | None = None) -> bool:
        """Remove an instance and whatever it holds; whether it was there. `by`: who does it, to tell its peers."""
        with self.store.writing():
            row = self.get(instance_id)
            if row:
                removal.remove(self.store, row, reason)
                if by:
                    removal.announce(self.store, row, by)
        return row is not None

    def rename_session(self, instance_id: str, name: str, new_name: str) -> bool:
        """Give an MCP server's session, known as `name`, to the server that calls itself `new_name`; whether it was."""
        with self.store.writing():
            return bool(
                self.store.change(
                    "UPDATE swarm_sessions SET session_id = ? WHERE instance_id = ? AND runtime = ? AND session_id = ?",
                    (new_name, instance_id, SERVER_RUNTIME, name),
                )
            )

    def end_session(self, row: dict, client: tuple[int, str] = (0, "")) -> bool:
        """The session that works as instance `row` has ended in `client`, or everywhere; whether the instance has gone.

        It stays where another client has the session open, and where it is a run's.
        """
        with self.store.writing():
            session = self.store.row(
                "SELECT host, client_pid, client_start, other_clients FROM swarm_sessions WHERE instance_id = ?",
                (row["id"],),
            )
            clients = _clients(session) if session else []
            # Hooks end every session here; few are of runs, and need the module that knows what those are.
            of_run = self.store.row("SELECT 1 FROM swarm_runs WHERE instance_id = ? AND state <> 'ended'", (row["id"],))
            if session and client[0] and (client in clients or not of_run):
                left = living(session["host"], [other for other in clients if other != client], self.store.here)
                if left:
                    self._leave_to(row["id"], left)
                    return False
            if not of_run:
                found = self.get(row["id"])
                if found:
                    removal.remove(self.store, found, "deregistered")
                return True
        return not self.store.runs.take_back(row["id"]) and self.remove(row["id"])

    def _leave_to(self, instance_id: str, clients: list) -> None:
        """These are the clients of a session from now on."""
        (pid, started), *others = clients
        # The terminal was that of the client which spoke last.
        self.store.change(
            "UPDATE swarm_sessions SET other_clients = ?, terminal_pid = CASE WHEN client_pid = ? AND client_start = ?"
            " THEN terminal_pid ELSE 0 END, client_pid = ?, client_start = ? WHERE instance_id = ?",
            (_listed(others), pid, started, pid, started, instance_id),
        )
        self.store.change("UPDATE instances SET pid = ? WHERE id = ?", (pid, instance_id))

    def dismiss(self, ids) -> None:
        """Inside a transaction: remove those of these instances that are there for their locks alone, and have none."""
        for instance_id in ids:
            sql = (
                "SELECT 1 FROM swarm_sessions s WHERE s.instance_id = ? AND s.runtime = ?"
                " AND NOT EXISTS (SELECT 1 FROM context c WHERE c.type = 'lock' AND c.instance_id = s.instance_id)"
            )
            if self.store.row(sql, (instance_id, DETACHED)):
                removal.remove(self.store, self.get(instance_id), "deregistered")

    def reclaim(self, spare: str = "") -> list[Session]:
        """Inside a transaction: remove every session that has gone, bar instance `spare`; their rows."""
        rows = [row for row in self.gone() if row["id"] != spare]
        for row in rows:
            removal.remove(self.store, row, "reclaimed")
        return rows

    def summary(self, row: dict) -> dict:
        """Peers and locks of this session's scope in a few words, for its first message.

        ``{peer_count, peers: [text], lock_count, locks: [text]}``; sessions of another identity are
        counted only where they hold a lock, and then not named.
        """
        mine = token(row["label"] or "", "identity")
        peers = [peer for peer in self.in_scope(row["scope"]) if peer["id"] != row["id"]]
        named = [p for p in peers if same_circle(mine, token(p["label"] or "", "identity"))]
        count, locks = self.store.locks.glance(row, SUMMARY_LIMIT, mine)
        texts = []
        for lock in locks:
            owner = untrusted_text.label(lock["owner_label"]) if lock["owner_label"] else "another session"
            text = f"{untrusted_text.named(lock['file'])} by {owner}"
            texts.append(f"{text} ({untrusted_text.quoted(lock['content'], 80)})" if lock["content"].strip() else text)
        return {
            "peer_count": len(named),
            "peers": [untrusted_text.label(peer["label"] or peer["id"]) for peer in named[:SUMMARY_LIMIT]],
            "lock_count": count,
            "locks": texts,
        }

    # -------------------------------------------------------------- innards

    def _live(self, where: str, values: tuple) -> list[Session]:
        return [row for row, has_gone in self._with_evidence(where, values) if not has_gone]

    def _with_evidence(self, where: str, values: tuple) -> list[tuple[Session, bool]]:
        now, here = self.store.now(), self.store.here
        rows = self.store.rows(
            f"SELECT i.*, {EVIDENCE}, s.session_id FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
            f" {where} ORDER BY i.registered_at, i.rowid",
            values,
            Session,
        )
        return [(row, departed(row, now, here)) for row in rows]

    def _respect_fence(self, request: Registration) -> None:
        roots = allowed_roots(token(request.label or "", "identity"))
        for path in (request.directory, request.file_root):
            if roots and not inside_any(path, roots):
                raise SwarmError(f"{path} is outside the folders this identity is confined to: {', '.join(roots)}")

    def _register_session(self, request: Registration) -> dict:
        known = self.store.row(
            "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
            " WHERE runtime = ? AND session_id = ?",
            (request.runtime, request.session_id),
        )
        run = self._run_of(request)
        if run and not (known and known["instance_id"] == run["instance_id"]):
            known = self._adopt_run(request, run)
        known = known or self._joined_by_server(request)
        if known and known["client_pid"] and known["host"] == self.store.here and not request.client[0]:
            # A hook whose client was killed under it finds no client; the session is still that client's, and over.
            request.client = (known["client_pid"], known["client_start"])
        if run:
            # The supervisor answers for the instance, whatever becomes of its child.
            request.client = (run["supervisor_pid"], run["supervisor_start"])
            given = self.get(run["instance_id"]) or Session()
            request.label = bounded(merged(given.get("label") or "", request.label or ""))
        now = self.store.now()
        lease_until = now + request.lease_seconds if request.lease_seconds else None
        row = self.get(known["instance_id"]) if known else self._reserved(request)
        if row and not known:
            self.store.change(
                "UPDATE instances SET label = coalesce(?, label), heartbeat = ?, pid = ?, adopted = 0,"
                " lease_until = ? WHERE id = ?",
                (request.label, now, request.client[0] or os.getpid(), lease_until, row["id"]),
            )
            instance_id = row["id"]
            events.registered(self.store, self.get(instance_id) or Session(), adopted=True)
        elif row:
            if row["scope"] != request.scope:
                self._move(row, request, known)
            # adopted stays 0 with a lease: implementations that know only heartbeats would reclaim
            # a quiet session after a minute otherwise.
            self.store.change(
                "UPDATE instances SET label = ?, directory = ?, root = ?, file_root = ?, scope = ?, heartbeat = ?,"
                " lease_until = ?, adopted = 0, pid = ? WHERE id = ?",
                (
                    request.label, request.directory, git_root(request.directory), request.file_root, request.scope,
                    now, lease_until, request.client[0] or row["pid"], row["id"],
                ),
            )  # fmt: skip
            instance_id = row["id"]
        else:
            instance_id = known["instance_id"] if known else self._free_id(request)
            self._insert(request, instance_id, now, adopted=0, lease_until=lease_until)
        self.store.leases.renew(instance_id)
        pid, started = request.client
        self.store.change(
            "INSERT INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid, client_start, state,"
            " last_seen, lease_seconds, terminal_pid, terminal_start, other_clients)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (runtime, session_id) DO UPDATE SET host = excluded.host, client_pid = excluded.client_pid,"
            " client_start = excluded.client_start, state = excluded.state, last_seen = excluded.last_seen,"
            " lease_seconds = excluded.lease_seconds, terminal_pid = excluded.terminal_pid,"
            " terminal_start = excluded.terminal_start, other_clients = excluded.other_clients",
            (
                request.runtime, request.session_id, instance_id, self.store.here, pid, started, request.state,
                now, request.lease_seconds, *request.terminal, _listed(self._others(known, request.client)),
            ),
        )  # fmt: skip
        renewed = self.get(instance_id) or Session()
        self._settle_plan(renewed, row)
        return renewed

    def _joined_by_server(self, request: Registration) -> dict | None:
        """The registration of the MCP server of the same client, made before any hook ran: now the session's."""
        pid, started = request.client
        if not pid or request.runtime == SERVER_RUNTIME:
            return None
        rows = self.store.rows(
            "SELECT instance_id, host, client_pid, client_start, other_clients FROM swarm_sessions"
            " WHERE runtime = ? AND client_pid = ? AND client_start = ? AND host = ?",
            (SERVER_RUNTIME, pid, started, self.store.here),
        )
        if len(rows) != 1:
            return None
        self.store.change(
            "UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?",
            (request.runtime, request.session_id, rows[0]["instance_id"]),
        )
        return rows[0]

    def _run_of(self, request: Registration) -> dict | None:
        """The run whose child this session is; None for every other session. Costs nothing where none is named."""
        if not request.preassigned_id or request.runtime in (SERVER_RUNTIME, RUN_RUNTIME):
            return None
        return self.store.runs.admit(request.preassigned_id, request.client)

    def _adopt_run(self, request: Registration, run: dict) -> dict | None:
        """The run's registration, from now on in the name of the session that its child has reported."""
        values = (request.runtime, request.session_id, run["instance_id"])
        self.store.change("DELETE FROM swarm_sessions WHERE runtime = ? AND session_id = ?", values[:2])
        if not self.store.change("UPDATE swarm_sessions SET runtime = ?, session_id = ? WHERE instance_id = ?", values):
            return None
        client = {"client_pid": run["supervisor_pid"], "client_start": run["supervisor_start"], "other_clients": None}
        return {"instance_id": run["instance_id"], "host": run["host"], **client}

    def _others(self, known: dict | None, client: tuple[int, str]) -> list:
        """The clients beside `client` that have a session open which is `known` already.

        Of clients that cannot be looked at from here, the one that spoke last is the session's.
        """
        if not known or known["host"] != self.store.here:
            return []
        others = [other for other in _clients(known) if other != client and other[1]]
        return living(known["host"], others, self.store.here)

    def _move(self, row: dict, request: Registration, known: dict) -> None:
        """Session `row` works in another scope from now on. Its unread mail comes along.

        A client that lives has only changed its folder, and goes on with what it holds. Where the session was
        started anew elsewhere and no other client has it open, it has left: what it held in the old scope is free.
        """
        self.store.change(
            "UPDATE messages SET scope = ? WHERE scope = ? AND recipient = ? AND read = 0",
            (request.scope, row["scope"], row["id"]),
        )
        same = known["host"] == self.store.here and request.client in _clients(known)
        if same or self._others(known, request.client):
            return
        held = self.store.locks.of(row["id"])
        self.store.locks.drop([lock for lock in held if lock["scope"] == row["scope"]], "moved")
        from swarm_mcp.store import task_departures

        task_departures.vacate(self.store, row)

    def _reserved(self, request: Registration) -> Session | None:
        """The row that is waiting for this session, if it is nobody's yet."""
        row = self._adoptable(request) if request.preassigned_id or request.adopt_id else None
        return None if row and self.is_session(row["id"]) else row

    def _free_id(self, request: Registration) -> str:
        """The id reserved for this session, or a new one where that is taken."""
        wanted = request.preassigned_id or request.adopt_id
        taken = wanted and (self.get(wanted) or self.is_session(wanted))
        return new_id() if taken or not wanted else wanted

    def _register_instance(self, request: Registration) -> dict:
        now = self.store.now()
        lease_until = now + request.lease_seconds if request.lease_seconds > 0 else None
        before = self._adoptable(request)
        if before and self.is_session(before["id"]):
            # Of hooks, and named by its own id: a sign of life, and its lease stays what they made it.
            label = request.label or before["label"]
            self.store.change("UPDATE instances SET label = ? WHERE id = ?", (label, before["id"]))
            self.require(before["id"])
        elif before:
            self.store.change(
                "UPDATE instances SET label = coalesce(?, label), heartbeat = ?, pid = ?, adopted = ?,"
                " lease_until = ? WHERE id = ?",
                (request.label, now, os.getpid(), 0 if lease_until else 1, lease_until, before["id"]),
            )
        instance_id = before["id"] if before else self._free_id(request)
        if before is None:
            self._insert(request, instance_id, now, adopted=0 if lease_until else 1, lease_until=lease_until)
        row = self.get(instance_id) or Session()
        if before:
            events.registered(self.store, row, adopted=True)
        self._settle_plan(row, before)
        return row

    def _adoptable(self, request: Registration) -> Session | None:
        if request.preassigned_id:
            return self.get(request.preassigned_id)
        if request.adopt_id:
            row = self.get(request.adopt_id)
            same = row and (row["scope"], row["directory"]) == (request.scope, request.directory)
            return row if same else None
        if token(request.label or "", "session"):
            # The contract's rule for callers without a session id: the same whole label is the same session.
            return self.store.row(
                "SELECT i.* FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id"
                " WHERE i.scope = ? AND i.directory = ? AND i.label = ? AND s.instance_id IS NULL",
                (request.scope, request.directory, request.label),
                Session,
            )
        return None

    def _settle_plan(self, row: dict, before: dict | None) -> None:
        # Most sessions never plan, and need not load what planning is.
        if "role:planner" in f"{row['label']} {before['label'] if before else ''}":
            self.store.planner.settle(row, before)

    def _insert(self, request: Registration, instance_id: str, now: int, adopted: int, lease_until: int | None) -> None:
        pid = request.client[0] or os.getpid()
        self.store.change(
            "INSERT INTO instances (id, scope, directory, root, file_root, pid, label, registered_at, heartbeat,"
            " adopted, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                instance_id, request.scope, request.directory, git_root(request.directory), request.file_root, pid,
                request.label, now, now, adopted, lease_until,
            ),
        )  # fmt: skip
        events.registered(self.store, self.get(instance_id) or Session(), adopted=False)


def _clients(session: dict) -> list:
    """Pid and start time of each client that a row of ``swarm_sessions`` names, the last that spoke first."""
    own = (session["client_pid"], session["client_start"])
    return [*([own] if own[0] else []), *clients_in(session["other_clients"])]


def _listed(clients: list) -> str | None:
    """Clients as ``swarm_sessions`` has those that did not speak last; None for none."""
    return " ".join(f"{pid}:{started}" for pid, started in clients) or None

"""The session that a tool call comes from.

Codex names its thread in every call. Claude Code does not, and its environment keeps the name of the first session of
the process. But hooks and server are children of one client process, and hooks record that process with each session.
Without hooks, each connection is a session of its own; the client's next server continues it once this one has ended.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.environment import DEFAULT_LEASE_SECONDS
from swarm_hook_core.lookup import HOLD
from swarm_hook_core.process import SERVER_RUNTIME, client_process, gone, start_time
from swarm_hook_core.untrusted_text import token
from swarm_mcp.domain import Session, new_id
from swarm_mcp.folders import clean, here, scope_of
from swarm_mcp.runtimes import of_call
from swarm_mcp.sessions.acting import agents_around
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

NAMES = ("sessionId", "threadId")  # keys for a session's name in the metadata of Codex's calls
SESSION_ARGUMENT = "_session"


def of_run(store: Store, instance_id: str, client: tuple[int, str]) -> Session | None:
    """Return the instance `instance_id` if it belongs to a running run and `client` is the run's child, else `None`."""
    run = store.runs.admit(instance_id, client)
    if run:
        return store.instances.live(run.instance_id)
    return None


def connection_name() -> str:
    """Return a name for this connection's session. It contains the server's process, so that others notice its end."""
    return f"server-{os.getpid()}-{start_time(os.getpid())}-{new_id()}"


def server_of(row: Session) -> tuple[int, str]:
    """Return pid and start time of the server that registered `row`, or ``(0, "")`` if its name lacks them."""
    parts = (row.session_id or "").split("-")
    if parts[0] == "server" and len(parts) > 2 and parts[1].isdigit():
        return (int(parts[1]), parts[2])
    return (0, "")


def server_has_gone(row: Session, here: str) -> bool:
    """Return True if the server that registered `row` has provably ended."""
    return gone(row.host or "", *server_of(row), here)


def register_preassigned(store: Store, client: tuple[int, str], session_id: str = "") -> Session | None:
    """Take the reserved instance for this server, or register it. Return `None` if it is taken, or not reserved.

    A waiting row with that id is adopted, and keeps its scope and folder. A row of another live client or connection is
    taken: two sessions never share an instance. `client` is ``(pid, start time)`` of this server's client, `session_id`
    the connection's name.
    """
    wanted = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
    if not wanted:
        return None
    name = session_id or connection_name()
    if not client[0]:
        client = (os.getpid(), start_time(os.getpid()))
    if store.instances.live(wanted):
        row = of_run(store, wanted, client)
        if row:
            return row
        known = next((row for row in store.instances.of_client(*client) if row.id == wanted), None)
        if known and known.runtime != SERVER_RUNTIME:
            return known  # its hooks were here first
        if known and (server_has_gone(known, store.here) or not server_of(known)[0]):
            taken = store.instances.rename_session(wanted, known.session_id or "", name)
            if taken:
                return store.instances.live(wanted)
            return None
        if store.instances.is_session(wanted):
            return None
    row = store.instances.register(
        Registration(
            os.environ.get("SWARM_MCP_DIRECTORY", "").strip() or here(),
            label=os.environ.get("SWARM_MCP_LABEL", ""),
            scope=os.environ.get("SWARM_MCP_SCOPE", ""),
            file_root=os.environ.get("SWARM_MCP_FILE_ROOT", ""),
            preassigned_id=wanted,
            runtime=SERVER_RUNTIME,
            session_id=name,
            client=client,
            lease_seconds=DEFAULT_LEASE_SECONDS,
        )
    )
    if row.id == wanted:
        return row
    store.instances.remove(row.id)  # another process took it between the look and now
    return None


class CallingSession:
    """The session behind one connection, looked up anew for each call: clients change it under us."""

    def __init__(self) -> None:
        self.client = client_process()
        self._began = int(time.time())
        self._own_id = connection_name()
        self._callers: set[str] = set()  # instances that calls have come from

    def instance(self, store: Store, meta: dict[str, Any]) -> Session | None:
        """Return the registered instance of this call, or `None`."""
        # Codex's daemon is one process for many sessions: one it names is never guessed at.
        named = _names_session(meta)
        if named:
            known = self._named(store, meta)
        else:
            rows = self._sessions_of_client(store)
            if len(rows) == 1:
                known = rows[0]
            else:
                hint = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
                known = next((row for row in rows if row.session_id == hint), None)
        found = known or self._of_run(store) or self._own(store)
        found = found or (None if named else self._go_on(store)) or self._waiting(store)
        if found:
            self._callers.add(found.id)
        return found

    def vouched(self, store: Store) -> list[str]:
        """Return ids of the instances that live as long as this server's client.

        A client of several sessions, such as Codex's daemon, does not tell which session goes on. Then these are the
        sessions that have called this server.
        """
        rows = self._sessions_of_client(store)
        found = [row.id for row in rows if len(rows) == 1 or row.id in self._callers]
        own = self._own(store)
        return list(dict.fromkeys([*found, *([own.id] if own else [])]))

    def inherited(self, store: Store) -> list[str]:
        """Ids of the instances that this connection would go on with, were it called now."""
        if self._own(store):
            left = None
        else:
            left = self._left_behind(store)
        if left:
            return [left.id]
        return []

    def register(self, store: Store, meta: dict[str, Any], arguments: dict[str, Any]) -> Session:
        """Return the session's instance. Without hooks, register one for this connection."""
        known = self.instance(store, meta)
        if not known and arguments.get("label") and not _names_session(meta):
            known = self._go_on(store, arguments["label"])
        if known:
            return known
        # Codex names the session, so the row equals the one of its hooks.
        runtime = of_call(meta)
        if runtime:
            named = str(meta.get("sessionId") or "")
        else:
            named = ""
        return store.instances.register(
            self._request(
                arguments["directory"],
                runtime,
                named,
                label=arguments.get("label"),
                scope=arguments.get("scope"),
                file_root=arguments.get("file_root"),
                adopt_id=arguments.get("adopt_instance_id"),
            )
        )

    @property
    def preassigned(self) -> bool:
        """Return True if the process that started this server has reserved an instance (``SWARM_MCP_INSTANCE_ID``)."""
        return bool(os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip())

    def join_preassigned(self, store: Store) -> None:
        """Take the reserved instance."""
        register_preassigned(store, self.client, self._own_id)

    def renew(self, store: Store) -> None:
        """Renew the lease of this connection's own registration."""
        own = self._own(store)
        if own:
            store.instances.show_life(own.id)

    def leave(self, store: Store) -> None:
        """Remove this connection's own registration. Sessions of hooks end by their own hook."""
        own = self._own(store)
        if own:
            store.instances.remove(own.id)

    def _own(self, store: Store) -> Session | None:
        return store.instances.of_session(SERVER_RUNTIME, self._own_id)

    def _of_run(self, store: Store) -> Session | None:
        """Return the instance of the run whose child started this server."""
        reserved = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
        if reserved:
            return of_run(store, reserved, self.client)
        return None

    def _named(self, store: Store, meta: dict[str, Any]) -> Session | None:
        # A sub-agent has a thread of its own in its parent's session.
        for key in NAMES:
            name = meta.get(key)
            if isinstance(name, str) and name:
                rows = store.instances.of_session_id(name)
            else:
                rows = []
            if len(rows) == 1:
                if self._is_of_client(store, rows[0]):
                    return rows[0]
                return None
        return None

    def _is_of_client(self, store: Store, row: Session) -> bool:
        """Return True if the session named by a call may belong to this server's client.

        It does not if another client's agent has started the server in its shell, and names a session of its own
        choice.
        """
        if any(one.id == row.id for one in store.instances.of_client(*self.client)):
            return True  # the common case
        around = agents_around(store)
        return not around or any(one.id == row.id for one in around)

    def _waiting(self, store: Store) -> Session | None:
        """The row that hooks of another implementation made for this client's session: the only such one here.

        They know no processes, so the contract goes by the folder: one leased row, with a session in its label.
        """
        directory = clean(os.environ.get("SWARM_MCP_DIRECTORY", "") or here())
        scope = scope_of(directory, os.environ.get("SWARM_MCP_SCOPE", ""))
        rows = [
            row
            for row in store.instances.in_scope(scope)
            if row.directory == directory and not row.adopted and row.last_seen is None
            and token(row.label or "", "session")
        ]  # fmt: skip
        if len(rows) != 1:
            return None
        row = store.instances.register(self._request(directory, "", "", scope=scope, adopt_id=rows[0].id))
        if row.id == rows[0].id:
            return row
        return None

    def _request(self, directory: str, runtime: str, named: str, **more: Any) -> Registration:
        """Return the registration of this connection, as the session `named` of `runtime` if the client names one."""
        return Registration(
            directory,
            runtime=runtime if named else SERVER_RUNTIME,
            session_id=named or self._own_id,
            client=self.client if self.client[0] else (os.getpid(), start_time(os.getpid())),
            lease_seconds=DEFAULT_LEASE_SECONDS,
            **more,
        )

    def _go_on(self, store: Store, label: str = "") -> Session | None:
        """Continue the session of an earlier server of this client that has ended. Return its instance, or `None`."""
        left = self._left_behind(store, label)
        if not left or not store.instances.rename_session(left.id, left.session_id or "", self._own_id):
            return None
        return store.instances.live(left.id)

    def _left_behind(self, store: Store, label: str = "") -> Session | None:
        """The session of a server before this one that has gone: the client's only one, else the one with that label.

        A connection that registered anything after this server began was beside it, and is not followed by it.
        """
        rows = [row for row in store.instances.of_client(*self.client) if row.runtime == SERVER_RUNTIME]
        left = [row for row in rows if (row.last_seen or 0) <= self._began and server_has_gone(row, store.here)]
        if len(rows) > 1:
            left = [row for row in left if label and row.label == label]
        if len(left) == 1:
            return left[0]
        return None

    def _sessions_of_client(self, store: Store) -> list[Session]:
        """Return the sessions that hooks have registered for this client, without servers and commands."""
        rows = store.instances.of_client(*self.client)
        return [row for row in rows if row.runtime not in (SERVER_RUNTIME, HOLD)]


def with_session(arguments: dict[str, Any], meta: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arguments and metadata of a call by a plugin that can name its session only in an argument.

    Only a server started by such a plugin reads that argument. Elsewhere a model could speak for any session.
    """
    named = arguments.get(SESSION_ARGUMENT)
    rest = {key: value for key, value in arguments.items() if key != SESSION_ARGUMENT}
    if not os.environ.get("SWARM_MCP_SESSION_ARGUMENT", "").strip():
        return rest, meta
    return rest, {**meta, "sessionId": named} if isinstance(named, str) else meta


def _names_session(meta: dict[str, Any]) -> bool:
    """Return True if the client names the session of a call."""
    return any(isinstance(meta.get(key), str) and meta[key] for key in NAMES)

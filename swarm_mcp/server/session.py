"""Which session a tool call comes from.

Codex names its thread in every call. Claude Code does not, and its environment keeps the name of the
first session of the process; but hooks and server are children of one client process, and hooks
record that process with each session.
"""

from __future__ import annotations

import os

from swarm_hook_core.labels import token
from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.process import client_process, start_time
from swarm_mcp.scope import clean, here, scope_of
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration, new_id

LEASE_SECONDS = 86400
NAMES = ("sessionId", "threadId")  # what Codex calls a session in a call's metadata


def of_run(store: Store, instance_id: str, client: tuple[int, str]) -> dict | None:
    """The instance `instance_id`, if it is that of a run under way and `client` its child; else None."""
    run = store.runs.admit(instance_id, client)
    return store.instances.live(run["instance_id"]) if run else None


class CallingSession:
    """The session behind one connection, looked up anew for each call: clients change it under us."""

    def __init__(self):
        self.client = client_process()
        self._own_id = f"mcp-{new_id()}"
        self._callers: set[str] = set()  # instances that calls have come from

    def instance(self, store: Store, meta: dict) -> dict | None:
        """The registered instance this call speaks for, or None."""
        if any(isinstance(meta.get(key), str) and meta[key] for key in NAMES):
            # Codex's daemon is one process for many sessions: one it names is never guessed at.
            known = self._named(store, meta)
        else:
            known = self._of_client(store)
        found = known or self._of_run(store) or self._own(store) or self._waiting(store)
        if found:
            self._callers.add(found["id"])
        return found

    def vouched(self, store: Store) -> list[str]:
        """Ids of the instances that are alive as long as this server's client is.

        A client of several sessions, such as Codex's daemon, does not tell which of them goes on: then those that
        have called this server.
        """
        pid, started = self.client
        rows = store.instances.of_client(pid, started) if pid else []
        own = self._own(store)
        found = [row["id"] for row in rows if len(rows) == 1 or row["id"] in self._callers]
        return list(dict.fromkeys([*found, *([own["id"]] if own else [])]))

    def register(self, store: Store, meta: dict, arguments: dict) -> dict:
        """The session's instance; where hooks have registered none, a new one for this connection."""
        known = self.instance(store, meta)
        if known:
            return known
        # Codex says whose call it is, so the row is the one its hooks would make.
        named = str(meta.get("sessionId") or "") if "x-codex-turn-metadata" in meta else ""
        return store.instances.register(
            self._request(
                arguments["directory"],
                named,
                label=arguments.get("label"),
                scope=arguments.get("scope"),
                file_root=arguments.get("file_root"),
                adopt_id=arguments.get("adopt_instance_id"),
            )
        )

    @property
    def preassigned(self) -> bool:
        """Whether whoever started this server reserved an instance for it (``SWARM_MCP_INSTANCE_ID``)."""
        return bool(os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip())

    def join_preassigned(self, store: Store) -> None:
        """Take the reserved instance."""
        from swarm_mcp.server.preassigned import register_preassigned

        register_preassigned(store, self.client, self._own_id)

    def renew(self, store: Store) -> None:
        """A sign of life for what this connection itself registered."""
        own = self._own(store)
        if own:
            with store.writing():
                store.instances.require(own["id"])

    def leave(self, store: Store) -> None:
        """Remove what this connection itself registered; sessions of hooks end by their own hook."""
        own = self._own(store)
        if own:
            store.instances.remove(own["id"])

    def _own(self, store: Store) -> dict | None:
        return store.instances.of_session(SERVER_RUNTIME, self._own_id)

    def _of_run(self, store: Store) -> dict | None:
        """The instance of the run whose child started this server."""
        reserved = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
        return of_run(store, reserved, self.client) if reserved else None

    def _named(self, store: Store, meta: dict) -> dict | None:
        # A sub-agent has a thread of its own in its parent's session.
        for key in NAMES:
            name = meta.get(key)
            rows = store.instances.of_session_id(name) if isinstance(name, str) and name else []
            if len(rows) == 1:
                return rows[0]
        return None

    def _waiting(self, store: Store) -> dict | None:
        """The row that hooks of another implementation made for this client's session: the only such one here.

        They know no processes, so the contract goes by the folder: one leased row, with a session in its label.
        """
        directory = clean(os.environ.get("SWARM_MCP_DIRECTORY", "") or here())
        scope = scope_of(directory, os.environ.get("SWARM_MCP_SCOPE", ""))
        rows = [
            row
            for row in store.instances.in_scope(scope)
            if row["directory"] == directory and not row["adopted"] and row["last_seen"] is None
            and token(row["label"] or "", "session")
        ]  # fmt: skip
        if len(rows) != 1:
            return None
        row = store.instances.register(self._request(directory, "", scope=scope, adopt_id=rows[0]["id"]))
        return row if row["id"] == rows[0]["id"] else None

    def _request(self, directory: str, named: str, **more) -> Registration:
        """How this connection registers, as the session its client `named` where it names any."""
        return Registration(
            directory,
            runtime="codex" if named else SERVER_RUNTIME,
            session_id=named or self._own_id,
            client=self.client if self.client[0] else (os.getpid(), start_time(os.getpid())),
            lease_seconds=LEASE_SECONDS,
            **more,
        )

    def _of_client(self, store: Store) -> dict | None:
        pid, started = self.client
        rows = store.instances.of_client(pid, started) if pid else []
        if len(rows) == 1:
            return rows[0]
        hint = os.environ.get("CLAUDE_CODE_SESSION_ID", "")
        return next((row for row in rows if row["session_id"] == hint), None)


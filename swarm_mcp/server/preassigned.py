"""The instance that whoever started this server has reserved for it (``SWARM_MCP_INSTANCE_ID``)."""

from __future__ import annotations

import os

from swarm_hook_core.liveness import SERVER_RUNTIME
from swarm_hook_core.process import start_time
from swarm_mcp.scope import here
from swarm_mcp.server.calling_session import LEASE_SECONDS, connection_name, of_run, server_has_gone, server_of
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration


def register_preassigned(store: Store, client: tuple[int, str], session_id: str = "") -> dict | None:
    """Take the reserved instance for this server, or make it; its row. None where nothing is reserved or it is taken.

    A row that waits under that id is adopted and keeps its scope and folder. One that another live client or
    connection works as is that one's: two sessions are never one. `client` is ``(pid, start time)`` of the client
    this server belongs to, `session_id` the name that the connection goes by.
    """
    wanted = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
    if not wanted:
        return None
    name = session_id or connection_name()
    client = client if client[0] else (os.getpid(), start_time(os.getpid()))
    if store.instances.live(wanted):
        row = of_run(store, wanted, client)
        if row:
            return row
        known = next((row for row in store.instances.of_client(*client) if row["id"] == wanted), None)
        if known and known["runtime"] != SERVER_RUNTIME:
            return known  # its hooks were here first
        if known and (server_has_gone(known, store.here) or not server_of(known)[0]):
            taken = store.instances.rename_session(wanted, known["session_id"], name)
            return store.instances.live(wanted) if taken else None
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
            lease_seconds=LEASE_SECONDS,
        )
    )
    if row["id"] == wanted:
        return row
    store.instances.remove(row["id"])  # somebody took it between the look and now
    return None

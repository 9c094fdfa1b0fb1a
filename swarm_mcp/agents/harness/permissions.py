"""Questions of a client, if it may do something, as calls of a Python function of the caller.

A harness asks over MCP: a server of the run's own, ``SERVER``, with the one tool ``TOOL``. Only the harness calls it;
the model may not. Without such a function everything that a client would ask is refused.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swarm_hook_core import state
from swarm_mcp.agents.harness import bridge
from swarm_mcp.agents.harness.environment import written
from swarm_mcp.agents.harness.events import Event, permission_asked
from swarm_mcp.agents.harness.query import EDIT, McpServer, PermissionRequest, Query
from swarm_mcp.agents.harness.servers import ToolServer

SERVER, TOOL = "swarm_permissions", "ask"
REFUSED = "refused by the program that started this run"


def asks(query: Query | None) -> bool:
    """Return True where the client's questions are answered by a function; elsewhere the client refuses by itself."""
    return query is not None and query.on_permission is not None and query.mode == EDIT


class PermissionServer:
    """The questions of one run, answered by `decide` in a thread for each. ``with`` it, `server` is its address.

    `tell` gets each question with its answer, in that thread, before the client does.
    """

    def __init__(
        self, decide: Callable[[PermissionRequest], Any], tell: Callable[[Event], object] = lambda _event: None
    ):
        self._decide, self._tell = decide, tell

        def ask(tool_name: str, input: dict[str, Any], tool_use_id: str = "", reason: str = "") -> str:
            """Ask the program that started this run if a tool may be called. For the client alone."""
            refused = decided(self._decide, PermissionRequest(tool_name, input, reason))
            self._tell(permission_asked(tool_use_id, tool_name, input, reason, refused))
            if refused is None:
                return json.dumps({"behavior": "allow", "updatedInput": input})
            return json.dumps({"behavior": "deny", "message": refused})

        self._tools = ToolServer((ask,))

    def __enter__(self) -> PermissionServer:
        self._tools.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tools.stop()

    @property
    def server(self) -> McpServer:
        """Return how a child reaches it."""
        return self._tools.server


def bridged(
    harness: str, folder: Path, query: Query, settings: dict[str, Any]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command line of the bridge of `harness` with these settings, and the secret for its questions."""
    secrets, address, server = {}, "", query.mcp_servers.get(SERVER)
    if server:
        address, secrets[bridge.TOKEN] = server.url, server.headers["Authorization"]
    path = written(folder / "bridge.json", json.dumps({**settings, "permissions": address}))
    return bridge.argv_of(harness, path), secrets


def refusal_in(line: dict[str, Any]) -> Event:
    """Return the event in a bridge's line about a question without an answer (``bridge.REFUSED``)."""
    call_id, name, reason = (str(line.get(key) or "") for key in ("tool_use_id", "tool_name", "reason"))
    return permission_asked(call_id, name, line.get("input"), reason, REFUSED)


def decided(decide: Callable[[PermissionRequest], Any], request: PermissionRequest) -> str | None:
    """Return why a request is refused, None for an allowed one. Only True allows; an exception refuses."""
    try:
        answer = decide(request)
        if inspect.isawaitable(answer):
            import asyncio

            async def waited() -> Any:
                return await answer

            answer = asyncio.run(waited())
    except Exception as error:
        import logging

        logging.getLogger("swarm_mcp.agents.harness").error("on_permission of a run has raised", exc_info=True)
        return f"{REFUSED}: {state.describe(error)}"
    if answer is True:
        return None
    return answer if isinstance(answer, str) and answer.strip() else REFUSED

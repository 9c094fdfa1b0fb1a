"""MCP servers of a run, those of the swarm among them: connections to them, and their tools.

A server is one that we start, or one behind HTTP (a POST for each message). They are started beside the run's first
steps; one that does not come up is left out and said to be. A tool's name for the model is ``mcp__SERVER__TOOL``, as
hooks know tools of servers.
"""

from __future__ import annotations

import re
import threading
import zlib
from typing import TYPE_CHECKING, Any

from swarm_hook_core.mcp_writers import is_writer
from swarm_mcp.agents.loop.messages import ModelCall
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import coordinator_command
from swarm_mcp.mcp.client import START_SECONDS, Client

if TYPE_CHECKING:
    from swarm_mcp.agents.loop.run import Run

OURS = "swarm"
DISPATCH = f"mcp__{OURS}__dispatch"
LONGEST_NAME = 64


class Servers:
    """The servers of one run and their tools."""

    def __init__(self) -> None:
        self._starting: list[threading.Thread] = []
        self._connections: dict[str, Client] = {}
        self._tools: dict[str, tuple[Client, dict[str, Any]]] = {}
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def start(self, loop: Run) -> None:
        """Start every server, without waiting for them."""
        for name, server in _wanted(loop).items():
            thread = threading.Thread(target=self._open, args=(name, server, loop), daemon=True)
            thread.start()
            self._starting.append(thread)

    def schemas(self, loop: Run) -> list[dict[str, Any]]:
        """Return every tool's schema for the model. The first call waits for the servers."""
        self._wait(loop)
        return [
            {
                "name": name,
                "description": str(tool.get("description") or ""),
                "input_schema": tool.get("inputSchema") or {"type": "object", "properties": {}},
            }
            for name, (_, tool) in sorted(self._tools.items())
            if self.may_use(loop, name)
        ]

    def may_use(self, loop: Run, name: str) -> bool:
        """Return True if a run in this mode may call a tool. A read-only run may not write, or start a writer."""
        return not (loop.settings.read_only and (is_writer(name) or name == DISPATCH))

    def call(self, made: ModelCall) -> tuple[str, bool]:
        """Carry out a call of one of them: ``(result, is_error)``."""
        connection, tool = self._tools[made.name]
        try:
            return connection.use(str(tool["name"]), made.input)
        except ClientFailed as error:
            return f"error: {made.name}: {error}", True

    def close(self) -> None:
        """End them all."""
        with self._lock:
            self._closed = True
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _wait(self, loop: Run) -> None:
        for thread in self._starting:
            thread.join(START_SECONDS)
        if self._starting:
            self._starting = []
            for name, why in sorted(self._failed.items()):
                loop.report.custom("mcp_failed", {"server": name, "why": why})

    def _open(self, name: str, server: dict[str, Any], loop: Run) -> None:
        try:
            connection = Client(server, loop.cwd, "swarm-loop")
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._connections[name] = connection
            tools = connection.open()
        except (ClientFailed, OSError, ValueError) as error:
            self._failed[name] = str(error)[:300]
            return
        for tool in tools:
            if isinstance(tool.get("name"), str):
                self._tools[_name(name, tool["name"])] = (connection, tool)


def _wanted(loop: Run) -> dict[str, dict[str, Any]]:
    """name -> server (``command``, ``args``, ``env``, ``cwd`` or ``url``, ``headers``)."""
    given = loop.settings.config.get("mcp_servers")
    if isinstance(given, dict):
        found = {str(name): dict(server) for name, server in given.items() if isinstance(server, dict)}
    else:
        command, *args = [*coordinator_command(), "serve"]
        found = {OURS: {"command": command, "args": args}}
    if loop.settings.depth:
        # The servers were written for the parent; an agent below it is another session in the swarm.
        for server in found.values():
            env = server.get("env")
            server["env"] = {k: v for k, v in env.items() if k not in _PARENTS_OWN} if isinstance(env, dict) else {}
    return found


_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_RUN_ID")


def _name(server: str, tool: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}_{zlib.crc32(name.encode()):08x}"

"""The questions of clients to a server at the start of every session."""

from __future__ import annotations

from typing import Any

from swarm_mcp import __version__

CLIENT_INFO = {"name": "swarm-mcp install", "version": __version__}


def handshake(
    protocol: str, capabilities: dict[str, Any], *then: tuple[str, dict[str, Any]]
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the questions of a client that speaks release `protocol` of MCP: the handshake, and `then` these."""
    told = {"protocolVersion": protocol, "capabilities": capabilities, "clientInfo": CLIENT_INFO}
    return (("initialize", told), ("notifications/initialized", {}), *then)

"""Serving with an event loop: tool calls beside each other, waits, and subscriptions."""

from __future__ import annotations

import asyncio

from swarm_mcp.mcp.exchange import Exchange
from swarm_mcp.mcp.server import Connection
from swarm_mcp.mcp.streams import Incoming, Outgoing
from swarm_mcp.server.service import Service


def serve(service: Service, connection: Connection, incoming: Incoming, outgoing: Outgoing) -> None:
    """Serve until the client closes its end."""
    asyncio.run(_serve(service, connection, incoming, outgoing))


async def _serve(service: Service, connection: Connection, incoming: Incoming, outgoing: Outgoing) -> None:
    await Exchange(connection, incoming, outgoing, service.waits).run()

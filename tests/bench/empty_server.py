"""An MCP server with one tool that does nothing: the cost of a call without its work."""

import asyncio
import os

from swarm_mcp.mcp.exchange import Exchange
from swarm_mcp.mcp.server import Call, Connection, Reply, Server
from swarm_mcp.mcp.streams import Incoming, Outgoing

TOOL = {"name": "empty", "inputSchema": {"type": "object"}}


async def call_tool(_call: Call) -> Reply:
    return Reply({"content": [{"type": "text", "text": "{}"}]})


async def main() -> None:
    methods = {"tools/list": lambda call: {"tools": [TOOL]}, "tools/call": call_tool}
    server = Server({"name": "empty", "version": "0"}, {"tools": {}}, methods)
    await Exchange(Connection(server), Incoming(os.dup(0)), Outgoing(os.dup(1))).run()


asyncio.run(main())

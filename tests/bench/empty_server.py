"""An MCP server on the official SDK with one empty tool: the cost of a call without any work."""

import asyncio

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[types.Tool(name="empty", input_schema={"type": "object"})])


async def call_tool(_context, _params):
    return types.CallToolResult(content=[types.TextContent(type="text", text="{}")])


async def main():
    server = Server("empty", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())

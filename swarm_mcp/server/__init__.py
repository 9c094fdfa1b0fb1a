"""The MCP server: the coordinator as tools inside a session, over standard input and output."""

from __future__ import annotations


def serve() -> int:
    """Run until the client closes our input, ends, or asks us to stop; the exit code."""
    from swarm_mcp.server.app import run

    return run()

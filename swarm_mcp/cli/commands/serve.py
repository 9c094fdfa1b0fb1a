"""serve: run the MCP server on standard input and output

usage: swarm-mcp serve

Clients start this from the installed plugin. It ends when its input closes, on SIGTERM or SIGINT, and
when the client that started it is gone.

example: swarm-mcp serve
"""

from __future__ import annotations


def run(args) -> int:
    """Serve until the client has enough."""
    from swarm_mcp.server import serve

    return serve()

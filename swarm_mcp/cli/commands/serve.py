"""serve: run the MCP server on standard input and output

Clients start this from the installed plugin. It ends when its input closes, on SIGTERM or SIGINT, and
when the client that started it is gone.

example: swarm-mcp serve
"""

from __future__ import annotations

from swarm_mcp.cli.arguments import Arguments, Option, Usage

USAGES = (
    Usage(
        Option(
            "--transport HOW",
            "mcp_tool: also answer the hooks of a plugin that was installed with that transport (default: command)",
            source=("command", "mcp_tool"),
        )
    ),
)


def run(args: Arguments) -> int:
    """Serve until the client has enough."""
    from swarm_mcp.runtimes.transport import COMMAND, MCP_TOOL, known
    from swarm_mcp.server.app import run as serve

    return serve(with_check=known(args.value("--transport") or COMMAND) == MCP_TOOL)

"""The swarm coordinator: an embedded store, the ``swarm-mcp`` command and the MCP server."""

from swarm_hook_core import __version__

__all__ = ["__version__"]

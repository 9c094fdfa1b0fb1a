"""The swarm coordinator: an embedded store, the ``swarm-mcp`` command and the MCP server."""

from __future__ import annotations

from swarm_hook_core import __version__

__all__ = ["__version__"]

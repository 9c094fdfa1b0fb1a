"""The tools of the coordinator, one module a group; a tool's schema, description and handler stand together there."""

from __future__ import annotations

from swarm_mcp import contributions
from swarm_mcp.server.tool import Tool


def all_tools() -> dict[str, Tool]:
    """Return the tools of all packages by name, in the order of the list."""
    groups = contributions.names("TOOLS")
    return {tool.name: tool for group in groups for tool in contributions.module_named(group).TOOLS}

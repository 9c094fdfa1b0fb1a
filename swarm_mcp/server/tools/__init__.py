"""The tools of the coordinator, one module a group; a tool's schema, description and handler stand together there."""

from __future__ import annotations

from swarm_mcp import contributions
from swarm_mcp.server.tool import Tool

CHECK = "swarm_mcp.server.tools.check"


def all_tools(with_check: bool = False) -> dict[str, Tool]:
    """Return the tools of all packages by name, in the order of the list. `with_check` adds the tool for hooks."""
    groups = contributions.names("TOOLS")
    if with_check:
        groups.append(CHECK)
    return {tool.name: tool for group in groups for tool in contributions.module_named(group).TOOLS}

"""The tools, one module a group; a tool's schema, description and handler stand together there."""

from __future__ import annotations

from importlib import import_module

from swarm_mcp.server.tool import Tool

GROUPS = (
    "instances", "locks", "messages", "tasks", "kv", "activity", "workspace", "dispatch",
)  # fmt: skip


def all_tools(with_check: bool = False) -> dict[str, Tool]:
    """Return all tools by name, in the order of the list. `with_check` adds the tool for hooks."""
    groups = list(GROUPS)
    if with_check:
        groups.append("check")
    modules = (import_module(f"swarm_mcp.server.tools.{group}") for group in groups)
    return {tool.name: tool for module in modules for tool in module.TOOLS}

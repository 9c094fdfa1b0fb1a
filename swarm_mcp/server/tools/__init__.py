"""The tools, one module a group; a tool's schema, description and handler stand together there."""

from __future__ import annotations

from importlib import import_module

from swarm_mcp.server.tool import Tool

GROUPS = (
    "instances", "locks", "messages", "tasks", "kv", "activity", "workspace", "dispatch",
)  # fmt: skip


def all_tools(with_check: bool = False) -> dict[str, Tool]:
    """Every tool by its name, in the order in which clients list them; `with_check` adds the one for hooks."""
    groups = (*GROUPS, "check") if with_check else GROUPS
    modules = (import_module(f"swarm_mcp.server.tools.{group}") for group in groups)
    return {tool.name: tool for module in modules for tool in module.TOOLS}

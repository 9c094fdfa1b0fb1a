"""The tools, one module a group; a tool's schema, description and handler stand together there."""

from __future__ import annotations

from importlib import import_module

from swarm_mcp.server.tool import Tool

GROUPS = ("instances", "locks", "messages", "tasks", "kv", "activity", "workspace", "dispatch")


def all_tools() -> dict[str, Tool]:
    """Every tool by its name, in the order in which clients list them."""
    modules = (import_module(f"swarm_mcp.server.tools.{group}") for group in GROUPS)
    return {tool.name: tool for module in modules for tool in module.TOOLS}

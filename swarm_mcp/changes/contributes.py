"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "undo": "swarm_mcp.changes.commands.undo",
}
PLACES: dict[str, str] = {
    "undo": "steal",
}
TOOLS: tuple[str, ...] = ("swarm_mcp.changes.tools.undo",)

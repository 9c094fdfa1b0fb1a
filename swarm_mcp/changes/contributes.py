"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "commit": "swarm_mcp.changes.commands.commit",
}
PLACES: dict[str, str] = {
    "commit": "restore",
}
TOOLS: tuple[str, ...] = ("swarm_mcp.changes.tools.commit",)

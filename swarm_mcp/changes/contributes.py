"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "diff": "swarm_mcp.changes.commands.diff",
    "blame": "swarm_mcp.changes.commands.blame",
    "commit": "swarm_mcp.changes.commands.commit",
}
PLACES: dict[str, str] = {"diff": "why", "blame": "diff", "commit": "restore"}
TOOLS: tuple[str, ...] = ("swarm_mcp.changes.tools.commit",)

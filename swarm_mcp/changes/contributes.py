"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "diff": "swarm_mcp.changes.commands.diff",
    "blame": "swarm_mcp.changes.commands.blame",
}
PLACES: dict[str, str] = {"diff": "why", "blame": "diff"}
TOOLS: tuple[str, ...] = ()

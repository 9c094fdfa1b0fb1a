"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "diff": "swarm_mcp.changes.commands.diff",
    "blame": "swarm_mcp.changes.commands.diff",
    "commit": "swarm_mcp.changes.commands.undo",
    "undo": "swarm_mcp.changes.commands.undo",
    "try": "swarm_mcp.changes.commands.tries",
}
OTHER_WORDS = {
    "annotate": "blame", "praise": "blame", "authors": "blame", "owner": "blame", "owners": "blame", "changes": "diff",
    "dirty": "diff", "rollback": "undo", "discard": "undo", "rewind": "undo", "checkin": "commit", "ci": "commit",
}  # fmt: skip
PLACES = {"diff": "steal"}
TOOLS = ("swarm_mcp.changes.tools",)
CHECKS = {"undo": "swarm_mcp.changes.undoing:findings", "try": "swarm_mcp.changes.tries.trial:findings"}

"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "diff": "swarm_mcp.changes.commands.diff",
    "blame": "swarm_mcp.changes.commands.blame",
    "commit": "swarm_mcp.changes.commands.commit",
    "undo": "swarm_mcp.changes.commands.undo",
}
OTHER_WORDS = {
    "annotate": "blame", "praise": "blame", "authors": "blame", "owner": "blame", "owners": "blame", "changes": "diff",
    "dirty": "diff", "rollback": "undo", "discard": "undo", "rewind": "undo", "checkin": "commit", "ci": "commit",
}  # fmt: skip
PLACES = {"diff": "steal"}
TOOLS = ("swarm_mcp.changes.tools.commit", "swarm_mcp.changes.tools.undo")
CHECKS = {"undo": "swarm_mcp.changes.undo_check:findings"}

"""The verbs that show a checkout on a full screen or a page; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "top": "swarm_mcp.view.commands.top",
    "page": "swarm_mcp.view.commands.page",
}
PLACES = {"top": "watch"}
OTHER_WORDS = {
    "dashboard": "top", "web": "page",
}  # fmt: skip

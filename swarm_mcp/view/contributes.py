"""The verbs that show a checkout on a full screen, on a page, or in an editor; see ``contributions``."""

from __future__ import annotations

VERBS = {
    "top": "swarm_mcp.view.commands",
    "page": "swarm_mcp.view.commands",
    "lsp": "swarm_mcp.view.commands",
}
PLACES = {"top": "watch"}
OTHER_WORDS = {
    "dashboard": "top", "tui": "top", "screen": "top", "web": "page", "browser": "page", "gui": "page",
    "editor": "lsp", "language-server": "lsp",
}  # fmt: skip

"""Where `swarm-mcp install` keeps the marketplace folder it hands to clients."""

from __future__ import annotations

from pathlib import Path

from swarm_hook_core.state import user_folder


def marketplace_folder() -> Path:
    """The folder under this user's data folder; it need not exist yet."""
    return Path(user_folder("", "XDG_DATA_HOME", "~/.local/share")) / "marketplace"

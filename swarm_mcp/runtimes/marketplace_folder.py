"""Where `swarm-mcp install` keeps the marketplace folder it hands to clients."""

from __future__ import annotations

from pathlib import Path

from swarm_hook_core.state import user_folder


def marketplace_folder() -> Path:
    """Return the folder under this user's data folder; it need not exist yet."""
    try:
        from platformdirs import user_data_path
    except Exception:
        return Path(user_folder("", "XDG_DATA_HOME", "~/.local/share")) / "marketplace"
    return user_data_path("swarm-mcp", appauthor=False) / "marketplace"

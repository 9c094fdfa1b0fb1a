"""Where `swarm-mcp install` keeps the marketplace folder it hands to clients."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_data_path


def marketplace_folder() -> Path:
    """The folder under this user's data folder; it need not exist yet."""
    return user_data_path("swarm-mcp", appauthor=False) / "marketplace"

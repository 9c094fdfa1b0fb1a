"""Fixtures of the harness tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from swarm_mcp.installation import plugin_source


@pytest.fixture
def plugin_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives a harness, by its module, the plugin of the checkout, or the one in a folder, without writing a bundle."""

    def give(module: str, folder: Path | None = None) -> None:
        monkeypatch.setattr(f"swarm_mcp.agents.harness.{module}.plugin_folder", lambda: folder or plugin_source())

    return give

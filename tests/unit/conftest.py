"""What the coordinator's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from ground import Ground


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A checkout of one's own, and a store that is not there yet."""
    made = Ground(tmp_path.resolve())
    monkeypatch.setenv("SWARM_DB_PATH", made.database)
    return made

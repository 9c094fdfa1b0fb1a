"""What the coordinator's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ground import Ground


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A checkout of one's own, and a store that is not there yet."""
    made = Ground(tmp_path.resolve())
    monkeypatch.setenv("SWARM_DB_PATH", made.database)
    return made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, which is the present folder."""
    folder = (tmp_path / "project").resolve()
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def model(project: Path, monkeypatch: pytest.MonkeyPatch):
    """A scripted model that the loop asks, both as anthropic and as openai; no MCP servers."""
    from loop_ground import Model, settings

    served = Model()
    for name in [name for name in os.environ if name.startswith(("HARNESS_", "ANTHROPIC_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    for name, value in settings(served, project.parent).items():
        monkeypatch.setenv(name, value)
    yield served
    served.close()

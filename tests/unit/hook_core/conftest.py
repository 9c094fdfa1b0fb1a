"""What the tests of hooks share: a repository in which their sessions work."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import ready_store


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one folder, ``sub``, and an empty store."""
    ready_store()
    folder = tmp_path.resolve() / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "sub").mkdir()
    return folder

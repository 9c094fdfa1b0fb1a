"""Fixtures of the hook tests: repositories for their sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sessions import ready_store
from support.traced import checkout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one folder, ``sub``, and an empty store."""
    ready_store()
    folder = tmp_path.resolve() / "repo"
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "sub").mkdir()
    return folder


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    """A repository with three committed files and an empty store, for sessions without a fault."""
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md", "sub/deep.md")

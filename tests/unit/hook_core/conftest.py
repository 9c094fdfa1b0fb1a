"""Fixtures of the hook tests: repositories for their sessions, and the absence of faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkouts import ALONE, AMPLE
from support.sessions import mistakes, ready_store
from support.traced import checkout

from swarm_hook_core import budget
from swarm_hook_core.shell import walk
from swarm_hook_core.traces import committed, sweeps


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one folder, ``sub``, and an empty store."""
    ready_store()
    folder = tmp_path.resolve() / "repo"
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "sub").mkdir()
    return folder


@pytest.fixture
def no_faults() -> Iterator[None]:
    """After the test, the hooks have recorded no faults, except for those of a busy machine."""
    yield
    assert mistakes() == []


@pytest.fixture
def checks_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check reads its command to the end and waits for git's answers, and git reads no settings of this machine.

    This process is no hook: it may collect the garbage of a thousand tests in the midst of a check.
    """
    monkeypatch.setattr(budget, "SECONDS", AMPLE)
    monkeypatch.setattr(walk, "SECONDS", AMPLE)
    monkeypatch.setattr(walk, "SECONDS_TO_PARSE", AMPLE)
    monkeypatch.setattr(sweeps, "SECONDS", AMPLE)
    monkeypatch.setattr(committed, "SECONDS", AMPLE)
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    """A repository with three committed files and an empty store, for sessions without a fault."""
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md", "sub/deep.md")

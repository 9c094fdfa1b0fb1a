"""SPEC.md's guarantees of locks, between two machines of a team."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lock_cases import *  # noqa: F403
from support.worlds import TwoMachines

from team.servers import PostgreSQL


@pytest.fixture
def world(tmp_path: Path, team: str, repository: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoMachines]:
    two = TwoMachines(tmp_path, PostgreSQL(team), repository, monkeypatch)
    yield two
    two.close()

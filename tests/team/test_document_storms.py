"""Storms of three machines over PostgreSQL: a few seeds; ``SWARM_STORMS=200`` for more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.document_storm import Storm

from team.servers import PostgreSQL


@pytest.mark.parametrize("seed", range(int(os.environ.get("SWARM_STORMS", "3"))))
def test_a_storm(tmp_path: Path, team: str, repository: str, seed: int) -> None:
    Storm(tmp_path, seed, PostgreSQL(team), repository).run(steps=120)

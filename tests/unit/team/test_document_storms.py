"""Storms of three machines over a server in memory: a few seeds; ``SWARM_STORMS=200`` for more."""

import os
from pathlib import Path

import pytest
from support.document_storm import Storm
from support.fake_team import FakeTeam

pytestmark = pytest.mark.thorough


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("SWARM_STORMS", "6"))))
def test_a_storm(tmp_path: Path, seed: int) -> None:
    Storm(tmp_path, seed, FakeTeam()).run(steps=120)

"""The cases of two machines that follow a team's server, against PostgreSQL."""

from pathlib import Path

import pytest
from support.document_cases import *  # noqa: F403
from support.following_cases import *  # noqa: F403
from support.team_machines import Machine

from team.servers import PostgreSQL


@pytest.fixture
def machines(tmp_path: Path, team: str, repository: str):
    """Two machines that have greeted the server."""
    found = [Machine(tmp_path / name, name, PostgreSQL(team), repository) for name in ("laptop", "sandbox")]
    for one in found:
        one.follow()
    yield found
    for one in found:
        one.close()

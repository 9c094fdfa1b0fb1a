"""The cases of two machines that follow a team's server, against PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.following_cases import *  # noqa: F403
from support.team_machines import Machine


class PostgreSQL:
    """The server, as machines are given it."""

    def __init__(self, conninfo: str):
        self.conninfo = conninfo

    def server(self, machine: str):
        from swarm_mcp.team.server import TeamServer

        return TeamServer(self.conninfo, machine)


@pytest.fixture
def machines(tmp_path: Path, team: str, repository: str):
    """Two machines, which have both greeted the server."""
    found = [Machine(tmp_path / name, name, PostgreSQL(team), repository) for name in ("laptop", "sandbox")]
    for one in found:
        one.follow()
    yield found
    for one in found:
        one.close()

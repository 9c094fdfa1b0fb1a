"""A team's PostgreSQL server as machines of the tests are given it."""

from __future__ import annotations

from functools import partial
from typing import Any

PATIENCE = 30.0  # seconds: a busy machine is no server that cannot be reached
PATIENT = ("hello", "beat", "acquire", "release", "transfer", "steal", "wait", "leave", "end", "reap", "mine", "put")


class PostgreSQL:
    """The server that `conninfo` names; what asks it waits for its answer."""

    def __init__(self, conninfo: str):
        self._conninfo = conninfo

    def server(self, machine: str) -> Any:
        from swarm_mcp.team.server import TeamServer

        class Patient(TeamServer):
            def __getattribute__(self, name: str) -> Any:
                found = super().__getattribute__(name)
                return partial(found, seconds=PATIENCE) if name in PATIENT else found

        return Patient(self._conninfo, machine)

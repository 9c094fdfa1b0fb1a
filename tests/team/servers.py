"""A team's PostgreSQL server as machines of the tests are given it."""

from functools import partial
from typing import Any

PATIENCE = 30.0  # seconds: a busy machine is no server that cannot be reached
PATIENT = ("hello", "beat", "acquire", "release", "transfer", "steal", "wait", "leave", "end", "reap", "mine", "put",
           "look", "machines", "part", "rest")  # fmt: skip


def patient(conninfo: str, machine: str, *login: str) -> Any:
    """Return the server that `conninfo` names; requests wait for their answers by default."""
    from swarm_mcp.team.server import TeamServer

    class Patient(TeamServer):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            return partial(found, seconds=PATIENCE) if name in PATIENT else found

    return Patient(conninfo, machine, *login)


class PostgreSQL:
    """The server that `conninfo` names, as a team's machines are given it."""

    def __init__(self, conninfo: str):
        self._conninfo = conninfo

    def server(self, machine: str) -> Any:
        return patient(self._conninfo, machine)

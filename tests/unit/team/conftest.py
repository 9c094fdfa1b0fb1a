"""Machines of a team: each has a store and a clone of its own, and follows one server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_team import FakeTeam
from support.team_machines import Machine

from swarm_mcp.domain import Session
from swarm_mcp.team import agent_client


@pytest.fixture(autouse=True)
def no_agent_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit beside a joined clone tells the team agent. A real one would undo what these tests have joined."""
    monkeypatch.setattr(agent_client, "start", lambda: None)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Lets an object answer in place of the team agent: each request that it has a method of the same name for."""

    def answer(agent: Any) -> None:
        for request in ("confirm", "confirm_documents", "poke", "status"):
            if hasattr(agent, request):
                monkeypatch.setattr(agent_client, request, getattr(agent, request))

    return answer


@pytest.fixture
def team() -> FakeTeam:
    return FakeTeam()


@pytest.fixture
def machines(tmp_path: Path, team: FakeTeam):
    """Two machines that have greeted the server."""
    found = [Machine(tmp_path / name, name, team) for name in ("laptop", "sandbox")]
    for one in found:
        one.follow()
    yield found
    for one in found:
        one.close()


@pytest.fixture
def laptop(machines: list[Machine]) -> Machine:
    """The first of them."""
    return machines[0]


@pytest.fixture
def sandbox(machines: list[Machine]) -> Machine:
    """The second."""
    return machines[1]


@pytest.fixture
def one(laptop: Machine) -> Session:
    """A session on the first machine."""
    return laptop.session("one")


@pytest.fixture
def other(sandbox: Machine) -> Session:
    """A session on the second."""
    return sandbox.session("other")

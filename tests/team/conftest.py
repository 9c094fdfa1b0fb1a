"""A PostgreSQL server of the tests' own, with a team on it."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from team import needs
from team.history import engine as engines
from team.homes import Home

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def needed() -> None:
    """These tests mean nothing without a server."""
    if needs.lacking():
        needs.give_up()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engine]:
    """A running server for all tests. A test that stops or copies one makes its own (`new_engine`)."""
    with _running(tmp_path_factory.mktemp("postgresql")) as one:
        yield one


@pytest.fixture
def new_engine(tmp_path) -> Iterator[engines.Engine]:
    """A running server of this test's own, with a team on it."""
    with _running(tmp_path / "postgresql") as one:
        _init(one.dsn())
        yield one


@pytest.fixture(scope="session")
def team(engine: engines.Engine) -> str:
    """The name of the server for its superuser; it has a team."""
    _init(engine.dsn())
    return engine.dsn()


@pytest.fixture
def repository() -> str:
    """The name of an unused repository."""
    return f"repository-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def homes(tmp_path: Path, team: str, repository: str) -> Iterator[tuple[Home, Home]]:
    """Two machines that have joined as one repository."""
    made = Home(tmp_path, "north"), Home(tmp_path, "south")
    try:
        for one in made:
            one.run("team", "join", team, "--repository", repository)
        yield made
    finally:
        for one in made:
            one.end()


def _init(server: str) -> None:
    from swarm_mcp.team import server as team_server

    team_server.init(server)


class _running:
    """A server in a folder, while the context lasts."""

    def __init__(self, folder):
        self._folder = folder

    def __enter__(self) -> engines.Engine:
        self._engine = engines.Engine(self._folder / "data").create().start()
        return self._engine

    def __exit__(self, *_: object) -> None:
        self._engine.stop()

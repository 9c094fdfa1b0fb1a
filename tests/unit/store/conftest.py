"""Two sessions that hand work to each other."""

import pytest
from support.fixtures import Ground

from swarm_mcp.domain import Session
from swarm_mcp.store import cleanup, schema


@pytest.fixture
def planner(ground: Ground) -> Session:
    """A session that asks for work."""
    return ground.session("p")


@pytest.fixture
def worker(ground: Ground) -> Session:
    """A session that does it."""
    return ground.session("w")


@pytest.fixture
def rollback_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """New stores get a rollback journal, as with a SQLite without a safe write-ahead log."""
    for module in (schema, cleanup):
        monkeypatch.setattr(module, "wal_is_safe", lambda _release: False)

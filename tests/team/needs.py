"""The requirements of the team's tests. Under `make team` they fail without them; elsewhere they are skipped."""

import importlib.util
import os

import pytest

from team.history.engine import programs

IS_ASKED = bool(os.environ.get("SWARM_TEAM_TESTS"))  # now: the environment of each test is its own


def lacking() -> str:
    """Return the missing packages for a PostgreSQL server and its clients."""
    there = {"psycopg": importlib.util.find_spec("psycopg"), "PostgreSQL": programs()}
    return " and ".join(name for name, found in there.items() if found is None)


def give_up() -> None:
    """Skip a test without its requirements, or fail."""
    assert not IS_ASKED, f"`make team` has not found {lacking()}"
    pytest.skip(f"{lacking()} not found: `make team` installs it", allow_module_level=True)

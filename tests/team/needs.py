"""What the tests of a team need. Where `make team` asked for them they fail without it; elsewhere they are skipped."""

from __future__ import annotations

import importlib.util
import os

import pytest

from team.history.engine import programs

IS_ASKED = bool(os.environ.get("SWARM_TEAM_TESTS"))  # now: the environment of each test is its own


def lacking() -> str:
    """Return what is not installed of a PostgreSQL server and what talks to it."""
    there = {"psycopg": importlib.util.find_spec("psycopg"), "PostgreSQL": programs()}
    return " and ".join(name for name, found in there.items() if found is None)


def give_up() -> None:
    """Skip what needs that, or fail."""
    assert not IS_ASKED, f"`make team` has not found {lacking()}"
    pytest.skip(f"{lacking()} not found: `make team` installs it", allow_module_level=True)

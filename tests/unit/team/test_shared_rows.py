"""Commits that the team agent is told of, or started for: those of rows that the team shares."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.team_machines import REPOSITORY

from swarm_hook_core import clock
from swarm_hook_core.process import host_id
from swarm_hook_core.repository import tree_at
from swarm_mcp.store import Store
from swarm_mcp.store.database import Transaction, _changed_table
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.schema import TABLES
from swarm_mcp.team import agent_client, contributes, memberships

pytestmark = pytest.mark.thorough

TEAM = Path(agent_client.__file__).parent


@pytest.fixture
def starts(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A clone that has joined, without an agent; the number of attempts to start one grows with each."""
    tree = tree_at(str(ground.repo))
    assert tree is not None
    found: list[str] = []
    monkeypatch.setattr(agent_client, "start", lambda: found.append("started"))
    ground.store().close()
    memberships.remember(
        memberships.Membership(tree.common, tree.top, REPOSITORY, "given", "service=fake", int(time.time()))
    )
    return found


def have_copy(ground: Ground, fresh_until: float) -> None:
    """Make the copy of the team's locks fresh until this time of the boot clock."""
    with Store(tells=False) as store, store.database.writing() as tx:
        tx.change(
            "INSERT OR REPLACE INTO swarm_team_trees (top, repository) VALUES (?, ?)", (str(ground.repo), REPOSITORY)
        )
        tx.change(
            "INSERT OR REPLACE INTO swarm_team_repositories (id, state, fresh_until, booted) VALUES (?, 'joined', ?, ?)",
            (REPOSITORY, fresh_until, clock.boot(host_id())),
        )


def show_life(tx: Transaction, session: str) -> None:
    tx.change("UPDATE swarm_sessions SET last_seen = last_seen + 1 WHERE instance_id = ?", (session,))
    tx.change("UPDATE instances SET heartbeat = heartbeat + 1 WHERE id = ?", (session,))


def write_down(tx: Transaction, session: str) -> None:
    tx.add_event(session, "test", None, None, None)
    tx.change("UPDATE context SET warned = 1 WHERE id = 'none'")


def return_value_late(tx: Transaction, session: str) -> None:
    tx.rows("INSERT INTO kv (scope, key, value) VALUES (?, 'k', '1') RETURNING key", (session,))
    show_life(tx, session)


DEEDS: dict[str, tuple[Callable[[Transaction, str], None], bool]] = {
    "a heartbeat": (show_life, False),
    "an event, and no lock": (write_down, False),
    "a value": (
        lambda tx, session: tx.change("INSERT INTO kv (scope, key, value) VALUES (?, 'k', '1')", (session,)),
        True,
    ),
    "a statement of an unknown form": (
        lambda tx, session: tx.change(
            "WITH one(id) AS (SELECT ?) UPDATE instances SET label = 'x' WHERE id IN (SELECT id FROM one)", (session,)
        ),
        True,
    ),
    "a heartbeat that returns rows": (
        lambda tx, session: tx.column("UPDATE instances SET pid = pid + 1 WHERE id = ? RETURNING pid", (session,)),
        False,
    ),
    "a value that returns rows": (return_value_late, True),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_the_agent_is_started_for_shared_rows_only(deed: str, ground: Ground, starts: list[str]) -> None:
    have_copy(ground, clock.now() + 3600)
    session = ground.session("one")
    starts.clear()
    act, is_told = DEEDS[deed]
    with Store() as store, store.database.writing() as tx:
        act(tx, session.id)
    assert bool(starts) is is_told


def test_a_lock_and_its_release_are_told(ground: Ground, starts: list[str], store: Store) -> None:
    have_copy(ground, clock.now() + 3600)
    session = ground.session("one")
    starts.clear()
    store.locks.acquire_all(session, request(session, ["a.py"]))
    assert starts
    starts.clear()
    store.locks.release(session, "a.py")
    assert starts


def test_a_sign_of_life_starts_an_agent_that_was_killed(ground: Ground, starts: list[str]) -> None:
    """Without an agent the copy is fresh for seconds only. A session elsewhere starts none."""
    have_copy(ground, clock.now() + 3600)
    session = ground.session("one")
    have_copy(ground, clock.now() - 1)
    starts.clear()
    with Store() as store, store.database.writing() as tx:
        show_life(tx, session.id)
    assert starts
    with Store(tells=False) as store, store.database.writing() as tx:
        tx.change("UPDATE instances SET scope = '/elsewhere' WHERE id = ?", (session.id,))
    starts.clear()
    with Store() as store, store.database.writing() as tx:
        show_life(tx, session.id)
    assert not starts


def test_tables_of_statements() -> None:
    """Each statement of the team's that changes a table of the store names it in a known form."""
    assert _changed_table("INSERT OR REPLACE INTO kv (scope) VALUES (1)") == "kv"
    assert _changed_table("INSERT INTO kv(scope) VALUES (1)") == _changed_table("INSERT INTO kv VALUES (1)") == "kv"
    assert _changed_table("DELETE FROM tasks") == _changed_table("UPDATE tasks SET x = 1") == "tasks"
    assert _changed_table("UPDATE OR IGNORE tasks SET x = 1") == _changed_table("WITH a AS (SELECT 1)") == ""


def test_each_table_that_is_posted_is_known() -> None:
    """Each table that the team's queries read is posted, of sessions, or read along with a row that is posted."""
    read = {name for file in TEAM.glob("*.py") for name in re.findall(r"(?:FROM|JOIN) (\w+)", file.read_text())}
    along = {"events", "messages", "swarm_fence", "swarm_notices", "swarm_team_repositories"}
    tables = {name for name in read if name in {*TABLES, *contributes.TABLES}}
    assert tables > {"context", "kv"} and tables <= agent_client.POSTED | agent_client.SESSIONS | along

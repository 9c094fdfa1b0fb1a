"""The work tracker that a person has set, as hooks find it and make it known."""

import json
import time
from pathlib import Path

import pytest
from support.sessions import fault_lines, mistakes, new_session, start

from swarm_hook_core.greetings import configured, parsed
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

LINEAR = {"provider": "linear", "mcp": "linear-server"}


def published(repo: Path) -> dict[str, object]:
    with Store() as store:
        rows = store.database.rows("SELECT key, value, scope FROM kv WHERE key LIKE 'config/%'")
    assert {row["scope"] for row in rows} <= {str(repo)}
    return {row["key"]: json.loads(row["value"]) for row in rows}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("linear:linear-server", LINEAR),
        (" linear : linear-server ", LINEAR),
        ("linear", {"provider": "linear"}),
        ('{"provider": "jira", "default_promotion": "always"}', {"provider": "jira", "default_promotion": "always"}),
        ("", {}),
        (":server", {}),
        ("two words", {}),
        ("{}", {}),
        ('{"provider": 3}', {}),
        ('{"provider": "a b"}', {}),
        ("{bad", {}),
        ('["provider"]', {}),
    ],
)
def test_a_tracker_as_text(text: str, value: dict[str, object]) -> None:
    assert parsed(text) == value


def test_the_order_of_precedence(monkeypatch: pytest.MonkeyPatch, repo: Path) -> None:
    sub = str(repo / "sub")

    def found() -> object:
        return configured("CC", sub, str(repo)).get("provider")

    (repo.parent / ".swarm-work-tracker").write_text("above-the-scope")
    assert found() is None
    (repo / ".swarm-work-tracker.json").write_text('{"provider": "json-file"}')
    assert found() == "json-file"
    (repo / ".swarm-work-tracker").write_text("\n# ours\nplain-file:x\nmore\n")
    assert found() == "plain-file"
    (repo / "sub" / ".swarm-work-tracker").write_text("nearer")
    assert found() == "nearer"
    for name, value in (
        ("SWARM_WORK_TRACKER_PROVIDER", "parts"),
        ("SWARM_CC_WORK_TRACKER_PROVIDER", "own-parts"),
        ("SWARM_WORK_TRACKER", "whole"),
        ("SWARM_CC_WORK_TRACKER", "own-whole"),
    ):
        monkeypatch.setenv(name, value)
        assert found() == value
    monkeypatch.setenv("SWARM_CODEX_WORK_TRACKER", "of another runtime")
    assert found() == "own-whole"


def test_a_tracker_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for part, value in {"PROVIDER": "jira", "MCP_SERVER": "atlassian", "TEAM": "ENG", "DEFAULT_STATE": "Todo"}.items():
        monkeypatch.setenv(f"SWARM_CC_WORK_TRACKER_{part}", value)
    whole = {"provider": "jira", "mcp": "atlassian", "team": "ENG", "default_state": "Todo"}
    assert configured("CC", str(tmp_path), str(tmp_path)) == whole


def test_a_session_makes_its_tracker_known(runtime: str, repo: Path, store: Store) -> None:
    settings = {"SWARM_WORK_TRACKER": "linear:linear-server", "SWARM_IDENTITY": "p"}
    ran = start(runtime, new_session(), repo / "sub", **settings)
    assert (ran.code, ran.err) == (0, "")
    assert published(repo) == {"config/work_tracker/p": LINEAR}
    assert "tracked in linear" in ran.context and "linear-server" in ran.context
    (row,) = store.instances.in_scope(str(repo))
    known = store.tracker.of(row)
    assert known is not None and known["value"] == LINEAR
    assert mistakes() == []


def test_without_an_identity_the_tracker_is_the_sessions_own(runtime: str, repo: Path) -> None:
    ran = start(runtime, new_session(), repo, SWARM_WORK_TRACKER="linear")
    assert published(repo) == {} and "tracked in linear" in ran.context


def test_where_none_is_set_nothing_is_said_and_nothing_more_is_run(runtime: str, repo: Path) -> None:
    ran = start(runtime, new_session(), repo, SWARM_IDENTITY="p")
    assert published(repo) == {} and "tracked" not in ran.context


def test_a_tracker_that_is_refused_costs_no_session(runtime: str, repo: Path, store: Store) -> None:
    start(runtime, new_session(), repo, SWARM_IDENTITY="q")
    store.database.connection.execute(
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, '{}', 'identity:q', ?)",
        (str(repo), "config/work_tracker/p", int(time.time())),
    )
    ran = start(runtime, new_session(), repo, SWARM_WORK_TRACKER="linear", SWARM_IDENTITY="p")
    assert ran.code == 0 and "tracked in linear" in ran.context
    (fault,) = fault_lines()
    assert "work tracker not published" in json.dumps(fault)

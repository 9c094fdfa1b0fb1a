"""Ends of turns, and of the files that sessions have for them, by clients' events as their hooks get them."""

from pathlib import Path

import pytest
from support import turns
from support.fixtures import wait_for
from support.sessions import captured, new_session, run, start, subagent_payload

from swarm_mcp.domain.lock import AUTO
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

MISSING = "/nowhere/swarm-mcp"
PLACES = {"PATH": "/usr/bin:/bin", "SWARM_MCP_BIN": MISSING}


@pytest.fixture(params=["claude-code", "codex"])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def session(runtime: str, repo: Path) -> str:
    me = new_session()
    assert start(runtime, me, repo).context
    return me


def write(runtime: str, me: str, file: Path, agent: str = "") -> None:
    turns.write((runtime, me), str(file), agent)


def tell(runtime: str, me: str, event: str, repo: Path, **env: str) -> None:
    hook = {"SessionEnd": "session_end"}.get(event, "turn")
    ran = run(runtime, hook, {**captured(runtime, event, repo), "session_id": me}, env)
    assert (ran.code, ran.err) == (0, "")


def held(*files: Path) -> list[str | None]:
    with Store() as store:
        return [lock.mode for file in files for lock in store.locks.on(str(file))]


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "SessionEnd"])
def test_a_file_is_free_when_its_turn_ends(runtime: str, event: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f")
    assert held(repo / "f") == [AUTO]
    tell(runtime, me, event, repo)
    assert turns.held() == [] and held(repo / "f") == []


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "SessionEnd"])
def test_where_the_coordinator_is_missing_the_hook_notes_the_end(runtime: str, event: str, repo: Path) -> None:
    me, peer = session(runtime, repo), session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, peer, repo / "g")
    tell(runtime, me, event, repo, **PLACES)
    assert turns.holders() == [peer]


def test_what_an_agent_has_ends_with_the_agent(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, me, repo / "g", agent="a1")
    tell(runtime, me, "Stop", repo)
    assert held(repo / "f", repo / "g") == [AUTO]
    write(runtime, me, repo / "h", agent="a1")
    ran = run(runtime, "subagent", subagent_payload("SubagentStop", me, "a1", repo))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    wait_for(lambda: turns.held() == [] and held(repo / "g", repo / "h") == [])


@pytest.mark.alone("a checker has the coordinator of its own installation")
def test_without_a_coordinator_an_agent_s_turn_ends_all_the_same(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, me, repo / "g", agent="a1")
    run(runtime, "subagent", subagent_payload("SubagentStop", me, "a1", repo), PLACES)
    assert [one.agent for one in turns.held()] == [""]


def test_being_told_that_claude_code_waits_for_a_prompt_ends_a_turn(repo: Path) -> None:
    me = session("claude-code", repo)
    tell("claude-code", me, "UserPromptSubmit", repo)
    write("claude-code", me, repo / "f")
    payload = {**captured("claude-code", "Notification.idle_prompt", repo), "session_id": me}
    for other in ("permission_prompt", ""):  # the turn goes on
        run("claude-code", "turn", {**payload, "notification_type": other})
        assert turns.holders() == [me]
    assert run("claude-code", "turn", payload).out == ""
    assert turns.held() == []
    with Store() as store:
        assert [row.state for row in store.database.rows("SELECT state FROM swarm_sessions")] == ["idle"]


def test_an_interrupted_turn_of_codex_ends_at_once(repo: Path) -> None:
    me = session("codex", repo)
    write("codex", me, repo / "f")
    tell("codex", me, "Interrupt", repo)
    assert turns.held() == []


def test_what_the_next_turn_writes_while_the_end_of_the_last_is_told_stays(repo: Path) -> None:
    me = session("claude-code", repo)
    turns.write(("claude-code", me), str(repo / "f"), ago=-60)
    tell("claude-code", me, "Stop", repo)
    assert turns.holders() == [me]


def test_a_session_that_goes_on_after_compacting_is_in_its_turn_still(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f")
    assert start(runtime, me, repo, "compact").context
    assert held(repo / "f") == [AUTO]

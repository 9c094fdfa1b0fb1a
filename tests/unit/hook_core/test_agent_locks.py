"""A session's locks are its agents' too; a lock of one of its agents keeps all others in it out."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.sessions import Ran, after, alterations, begun, captured, join, mistakes, new_session, run, start

from swarm_hook_core.lookup import SOME_AGENT, Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import records
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

SUBAGENTS = {"claude-code": "PreToolUse.Write.subagent", "codex": "PreToolUse.apply_patch.subagent"}


@pytest.fixture
def repo(repo: Path) -> Path:
    (repo / "sa.md").write_text("theirs\n")
    return repo


def lock(runtime: str, session: str, *files: Any, **given: Any) -> dict[str, Any]:
    """A lock that this session takes, or one of its agents; the session's row."""
    with Store() as store:
        row = store.instances.of_session(runtime, session)
        assert row
        store.locks.acquire_all(row, request(row, [str(file) for file in files], note="surgery", **given))
        return row


def written(runtime: str, session: str, repo: Path, agent: str) -> Ran:
    """A write of ``sa.md``, as the client's own subagent makes it; by the main thread where `agent` is empty."""
    payload = {**captured(runtime, SUBAGENTS[runtime], repo), "session_id": session}
    assert payload["agent_id"], "both clients say which of a session's agents calls"
    payload["agent_id"] = agent
    if not agent:
        del payload["agent_id"], payload["agent_type"]
    return run(runtime, "pre_tool_use", payload)


@pytest.fixture
def me(runtime: str, repo: Path) -> str:
    session = new_session()
    assert start(runtime, session, repo).context
    return session


@pytest.mark.parametrize("files", [("sa.md",), ("*.md",), ("",)])
def test_what_an_agent_holds_stops_its_siblings_and_the_main_thread(
    runtime: str, repo: Path, me: str, files: tuple[str, ...]
) -> None:
    given = {"as_pattern": True} if "*" in files[0] else {}
    lock(runtime, me, *(str(repo / file) for file in files), agent="a1", **given)
    assert written(runtime, me, repo, "a1").out == ""
    for agent in ("", "a2"):
        reason = written(runtime, me, repo, agent).reason
        assert 'held by another agent of your session (agent a1) (note: "surgery"; locked' in reason, reason
        assert "leave it to that agent" in reason and "message the holder" not in reason
    with Store() as store:
        row = store.instances.of_session(runtime, me)
        assert row and store.messages.peek(row) == [], "nobody is told to wait for himself"
    assert mistakes() == []


def test_a_peer_s_agent_is_named_in_the_denial(runtime: str, repo: Path, me: str) -> None:
    with Store() as store:
        peer = join(store, repo, "renumbering")
        store.locks.acquire_all(peer, request(peer, [str(repo / "sa.md")], agent="b7"))
    for agent in ("", "b7"):  # the same word is another's agent in another session
        assert f"held by agent b7 of renumbering {peer['id'][:8]} (" in written(runtime, me, repo, agent).reason


def test_an_agent_s_lock_in_the_store_keeps_others_from_one_too(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, repo / "sa.md", agent="a1")
    view = StoreReader(store_path())
    key = str(repo / "sa.md")

    def seen(own_id: str, agent: str) -> tuple[bool, bool, bool]:
        peers = Peers(view, own_id, time.time(), agent)
        return bool(peers.on([key])), bool(peers.under([str(repo)])), peers.any()

    assert seen(row["id"], "a1") == (False, False, True)
    assert seen(row["id"], "a2") == seen(row["id"], "") == seen("somebody", "a1") == (True, True, True)
    assert seen(row["id"], SOME_AGENT) == (False, False, True), "nobody says which: it may be the holder itself"


def test_many_locks_of_one_s_own_hide_no_sibling_s(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, *(f"{repo}/many/{number}" for number in range(20)), agent="a1")
    lock(runtime, me, repo / "many" / "zz", agent="a2")
    peers = Peers(StoreReader(store_path()), row["id"], time.time(), "a1")
    assert [held.agent for held in peers.under([str(repo)], 5)] == ["a2"]


def test_locks_of_agents_that_may_be_the_caller_say_that_there_are_more(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, *(f"{repo}/many/{number}" for number in range(20)), agent="a1")
    peers = Peers(StoreReader(store_path()), row["id"], time.time(), SOME_AGENT)
    assert peers.first_under([str(repo)], 5) == ([], True)
    assert peers.all_under([str(repo)], 5) == []


def test_what_a_sibling_changes_unseen_is_told_and_what_the_holder_does_is_not(
    runtime: str, repo: Path, me: str
) -> None:
    lock(runtime, me, repo / "sa.md", agent="a1")
    payload = begun(runtime, me, repo)
    (repo / "sa.md").write_text("mine\n")
    said = after(runtime, payload)
    assert 'sa.md changed, which agent a1 of your session has locked: "surgery"' in said and "Tell that agent" in said
    rows = wait_for(lambda: alterations())
    assert rows[0]["holder_id"] == rows[0]["writer_id"]
    (repo / "sa.md").write_text("theirs\n")
    payload = begun(runtime, me, repo)
    assert written(runtime, me, repo, "a1").out == ""  # the holder's own write, while the other's call runs
    (repo / "sa.md").write_text("the holder's\n")
    assert after(runtime, payload) == ""


def test_own_marks_tell_agents_apart(repo: Path) -> None:
    file, when = str(repo / "sa.md"), 10**18
    (Path(records.watched_dir())).mkdir(parents=True)
    records.mark_own("s", [file], "call", when, "a1")

    def acted(agent: str) -> bool:
        return records.acted("s", file, when - 5, when, when + 5, agent)

    assert (acted(""), acted("a1"), acted("a2")) == (True, True, False)
    records.mark_own("s", [], "other", when)
    assert (acted("a2"), acted("a1")) == (False, True)
    lines = (Path(records.acting_dir()) / "s").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [4, 3], "what has no agent reads as it always did"
    assert json.dumps(lines)

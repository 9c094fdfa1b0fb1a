"""A session that tries the same file again and again, although it is denied, is told so in fewer words."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.sessions import hook_core, join, mistakes, peer_locks

from swarm_hook_core import repeated_denials, storms
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.store import Store
from swarm_mcp.store.attempts import Attempt


@pytest.fixture
def calls(commands: list[list[str]]) -> list[list[str]]:
    """The commands that denials in this process would start."""
    return commands


def session(repo: Path, name: str = "me", label: str = "identity:p me") -> Any:
    with Store() as store:
        return join(store, repo, label, runtime="claude-code", session_id=name)


def tried(repo: Path, file: str, times: int = 1, name: str = "me", tool: str = "Write", **more: str) -> list[str]:
    """Return the reasons for the denials of session `name`'s writes."""
    given = {"file_path": file} if tool == "Write" else {"command": f"echo x > {file}"}
    call = ToolCall(tool, given, name, str(repo), "PreToolUse", **more)
    reasons = []
    for _ in range(times):
        verdict = hook_core("claude-code").judge(call)
        reason = verdict.denial.reason if verdict.denial else ""
        reasons.append(re.sub(r"locked \d+ (s|min) ago", "locked AGE ago", reason))
    return reasons


def times_told(calls: list[list[str]]) -> list[str]:
    return [next((word.partition("=")[2] for word in words if word.startswith("--times=")), "") for words in calls]


def test_the_third_denial_is_shorter_and_says_how_often_by_whom_and_what_else(repo: Path, calls: list) -> None:
    session(repo)
    peer_locks(repo, repo / "f", "a long note of what is being done to it", label="identity:p holder")
    first, second, third, *_rest, tenth = tried(repo, "f", 10)
    assert first == second and "note:" in first and "times" not in first
    assert len(third) < len(first) and third.startswith(f"swarm lock blocked Write for {repo}/f: denied 3 times within")
    for words in ("held by holder ", "until it is released", "Work on something else", "wait in line"):
        assert words in third
    assert "denied 10 times" in tenth and "end the turn" in tenth and "\n" not in third + tenth
    assert mistakes() == []


def test_the_coordinator_hears_of_the_first_the_third_and_the_tenth(repo: Path, calls: list) -> None:
    session(repo)
    peer = peer_locks(repo, repo / "f")
    tried(repo, "f")
    assert times_told(calls) == [""]
    with Store() as store:  # as the command would have written it down
        store.denials.report(store.instances.of_session("claude-code", "me"), f"{repo}/f", peer["id"], Attempt("Write"))
    tried(repo, "f", 11)
    assert times_told(calls) == ["", "3", "10"]


def test_the_coordinator_hears_of_a_write_that_is_denied_after_a_request_for_the_lock(repo: Path, calls: list) -> None:
    me = session(repo)
    peer_locks(repo, repo / "f", label="identity:p peer")
    with Store() as store:
        store.transfers.request(me, str(repo / "f"), "soon")
    tried(repo, "f")
    assert times_told(calls) == [""]


def test_a_shell_command_and_a_write_are_one_storm(repo: Path, calls: list) -> None:
    session(repo)
    peer_locks(repo, repo / "f")
    tried(repo, "f", 2)
    (reason,) = tried(repo, "f", tool="Bash")
    assert f"blocked Bash for {repo}/f: denied 3 times" in reason


@pytest.mark.parametrize("other", ["file", "session", "holder", "time"])
def test_what_is_another_storm_is_not_counted_along(repo: Path, calls: list, other: str, limits) -> None:
    session(repo)
    holder = peer_locks(repo, repo / "f")
    peer_locks(repo, repo / "g")
    tried(repo, "f", 2)
    if other == "session":
        session(repo, "you")
    if other == "holder":
        with Store() as store:
            store.locks.release(holder, str(repo / "f"))
        peer_locks(repo, repo / "f")
    if other == "time":
        limits(storms, SECONDS=-1)
    file, name = "g" if other == "file" else "f", "you" if other == "session" else "me"
    (reason,) = tried(repo, file, name=name)
    assert reason and "denied 3 times" not in reason


def test_requests_for_the_lock_do_not_count(repo: Path, calls: list) -> None:
    me = session(repo)
    peer_locks(repo, repo / "f")
    with Store() as store:
        for _ in range(5):
            with pytest.raises(Exception, match="locked"):
                store.locks.acquire(me, str(repo / "f"))
    assert "times" not in "".join(tried(repo, "f", 2))


def test_what_is_denied_because_it_may_write_keeps_its_reason(repo: Path, calls: list, monkeypatch) -> None:
    monkeypatch.setenv("SWARM_STRICT", "1")
    session(repo)
    peer_locks(repo, repo / "f")
    call = ToolCall("Bash", {"command": "./unknown-program"}, "me", str(repo), "PreToolUse")
    reasons = {hook_core("claude-code").judge(call).denial.reason for _ in range(4)}
    assert len(reasons) == 1 and "SWARM_STRICT" in reasons.pop()


def test_another_agent_of_the_session_is_left_its_file(repo: Path, calls: list) -> None:
    me = session(repo)
    with Store() as store:
        from swarm_mcp.store.lock_request import request

        store.locks.acquire_all(me, request(me, [str(repo / "f")], agent="helper"))
    reason = tried(repo, "f", 3, agent="other")[-1]
    assert "denied 3 times" in reason and "another agent of your session" in reason and "Leave it to" in reason


def test_strangers_stay_unnamed(repo: Path, calls: list) -> None:
    session(repo)
    peer_locks(repo, repo / "f", "secret-note", label="identity:q secret-label")
    for reason in tried(repo, "f", 10):
        assert "secret" not in reason and "a session of another identity" in reason


def test_a_call_that_two_ways_of_asking_deny_counts_once(repo: Path, calls: list) -> None:
    """A session's server and the command beside it, say."""
    session(repo)
    peer_locks(repo, repo / "f")
    reasons = [reason for number in "123" for reason in tried(repo, "f", 2, id=f"toolu_{number}")]
    assert ["denied 3 times" in reason for reason in reasons] == [False] * 4 + [True] * 2
    assert times_told(calls)[:1] == [""] and times_told(calls)[-2:] == ["3", "3"]


def test_a_count_that_cannot_be_kept_denies_all_the_same(repo: Path, calls: list, failing) -> None:
    session(repo)
    peer_locks(repo, repo / "f")
    failing(repeated_denials, "lately", OSError(28, "No space left"))
    assert all("swarm lock blocked" in reason for reason in tried(repo, "f", 4))
    assert len(mistakes()) == 4


def test_of_very_many_only_the_newest_are_looked_at(repo: Path, calls: list, limits) -> None:
    """A denial's cost does not depend on the number of earlier attempts, and its count is true all the same."""
    session(repo)
    peer_locks(repo, repo / "f")
    limits(repeated_denials, MOST=12)
    last = tried(repo, "f", 30)[-1]
    assert "denied 13 times within" in last and "end the turn" in last and mistakes() == []


def test_a_call_that_may_pass_counts_nothing(repo: Path, calls: list, failing) -> None:
    session(repo)
    peer_locks(repo, repo / "f")
    failing(storms, "weigh", pytest.fail.Exception)
    assert tried(repo, "g", 3) == ["", "", ""] and mistakes() == []

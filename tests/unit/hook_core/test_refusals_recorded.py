"""Refusals are recorded, and a session that tries the same file again and again is told so in fewer words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.sessions import RUNTIMES, captured, hook_core, join, mistakes, peer_locks, run
from support.traced import Player

from swarm_hook_core import denial as denials
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import Attempt


@pytest.fixture
def started(commands: Any, capsys: pytest.CaptureFixture) -> list[list[str]]:
    """The commands that refusals start, each run to its end, here."""
    commands.run = True
    return commands


def tries(me: Player, command: str, id: str = "") -> Any:
    """Return the Denial of a shell command, asked as a hook does; None if it may pass."""
    call = ToolCall("Bash", {"command": command}, me.session_id, str(me.folder), "PreToolUse", id=id)
    verdict = me.core.judge(call)
    return verdict.denial if verdict is not None else None


def events(what: str = "context.%denied") -> list[tuple[str, str, str, dict]]:
    with Store() as store:
        rows = store.database.rows("SELECT type, actor, subject, payload FROM events WHERE type LIKE ?", (what,))
    return [(row.type, row.actor, row.subject, json.loads(row.payload)) for row in rows]


def told(capsys: pytest.CaptureFixture, *words: str) -> str:
    """Return a command's output."""
    capsys.readouterr()
    assert main([*words]) == 0
    return str(capsys.readouterr().out)


def test_a_refusal_for_uncommitted_work_is_an_event(work: Path, started: list[list[str]], store: Store) -> None:
    """Each reason, and its words on every screen: test_incidents."""
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    peer.edits("notes.md", "beta", "PEER")
    denial = tries(me, "git checkout .")
    ((kind, actor, subject, payload),) = events()
    assert (kind, actor, subject) == ("context.write_denied", me.row["id"], str(work / "notes.md"))
    assert (payload["reason"], payload["deed"], payload["holder"]) == ("sweep", "throw away", peer.row["id"])
    assert (payload["said"], payload["tool"]) == (denial.reason.partition("\n")[0], "Bash")
    assert payload["cwd"] == str(work)
    assert store.messages.peek(store.instances.get(me.row["id"])) == [], "nobody waits for such a file"


@pytest.mark.parametrize("level", ["keep", "turn"])
def test_a_refusal_for_a_lock_or_a_claim_is_an_event(level: str, work: Path, started, capsys, monkeypatch) -> None:
    monkeypatch.chdir(work)
    monkeypatch.setenv("SWARM_AUTO", level)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    if level == "keep":
        with Store() as store:
            store.locks.acquire(peer.row, str(work / "notes.md"), "busy")
    else:
        assert peer.edits("notes.md", "beta", "PEER") == ""
    assert tries(me, "echo x > notes.md").held.instance_id == peer.row["id"]
    ((kind, actor, _subject, payload),) = events()
    assert (kind, actor, payload["holder"]) == ("context.lock_denied", me.row["id"], peer.row["id"])
    status = told(capsys, "status")
    assert f"  notes.md to me {me.row['id'][:8]}, by Bash: held by peer {peer.row['id'][:8]}" in status


def test_a_refusal_for_a_lock_that_has_gone_by_then_is_an_event(work: Path, started, capsys, store: Store) -> None:
    me, holder = Player("codex", work), peer_locks(work, work / "notes.md")
    call = ToolCall("Bash", {"command": "echo x > notes.md"}, me.session_id, str(work))
    verdict = me.core.check(call)
    store.locks.release(holder, str(work / "notes.md"))
    me.core.note_denial(call, verdict.denial)
    ((kind, actor, subject, payload),) = events()
    assert (kind, actor, subject) == ("context.lock_denied", me.row["id"], str(work / "notes.md"))
    assert (payload["holder"], payload["tool"]) == (holder["id"], "Bash")


def test_of_a_storm_the_coordinator_hears_once(work: Path, started, capsys, monkeypatch, limits) -> None:
    """And so does it where two ways of asking deny one call."""
    monkeypatch.chdir(work)
    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    for number in range(4):
        assert tries(me, "git checkout .", str(number)) and tries(me, "git checkout .", str(number))
    assert len(started) == 1 and len(events()) == 1
    assert "and 3 more within the minute" in told(capsys, "log", "notes.md")
    limits(denials, NOTED_SECONDS=-1)
    assert tries(me, "git checkout .").times == 5
    assert len(started) == 2 and len(events()) == 1, "the store goes by its own clock"


def test_the_other_files_of_a_refusal_have_it_too(work: Path, started: list[list[str]], capsys, monkeypatch) -> None:
    monkeypatch.chdir(work)
    me, peer = Player("codex", work), Player("codex", work)
    for name in ("notes.md", "other.md", "sub/deep.md"):
        peer.edits(name, "beta", "PEER")
    tries(me, "git stash")
    assert "and has not committed, and 2 more files" in told(capsys, "log", "notes.md")
    for name in ("other.md", "sub/deep.md"):
        assert "`git stash` would put aside" in told(capsys, "log", name)


def test_strangers_stay_unnamed(work: Path, started: list[list[str]], capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    me = Player("codex", work, "identity:p me")
    Player("codex", work, "identity:q secret-name").edits("notes.md", "beta", "PEER")
    tries(me, "rm notes.md")
    for words in (["log", "notes.md"], ["log"], ["status"], ["log", "notes.md", "--json"], ["status", "--json"]):
        assert "secret-name" not in told(capsys, *words, "--as", me.row["id"]), words


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_hook_process_has_it_recorded(runtime: str, work: Path) -> None:
    me, peer = Player(runtime, work), Player("codex", work)
    peer.edits("notes.md", "beta", "PEER")
    payload = {**captured(runtime, "PreToolUse.Bash", work), "session_id": me.session_id, "cwd": str(work)}
    payload["tool_input"] = {"command": "rm notes.md"}
    assert "their work would be lost" in run(runtime, "pre_tool_use", payload).reason
    ((_kind, actor, _subject, told_to_store),) = wait_for(events)
    assert actor == me.row["id"] and told_to_store["reason"] == "uncommitted" and mistakes() == []


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
    assert len(third) < len(first) and third.startswith("swarm lock blocked Write for f: denied 3 times within")
    for words in ("held by holder ", "until it is released", "Work on something else", "wait in line"):
        assert words in third
    assert "denied 10 times" in tenth and "end the turn" in tenth and "\n" not in third + tenth
    assert mistakes() == []


def test_the_coordinator_hears_of_the_first_the_third_and_the_tenth(repo: Path, calls: list, store: Store) -> None:
    session(repo)
    peer = peer_locks(repo, repo / "f")
    tried(repo, "f")
    assert times_told(calls) == [""]
    # as the command would have written it down
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
    assert "blocked Bash for f: denied 3 times" in reason


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
        limits(denials, STORM_SECONDS=-1)
    file, name = "g" if other == "file" else "f", "you" if other == "session" else "me"
    (reason,) = tried(repo, file, name=name)
    assert reason and "denied 3 times" not in reason


def test_requests_for_the_lock_do_not_count(repo: Path, calls: list, store: Store) -> None:
    me = session(repo)
    peer_locks(repo, repo / "f")
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


def test_another_agent_of_the_session_is_left_its_file(repo: Path, calls: list, store: Store) -> None:
    me = session(repo)
    from swarm_mcp.store.lock_request import request

    store.locks.acquire_all(me, request(me, [str(repo / "f")], agent="helper"))
    reason = tried(repo, "f", 3, agent="other")[-1]
    assert "denied 3 times" in reason and "another agent of your session" in reason and "Leave it to" in reason


def test_storms_strangers_stay_unnamed(repo: Path, calls: list) -> None:
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
    failing(denials, "denied_lately", OSError(28, "No space left"))
    assert all("swarm lock blocked" in reason for reason in tried(repo, "f", 4))
    assert len(mistakes()) == 4


def test_of_very_many_only_the_newest_are_looked_at(repo: Path, calls: list, limits) -> None:
    """A denial's cost does not depend on the number of earlier attempts, and its count is true all the same."""
    session(repo)
    peer_locks(repo, repo / "f")
    limits(denials, MOST_COUNTED=12)
    last = tried(repo, "f", 30)[-1]
    assert "denied 13 times within" in last and "end the turn" in last and mistakes() == []


def test_a_call_that_may_pass_counts_nothing(repo: Path, calls: list, failing) -> None:
    session(repo)
    peer_locks(repo, repo / "f")
    failing(denials, "weigh", pytest.fail.Exception)
    assert tried(repo, "g", 3) == ["", "", ""] and mistakes() == []

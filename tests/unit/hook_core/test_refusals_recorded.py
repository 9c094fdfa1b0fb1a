"""The event of a refusal: its facts, its repetitions, its strangers. ``test_incidents`` has the words on every screen."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.sessions import RUNTIMES, captured, mistakes, peer_locks, run
from support.traced import Player

from swarm_hook_core import storms
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store


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


# The peer's change, this session's attempt -> the reason, the effect, the words of `log FILE`.
LOSSES = {
    "overwrites": (["edit"], "echo x > notes.md", "uncommitted", "overwrite", "it would overwrite what {peer} changed"),
    "removes": (["edit"], "rm notes.md", "uncommitted", "remove", "it would remove what {peer} changed"),
    "at that moment": (["begin"], "echo x > notes.md", "moment", "overwrite", "{peer} was writing it at that moment"),
    "sweeps": (["edit"], "git checkout .", "sweep", "throw away", "`git checkout .` would throw away what {peer} changed"),
    "takes from the stash": (
        ["edit", "stash"], "git stash drop", "stash", "throw away",
        "`git stash drop` would throw away what {peer} put into the stash",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES)
def test_a_refusal_for_uncommitted_work_is_an_event(case: str, work: Path, started, capsys, monkeypatch) -> None:
    deeds, command, why, deed, words = LOSSES[case]
    monkeypatch.chdir(work)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    for one in deeds:
        if one == "edit":
            peer.edits("notes.md", "beta", "PEER")
        elif one == "begin":
            assert peer.denied("Bash", {"command": "sleep 9; echo x > notes.md"}) == ""
        else:
            peer.runs("git stash")
    denial = tries(me, command)
    ((kind, actor, subject, payload),) = events()
    assert (kind, actor) == ("context.write_denied", me.row["id"])
    assert (payload["reason"], payload["deed"], payload["holder"]) == (why, deed, peer.row["id"])
    assert (
        payload["said"] == denial.reason.partition("\n")[0]
        and payload["tool"] == "Bash"
        and payload["cwd"] == str(work)
    )
    assert subject == str(work if why == "stash" else work / "notes.md")
    name = f"peer {peer.row['id'][:8]}"
    log = told(capsys, "log", subject)
    assert words.format(peer=name) in log and f"to me {me.row['id'][:8]}, by Bash: " in log, log
    assert words.format(peer=name) in told(capsys, "log")
    assert words.format(peer=name) in told(capsys, "status")
    with Store() as store:
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


def test_a_refusal_for_a_lock_that_has_gone_by_then_is_an_event(work: Path, started, capsys) -> None:
    me, holder = Player("codex", work), peer_locks(work, work / "notes.md")
    call = ToolCall("Bash", {"command": "echo x > notes.md"}, me.session_id, str(work))
    verdict = me.core.check(call)
    with Store() as store:
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
    limits(storms, NOTED_SECONDS=-1)
    assert tries(me, "git checkout .").times == 5
    assert len(started) == 2 and len(events()) == 1, "the store goes by its own clock"


def test_the_other_files_of_a_refusal_have_it_too(work: Path, started, capsys, monkeypatch) -> None:
    monkeypatch.chdir(work)
    me, peer = Player("codex", work), Player("codex", work)
    for name in ("notes.md", "other.md", "sub/deep.md"):
        peer.edits(name, "beta", "PEER")
    tries(me, "git stash")
    assert "and has not committed, and 2 more files" in told(capsys, "log", "notes.md")
    for name in ("other.md", "sub/deep.md"):
        assert "`git stash` would put aside" in told(capsys, "log", name)


def test_strangers_stay_unnamed(work: Path, started, capsys, monkeypatch) -> None:
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

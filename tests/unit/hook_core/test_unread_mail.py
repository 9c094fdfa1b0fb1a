"""A model hears of its session's unread mail at its next prompt or call: in one line, once, and it stays unread."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.sessions import (
    captured,
    fault_lines,
    hook_core,
    instances,
    mistakes,
    new_session,
    peer_locks,
    run,
    start,
    write,
)
from support.traced import Player

from swarm_hook_core import scratch, unread_mail
from swarm_mcp.store import Store, messages


def send(sender: Any, to: Any, *texts: str) -> None:
    with Store() as store:
        for text in texts:
            store.messages.send(sender, to["id"], text)


def unread(whose: Any) -> list[str]:
    with Store() as store:
        return [one.content for one in store.messages.peek(whose)]


@pytest.fixture
def pair(work: Path) -> tuple[Player, Player]:
    return Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")


# A session's call, and True if another session holds its file.
CALLS = {
    "a command that is not looked at": ("Bash", {"command": "ls"}, False),
    "a write": ("apply_patch", {"command": "*** Begin Patch\n*** Add File: new.md\n+x\n*** End Patch\n"}, False),
    "a refused write": ("Bash", {"command": "echo x > notes.md"}, True),
}


@pytest.mark.parametrize("case", CALLS)
def test_at_its_next_call_a_model_hears_of_its_mail_once(case: str, pair, work: Path) -> None:
    me, peer = pair
    tool, given, is_held = CALLS[case]
    if is_held:
        peer_locks(work, work / "notes.md")

    def said() -> str:
        return me.denied(tool, given) if is_held else me.told(tool, given)

    before = said()
    assert "unread" not in before
    send(peer.row, me.row, "leave notes.md\nto me, please", "and other.md")
    first = said()
    name = f"peer {peer.row['id'][:8]}"
    assert first.splitlines()[-1] == (
        f'swarm: 2 unread messages for you, from {name}. The first, from {name}, says: "leave notes.md to me, please".'
        " To read them whole, call poll_messages, or run `swarm-mcp bootstrap`."
    )
    assert "unread" not in said(), "once"
    assert unread(me.row) == ["leave notes.md\nto me, please", "and other.md"], "a line is no delivery"
    send(peer.row, me.row, "later")
    assert "1 unread message for you, from peer" in said() and "unread" not in said()
    with Store() as store:
        assert len(store.messages.take(me.row)) == 3
    assert "unread" not in said() and mistakes() == []


def test_who_wrote_is_named_as_far_as_the_session_may_know(pair, work: Path) -> None:
    me, peer = pair
    stranger, gone = Player("codex", work, "identity:q secret-name"), Player("codex", work, "identity:p gone")
    with Store() as store:
        scope = store.instances.get(me.row["id"]).scope
        with store.database.writing():
            for sender, text in [
                (stranger.row["id"], "hey `x` \u202e"),
                (gone.row["id"], "b"),
                ("system", "c"),
                (peer.row["id"], "d"),
            ]:
                messages.post(store.database, scope, sender, me.row["id"], text)
        store.instances.remove(gone.row["id"])
    said = me.told("Bash", {"command": "ls"})
    assert "4 unread messages" in said or "5 unread messages" in said, "its leaving may be announced"
    assert "1 from a session of another identity, 1 from a session that has gone" in said and "secret-name" not in said
    assert 'says: "hey `x` \\u202e"' in said and said.count("\n") == 0


def test_a_subagent_is_left_alone_and_its_session_hears(pair) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    assert me.told("Bash", {"command": "ls"}, agent="helper") == ""
    assert '"hello"' in me.told("Bash", {"command": "ls"})


def test_where_nothing_can_be_written_down_nothing_is_told(pair) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    folder = Path(scratch.folder_of(me.core.config, me.session_id))
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    assert me.told("Bash", {"command": "ls"}) == ""
    assert fault_lines() and "mail" in {line["hook"] for line in fault_lines()}
    folder.unlink()
    os.remove(Path(os.environ["SWARM_STATE_DIR"]) / "faults.jsonl")
    assert '"hello"' in me.told("Bash", {"command": "ls"})


def test_of_two_hooks_at_once_one_tells(pair) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    path = unread_mail._path(me.core.config, me.session_id)
    assert unread_mail._advance(path, me.row["id"], 7) == 0 and unread_mail._advance(path, me.row["id"], 7) == 7
    assert unread_mail._advance(path, "another instance", 7) == 0, "a store that began anew counts from one"


def test_without_mail_nothing_is_loaded(pair, monkeypatch) -> None:
    me, peer = pair
    send(me.row, peer.row, "not to me")
    monkeypatch.setitem(sys.modules, "swarm_hook_core.unread_mail", None)
    monkeypatch.setitem(sys.modules, "swarm_hook_core.lease_renewal", None)
    assert me.told("Bash", {"command": "ls"}) == me.runs("echo x > new.md") == "" and mistakes() == []


def test_that_a_file_is_free_is_told_whole_at_the_next_hook(work: Path) -> None:
    session_id = new_session()
    assert start("claude-code", session_id, work).context
    (mine,) = instances()
    holder = peer_locks(work, work / "notes.md", label="holder")
    assert write("claude-code", session_id, work, work / "notes.md").reason
    with Store() as store:
        wait_for(lambda: store.database.rows("SELECT 1 FROM swarm_denials"))
        store.locks.release(holder, str(work / "notes.md"))
    payload = {**captured("claude-code", "PreToolUse.Bash", work), "session_id": session_id, "cwd": str(work)}
    payload["tool_input"] = {"command": "ls"}
    said = json.loads(run("claude-code", "pre_tool_use", payload, patient=True).out)["hookSpecificOutput"]
    words = said["additionalContext"]
    assert f"{work}/notes.md is free: holder {holder['id'][:8]}" in words and "unread" not in words
    assert unread(mine) == [], "told whole, it is read"
    assert run("claude-code", "pre_tool_use", payload).out == ""


@pytest.mark.parametrize("runtime", ["gemini", "qwen"])
def test_a_client_that_drops_words_before_a_call_hears_them_after_it(runtime: str, work: Path, capsys) -> None:
    me, peer = Player(runtime, work), Player("codex", work)
    send(peer.row, me.row, "hello")

    def hook(name: str, event: str) -> str:
        payload = {"session_id": me.session_id, "cwd": str(work), "hook_event_name": event}
        payload.update(tool_name="run_shell_command", tool_input={"command": "ls"}, tool_use_id="1")
        assert getattr(hook_core(runtime), f"run_{name}_hook")(io.StringIO(json.dumps(payload))) == 0
        return capsys.readouterr().out

    assert hook("pre_tool_use", "PreToolUse") == ""
    assert "hello" in hook("post_tool_use", "PostToolUse")
    assert hook("pre_tool_use", "PreToolUse") == hook("post_tool_use", "PostToolUse") == ""

"""Words for a model: of unread mail, and those that its client drops or has little room for."""

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
    join,
    mistakes,
    new_session,
    peer_locks,
    run,
    start,
    write,
)
from support.traced import Player

from swarm_hook_core import session_memory
from swarm_hook_core.check import rules
from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.session_memory import LONGEST_WORDS, keep_words, take_words
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
def test_at_its_next_call_a_model_hears_of_its_mail_once(case: str, pair, work: Path, store: Store) -> None:
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
    assert len(store.messages.take(me.row)) == 3
    assert "unread" not in said() and mistakes() == []


def test_who_wrote_is_named_as_far_as_the_session_may_know(pair, work: Path, store: Store) -> None:
    me, peer = pair
    stranger, gone = Player("codex", work, "identity:q secret-name"), Player("codex", work, "identity:p gone")
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


def test_a_subagent_is_left_alone_and_its_session_hears(pair: tuple[Player, Player]) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    assert me.told("Bash", {"command": "ls"}, agent="helper") == ""
    assert '"hello"' in me.told("Bash", {"command": "ls"})


def test_where_nothing_can_be_written_down_nothing_is_told(pair: tuple[Player, Player]) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    folder = Path(session_memory.folder_of(me.core.config, me.session_id))
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    assert me.told("Bash", {"command": "ls"}) == ""
    assert fault_lines() and "mail" in {line["hook"] for line in fault_lines()}
    folder.unlink()
    os.remove(Path(os.environ["SWARM_STATE_DIR"]) / "faults.jsonl")
    assert '"hello"' in me.told("Bash", {"command": "ls"})


def test_of_two_hooks_at_once_one_tells(pair: tuple[Player, Player]) -> None:
    me, peer = pair
    send(peer.row, me.row, "hello")
    path = session_memory._mail_file(me.core.config, me.session_id)
    assert session_memory._advance(path, me.row["id"], 7) == 0 and session_memory._advance(path, me.row["id"], 7) == 7
    assert session_memory._advance(path, "another instance", 7) == 0, "a store that began anew counts from one"


def test_without_mail_nothing_is_loaded(pair: tuple[Player, Player], monkeypatch: pytest.MonkeyPatch) -> None:
    me, peer = pair
    send(me.row, peer.row, "not to me")
    monkeypatch.setitem(sys.modules, "swarm_hook_core.session_memory", None)
    assert me.told("Bash", {"command": "ls"}) == me.runs("echo x > new.md") == "" and mistakes() == []


def test_that_a_file_is_free_is_told_whole_at_the_next_hook(work: Path, store: Store) -> None:
    session_id = new_session()
    assert start("claude-code", session_id, work).context
    (mine,) = instances()
    holder = peer_locks(work, work / "notes.md", label="holder")
    assert write("claude-code", session_id, work, work / "notes.md").reason
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


ROOM = 256
CONFIG = RuntimeConfig(
    "editor", "ED", "swarm-editor", {"save"}, paths_under_keys("path"),
    dialect=Dialect(tools={"run": "Bash"}, reason_length=ROOM, unheard=lambda event, source: event == "SessionStart"),
)  # fmt: skip


@pytest.fixture
def editor(repo: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Ask the check about a call of the session ``me``. Returns its answer, empty for silence."""

    def ask(tool: str, agent: str = "", **tool_input: str) -> str:
        payload = {"session_id": "me", "cwd": str(repo), "hook_event_name": "PreToolUse", "tool_name": tool}
        given = json.dumps({**payload, "agent_id": agent, "tool_input": tool_input, "tool_use_id": new_session()})
        assert HookCore(CONFIG).run_pre_tool_use_hook(io.StringIO(given)) == 0
        inner = json.loads(capsys.readouterr().out or '{"hookSpecificOutput": {}}')["hookSpecificOutput"]
        return str(inner.get("permissionDecisionReason") or inner.get("additionalContext") or "")

    return ask


def unheard(text: str, capsys: pytest.CaptureFixture[str], agent: str = "") -> None:
    HookCore(CONFIG).tell("SessionStart", SessionEvent("me", name="SessionStart", agent=agent), text)
    assert capsys.readouterr().out == ""


def test_words_that_are_dropped_are_told_once_with_the_next_call_of_whom_they_are_for(editor: Any, capsys) -> None:
    unheard("hello", capsys)
    unheard("more é\udcff", capsys)
    unheard("you are an agent", capsys, agent="../a")
    assert editor("read", path="f") == "hello\nmore é\udcff"
    assert editor("read", path="f") == ""
    assert editor("read", agent="../a", path="f") == "you are an agent"
    assert mistakes() == []


def test_words_that_come_as_others_are_taken_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    event, real = SessionEvent("me", name="SessionStart"), os.open
    keep_words(CONFIG, event, "first")
    told: list[str] = []

    def as_another_hook_takes_them(path: Any, *given: Any, **more: Any) -> int:
        handle = real(path, *given, **more)
        if not told and str(path).endswith("editor.me"):
            told.append("")
            told.append(take_words(CONFIG, event))
        return handle

    monkeypatch.setattr(os, "open", as_another_hook_takes_them)
    keep_words(CONFIG, event, "second")
    assert (told[1:], take_words(CONFIG, event)) == (["first"], "second")
    assert take_words(CONFIG, event) == "" and mistakes() == []


def test_the_newest_of_very_many_words_are_told(editor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    unheard("x" * LONGEST_WORDS, capsys)
    unheard("the newest", capsys)
    told = editor("read", path="f")
    assert told.endswith("xx\nthe newest") and len(told) <= LONGEST_WORDS


def test_a_refusal_says_what_matters_in_the_room_there_is(repo: Path, editor: Any, store: Store) -> None:
    # Of a session that is registered in passing the first may not be counted: a busy machine has no time for it.
    join(store, repo, "identity:p me", runtime="editor", session_id="me")
    deep = repo / ("a" * 80) / ("b" * 80) / "file.txt"
    peer = peer_locks(repo, deep, "a long note " * 20, label=f"identity:p {'holder' * 20}")
    short = editor("save", path=str(deep))
    assert len(short) <= ROOM and short.startswith("swarm lock blocked save for …b"), short
    assert 'file.txt: held by "holderholder' in short and "work on something else" in short, short
    peer_locks(repo, repo / "f", "short", label="the peer")
    said = editor("save", path="f")
    assert len(said) <= ROOM and said.startswith('swarm lock blocked save for f: held by "the peer" '), said
    assert said.endswith("message the holder, or wait in line for it (lock_file with wait_seconds)."), said
    assert editor("run", command="echo x > f").startswith("swarm lock blocked run for f: held by")
    assert editor("save", path="f").startswith("swarm lock blocked save for f: denied 3 times, held by")
    for _again in range(7):
        last = editor("save", path="f")
    assert "end the turn" in last and len(last) <= ROOM, last
    assert editor("save", path="free") == "" and peer, "nothing is repeated"


def test_news_beside_a_refusal_are_told_with_the_next_call(repo: Path, editor: Any, monkeypatch) -> None:
    peer_locks(repo, repo / "f", "mine")
    with monkeypatch.context() as patched:
        patched.setattr(rules, "AFTERWARDS", (lambda check, verdict: _append(verdict), rules.shorten))
        assert "news" not in editor("save", path="f")
    assert editor("read", path="f") == "news of your own locks"


def _append(verdict: Any) -> None:
    if verdict.denial is not None:
        verdict.denial.reason += "\nnews of your own locks"


def test_a_refusal_that_is_for_no_lock_is_told_whole_with_the_next_call(editor: Any, monkeypatch) -> None:
    monkeypatch.setenv("SWARM_FAIL", "closed")
    first = editor("save")
    assert len(first) == ROOM and first.startswith("swarm: this save call was denied") and first.endswith("…"), first
    whole = editor("read", path="f")
    assert whole.startswith(first[:-1]) and len(whole) > ROOM

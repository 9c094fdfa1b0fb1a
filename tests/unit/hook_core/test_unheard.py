"""Clients that drop words at some events, and have little room for a refusal's reason."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.sessions import join, mistakes, new_session, peer_locks

from swarm_hook_core.check import afterwards
from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.unheard import LONGEST, keep, take
from swarm_mcp.store import Store

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


def test_words_that_are_dropped_are_told_once_with_the_next_call_of_whom_they_are_for(
    editor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    unheard("hello", capsys)
    unheard("more é\udcff", capsys)
    unheard("you are an agent", capsys, agent="../a")
    assert editor("read", path="f") == "hello\nmore é\udcff"
    assert editor("read", path="f") == ""
    assert editor("read", agent="../a", path="f") == "you are an agent"
    assert mistakes() == []


def test_words_that_come_as_others_are_taken_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    event, real = SessionEvent("me", name="SessionStart"), os.open
    keep(CONFIG, event, "first")
    told: list[str] = []

    def as_another_hook_takes_them(path: Any, *given: Any, **more: Any) -> int:
        handle = real(path, *given, **more)
        if not told and str(path).endswith("editor.me"):
            told.append("")
            told.append(take(CONFIG, event))
        return handle

    monkeypatch.setattr(os, "open", as_another_hook_takes_them)
    keep(CONFIG, event, "second")
    assert (told[1:], take(CONFIG, event)) == (["first"], "second")
    assert take(CONFIG, event) == "" and mistakes() == []


def test_the_newest_of_very_many_words_are_told(editor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    unheard("x" * LONGEST, capsys)
    unheard("the newest", capsys)
    told = editor("read", path="f")
    assert told.endswith("xx\nthe newest") and len(told) <= LONGEST


def test_a_refusal_says_what_matters_in_the_room_there_is(repo: Path, editor: Any) -> None:
    # Of a session that is registered in passing the first may not be counted: a busy machine has no time for it.
    with Store() as store:
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


def test_news_beside_a_refusal_are_told_with_the_next_call(
    repo: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer_locks(repo, repo / "f", "mine")
    with monkeypatch.context() as patched:
        patched.setattr(afterwards, "AFTERWARDS", (lambda check, verdict: _append(verdict), afterwards.shorten))
        assert "news" not in editor("save", path="f")
    assert editor("read", path="f") == "news of your own locks"


def _append(verdict: Any) -> None:
    if verdict.denial is not None:
        verdict.denial.reason += "\nnews of your own locks"


def test_a_refusal_that_is_for_no_lock_is_told_whole_with_the_next_call(
    editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWARM_FAIL", "closed")
    first = editor("save")
    assert len(first) == ROOM and first.startswith("swarm: this save call was denied") and first.endswith("…"), first
    whole = editor("read", path="f")
    assert whole.startswith(first[:-1]) and len(whole) > ROOM

"""Auggie's own parts: payloads captured from it, words that wait for a result, and hooks and server in its settings."""

import json
import re
from pathlib import Path

import pytest
from support.sessions import captured, hook_core, new_session, run

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.hooks import session_event, tool_call
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.steps import Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
SETTINGS = (
    '{\n  "hooks": {"PreToolUse": [{"matcher": "view", "hooks": [{"type": "command", "command": "true"}]}]},\n'
    '  "mcpServers": {"files": {"command": "files"}}\n}\n'
)


def test_each_form_of_a_write_is_read_and_a_tilde_is_the_home(home: Path):
    changes = hook_core("auggie").config.changes_of
    assert changes("save-file", {"path": "~/a", "file_content": ""}) == [(f"{home}/a", REPLACE)]
    assert changes("str-replace-editor", {"path": "a~", "command": "insert"}) == [("a~", EDIT)]
    assert changes("remove-files", {"file_paths": ["a", "~/b"]}) == [("a", REMOVE), (f"{home}/b", REMOVE)]
    move = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch\n"
    assert {path for path, _how in changes("apply_patch", {"input": move})} == {"a", "b"}
    for unreadable in (None, [], {}, {"path": 7, "file_content": ""}):
        with pytest.raises(ValueError):
            changes("save-file", unreadable)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("write_file_files", "mcp__files__write_file"),
        ("write_file_my_files", "mcp__my_files__write_file"),
        ("lock_file_swarm", "mcp__swarm__lock_file"),
        ("lock_file_swarm-locks-2", "mcp__swarm-locks-2__lock_file"),
        ("look", "look"),
    ],
)
def test_a_tool_s_server_is_the_end_of_its_name(repo: Path, told: str, read: str):
    payload = {**captured("auggie", "PreToolUse.write_file_files", repo), "tool_name": told}
    assert tool_call(hook_core("auggie").config.dialect.read(payload)).tool == read


def test_results_and_prompts_are_read(repo: Path):
    read = hook_core("auggie").config.dialect.read
    calls = ("PostToolUse.launch-process.background", "PostToolUse.launch-process.failed")
    found = [tool_call(read(captured("auggie", name, repo))) for name in calls]
    assert [(one.goes_on, one.name) for one in found] == [(True, "PostToolUse"), (False, "PostToolUseFailure")]
    assert "return-code" in str(found[1].response)
    assert session_event(read(captured("auggie", "PromptSubmit", repo))).prompt == "Please <<play work>> now."


def test_words_of_other_events_are_told_with_the_next_result(repo: Path):
    session = new_session()

    def told(hook: str, name: str) -> str:
        ran = run("auggie", hook, {**captured("auggie", name, repo), "conversation_id": session}, patient=True)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    assert told("session_start", "SessionStart.startup") == told("turn", "PromptSubmit") == ""
    answer = json.loads(told("post_tool_use", "PostToolUse.launch-process.failed"))["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUse" and "is registered as `auggie " in answer["additionalContext"]
    assert told("turn", "Stop") == told("session_end", "SessionEnd") == ""


# -- its settings --


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace", local=True)
    settings().parent.mkdir()
    settings().write_text(SETTINGS)
    return tmp_path / "marketplace"


def settings() -> Path:
    return Path.home() / ".augment" / "settings.json"


def install(place: Path) -> None:
    runtime("auggie").install(place, Steps())


def test_hooks_and_server_stand_beside_a_person_s(place: Path):
    install(place)
    _ok, switch = runtime("auggie").look(place, Steps()).findings
    assert "enable_hooks" in switch.message
    tree = json.loads(settings().read_text())
    theirs, ours, servers = tree["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "view" and ours["hooks"][0]["timeout"] == 5000
    assert set(tree["mcpServers"]) == {"files", "swarm"} and (place / "integrations/auggie/runtime.py").is_file()
    # Its matchers: `mcp:` and an expression for tools of servers, an expression alone for its own.
    sign, _, pattern = servers["matcher"].partition(":")
    assert sign == "mcp" and re.search(pattern, "write_file_files") and not re.search(pattern, "lock_file_swarm")


def test_the_server_finds_the_store_of_the_hooks(place: Path):
    install(place)
    env = json.loads(settings().read_text())["mcpServers"]["swarm"]["env"]
    assert env["SWARM_DB_PATH"] == "${SWARM_DB_PATH:-}" and set(env) >= {"SWARM_STATE_DIR", "XDG_DATA_HOME"}

"""Kimi Code: payloads captured from it, words that wait for a prompt, and its list of plugins."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.sessions import captured, fault_lines, hook_core, instances, new_session, peer_locks, run

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.hooks import session_event, tool_call
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.kimi import MANIFEST
from swarm_mcp.runtimes.steps import Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
OTHERS = '{\n  "version": 1,\n  "plugins": [{"id": "other", "root": "/o", "source": "local-path", "enabled": true}]\n}'


def test_a_write_replaces_unless_it_appends_and_a_tilde_is_the_home(home: Path):
    changes = hook_core("kimi").config.changes_of
    assert changes("Write", {"path": "~/a", "content": ""}) == [(f"{home}/a", REPLACE)]
    assert changes("Write", {"path": "a~", "content": "", "mode": "append"}) == [("a~", EDIT)]
    assert changes("Edit", {"path": "a", "old_string": "x", "new_string": "y"}) == [("a", EDIT)]
    for unreadable in (None, [], {}, {"path": 7, "content": ""}):
        with pytest.raises(ValueError):
            changes("Write", unreadable)


def test_results_and_prompts_are_read(repo: Path):
    read = hook_core("kimi").config.dialect.read
    calls = ("PostToolUse.Bash.background", "PostToolUseFailure.Bash.failed")
    assert [tool_call(read(captured("kimi", name, repo))).goes_on for name in calls] == [True, False]
    assert session_event(read(captured("kimi", "UserPromptSubmit", repo))).prompt == "Please <<play a>> now."


def test_words_of_other_events_are_told_beside_the_next_prompt(repo: Path):
    session = new_session()

    def told(hook: str, name: str, **more: object) -> str:
        ran = run("kimi", hook, {**captured("kimi", name, repo), "session_id": session, **more}, patient=True)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    assert told("session_start", "SessionStart.startup") == ""
    answer = json.loads(told("turn", "UserPromptSubmit"))
    assert set(answer) == {"message"} and "is registered as `kimi " in answer["message"]
    peer_locks(repo, repo / "notes.md")
    (repo / "build.py").write_text("import sys\nopen(sys.argv[1], 'w')\nopen(input(), 'w')\n")
    assert told("pre_tool_use", "PreToolUse.Bash.subagent", tool_input={"command": "python3 build.py"}) == ""
    assert told("turn", "Stop") == ""
    assert "other sessions hold" in json.loads(told("turn", "UserPromptSubmit"))["message"]
    assert told("turn", "UserPromptSubmit") == ""
    assert session in [row["session_id"] for row in instances()] and fault_lines() == []


# -- its plugin --


def plugins(home: Path) -> Path:
    return home / ".kimi-code/plugins/installed.json"


@pytest.mark.parametrize("local", [True, False], ids=["local", "portable"])
def test_the_manifest_of_a_bundle_has_all_hooks_and_paths_that_it_takes(tmp_path: Path, local: bool):
    bundle.write(tmp_path / "place", local=local)
    tree = json.loads((tmp_path / "place" / MANIFEST).read_text())
    events = json.loads((tmp_path / "place/integrations/kimi/hooks.json").read_text())["hooks"]
    assert [hook["event"] for hook in tree["hooks"]] == list(events)
    assert all(set(hook) <= {"event", "matcher", "command", "timeout"} for hook in tree["hooks"])
    assert all("${SWARM_PLUGIN_ROOT}" not in hook["command"] for hook in tree["hooks"])
    server = tree["mcpServers"]["swarm"]
    assert "/" not in server["command"] and (tmp_path / "place" / server["args"][0]).is_file()


def test_its_hook_denies_by_the_command_in_the_manifest(repo: Path, plugin: Path):
    (before,) = [h for h in json.loads((plugin / MANIFEST).read_text())["hooks"] if h["event"] == "PreToolUse"]
    call = json.dumps({**captured("kimi", "PreToolUse.Write", repo), "session_id": new_session()})
    peer_locks(repo, repo / "notes2.md")

    def said(root: Path) -> str:
        return subprocess.run(
            before["command"], shell=True, input=call, capture_output=True, text=True, check=True,
            env={**os.environ, "KIMI_PLUGIN_ROOT": str(root)},
        ).stdout  # fmt: skip

    assert "swarm lock blocked" in json.loads(said(plugin))["hookSpecificOutput"]["permissionDecisionReason"]
    assert said(plugin / "gone") == ""


def test_one_that_a_person_has_switched_off_is_found_out_and_switched_on_by_installing(home: Path, plugin: Path):
    """Kimi writes its list anew, with fields of its own."""
    kimi, file = runtime("kimi"), plugins(home)
    kimi.install(plugin, Steps())
    tree = json.loads(file.read_text())
    tree["plugins"][0].update(enabled=False, updatedAt="2026-11-28T00:00:00.000Z")
    file.write_text(json.dumps(tree, indent=2))
    (found,) = kimi.look(plugin, Steps()).findings
    assert found.status == "fail" and "disabled" in found.message
    kimi.install(plugin, Steps())
    assert kimi.look(plugin, Steps()).findings[0].status == "ok"
    kimi.uninstall(Steps())
    assert not kimi.traces()

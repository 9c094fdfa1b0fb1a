"""Qwen Code: its payloads, turns that it reports again and again, words that it hears late, and its link."""

import json
import shutil
from pathlib import Path

import pytest
from support import turns
from support.files import text_at
from support.sessions import captured, fault_lines, hook_core, instances, new_session, peer_locks, run

from swarm_hook_core.hooks import tool_call
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.gemini import QWEN_HOOKS, QWEN_MANIFEST
from swarm_mcp.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_a_command_in_the_background_goes_on_when_its_end_is_told(repo: Path):
    read = hook_core("qwen").config.dialect.read
    calls = ("PostToolUse.run_shell_command.background", "PostToolUseFailure.run_shell_command")
    assert [tool_call(read(captured("qwen", name, repo))).goes_on for name in calls] == [True, False]


def told(repo: Path, session: str, name: str, **changed: str) -> str:
    hook = {"SessionStart": "session_start", "SessionEnd": "session_end"}.get(name.partition(".")[0], "turn")
    ran = run("qwen", hook, {**captured("qwen", name, repo), "session_id": session, **changed}, patient=True)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def write(repo: Path, session: str) -> None:
    """Have the session write a file that it keeps for its turn."""
    turns.write(("qwen", session), str(repo / "f"))


def is_kept(repo: Path) -> bool:
    with Store() as store:
        return bool(store.locks.on(str(repo / "f")))


def test_results_of_tools_begin_no_turn(repo: Path):
    session = new_session()
    assert "is registered as `qwen " in told(repo, session, "SessionStart.startup")
    told(repo, session, "UserPromptSubmit")
    write(repo, session)
    for _again in range(2):
        assert told(repo, session, "UserPromptSubmit.tool_result") == "" and is_kept(repo)
    told(repo, session, "SessionStart.startup", source="compact")
    told(repo, session, "UserPromptSubmit.tool_result")
    assert is_kept(repo), "it was in the middle of its turn"
    told(repo, session, "UserPromptSubmit", prompt_id="another")
    assert not is_kept(repo)
    (row,) = instances()
    assert row["state"] == "working" and fault_lines() == []


def test_a_turn_of_the_same_number_is_another_one_after_an_end_or_a_start(repo: Path):
    session = new_session()
    for between in ("Stop", "SessionStart.startup"):
        told(repo, session, "UserPromptSubmit")
        told(repo, session, between)
        write(repo, session)
        told(repo, session, "UserPromptSubmit")
        assert not is_kept(repo), between


def test_a_session_that_ends_leaves_nothing(repo: Path, home: Path):
    session = new_session()
    told(repo, session, "SessionStart.startup")
    told(repo, session, "UserPromptSubmit")
    run(
        "qwen",
        "session_end",
        {**captured("qwen", "Stop", repo), "session_id": session, "hook_event_name": "SessionEnd"},
    )
    assert [path for path in home.rglob(f"*{session}*") if path.is_dir()] == []


def test_what_is_to_be_told_with_a_call_is_told_with_its_result(repo: Path):
    session = new_session()
    told(repo, session, "SessionStart.startup")
    peer_locks(repo, repo / "notes.md")
    (repo / "build.py").write_text("import sys\nopen(sys.argv[1], 'w')\nopen(input(), 'w')\n")
    call = captured("qwen", "PreToolUse.run_shell_command.directory", repo)
    call.update(session_id=session, tool_input={"command": "python3 build.py"})
    assert run("qwen", "pre_tool_use", call).out == ""
    answer = json.loads(run("qwen", "post_tool_use", {**call, "hook_event_name": "PostToolUse"}).out)
    assert "other sessions hold" in answer["hookSpecificOutput"]["additionalContext"]
    assert run("qwen", "post_tool_use", {**call, "hook_event_name": "PostToolUse"}).out == ""
    assert fault_lines() == []


def test_an_agent_learns_who_it_is_with_its_first_result(repo: Path):
    session = new_session()
    told(repo, session, "SessionStart.startup")
    about = {**captured("qwen", "SubagentStart", repo), "session_id": session}
    call = {**captured("qwen", "PreToolUse.write_file.subagent", repo), "session_id": session}
    call.update(agent_id=about["agent_id"], hook_event_name="PostToolUse")
    assert run("qwen", "subagent", about).out == ""
    assert run("qwen", "post_tool_use", {**call, "agent_id": ""}).out == "", "it is not the session's own"
    assert f"you are agent `{about['agent_id']}`" in run("qwen", "post_tool_use", call).out
    assert run("qwen", "subagent", about).out == ""
    assert run("qwen", "subagent", {**about, "hook_event_name": "SubagentStop"}).out == ""
    assert run("qwen", "post_tool_use", call).out == "", "it has ended"


def extension(home: Path) -> Path:
    return home / ".qwen/extensions/swarm"


def test_a_person_s_own_folder_stays(home: Path, plugin: Path):
    settings = text_at(home / ".qwen/settings.json", '// mine\n{"disableAllHooks": true}')
    runtime("qwen").install(plugin, Steps())
    runtime("qwen").uninstall(Steps())
    assert settings.read_text() == '// mine\n{"disableAllHooks": true}' and not extension(home).parent.exists()


@pytest.mark.parametrize(
    ("rules", "is_off"),
    [
        (["!HOME/*"], True), (["!HOME/*", "HOME/*"], False), (["!HOME/work/"], True), (["!HOME/work/*"], True),
        (["!HOME/wor/"], False), (["!HOME/work/sub/*"], False), (["!HOME/*", "HOME/work/"], False),
    ],
)  # fmt: skip
def test_one_that_a_person_has_disabled_is_found_out(
    home: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch, rules: list[str], is_off: bool
):
    runtime("qwen").install(plugin, Steps())
    (home / "work").mkdir()
    monkeypatch.chdir(home / "work")
    told = {"swarm": {"overrides": [rule.replace("HOME", str(home)) for rule in rules]}}
    (home / ".qwen/extensions/extension-enablement.json").write_text(json.dumps(told))
    (found,) = runtime("qwen").look(plugin, Steps()).findings
    assert (found.status == "fail" and "disabled" in found.message) is is_off, found


def test_claude_code_s_plugin_taken_over_is_found_out(home: Path, plugin: Path):
    """As releases before this one are: the client converts them, and no hook of theirs knows its tools."""
    shutil.copytree(plugin, extension(home))
    manifest = json.loads((extension(home) / QWEN_MANIFEST).read_text())
    (extension(home) / QWEN_MANIFEST).write_text(json.dumps({**manifest, "hooks": {}}))
    (found,) = runtime("qwen").look(plugin, Steps()).findings
    assert found.status == "fail" and "another client" in found.message


@pytest.mark.parametrize("local", [True, False])
def test_the_manifest_names_what_is_there(tmp_path: Path, local: bool):
    folder = tmp_path / "bundle"
    bundle.write(folder, local=local)
    manifest = json.loads((folder / QWEN_MANIFEST).read_text())
    (server,) = manifest["mcpServers"].values()
    assert manifest["hooks"] == QWEN_HOOKS and server["args"][-1] == "serve"
    assert ("${extensionPath}" in server["args"][0]) is not local
    hooks = [
        hook
        for groups in json.loads((folder / QWEN_HOOKS).read_text())["hooks"].values()
        for hook in groups[0]["hooks"]
    ]
    assert all(hook.get("env") == ({"SWARM_PLUGIN_ROOT": str(folder)} if local else None) for hook in hooks)

"""Hermes: its plugin's calls of the hooks, the writes of its tools, and its files after an installation."""

import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.checker_client import client_in
from support.files import folder_at, program_at
from support.fixtures import wait_for
from support.listings import lines_of
from support.sessions import ROOT, captured, peer_locks, ready_store

from swarm_hook_core.process import start_time
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.hermes import Hermes

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

LISTED = '[{"name": "swarm", "status": "%s"}]'
SETTINGS = "# mine\nmodel: {default: x}\nplugins:\n  enabled: []  # none yet\n"


def loaded() -> ModuleType:
    """The plugin's module, as Hermes loads it."""
    folder = ROOT / "integrations/hermes"
    sys.modules.setdefault("hermes_plugins", ModuleType("hermes_plugins")).__path__ = []
    spec = importlib.util.spec_from_file_location(
        "hermes_plugins.swarm", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader
    module = sys.modules["hermes_plugins.swarm"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Played:
    """The plugin with hooks that write their payloads down, and answer from `answers`."""

    def __init__(self, folder: Path):
        self.bridge, self.log, self.answers = loaded().Bridge(), folder / "log", folder / "answers"
        self.cwd = folder
        self.answers.mkdir()
        for event, groups in self.bridge.wired.items():
            command = f"cat >>{self.log}; echo >>{self.log}; cat {self.answers}/{event} 2>/dev/null; exit 0"
            groups[0]["hooks"] = [{"command": command, "timeout": 5}]

    def answer(self, event: str, **told: str) -> None:
        (self.answers / event).write_text(json.dumps({"hookSpecificOutput": {"hookEventName": event, **told}}))

    def play(self, name: str, **more: Any) -> Any:
        payload = {**captured("hermes", name, self.cwd), **more}
        return getattr(self.bridge, {"subagent_stop": "end"}.get(name, name.split(".")[0]))(**payload)

    def asked(self) -> list[dict[str, Any]]:
        lines = lines_of(self.log)
        self.log.write_text("")
        return [json.loads(line) for line in lines]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.chdir(tmp_path)
    return Played(tmp_path)


def test_a_write_to_a_locked_file_is_refused_by_the_real_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ready_store()
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    peer_locks(tmp_path, tmp_path / "new-locked.txt", "busy with it")
    bridge = loaded().Bridge()
    refused = bridge.pre_tool_call(**captured("hermes", "pre_tool_call.write_file", tmp_path))
    assert refused["action"] == "block" and "busy with it" in refused["message"]
    patch = captured("hermes", "pre_tool_call.patch", tmp_path)
    assert bridge.pre_tool_call(**patch) is None
    patch["args"] = {"mode": "patch", "patch": "***Move  File: a -> new-locked.txt"}
    assert "busy with it" in bridge.pre_tool_call(**patch)["message"]
    code = captured("hermes", "pre_tool_call.execute_code", tmp_path)
    code["args"] = {"code": "open('new-locked.txt', 'w').write('x')"}
    assert "new-locked.txt" in bridge.pre_tool_call(**code)["message"]


def test_the_checker_answers_for_its_hooks_while_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with client_in(tmp_path) as client:
        for name in [name for name in os.environ if name not in client.environment]:
            monkeypatch.delenv(name)
        for name, value in client.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(client.repo)
        client.warm()
        bridge = loaded().Bridge()
        (hook,) = bridge.wired["PreToolUse"][0]["hooks"]
        command = hook["command"]
        hook["command"] = '/bin/sh "/nowhere/hook.sh" hermes pre_tool_use; exit 0'  # as a process it says nothing
        made = {
            **captured("hermes", "pre_tool_call.write_file", client.repo),
            "args": {"path": "held.py", "content": ""},
        }
        before = client.notes()
        assert bridge.pre_tool_call(**made)["action"] == "block"
        assert bridge.pre_tool_call(**{**made, "args": {"path": "free.py", "content": ""}}) is None
        assert client.notes() == before
        client.close()
        assert bridge.pre_tool_call(**made) is None and client.notes()[-1] in ("none", "busy")
        hook["command"] = command
        assert bridge.pre_tool_call(**made)["action"] == "block"


def test_after_a_call_its_end_is_marked_without_a_process(played: Played, monkeypatch: pytest.MonkeyPatch):
    ended = folder_at(played.cwd / "state" / "ended")
    monkeypatch.setenv("SWARM_STATE_DIR", str(ended.parent))
    played.bridge.wired["PostToolUse"][0]["hooks"][0]["command"] = (
        '/bin/sh "/nowhere/hook.sh" hermes post_tool_use; exit 0'
    )
    played.play("pre_tool_call.terminal")
    played.bridge.transform_tool_result(**captured("hermes", "pre_tool_call.terminal", played.cwd), result="{}")
    assert [path.name for path in ended.iterdir()] == [str(os.getpid())]


def test_a_session_joins_at_its_first_turn_and_hears_what_there_is_to_know(played: Played):
    played.answer("SessionStart", additionalContext="welcome")
    played.answer("UserPromptSubmit", additionalContext="news")
    assert played.play("pre_llm_call") == {"context": "welcome\n\nnews"}
    assert played.play("pre_llm_call", is_first_turn=False) == {"context": "news"}
    asked = played.asked()
    assert [one["hook_event_name"] for one in asked] == ["SessionStart", "UserPromptSubmit", "UserPromptSubmit"]
    assert asked[0]["source"] == "startup" and asked[0]["cwd"] == str(played.cwd)
    played.play("on_session_end")
    played.bridge.end(session_id="20261122_153247_92f94b", reason="shutdown")
    played.bridge.end(session_id="20261122_153247_92f94b", reason="shutdown")
    assert [one["hook_event_name"] for one in played.asked()] == ["Stop", "SessionEnd"]
    played.play("pre_llm_call", session_id="another", is_first_turn=False)
    assert played.asked()[0]["source"] == "resume"


def test_a_scheduled_run_ends_with_its_turn(played: Played):
    played.play("pre_llm_call")
    played.play("on_session_end", platform="cron")
    assert played.asked()[-1]["hook_event_name"] == "SessionEnd"


def test_a_sub_agent_s_calls_are_those_of_the_session_it_works_for(played: Played):
    played.answer("SubagentStart", additionalContext="you are one")
    played.play("pre_llm_call")
    played.play("subagent_start")
    assert played.play("pre_llm_call.subagent") == {"context": "you are one"}
    played.play("pre_tool_call.write_file.subagent")
    played.bridge.subagent_start("20261122_153316_bda297", "grandchild", "sa-1")
    played.bridge.pre_tool_call(tool_name="write_file", args={}, session_id="grandchild", tool_call_id="c")
    played.play("on_session_end.subagent")
    played.play("subagent_stop")
    asked = played.asked()[2:]
    names = ["SubagentStart", "PreToolUse", "PreToolUse", "SubagentStop"]
    assert [one["hook_event_name"] for one in asked] == names
    assert {one["session_id"] for one in asked} == {"20261122_153247_92f94b"}
    assert [one["agent_id"] for one in asked] == ["sa-0-45570ea0", "sa-0-45570ea0", "sa-1", "sa-0-45570ea0"]


def test_calls_that_code_makes_are_its_session_s_and_the_model_hears_of_their_denial(played: Played):
    played.play("pre_tool_call.execute_code")
    nested = {"session_id": "", "tool_call_id": "", "args": {"path": "a", "content": ""}}
    played.answer("PreToolUse", permissionDecision="deny", permissionDecisionReason="held")
    refused = played.play("pre_tool_call.write_file", **nested)
    (played.answers / "PreToolUse").unlink()
    assert refused == {"action": "block", "message": "held"}
    assert [one["session_id"] for one in played.asked()] == ["20261122_153247_92f94b"] * 2
    made = captured("hermes", "pre_tool_call.execute_code", played.cwd)
    assert played.bridge.transform_tool_result(**{**made, **nested}, result="{}") is None
    told = played.bridge.transform_tool_result(**made, result='{"output": "ü"}')
    assert json.loads(told) == {"output": "ü", "swarm": "held"}
    assert played.bridge.transform_tool_result(**made, result="{}") is None


def test_what_a_call_that_may_pass_is_to_know_comes_with_its_result(played: Played):
    call = captured("hermes", "pre_tool_call.terminal", played.cwd)
    played.answer("PreToolUse", additionalContext="beforehand")
    played.answer("PostToolUse", additionalContext="afterwards")
    assert played.bridge.pre_tool_call(**call) is None
    assert played.bridge.transform_tool_result(**call, result="plain") == "plain\n\nbeforehand\nafterwards"
    assert [one["tool_response"] for one in played.asked()] == [None, None]
    call["args"] = {"command": "sleep 9", "background": True, "workdir": "sub"}
    played.bridge.transform_tool_result(**call, result="{}")
    (asked,) = played.asked()
    assert asked["tool_response"] and asked["cwd"] == str(played.cwd / "sub")


def test_the_plugin_s_server_is_told_which_session_calls(played: Played):
    played.play("subagent_start")
    call = {"tool_name": "mcp__swarm__lock_file", "args": {"file": "a"}, "session_id": "20261122_153316_bda297"}
    told = played.bridge.tool_request(**call, task_id="t")
    assert told == {"args": {"file": "a", "_session": "20261122_153247_92f94b"}}
    assert played.bridge.tool_request(**{**call, "tool_name": "mcp__files__write"}) is None


def test_what_is_typed_into_a_command_may_write_and_a_look_at_it_does_not(played: Played):
    call = {"tool_name": "process", "session_id": "s", "task_id": "t", "tool_call_id": "c"}
    for action in ("poll", "list", "submit"):
        played.bridge.pre_tool_call(**call, args={"action": action, "data": "make"})
    played.bridge.transform_tool_result(**call, args={"action": "submit", "data": "make"}, result="{}")
    asked = played.asked()
    assert [(one["hook_event_name"], one["tool_name"]) for one in asked] == [
        ("PreToolUse", "send_input"), ("PostToolUse", "send_input"),
    ]  # fmt: skip
    assert asked[1]["tool_response"], "it goes on although the call is over"


def test_readers_start_no_process(played: Played):
    for tool in ("read_file", "search_files", "delegate_task", "browser_click", "todo", "mcp__swarm__whoami"):
        assert played.bridge.pre_tool_call(tool_name=tool, args={}, session_id="s", tool_call_id="c") is None
    assert played.asked() == []


@pytest.mark.parametrize("command", ["exit 2", "echo garbage", "kill -9 $$", "echo '[1]'", "exec /nonexistent"])
def test_a_hook_that_fails_lets_the_call_pass(played: Played, command: str):
    played.bridge.wired["PreToolUse"][0]["hooks"] = [{"command": command, "timeout": 5}]
    assert played.play("pre_tool_call.write_file") is None


def test_a_hook_that_hangs_is_given_up_with_all_that_it_has_started(played: Played):
    hook = {"command": f"sleep 60 & echo $! >{played.log}; wait", "timeout": 0.5}
    played.bridge.wired["PreToolUse"][0]["hooks"] = [hook]
    assert played.play("pre_tool_call.write_file") is None
    pid = int(played.log.read_text())
    wait_for(lambda: start_time(pid) in ("", "-"))  # its children end too


def test_calls_side_by_side_have_each_their_own_answer(played: Played):
    reply = """sed 's/.*"path": "\\([0-9]*\\)".*/{"hookSpecificOutput": {"permissionDecision": "deny", """
    reply += """"permissionDecisionReason": "\\1"}}/'"""
    played.bridge.wired["PreToolUse"][0]["hooks"] = [{"command": reply, "timeout": 30}]
    found: dict[int, Any] = {}

    def call(number: int) -> None:
        given = {"tool_name": "write_file", "args": {"path": str(number)}, "session_id": "s", "task_id": "t"}
        found[number] = played.bridge.pre_tool_call(**given, tool_call_id=str(number))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: refused["message"] for number, refused in found.items()} == {n: str(n) for n in range(8)}


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"path": "a", "content": ""}, [("a", "replace")]),
        ({"mode": "replace", "path": "a", "old_string": "x", "new_string": "y"}, [("a", "edit")]),
        ({"path": "a", "old_string": "x", "patch": "*** Add File: b"}, [("a", "edit")]),
        ({"mode": "patch", "patch": "*** Begin Patch\n*** Update File: a\n@@\n-x\n***  Add  File:  b \n+y\n*** End Patch"},
         [("a", "edit"), ("b", "replace")]),
        ({"mode": "patch", "patch": "***\tUpdate\xa0 File:\ta\n@@\n-x\n+y"}, [("a", "edit")]),
        ({"mode": "patch", "patch": "***Delete File:a\n*** Move File: b -> c/d\n"},
         [("a", "remove"), ("b", "remove"), ("c/d", "replace")]),
    ],
)  # fmt: skip
def test_the_files_of_a_call(given: dict, changes: list):
    config = hook_config("hermes")
    assert config.extract_changes and list(config.extract_changes(given)) == changes
    assert list(config.extract_paths(given)) == [path for path, _how in changes]


@pytest.mark.parametrize("given", [{}, None, {"mode": "patch", "patch": "nothing"}, {"mode": "patch", "patch": 1}])
def test_a_call_whose_files_cannot_be_told(given: object):
    with pytest.raises(ValueError):
        hook_config("hermes").extract_paths(given)


def test_a_path_in_the_home():
    assert hook_config("hermes").extract_paths({"path": "~/a", "content": ""}) == [os.path.expanduser("~/a")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a client that says it has the plugin on; its settings and the bundle are in here."""
    program = program_at(tmp_path / "bin" / "hermes", f"#!/bin/sh\necho '{LISTED % 'enabled'}'\n")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    marketplace = tmp_path / "bundle"
    monkeypatch.setattr("swarm_mcp.runtimes.hermes.marketplace_folder", lambda: marketplace)
    bundle.write(marketplace, local=True)
    (tmp_path / "hermes").mkdir()
    return tmp_path


@pytest.mark.parametrize("before", [SETTINGS, None, "\ufeff# mark\n", SETTINGS.replace("\n", "\r\n").rstrip()])
def test_an_installation_comes_out_as_it_went_in(place: Path, before: str | None):
    settings, link = place / "hermes/config.yaml", place / "hermes/plugins/swarm"
    if before is not None:
        settings.write_bytes(before.encode())
    hermes, marketplace = runtime("hermes"), place / "bundle"
    for _again in range(2):
        hermes.install(marketplace, Steps())
    text = settings.read_text()
    assert "swarm" in text and str(marketplace / "bin/swarm-mcp") in text and str(marketplace / "skills") in text
    assert os.readlink(link) == str(marketplace / "integrations/hermes") and hermes.traces()
    (found,) = hermes.look(marketplace, Steps()).findings
    assert found.status == "ok" and hermes.version() in found.message
    hermes.uninstall(Steps())
    assert not os.path.lexists(link) and not hermes.traces()
    assert (settings.read_bytes().decode() if settings.exists() else None) == before


def test_an_installation_without_support_for_servers_is_told_of(place: Path):
    """Hermes from the package index has it as an extra."""
    packages = folder_at(place / "lib/python3.13/site-packages")
    (place / "bin/python").symlink_to("/bin/sh")  # it reads the stand-in for the client as well
    program = place / "bin/hermes"
    program.write_text(program.read_text().replace("/bin/sh", f"{place}/bin/python"))
    runtime("hermes").install(place / "bundle", Steps())
    found = {one.name: one.status for one in runtime("hermes").look(place / "bundle", Steps()).findings}
    assert found == {"hermes plugin": "ok", "hermes tools": "info"}
    (packages / "mcp").mkdir()
    assert len(runtime("hermes").look(place / "bundle", Steps()).findings) == 1


def test_settings_that_are_a_link_stay_one_and_private(place: Path):
    real, settings = place / "dotfiles.yaml", place / "hermes/config.yaml"
    real.write_text(SETTINGS)
    real.chmod(0o600)
    settings.symlink_to(real)
    runtime("hermes").install(place / "bundle", Steps())
    assert settings.is_symlink() and real.stat().st_mode & 0o777 == 0o600 and "[swarm]" in real.read_text()


def test_a_client_that_does_not_take_it_has_its_settings_back(place: Path):
    (place / "hermes/config.yaml").write_text(SETTINGS)
    (place / "bin/hermes").write_text(f"#!/bin/sh\necho '{LISTED % 'not enabled'}'\n")
    with pytest.raises(ClientFailed, match="does not list the plugin as enabled"):
        runtime("hermes").install(place / "bundle", Steps())
    assert (place / "hermes/config.yaml").read_text() == SETTINGS


def test_what_cannot_be_edited_and_what_is_not_ours_stay(place: Path):
    (place / "hermes/config.yaml").write_text("plugins: {enabled: [mine]}\n")
    with pytest.raises(ClientFailed, match="cannot be edited"):
        runtime("hermes").install(place / "bundle", Steps())
    assert (place / "hermes/config.yaml").read_text() == "plugins: {enabled: [mine]}\n"
    folder = place / "hermes/plugins/swarm"
    folder.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    with pytest.raises(ClientFailed, match="another owner"):
        runtime("hermes").install(place / "bundle", Steps())
    assert not runtime("hermes").traces() and folder.is_dir()


def test_a_release_may_stand_after_a_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_at(tmp_path / "hermes", "#!/bin/sh\necho 'Hermes Agent v0.19.0 (2026.11.1)'\n")
    monkeypatch.setattr(Hermes, "program", lambda _self: str(program))
    assert Hermes().release() == "0.19.0"


def test_a_policy_about_plugins_is_named_without_a_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hermes, "_is_enabled", lambda _self: False)
    monkeypatch.setenv("HERMES_MANAGED_DIR", str(tmp_path))
    found = Hermes().fault(tmp_path)
    assert found and found.mend == "swarm-mcp install --client hermes"
    (tmp_path / "config.yaml").write_text("plugins:\n  enabled: []\n")
    found = Hermes().fault(tmp_path)
    assert found and str(tmp_path / "config.yaml") in found.message and not found.mend

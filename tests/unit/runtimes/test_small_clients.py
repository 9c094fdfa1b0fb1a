"""Auggie, Kimi Code, Letta Code, oh-my-pi and OpenCode: payloads captured from them, their words, and their settings."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.files import text_at
from support.sessions import captured, fault_lines, hook_core, instances, new_session, peer_locks, ready_store, run

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.hooks import session_event, tool_call
from swarm_hook_core.patch import PatchUnreadable, changes_by_headers
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.kimi import MANIFEST
from swarm_mcp.runtimes.opencode import OpenCode
from swarm_mcp.runtimes.pi import omp_home as omp_home

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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace", local=True)
    text_at(settings(), SETTINGS)
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


OTHERS = '{\n  "version": 1,\n  "plugins": [{"id": "other", "root": "/o", "source": "local-path", "enabled": true}]\n}'


def test_a_write_replaces_unless_it_appends_and_a_tilde_is_the_home(home: Path):
    changes = hook_core("kimi").config.changes_of
    assert changes("Write", {"path": "~/a", "content": ""}) == [(f"{home}/a", REPLACE)]
    assert changes("Write", {"path": "a~", "content": "", "mode": "append"}) == [("a~", EDIT)]
    assert changes("Edit", {"path": "a", "old_string": "x", "new_string": "y"}) == [("a", EDIT)]
    for unreadable in (None, [], {}, {"path": 7, "content": ""}):
        with pytest.raises(ValueError):
            changes("Write", unreadable)


def test_kimi_results_and_prompts_are_read(repo: Path):
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


LETTA_SETTINGS = '{\n  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},\n  "a": 1\n}\n'


def test_a_sub_agent_works_in_its_parent_s_session(monkeypatch: pytest.MonkeyPatch, repo: Path):
    call, read = captured("letta", "PreToolUse.Write", repo), hook_config("letta").dialect.read
    own = read(call)
    assert own["session_id"] == call["agent_id"] and own["cwd"] == str(repo) and not own.get("agent_id")
    monkeypatch.setenv("LETTA_PARENT_AGENT_ID", "agent-parent")
    monkeypatch.setenv("LETTA_CODE_AGENT_ROLE", "subagent")
    nested = read(call)
    assert (nested["session_id"], nested["agent_id"]) == ("agent-parent", call["agent_id"])


@pytest.fixture
def letta_place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace", local=True)
    text_at(home() / "settings.json", LETTA_SETTINGS)
    return tmp_path / "marketplace"


def home() -> Path:
    return Path.home() / ".letta"


def letta_install(place: Path) -> None:
    runtime("letta").install(place, Steps())


def test_its_hooks_stand_beside_a_person_s(letta_place: Path):
    letta_install(letta_place)
    theirs, ours = json.loads((home() / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "Bash" and ours["hooks"][0]["timeout"] == 5000


def test_hooks_that_are_switched_off_are_told(letta_place: Path):
    letta_install(letta_place)
    settings = json.loads((home() / "settings.json").read_text())
    settings["hooks"]["disabled"] = True
    (home() / "settings.json").write_text(json.dumps(settings))
    assert "switched off" in runtime("letta").look(letta_place, Steps()).findings[0].message


def test_the_installed_check_tells_a_denial_to_the_model_and_no_other_fault(letta_place: Path, repo: Path):
    letta_install(letta_place)
    (check,) = json.loads((home() / "settings.json").read_text())["hooks"]["PreToolUse"][1]["hooks"]
    payload = json.dumps({**captured("letta", "PreToolUse.Write", repo), "agent_id": new_session()})

    def checked(command: str) -> tuple[int, str]:
        done = subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    ready_store()
    assert checked(check["command"]) == (0, "")
    peer_locks(repo, repo / "free.md")
    code, said = checked(check["command"])
    assert code == 2 and "free.md" in json.loads(said)["denied"]
    assert checked(check["command"].replace(str(letta_place), str(letta_place / "gone"))) == (0, "")


def test_a_command_runs_in_the_folder_that_its_input_names(repo: Path):
    call = {**captured("omp", "PreToolUse.bash", repo), "session_id": new_session()}
    call["tool_input"]["cwd"] = "sub"
    peer_locks(repo, repo / "sub" / "shell.txt")
    assert "shell.txt" in run("omp", "pre_tool_use", call).reason


def test_the_call_of_a_device_writes_no_file_itself(repo: Path):
    peer_locks(repo, repo)
    call = {**captured("omp", "PreToolUse.write.device", repo), "session_id": new_session()}
    assert run("omp", "pre_tool_use", call).out == ""


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"path": "a", "old_string": "x", "new_string": "y"}, [("a", EDIT)]),
        ({"_path": "a", "old_string": "x", "new_string": "y"}, [("a", EDIT)]),
        ({"path": "a", "edits": [{"op": "create", "diff": "+x"}]}, [("a", REPLACE)]),
        ({"path": "a", "edits": [{"op": "delete"}]}, [("a", REMOVE)]),
        ({"path": "a", "edits": [{"rename": "b", "diff": "@@"}]}, [("a", REMOVE), ("b", REPLACE)]),
        ({"input": "*** Begin Patch\n*** Update File: a\n@@\n+x\n*** End Patch"}, [("a", EDIT)]),
        ({"input": "*** Begin Patch\n[a b.md#12Af]\nPUT 1.=1:\n+x\n*** End Patch"}, [("a b.md", EDIT)]),
        ({"input": '[a]\nPUT <1:\n+x\n["b#c"#1234]\nREM'}, [("a", EDIT), ("b#c", REMOVE)]),
        ({"_input": "[a#1234]\r\nPUT 1.=1:\r\n+x\r\nMV 'b'\r\n"}, [("a", REMOVE), ("b", REPLACE)]),
        ({"input": "\ufeff\u00b6a#1234\nPUT 1.=1:\n+x", "path": "a", "paths": ["a"]}, [("a", EDIT)]),
        ({"input": '<SM:EDIT path="a">\n<SM:FIND>\nx\n</SM:FIND>\n<SM:EDIT>\n<SM:EDIT all path=\'b\'>'}, [("a", EDIT), ("b", EDIT)]),
        ({"path": "a", "content": "x"}, [("a", REPLACE)]),
        ({"path": "a.zip:b/c", "content": "x"}, [("a.zip:b/c", REPLACE), ("a.zip", REPLACE)]),
        ({"path": "local://plan.md", "content": "x"}, []),
        ({"ops": [{"pat": "f", "out": "g"}], "paths": ["a.py", "b.py"]}, [("a.py", EDIT), ("b.py", EDIT)]),
    ],
)  # fmt: skip
def test_every_form_of_an_edit_names_its_files(given: dict[str, Any], changes: list[tuple[str, str]]):
    assert hook_config("omp").changes_of("edit", given) == changes


def test_a_path_below_the_home_is_read_as_the_client_does():
    place = os.path.join(os.path.expanduser("~"), "a")
    for given in ({"path": "~/a", "content": "x"}, {"input": "[~/a#1234]\nREM"}, {"ops": [], "paths": ["~/a"]}):
        assert [path for path, _how in hook_config("omp").changes_of("edit", given)] == [place]


@pytest.mark.parametrize("given", [None, [], {}, {"path": 1}, {"path": " "}, {"input": "x"}, {"input": ""}])
def test_a_call_that_names_no_file_is_said_to_be_unreadable(given: Any):
    with pytest.raises(ValueError, match="p"):
        hook_config("omp").changes_of("edit", given)


def files() -> dict[str, bytes]:
    return {str(path.relative_to(omp_home())): path.read_bytes() for path in omp_home().rglob("*") if path.is_file()}


@pytest.fixture
def omp_place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace")
    text_at(omp_home() / "config.yml", "# mine\nedit:\n  mode: replace\n")
    return tmp_path / "marketplace"


def omp_install(place: Path) -> list[str]:
    steps = Steps()
    assert runtime("omp").install(place, steps).root == place
    return steps.done


def test_links_to_a_bundle_that_has_gone_are_told_and_led_elsewhere(omp_place: Path, tmp_path: Path):
    client, old = runtime("omp"), tmp_path / "old"
    shutil.copytree(omp_place, old)
    omp_install(old)
    shutil.rmtree(old)
    (found,) = client.look(omp_place, Steps()).findings
    assert found.status == "fail" and str(old) in found.message
    assert len(omp_install(omp_place)) == 3
    assert [found.status for found in client.look(omp_place, Steps()).findings] == ["ok"]


@pytest.fixture(params=["opencode", "kilo"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ("*** Add File: a", [("a", REPLACE)]),
        ("*** Add File:a\r", [("a", REPLACE)]),
        ("*** Update File: \u00a0a b\ufeff ", [("a b", EDIT)]),
        ("*** Delete File: a\n*** Add File: a", [("a", REPLACE)]),
        ("*** Update File: a\n*** Move to: b\n@@\n-x\n+y", [("a", REMOVE), ("b", REPLACE)]),
        ("*** Update File: a\n*** Move to:a", [("a", REMOVE)]),
        ("*** Update File: a\n*** Move to: a\n@@\n+x\n*** Add File: a", [("a", REPLACE)]),
        ("what is this?\n*** Update File: a\n@@\n+*** Delete File: b\n-*** Delete File: c", [("a", EDIT)]),
        # Copilot CLI takes these; the others name no file with them, as far as they take such a patch at all.
        (" \t*** Update File: a\n\u00a0*** Move to: b", [("a", REMOVE), ("b", REPLACE)]),
        ("\x85*** Delete File: a", [("a", REMOVE)]),
        ("*** Add File: a\x1c", [("a\x1c", REPLACE)]),
    ],
)
def test_every_header_of_a_patch_names_a_file(lines: str, changes: list[tuple[str, str]]):
    assert changes_by_headers(f"*** Begin Patch\n{lines}\n*** End Patch") == changes


@pytest.mark.parametrize(
    "text", ["", "*** Begin Patch\n*** End Patch", "*** Add File: \n", "Add File: a", "*** Move to: \0"]
)
def test_a_patch_that_names_no_file_cannot_be_read(text: str):
    with pytest.raises(PatchUnreadable):
        changes_by_headers(text)


@pytest.mark.parametrize("given", [None, [], {}, {"filePath": 1}, {"filePath": " "}, {"patchText": "x"}, "notes.md"])
def test_opencode_a_call_that_names_no_file_is_said_to_be_unreadable(name: str, given: Any):
    with pytest.raises(ValueError, match="p"):
        hook_config(name).extract_paths(given)


class Place:
    """The client's folder of settings, and a bundle beside it."""

    def __init__(self, folder: Path, name: str):
        self.marketplace = folder / "marketplace"
        bundle.write(self.marketplace)
        client = runtime(name)
        assert isinstance(client, OpenCode)
        self.client, self.link = client, client.link()
        self.settings = self.link.parent.parent / f"{name}.jsonc"
        text_at(self.settings, '{ // mine\n  "mcp": {},\n}\n')

    def files(self) -> dict[str, bytes]:
        folder = self.settings.parent
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def opencode_place(tmp_path: Path, name: str) -> Place:
    return Place(tmp_path, name)


def opencode_install(place: Place) -> list[str]:
    steps = Steps()
    assert place.client.install(place.marketplace, steps).root == place.marketplace
    return steps.done


def test_it_is_one_link_which_npm_makes_slow_once(opencode_place: Place):
    client = opencode_place.client
    opencode_install(opencode_place)
    assert opencode_place.link.read_bytes() == (opencode_place.marketplace / client.needed).read_bytes()
    plugin, start = client.look(opencode_place.marketplace, Steps()).findings
    assert plugin.status == "ok" and "npm" in start.message
    (opencode_place.settings.parent / "node_modules").mkdir()
    assert client.look(opencode_place.marketplace, Steps()).findings == [plugin]


def test_a_link_to_a_bundle_that_has_gone_is_told_and_led_elsewhere(opencode_place: Place, tmp_path: Path):
    client, old = opencode_place.client, tmp_path / "old"
    shutil.copytree(opencode_place.marketplace, old)
    opencode_place.link.parent.mkdir()
    opencode_place.link.symlink_to(old / opencode_place.client.needed)
    shutil.rmtree(old)
    found, _start = client.look(opencode_place.marketplace, Steps()).findings
    assert found.status == "fail" and str(old) in found.message
    assert opencode_install(opencode_place)
    assert opencode_place.link.resolve() == (opencode_place.marketplace / opencode_place.client.needed).resolve()

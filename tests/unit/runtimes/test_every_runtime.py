"""Tests for all runtimes' folders and modules, and an installation in each client by files of ours."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement
from support.sessions import ROOT, join, new_session, peer_locks, ready_store, run

from swarm_hook_core.hooks import tool_call
from swarm_hook_core.opaque_calls import effects_of, shell_text
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import MERGING, NAMES, bundle, hook_config, runtime
from swarm_mcp.runtimes.base import Steps, with_fields
from swarm_mcp.runtimes.installed import YES
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


HOOKED = [name for name in NAMES if (ROOT / "integrations" / name / "hooks.json").exists()]


def wired(name: str, hook: str) -> list[dict[str, Any]]:
    """Return the groups of a runtime's hooks.json with a command that starts `hook`."""
    tree = json.loads((ROOT / "integrations" / name / "hooks.json").read_text())
    groups = [group for groups in tree["hooks"].values() for group in groups]
    return [group for group in groups if f" {name} {hook}" in group["hooks"][0]["command"]]


@pytest.mark.parametrize("name", HOOKED)
@pytest.mark.parametrize("tool", ["save_everything", "RewriteSymbol", "apply_patch_set", "mcp__files__write_file"])
def test_an_unknown_tool_that_sounds_like_writing_is_checked(name: str, tool: str):
    groups = wired(name, "pre_tool_use")
    assert groups and any(re.search(group.get("matcher", ""), tool) for group in groups)


@pytest.mark.parametrize("name", HOOKED)
@requirement("P-02", "P-03")
def test_its_own_tools_for_writing_and_for_commands_are_checked(name: str):
    config, groups = hook_config(name), wired(name, "pre_tool_use")
    tools = {*config.write_tools, runtime(name).shell_tool, *config.dialect.tools}
    assert [tool for tool in tools if not any(re.search(one.get("matcher", ""), tool) for one in groups)] == []


def test_the_clients_that_merge_are_known_without_their_folders() -> None:
    configs = {name: hook_config(name) for name in NAMES}
    assert list(MERGING.items()) == [(name, one.env_prefix) for name, one in configs.items() if one.merges]


@pytest.mark.parametrize("key", ["dir_path", "directory"])
@pytest.mark.parametrize("name", ["gemini", "qwen"])
def test_a_command_runs_in_the_folder_that_its_input_names(name: str, key: str):
    given = {"command": "echo y > ../a.txt", key: "sub"}
    told = {"tool_name": "run_shell_command", "tool_input": given, "cwd": "/repo", "session_id": "s"}
    call = tool_call(hook_config(name).dialect.read(told))
    assert (call.tool, call.folder) == ("Bash", "/repo/sub")


@pytest.mark.parametrize("name", ["copilot", "pi"])
@pytest.mark.parametrize("tool", ["powershell", "PowerShell"])
def test_a_powershell_command_is_one_that_may_write(name: str, tool: str):
    told = {"tool_name": tool, "tool_input": {"command": "Set-Content a.txt x"}, "cwd": "/repo", "session_id": "s"}
    call = tool_call(hook_config(name).dialect.read(told))
    assert [guess.folder for guess in effects_of(call).guesses] == ["/repo"] and call.client_tool == tool
    if (name, tool) != ("pi", "PowerShell"):  # pi has no such tool
        assert all(
            re.search(one["matcher"], tool) for hook in ("pre_tool_use", "post_tool_use") for one in wired(name, hook)
        )


def test_copilot_s_powershell_in_its_other_words():
    told = {"toolName": "powershell", "toolArgs": {"command": "rm a"}, "cwd": "/repo", "sessionId": "s"}
    call = tool_call(hook_config("copilot").dialect.read(told))
    assert (call.tool, call.client_tool) == ("PowerShell", "powershell")


@pytest.mark.parametrize("name", NAMES)
def test_what_it_covers_is_said_in_one_way(name: str):
    covered = runtime(name).coverage
    assert [said for said in covered.said() if said != YES and not re.match(r"(no|partly): \w", said)] == []


@pytest.mark.parametrize("name", HOOKED)
def test_the_shell_finds_its_word_in_variables(name: str):
    """Without Python, a shell script finds a person's wish for denials (SWARM_CC_FAIL=closed)."""
    prefix = hook_config(name).env_prefix
    script = '. "$1/unchecked.sh"; find_closed "$1/$2"; echo $closed'
    argv = ["/bin/sh", "-c", script, "sh", str(ROOT / "integrations"), name]
    told = {f"SWARM_{prefix}_FAIL": "closed", "SWARM_MCP_BIN": "/any"}
    assert subprocess.run(argv, env=told, capture_output=True, text=True).stdout == f"SWARM_{prefix}_FAIL\n"


def told_by_the_shell(name: str, *words: str) -> str:
    """Return the answer of `hook.sh` to a client if no hook can run, and a person wants calls denied then."""
    ready_store()
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "integrations/hook.sh"), name, *words], input="{}", capture_output=True, text=True, check=True,
        env={**os.environ, "SWARM_FAIL": "closed"},
    )  # fmt: skip
    return done.stdout


def texts(tree: Any) -> list[str]:
    """All texts in a JSON value."""
    if isinstance(tree, dict):
        return [text for one in tree.values() for text in texts(one)]
    return [tree] if isinstance(tree, str) else []


@pytest.mark.parametrize("name", HOOKED)
def test_where_no_hook_can_run_a_denial_is_one_that_the_client_takes(name: str):
    answer = json.loads(told_by_the_shell(name, "pre_tool_use", "broken"))
    (reason,) = [text for text in texts(answer) if "could not be checked" in text]
    denial = hook_config(name).dialect.denial("PreToolUse", reason)
    assert {**denial, **answer} == denial  # a denial may say its reason twice, printf fills it in once


@pytest.mark.parametrize("name", HOOKED)
def test_where_no_hook_can_run_the_model_is_told_once(name: str):
    answer = json.loads(told_by_the_shell(name, "session_start", "/no/python"))
    told = [text for text in texts(answer) if "NOT enforced" in text]
    assert [text.count("NOT enforced") for text in told] == [1] * len(set(told))
    assert sum("Tell the user" in text for text in told) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_command_that_doctor_asks_about_is_read_as_one(name: str):
    payload = runtime(name).shell_payload("me", "/x", "echo x > f")
    call = tool_call(hook_config(name).dialect.read(payload))
    assert (call.tool, call.client_tool) == ("Bash", runtime(name).shell_tool)
    assert "echo x > f" in shell_text(call.tool, call.input)


# -- the output of a hook: the denial that each client was seen to take (Cursor: that of its documents), and nothing
# else ----


def plain(reason: str) -> dict[str, Any]:
    decided = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": decided}


DENIALS = {
    "copilot": lambda reason: {"permissionDecision": "deny", "permissionDecisionReason": reason},
    "gemini": lambda reason: {"decision": "deny", "reason": reason},
    "letta": lambda reason: {"denied": reason},
    "cursor": lambda reason: {"permission": "deny", "user_message": reason, "agent_message": reason},
}


class Caller:
    """A session of a client, registered in a repository where a peer has locked notes.md."""

    def __init__(self, name: str, folder: Path):
        self.name, self.me, self.repo = name, new_session(), folder / "repo"
        (self.repo / ".git").mkdir(parents=True)
        ready_store()
        with Store() as store:
            join(store, self.repo, name, runtime=name, session_id=self.me)
        peer_locks(self.repo, self.repo / "notes.md", "mine", "the peer")

    def writes(self, file: str) -> dict[str, Any]:
        return runtime(self.name).write_payload(self.me, str(self.repo), str(self.repo / file))

    def said(self, hook: str, payload: Any) -> str:
        """All that the hook prints; it never complains, and its status is no answer, except in a dialect with one."""
        done = run(self.name, hook, payload, cwd=self.repo)
        denied = hook == "pre_tool_use" and "swarm lock blocked" in done.out
        assert (done.code, done.err) == (hook_config(self.name).dialect.denial_status if denied else 0, ""), done
        return done.out


@pytest.fixture
def caller(name: str, tmp_path: Path) -> Caller:
    return Caller(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOOKED)
@requirement("P-09", "P-12")
@pytest.mark.sampled
def test_a_denial_is_the_client_s_own_byte_for_byte_and_else_nothing_is_said(name: str, caller: Caller):
    said = caller.said("pre_tool_use", caller.writes("notes.md"))
    (reason,) = {text for text in texts(json.loads(said)) if "swarm lock blocked" in text}
    assert said == json.dumps(DENIALS.get(name, plain)(reason), ensure_ascii=False) + "\n"
    assert "the peer" in reason and "notes.md" in reason
    assert caller.said("pre_tool_use", caller.writes("free.md")) == ""
    for unread in (b"", b"no JSON", b"[1]", b'{"tool_name": 7}', b"\xff" * 9):
        assert caller.said("pre_tool_use", unread) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", HOOKED)
@pytest.mark.sampled
def test_an_unknown_tool_that_may_write_a_locked_file_is_never_passed_over_in_silence(name: str, caller: Caller):
    """Its model hears of it, at the latest beside the next prompt: some clients drop words with a call."""
    unknown = {"tool_name": "RewriteSymbol", "tool_input": {"path": "notes.md"}}
    call = with_fields(caller.writes("notes.md"), hook_config(name).dialect, unknown)
    prompt = {**caller.writes("notes.md"), "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}
    hooks = (("pre_tool_use", call), ("post_tool_use", call), ("turn", prompt))
    said = next(filter(None, (caller.said(hook, payload) for hook, payload in hooks)), "{}")
    assert any("RewriteSymbol" in text and "notes.md" in text for text in texts(json.loads(said))), said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("python", ["python3", "/usr/bin/python3"])
@pytest.mark.thorough
def test_each_hook_script_runs_as_it_stands_in_a_clone(name: str, python: str, tmp_path: Path):
    """It is silent or answers with JSON. It needs nothing installed, and takes any input."""
    program = shutil.which(python)
    if not program:
        pytest.skip(f"no {python} on this machine")
    scripts = sorted((ROOT / "integrations" / name / "hooks").glob("*.py"))
    assert scripts
    for script in scripts:
        for payload in ('{"session_id": "s", "cwd": "/", "hook_event_name": "X"}', "", "[1]", "no JSON"):
            done = subprocess.run(
                [program, str(script.relative_to(ROOT))], cwd=ROOT, input=payload, capture_output=True, text=True,
                env={"HOME": str(tmp_path), "PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), (script, done)
            assert json.loads(done.stdout or "{}").keys() <= {"systemMessage", "hookSpecificOutput"}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOOKED)
@pytest.mark.sampled
def test_events_that_nobody_knows_come_to_nothing(name: str, caller: Caller):
    unknown = {**caller.writes("free.md"), "hook_event_name": "SomethingNew"}
    for hook in ("turn", "subagent"):
        assert not wired(name, hook) or caller.said(hook, unknown) == ""
    done = subprocess.run(
        [sys.executable, str(ROOT / "integrations/hook.py"), name, "something_new"], input=json.dumps(unknown),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "swarm lock blocked" in caller.said("pre_tool_use", caller.writes("notes.md")), "the session goes on"


HOOKS = '{"PreToolUse": [{"matcher": "view", "hooks": [{"type": "command", "command": "true"}]}]}'
SERVERS = '{"files":{"command":"files","timeout":1.50}}'
# Client -> the files of a person's, in their home, that are to come back as they were.
PERSONS = {
    "auggie": {".augment/settings.json": f'{{\n  "hooks": {HOOKS},\n  "mcpServers": {SERVERS}\n}}\n'},
    "cline": {".cline/data/settings/cline_mcp_settings.json": f'{{"mcpServers":{SERVERS},\r\n\t"k": 1}}'},
    "copilot": {".copilot/settings.json": '// mine\n{\n    "a": 1, // kept\n    "enabledPlugins": {\n        "x@y": true,\n    },\n}\n'},
    "cursor": {
        ".cursor/hooks.json": '{\r\n  // mine\r\n  "version": 1,\r\n  "hooks": {"preToolUse": [{"command": "x"}],},\r\n}\r\n',
        ".cursor/mcp.json": f'{{"mcpServers": {SERVERS}}}',
    },
    "gemini": {".gemini/settings.json": '{ // mine\n  "hooksConfig": {"enabled": true},\n}\n'},
    "grok": {".grok/config.toml": "# mine\n[models]\ndefault = 'x'  # why", ".grok/hooks/mine.json": "{}"},
    "kilo": {".config/kilo/kilo.jsonc": '{ // mine\n  "mcp": {},\n}\n', ".config/kilo/plugin/mine.js": ""},
    "kimi": {".kimi-code/plugins/installed.json": '{\n  "version": 1,\n  "plugins": [{"id": "o", "root": "/o", "enabled": true}]\n}'},
    "letta": {".letta/settings.json": f'{{\n  "hooks": {HOOKS},\n  "a": 1\n}}\n'},
    "omp": {".omp/agent/config.yml": "# mine\nedit:\n  mode: replace\n", ".omp/agent/extensions/mine.ts": ""},
    "opencode": {".config/opencode/opencode.jsonc": '{ // mine\n  "mcp": {},\n}\n', ".config/opencode/plugin/mine.js": ""},
    "qwen": {".qwen/settings.json": '// mine\n{"a": 1}'},
}  # fmt: skip

SERVER = '{"mcpServers": {"swarm": {"command": "other"}}}'
# Client, a file of another owner in the way, or a broken one, its content, and a word of the refusal.
THEIRS = [
    ("auggie", ".augment/settings.json", SERVER, "swarm"),
    ("cline", ".cline/data/settings/cline_mcp_settings.json", SERVER, "not swarm's"),
    ("copilot", ".copilot/settings.json", "[1, 2", "JSON"),
    ("gemini", ".gemini/extensions/swarm/gemini-extension.json", '{"name": "swarm", "version": "9"}', "another extension"),
    ("gemini", ".gemini/extensions/swarm/.gemini-extension-install.json", '{"source": "/b", "type": "local"}', "another ex"),
    ("grok", ".grok/skills/swarm/SKILL.md", "mine", "is not ours"),
    ("kilo", ".config/kilo/plugin/swarm-mcp.ts", "export {}", "not ours"),
    ("kimi", ".kimi-code/plugins/installed.json", '{"plugins": [{"id": "swarm", "root": "/o"}]}', "another plugin"),
    ("kimi", ".kimi-code/plugins/installed.json", "[1, 2", "JSON"),
    ("omp", ".omp/agent/extensions/swarm-mcp.ts", "export {}", "not ours"),
    ("opencode", ".config/opencode/plugin/swarm-mcp.ts", "export {}", "not ours"),
    ("qwen", ".qwen/extensions/swarm/mine", "", "another extension"),
    ("qwen", ".qwen/extensions/swarm/.qwen-extension-install.json", '{"source": "/usr", "type": "link"}', "another extension"),
]  # fmt: skip


def below(home: Path) -> dict[str, bytes | None]:
    """All files and folders in the home but ours."""
    paths = [path for path in home.rglob("*") if path.relative_to(home).parts[0] not in ("state", "store", ".local")]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("is_new", [False, True], ids=["beside a person's files", "in a new home"])
@pytest.mark.parametrize("name", PERSONS)
@pytest.mark.sampled
def test_it_is_done_once_found_and_taken_out_without_a_trace(
    name: str, is_new: bool, home: Path, plugin: Path, tmp_path: Path
):
    (home / ".config").mkdir()
    for file, text in PERSONS[name].items() if not is_new else ():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_bytes(text.encode())
    client, before = runtime(name), below(home)
    assert client.look(plugin, Steps()).findings[0].status == "warn"
    assert not client.traces() and client.version() == ""
    shutil.copytree(plugin, tmp_path / "moved")
    for place in (plugin, tmp_path / "moved", plugin):
        steps = Steps()
        assert client.install(place, steps).root == place and steps.done
    again = Steps()
    client.install(plugin, again)
    assert again.done == [], "nothing is left to do"
    assert client.traces() and client.version() == bundle.__version__
    look = client.look(plugin, Steps())
    assert look.findings[0].status == "ok" and look.installed and look.installed.commands()
    for _again in range(2):
        client.uninstall(Steps())
    assert below(home) == before and not client.traces()


@pytest.mark.parametrize(("name", "file", "content", "why"), THEIRS)
def test_what_is_somebody_else_s_is_left_alone(name: str, file: str, content: str, why: str, home: Path, plugin: Path):
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(content)
    client = runtime(name)
    with pytest.raises(SwarmError, match=why):
        client.install(plugin, Steps())
    with suppress(SwarmError):  # a file that cannot be read says so again
        client.uninstall(Steps())
    assert not client.traces()
    assert {path for path, data in below(home).items() if data is not None} == {str(home / file)}
    assert (home / file).read_text() == content

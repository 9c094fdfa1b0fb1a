"""GitHub Copilot CLI: payloads captured from it in both dialects, its settings, and the hook commands it would run."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.files import folder_at, program_at, text_at
from support.fixtures import wait_for
from support.sessions import PAYLOADS, ROOT, hook_core, instances, new_session, peer_locks, ready_store

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.guests import HOSTS
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.copilot import Copilot, home

pytestmark = pytest.mark.thorough

SETTINGS = (
    '// mine\n{\n    "theme": "dark", // kept\n    "enabledPlugins": {\n        "other@place": true,\n    },\n}\n'
)
MARK = {"COPILOT_PROJECT_DIR": "/repo"}  # only Copilot's hooks have it
EVENTS = {"pre_tool_use": "PreToolUse", "session_start": "SessionStart", "turn": "UserPromptSubmit"}
FULL = {"full disk": "ulimit -f 0; ", "full output": "exec >/dev/full; "}  # as words of a shell before the hook's own
# Captured calls, and the lock of a peer for each.
WRITES = {
    "PreToolUse.Write": "rel.txt", "PreToolUse.Write.subagent": "sub.txt", "PreToolUse.Write.nested": "sub2.txt",
    "PreToolUse.Bash": "sh.txt", "PreToolUse.probe-write_file": "m.txt", "preToolUse.apply_patch": "locked.txt",
    "preToolUse.create": "new-locked.txt", "preToolUse.create.nested": "sub2.txt", "preToolUse.edit": "free.txt",
    "preToolUse.bash": "sh.txt", "preToolUse.probe-write_file": "m.txt",
}  # fmt: skip


class Client:
    """A checkout, and a session of the client in it with sub-agents. One of them has started another."""

    def __init__(self, repo: Path, plugin: Path):
        self.repo, self.plugin, self.me = repo, plugin, new_session()
        (repo / ".git").mkdir(parents=True)

    def payload(self, name: str, **more: Any) -> dict[str, Any]:
        text = (PAYLOADS / "copilot" / f"{name}.json").read_text().replace('"/repo', f'"{self.repo}')
        told = json.loads(text.replace("env > /repo/cap/shell.env", "env > sh.txt"))
        root = told.get("parent_agent_id") or told.get("parentAgentId") or told.get("session_id") or told["sessionId"]
        if ".nested" in name:
            folder = folder_at(home() / "session-state" / self.me)
            (folder / "events.jsonl").write_text(f'{{"type":"subagent.started","agentId":"{root}"}}\n')
            return {**told, **more}
        return {**json.loads(json.dumps(told).replace(root, self.me)), **more}

    def hook(self, event: str, payload: dict[str, Any], wired_for: str = "copilot", root: Path | None = None,
             **more: str) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run the hook of the plugin in `root` that is wired for a client, as this client would."""
        root = root or self.plugin
        tree = json.loads((root / f"integrations/{wired_for}/hooks.json").read_text())
        command = tree["hooks"][EVENTS[event]][0]["hooks"][0]["command"]
        environment = {**os.environ, **MARK, "CLAUDE_PLUGIN_ROOT": str(root), **more}
        return subprocess.run(["/bin/sh", "-c", command], input=json.dumps(payload), env=environment, cwd=root,
                              capture_output=True, text=True, timeout=30, check=False)  # fmt: skip

    def said(self, event: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
        done = self.hook(event, payload, **more)
        assert (done.returncode, done.stderr) == (0, ""), done
        return dict(json.loads(done.stdout or "{}"))


@pytest.fixture
def client(home: Path, tmp_path: Path, plugin: Path) -> Client:
    ready_store()
    return Client(tmp_path / "repo", plugin)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_a_peers_file_is_denied(client: Client, name: str):
    payload = client.payload(name)
    assert client.said("pre_tool_use", payload) == {}
    peer_locks(client.repo, client.repo / WRITES[name], "mine", "the peer")
    answer = client.said("pre_tool_use", payload)
    assert set(answer) == {"permissionDecision", "permissionDecisionReason"} and answer["permissionDecision"] == "deny"
    assert "swarm lock blocked" in answer["permissionDecisionReason"]
    assert "the peer" in answer["permissionDecisionReason"]

    # One session for all of its agents. On a busy machine a check leaves registering to the next.
    def clients() -> list[str]:
        client.said("pre_tool_use", payload)
        return [row["label"].split()[0] for row in instances() if row["label"] != "the peer"]

    assert wait_for(clients, 60) == ["copilot"]


def test_a_patch_is_a_plain_text_under_either_name():
    text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Delete File: c\n*** End Patch"
    config = hook_core("copilot").config
    assert config.extract_changes is not None
    assert list(config.extract_changes(text)) == [("a", REMOVE), ("b", REPLACE), ("c", REMOVE)]
    indented = text.replace("*** Update", " *** Update").replace("*** Move", "\t*** Move")
    assert list(config.extract_changes(indented)) == [("a", REMOVE), ("b", REPLACE), ("c", REMOVE)]
    assert list(config.extract_changes({"path": "/a", "old_str": "x", "new_str": "y"})) == [("/a", EDIT)]
    assert {"Edit", "apply_patch"} <= config.write_tools
    with pytest.raises(ValueError):
        config.extract_changes("no patch")


def test_what_sub_agents_do_is_put_down_to_their_session(home: Path):
    read = hook_core("copilot").config.dialect.read

    def told(name: str) -> dict[str, Any]:
        return read(json.loads((PAYLOADS / "copilot" / f"{name}.json").read_text()))

    session = told("SessionStart")["session_id"]
    for name in ("UserPromptSubmit.subagent", "UserPromptSubmit.nested", "Stop.subagent", "userPromptSubmitted.nested"):
        assert told(name)["session_id"] == "", f"{name}: a turn that is not the session's"
    begun, ended = told("SubagentStart"), told("SubagentStop")
    assert (begun["hook_event_name"], ended["hook_event_name"]) == ("SubagentStart", "SubagentStop")
    assert begun["session_id"] == ended["session_id"] == session and begun["agent_id"] == ended["agent_id"]
    assert told("SubagentStart.nested")["session_id"] == told("SubagentStop.nested")["session_id"] != ""
    assert told("subagentStart")["hook_event_name"] == "SubagentStart"
    assert told("userPromptSubmitted")["hook_event_name"] == "UserPromptSubmit"


@pytest.mark.slow
def test_words_are_told_in_the_form_that_it_takes_for_every_event(client: Client):
    greeting = client.said("session_start", client.payload("SessionStart"))
    assert set(greeting) == {"additionalContext"} and "is registered as" in greeting["additionalContext"]


@pytest.mark.slow
def test_hooks_wired_for_claude_code_act_as_its_own(client: Client):
    """As a guest: Copilot takes hooks of Claude Code's from a project's settings."""
    assert (
        "is registered as"
        in client.said("session_start", client.payload("SessionStart"), wired_for="claude-code")["additionalContext"]
    )
    assert [row["label"].split()[0] for row in instances()] == ["copilot"]
    peer_locks(client.repo, client.repo / "rel.txt", "mine", "the peer")
    answer = client.said("pre_tool_use", client.payload("PreToolUse.Write"), wired_for="claude-code")
    assert answer["permissionDecision"] == "deny"
    # Copilot's agents' shells have no such variable: a session of Claude Code that is started there is one.
    plain = client.said("session_start", client.payload("SessionStart", session_id=new_session()), wired_for="claude-code",
                        COPILOT_PROJECT_DIR="", COPILOT_CLI="1", COPILOT_AGENT_SESSION_ID=client.me)  # fmt: skip
    assert "hookSpecificOutput" in plain
    assert sorted(row["label"].split()[0] for row in instances())[:2] == ["claude-code", "copilot"]


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
def test_whatever_runs_beside_the_installed_plugin_stands_back(
    client: Client, plugin: Path, tmp_path: Path, event: str
):
    copy = tmp_path / "copy"
    bundle.write(copy, local=False)
    name = {"pre_tool_use": "PreToolUse.Write", "session_start": "SessionStart", "turn": "UserPromptSubmit"}[event]
    peer_locks(client.repo, client.repo / "rel.txt", "mine", "the peer")
    Copilot().install(plugin, Steps())
    for beside in ({"wired_for": "claude-code"}, {"root": copy}):
        assert client.said(event, client.payload(name), **beside) == {}
    found = {finding.name: finding for finding in Copilot().look(plugin, Steps()).findings}
    assert found["copilot plugin"].status == "ok" and "copilot, more than one" not in found
    assert len(instances()) == 1
    # The installed one acts; on a busy machine a check leaves registering to the next.
    wait_for(lambda: client.said(event, client.payload(name)) is None or len(instances()) > 1, 60)
    settings = home() / "settings.json"
    settings.write_text(settings.read_text().replace('"swarm@swarm": true', '"swarm@swarm": false'))
    assert [one.message for one in Copilot().look(plugin, Steps()).findings] == ["installed but disabled"]
    if event == "pre_tool_use":
        assert client.said(event, client.payload(name), root=copy)["permissionDecision"] == "deny", "else nobody checks"


def test_the_variables_that_tell_guests_are_the_same_everywhere():
    for name in ("hook.sh", "launch.py"):
        text = (ROOT / "integrations" / name).read_text()
        assert [variable for variable in HOSTS if variable not in text] == [], name


def test_others_of_ours_are_named(client: Client, plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text_at(client.repo / ".claude/settings.json", '{"hooks": {"Stop": "sh x/integrations/hook.sh claude-code"}}')
    monkeypatch.chdir(client.repo)
    Copilot().install(plugin, Steps())
    (found,) = [one for one in Copilot().look(plugin, Steps()).findings if one.name == "copilot, more than one"]
    assert ".claude/settings.json" in found.message and "stand back" in found.message


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["no interpreter", "no folder", "no runtime", "dying interpreter", *FULL])
def test_whatever_is_broken_the_status_is_0(client: Client, plugin: Path, tmp_path: Path, fault: str):
    """Copilot takes any other status for a denial. The output is one object, or empty."""
    broken = tmp_path / "broken"
    shutil.copytree(plugin, broken)
    hooks = broken / "integrations/copilot/hooks.json"
    wired = hooks.read_text()
    if fault == "no interpreter":
        wired = wired.replace(bundle.interpreter(), "/nonexistent/python")
    elif fault == "dying interpreter":
        dying = program_at(tmp_path / "python", "#!/bin/sh\nkill -9 $$\n")
        wired = wired.replace(bundle.interpreter(), str(dying))
    elif fault == "no runtime":
        (broken / "integrations/copilot/runtime.py").unlink()
    elif fault == "no folder":
        shutil.rmtree(broken)
    peer_locks(client.repo, client.repo / "rel.txt", "mine", "the peer")
    given = json.dumps(client.payload("PreToolUse.Write"))
    environment = {**os.environ, **MARK, "CLAUDE_PLUGIN_ROOT": str(broken)}
    for event, groups in json.loads(wired)["hooks"].items():
        command = FULL.get(fault, "") + groups[0]["hooks"][0]["command"]
        done = subprocess.run(["/bin/sh", "-c", command], input=given, env=environment, capture_output=True, text=True,
                              timeout=30, check=False)  # fmt: skip
        assert done.returncode == 0, (event, done)
        told = json.loads(done.stdout or "{}")
        if event == "PreToolUse":  # a full disk is no reason not to deny
            assert told.get("permissionDecision", "") == ("deny" if fault == "full disk" else ""), done

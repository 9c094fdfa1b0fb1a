"""Letta Code's own parts: its payloads, its denial by exit status, and its hooks in a person's settings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.sessions import captured, new_session, peer_locks, ready_store, run

from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.steps import Steps

pytestmark = pytest.mark.slow
SETTINGS = '{\n  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    ("payload", "locked"),
    [
        ("PreToolUse.Write", "free.md"),
        ("PreToolUse.Edit", "notes.md"),
        ("PreToolUse.ApplyPatch", "p.md"),
        ("PreToolUse.Bash", "shell.txt"),
    ],
)
def test_a_write_is_denied_beside_a_lock_and_made_elsewhere(repo: Path, payload: str, locked: str):
    call = {**captured("letta", payload, repo), "agent_id": new_session()}
    passed = run("letta", "pre_tool_use", call)
    assert (passed.code, passed.out) == (0, "")
    peer_locks(repo, repo / locked)
    denied = run("letta", "pre_tool_use", call)
    assert denied.code == 2 and str(repo / locked) in json.loads(denied.out)["denied"]


def test_a_sub_agent_works_in_its_parent_s_session(monkeypatch: pytest.MonkeyPatch, repo: Path):
    call, read = captured("letta", "PreToolUse.Write", repo), hook_config("letta").dialect.read
    own = read(call)
    assert own["session_id"] == call["agent_id"] and own["cwd"] == str(repo) and not own.get("agent_id")
    monkeypatch.setenv("LETTA_PARENT_AGENT_ID", "agent-parent")
    monkeypatch.setenv("LETTA_CODE_AGENT_ROLE", "subagent")
    nested = read(call)
    assert (nested["session_id"], nested["agent_id"]) == ("agent-parent", call["agent_id"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace", local=True)
    home().mkdir(parents=True)
    (home() / "settings.json").write_text(SETTINGS)
    return tmp_path / "marketplace"


def home() -> Path:
    return Path.home() / ".letta"


def install(place: Path) -> list[str]:
    steps = Steps()
    assert runtime("letta").install(place, steps).root == place
    return steps.done


def test_its_hooks_stand_beside_a_person_s_and_go_again(place: Path):
    client = runtime("letta")
    assert not client.traces() and client.version() == ""
    assert len(install(place)) == 3 and install(place) == []
    assert client.traces() and client.version() == bundle.__version__
    assert [found.status for found in client.look(place, Steps()).findings] == ["ok"]
    theirs, ours = json.loads((home() / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "Bash" and ours["hooks"][0]["timeout"] == 5000
    client.uninstall(Steps())
    assert (home() / "settings.json").read_text() == SETTINGS and os.listdir(home()) == ["settings.json"]
    assert not client.traces()


def test_hooks_that_are_switched_off_are_told(place: Path):
    install(place)
    settings = json.loads((home() / "settings.json").read_text())
    settings["hooks"]["disabled"] = True
    (home() / "settings.json").write_text(json.dumps(settings))
    assert "switched off" in runtime("letta").look(place, Steps()).findings[0].message


def test_the_installed_check_tells_a_denial_to_the_model_and_no_other_fault(place: Path, repo: Path):
    install(place)
    (check,) = json.loads((home() / "settings.json").read_text())["hooks"]["PreToolUse"][1]["hooks"]
    payload = json.dumps({**captured("letta", "PreToolUse.Write", repo), "agent_id": new_session()})

    def checked(command: str) -> tuple[int, str]:
        done = subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    ready_store()
    assert checked(check["command"]) == (0, "")
    peer_locks(repo, repo / "free.md")
    code, said = checked(check["command"])
    assert code == 2 and str(repo / "free.md") in json.loads(said)["denied"]
    assert checked(check["command"].replace(str(place), str(place / "gone"))) == (0, "")

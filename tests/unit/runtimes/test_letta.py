"""Letta Code's own parts: its payloads, its denial by exit status, and its hooks in a person's settings."""

import json
import subprocess
from pathlib import Path

import pytest
from support.sessions import captured, new_session, peer_locks, ready_store

from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.steps import Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
SETTINGS = '{\n  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},\n  "a": 1\n}\n'


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


def install(place: Path) -> None:
    runtime("letta").install(place, Steps())


def test_its_hooks_stand_beside_a_person_s(place: Path):
    install(place)
    theirs, ours = json.loads((home() / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "Bash" and ours["hooks"][0]["timeout"] == 5000


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

"""The loop's own shell, with others' locks held by the kernel."""

import os
from pathlib import Path

import pytest
from support.kernel_calls import says
from support.loop_fixtures import Model, Say, executable, loop, tool
from support.sessions import mistakes, peer_locks
from support.traced import git

from swarm_hook_core.kernel import probe
from swarm_mcp.agents.loop.swarm_session import CONFIG

pytestmark = pytest.mark.slow

BUILD = '#!/usr/bin/awk -f\nBEGIN { print "mine" > "free.txt"; print "mine" > "held.txt" }\n'


@pytest.fixture
def held(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    file = project / "held.txt"
    file.write_text("theirs")
    executable(project / "build", BUILD)
    peer_locks(project, file, label="identity:p the-holder")
    return file


def result(model: Model, command: str = "./build") -> str:
    """Return the model's result of a command."""
    model.script = [Say("", (("bash", {"command": command}),)), Say("Done.")]
    assert loop("go").code == 0
    (told,) = model.told()
    return told


def needs_the_kernel() -> None:
    why = probe.again()
    if why:
        pytest.skip(f"the kernel holds nothing here: {why}")


def test_a_locked_file_is_kept_and_the_model_is_told(model: Model, project: Path, held: Path) -> None:
    needs_the_kernel()
    told = result(model, "./build; exit 3")
    assert held.read_text() == "theirs" and (project / "free.txt").read_text() == "mine\n"
    assert "Read-only file system" in told and "[exit code 3]" in told
    assert "swarm: the kernel kept this command" in told and "the-holder" in told
    left = os.listdir(Path(os.environ["SWARM_STATE_DIR"]) / "kernel")
    assert left == ["probe"], "no plan of a call that is over"
    assert mistakes() == []


def test_git_in_a_script_asks_first(model: Model, project: Path, held: Path) -> None:
    needs_the_kernel()
    (project / ".git").rmdir()
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    text = 'BEGIN { system("command -v git; git rm -q held.txt; git status --short") }'
    executable(project / "build", f"#!/usr/bin/awk -f\n{text}\n")
    told = result(model)
    assert "integrations/kernel/git\n" in told and "swarm: swarm lock blocked git (" in told, told
    assert "\n M build\n" in told and held.read_text() == "theirs", "what only looks runs"


def test_strict_lets_it_run_where_all_is_held(model: Model, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_the_kernel()
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert "Read-only file system" in result(model) and held.read_text() == "theirs"
    says("Operation not permitted")
    assert result(model).startswith("swarm lock blocked Bash: it may write") and held.read_text() == "theirs"


def test_it_is_off_unless_a_person_wants_it(model: Model, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says()
    monkeypatch.delenv("SWARM_KERNEL")
    result(model)
    assert held.read_text() == "mine\n"


def test_a_plugin_s_shell_is_none_of_ours(
    model: Model, project: Path, held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compared afterwards, and strictness denies it."""
    says()
    tool(project / ".harness", "bash", "./build; echo built")
    told = result(model)
    assert "built" in told and held.read_text() == "mine\n" and "the kernel" not in told.lower()
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert result(model).startswith("swarm lock blocked Bash: it may write")


def test_it_starts_its_commands_itself() -> None:
    assert CONFIG.kernel == "directly"

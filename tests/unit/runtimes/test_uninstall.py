"""`swarm-mcp uninstall` removes the data of swarm. The user's own stays and is named."""

import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.files import program_at, text_at
from support.fixtures import Ground

import swarm_hook_core
import swarm_mcp
from swarm_hook_core.state import state_dir
from swarm_mcp.agents.harness import codex_overrides as overrides
from swarm_mcp.agents.harness import environment
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.cline import servers_file
from swarm_mcp.store import Store

pytestmark = pytest.mark.thorough


@pytest.fixture
def state(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with an entry of each kind, and a PATH without clients."""
    folder = ground.folder / "swarm-mcp"
    monkeypatch.setenv("SWARM_STATE_DIR", str(folder))
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")  # as a person, while sessions are at work
    monkeypatch.setenv("PATH", os.defpath)
    for name in [*bundle.OURS, *bundle.THEIRS]:
        made = folder / name.replace("*", "x")
        if "." in name or name == "config-fault":
            text_at(made, "ours")
        else:
            text_at(made / "content", "ours")
    (folder / "somebody's").write_text("not ours")
    return folder


def test_what_is_ours_goes_and_what_stays_is_named(ground: Ground, state: Path):
    ground.session("me")
    done = ground.swarm("uninstall")
    assert done.code == 0
    left = ["edited", "kept", "kept-names", "projects.json", "runs", "somebody's", "team", "undos", "worktrees"]
    assert sorted(path.name for path in state.iterdir()) == left
    assert (state / "kept" / "content").read_text() == "ours"
    for path in (ground.database, *(state / name for name in left)):
        assert f"left, for you to keep or to remove: {path}" in done.out
    assert ground.swarm("uninstall", "--json").json["left"] == [
        ground.database, *(str(state / name) for name in left),
    ]  # fmt: skip


def test_all_that_is_left_is_listed_and_goes_after_a_question(ground: Ground, state: Path, monkeypatch):
    ground.session("me")
    wanted = [ground.database, *(str(state / name) for name in ("kept", "runs", "undos", "projects.json"))]
    dry = ground.swarm("uninstall", "--purge", "--dry-run").out
    assert all(f"would remove {path} (" in dry for path in wanted) and "worktrees" not in dry
    for answer, words in ((None, "--yes removes it"), (False, "it stays")):
        monkeypatch.setattr("swarm_mcp.cli.commands.install.agreed", lambda _question, answer=answer: answer)
        done = ground.swarm("uninstall", "--purge")
        assert done.code == 0 and words in done.out and all(os.path.exists(path) for path in wanted)
        assert all(f"left, for you to keep or to remove: {path}" in done.out for path in wanted)
    monkeypatch.setattr("swarm_mcp.cli.commands.install.agreed", lambda _question: True)
    done = ground.swarm("uninstall", "--purge")
    assert done.code == 0 and not any(os.path.exists(path) for path in wanted)
    assert sorted(path.name for path in state.iterdir()) == ["somebody's", "worktrees"]
    assert f"it stays: {state / 'worktrees'}" in done.out
    assert ground.swarm("uninstall", "--purge", "--client", "codex").code == 2


def test_an_empty_state_folder_goes_too(ground: Ground, state: Path):
    for name in bundle.THEIRS:
        shutil.rmtree(state / name) if (state / name).is_dir() else (state / name).unlink()
    (state / "somebody's").unlink()
    assert ground.swarm("uninstall").code == 0 and not state.exists()


def test_a_dry_run_and_one_client_leave_the_state_folder_alone(ground: Ground, state: Path):
    there = sorted(state.iterdir())
    ground.swarm("uninstall", "--dry-run")
    ground.swarm("uninstall", "--client", "codex")
    assert sorted(state.iterdir()) == there


def test_a_link_is_removed_and_not_what_it_leads_to(ground: Ground, state: Path):
    text_at(ground.folder / "elsewhere" / "mine", "mine")
    (state / "work" / "content").unlink()
    (state / "work").rmdir()
    (state / "work").symlink_to(ground.folder / "elsewhere")
    assert ground.swarm("uninstall").code == 0
    assert not (state / "work").is_symlink() and (ground.folder / "elsewhere" / "mine").read_text() == "mine"


def test_a_folder_of_another_name_that_a_setting_chose_is_not_emptied(ground: Ground, state: Path, monkeypatch):
    chosen = state.rename(ground.folder / "projects")
    monkeypatch.setenv("SWARM_STATE_DIR", str(chosen))
    done = ground.swarm("uninstall")
    assert (chosen / "work" / "content").exists() and str(chosen / "work") in done.out


def test_while_workers_run_the_state_folder_stays(ground: Ground, state: Path, store: Store):
    me = ground.session("me")
    run = {"id": "r", "scope": ground.scope, "instance_id": me["id"], "harness": "process", "cwd": ground.scope}
    store.runs.begin(run)
    done = ground.swarm("uninstall")
    assert (state / "slots").exists() and "workers are running" in done.out


def test_every_name_that_the_code_gives_is_known():
    known = [*bundle.OURS, *bundle.THEIRS]
    names = {environment.FOLDER, f"{environment.FOLDER}.lock", overrides._REMEMBERED, "swarm-cc", "faults.jsonl.1"}
    for package in (swarm_hook_core, swarm_mcp):
        for path in Path(package.__path__[0]).rglob("*.py"):
            names |= set(re.findall(r"state_dir\(\), f?\"([^\"{]+)", path.read_text(encoding="utf-8")))
    unknown = [name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in known)]
    assert len(names) > 15 and unknown == []


def test_what_projects_have_is_named_and_goes_where_that_is_asked_for(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Git hooks of the guard, and entries of `init`, outlive the package."""
    monkeypatch.setenv("PATH", os.defpath)
    project, other = ground.folder / "a project", ground.folder / "other"
    for folder in (project, other):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (other / ".mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    assert ground.swarm("guard", "install", "--dir", str(project)).code == 0
    assert ground.swarm("init", "--dir", str(project)).code == ground.swarm("init", "--dir", str(other)).code == 0
    assert ground.swarm("uninstall", "--projects", "--dry-run").out.count("would take out of") == 3
    done = ground.swarm("uninstall")
    assert f"left in {project}: git hooks of `swarm-mcp guard`" in done.out and done.code == 0
    assert f"swarm-mcp guard uninstall --dir '{project}'" in done.out, "as a shell takes it"
    assert f"left in {other}: .mcp.json, .claude/skills/swarm-mcp, .claude/skills/swarm" in done.out
    (project / ".claude/skills/swarm/SKILL.md").write_text("changed by a person")
    done = ground.swarm("uninstall", "--projects")
    assert done.code == 0 and "left in" not in done.out, done
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before
    assert not list((project / ".git/hooks").glob("pre-commit")) and not (project / ".mcp.json").exists()
    assert (project / ".claude/skills/swarm/SKILL.md").exists() and not (project / ".claude/skills/swarm-mcp").exists()


def test_a_guard_from_before_is_found_where_sessions_have_worked(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", os.defpath)
    shutil.rmtree(ground.repo / ".git")
    subprocess.run(["git", "init", "-q", str(ground.repo)], check=True)
    ground.session("me")
    assert ground.swarm("guard", "install").code == 0
    (Path(state_dir()) / "projects.json").unlink()
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")  # as a person, while a session is at work
    assert f"left in {ground.repo}: git hooks" in ground.swarm("uninstall").out


def test_while_a_client_cannot_be_served_what_it_starts_stays_and_is_named(ground: Ground, monkeypatch):
    bundle.write(marketplace_folder(), local=True)
    program_at(ground.folder / "bin" / "cline", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{ground.folder / 'bin'}{os.pathsep}{os.defpath}")
    text_at(servers_file(), "{ broken")
    done = ground.swarm("uninstall")
    assert done.code == 1 and f"{marketplace_folder()} stays" in done.out and "Cline still starts" in done.out, done

"""git in a script with read-only locked files: it asks the check before it begins something that would end half done."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.kernel_calls import Caller, says
from support.sessions import ROOT, fault_lines, mistakes, peer_locks
from support.traced import git

pytestmark = pytest.mark.slow

SHIM = ROOT / "integrations" / "kernel"


@pytest.fixture
def caller(work: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    git(work, "branch", "other")
    (work / "notes.md").write_text("delta\n")
    git(work, "commit", "-qam", "second")
    peer_locks(work, work / "notes.md", label="identity:p the-holder")
    return Caller(work, monkeypatch)


def ran(caller: Caller, *words: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """git as a script has it that the kernel holds files for."""
    inside = {
        "SWARM_KERNEL_HELD": f"{caller.runtime} {caller.session_id} ", "SWARM_KERNEL_PYTHON": sys.executable,
        "SWARM_KERNEL_CLIENT": "one/", "CLAUDE_CODE_SESSION_ID": "one", "PATH": f"{SHIM}:{os.environ['PATH']}",
    }  # fmt: skip
    return subprocess.run(
        ["git", *words], cwd=caller.folder, env={**os.environ, **inside, **env}, input=text, capture_output=True,
        text=True, timeout=120, check=False, executable=str(SHIM / "git"),
    )  # fmt: skip


@pytest.fixture
def no_python(tmp_path: Path) -> dict[str, str]:
    """An interpreter that says that it was asked, and lets all run."""
    asked = tmp_path / "asked"
    asked.write_text(f"#!/bin/sh\necho >> {tmp_path}/was-asked\n")
    asked.chmod(0o755)
    return {"SWARM_KERNEL_PYTHON": str(asked)}


@pytest.mark.parametrize(
    "words",
    [["status", "--short"], ["-C", ".", "log", "--oneline"], ["-c", "a.b=checkout", "diff"], ["--version"], ["rev-parse", "HEAD"],
     ["--git-dir", ".git", "show", "--stat"], [], ["ls-files"]],
    ids=" ".join,
)  # fmt: skip
def test_what_only_looks_asks_nobody(
    caller: Caller, no_python: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    done = ran(caller, *words, **no_python)
    plain = subprocess.run(["git", *words], cwd=caller.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert not (tmp_path / "was-asked").exists()
    assert ran(caller, "add", ".", **no_python).returncode == 0 and (tmp_path / "was-asked").exists()


@pytest.mark.parametrize(
    "words", [["checkout", "other"], ["reset", "--hard", "other"], ["-C", ".", "rm", "notes.md"], ["stash"]]
)
def test_what_would_write_a_locked_file_does_not_begin(caller: Caller, words: list[str]) -> None:
    (caller.folder / "notes.md").write_text("changed\n") if words == ["stash"] else None
    before = (git(caller.folder, "rev-parse", "HEAD"), git(caller.folder, "status", "--short"))
    done = ran(caller, *words)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("swarm: swarm lock blocked git (") and "the-holder" in done.stderr
    assert before == (git(caller.folder, "rev-parse", "HEAD"), git(caller.folder, "status", "--short"))
    assert mistakes() == []


def test_what_leaves_it_alone_runs(caller: Caller) -> None:
    (caller.folder / "other.md").write_text("mine\n")
    assert ran(caller, "add", "other.md").returncode == 0
    assert ran(caller, "hash-object", "-w", "--stdin", text="some text").stdout.strip()
    commit = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qF", "-")
    told = ran(caller, *commit, text="by hand")
    assert told.returncode == 1 and "the same command again goes ahead" in told.stderr, "the file is a person's"
    done = ran(caller, *commit, text="by hand")
    assert done.returncode == 0 and git(caller.folder, "log", "-1", "--format=%s") == "by hand\n", "its input is git's"


@pytest.mark.parametrize("env", [{"CLAUDE_CODE_SESSION_ID": "two"}, {"CODEX_THREAD_ID": "t"}])
def test_the_session_of_a_client_that_a_command_starts_asks_for_itself(caller: Caller, env: dict[str, str]) -> None:
    assert ran(caller, "checkout", "-q", "other", **env).returncode == 0
    assert git(caller.folder, "branch", "--show-current") == "other\n"


def test_where_there_is_no_git(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").mkdir()
    for path in (f"{SHIM}", f"{SHIM}:{tmp_path}/bin::/nowhere", f"{SHIM}:{SHIM}/"):
        done = ran(caller, "checkout", "other", PATH=path)
        assert (done.returncode, done.stdout, done.stderr) == (127, "", "git: command not found\n")


def test_a_name_of_a_folder_with_a_blank_or_a_star(caller: Caller, tmp_path: Path) -> None:
    odd = tmp_path / "a * b"
    odd.mkdir()
    (odd / "git").symlink_to(str(shutil.which("git")))
    assert ran(caller, "--version", PATH=f"{SHIM}:{odd}").stdout.startswith("git version")


def test_without_an_interpreter_git_runs(caller: Caller) -> None:
    done = ran(caller, "checkout", "-q", "other", SWARM_KERNEL_PYTHON="/nowhere/python")
    assert done.returncode == 0 and git(caller.folder, "branch", "--show-current") == "other\n"


def test_a_fault_of_ours_lets_it_run_and_is_recorded(caller: Caller, tmp_path: Path) -> None:
    broken = tmp_path / "state-file"
    broken.write_text("")
    (Path(os.environ["SWARM_DB_PATH"])).write_bytes(b"no database" * 1000)
    done = ran(caller, "checkout", "-q", "other")
    assert done.returncode == 0
    assert [line for line in fault_lines() if line["hook"] == "git"]
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


def test_one_of_our_own_harnesses(caller: Caller, work: Path) -> None:
    from support.sessions import join, new_session

    from swarm_mcp.store import Store

    me: Any = new_session()
    with Store() as store:
        join(store, work, "me", runtime="loop", session_id=me)
    done = ran(caller, "checkout", "other", SWARM_KERNEL_HELD=f"loop {me} ")
    assert done.returncode == 1 and "the-holder" in done.stderr

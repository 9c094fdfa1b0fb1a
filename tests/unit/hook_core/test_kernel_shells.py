"""The shell of a call that has a plan: the text that it sources, git in it, and faults in our own files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.files import files_at, folder_at, program_at, text_at
from support.kernel_calls import Caller, says
from support.kernel_ground import USERS, KernelGround, grounds
from support.sessions import ROOT, fault_lines, mistakes, peer_locks
from support.traced import git

from swarm_hook_core.kernel import planning, plans
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(USERS[0], monkeypatch)


@pytest.fixture(params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest) -> str:
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def left(ground: KernelGround, command: str, *paths: Path, alone: bool = False) -> str:
    """Write a plan for a command; return the file that its shell sources."""
    names = [str(path) for path in paths]
    text = plans.print_of(command)
    who = "claude-code", ground.session_id, ground.me["id"]
    made = plans.Plan(*who, "", text, False, [str(ground.repo)], names, str(ground.database))
    return plans.leave(made, "call-1", alone)


def ran(ground: KernelGround, shell: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    words = [shell, *(options or ("-c",)), text]
    return subprocess.run(words, cwd=ground.repo, capture_output=True, text=True, timeout=120, check=False)


def wrapped(entry: str, command: str) -> str:
    """A command as Claude Code's shell is given it."""
    quoted = "'" + command.replace("'", "'\"'\"'") + "'"
    looks = f"if [ -d {os.path.dirname(entry)!r} ]; then . '{entry}'; fi"
    return f"shopt -u extglob 2> /dev/null || true && {looks}\n eval {quoted} < /dev/null && pwd -P >| pwd.txt"


def test_the_text_is_run_once_by_the_same_process(ground: KernelGround, shell: str) -> None:
    held = ground.locked("held.txt")
    command = """echo "it's" $$ >> count.txt; echo x > held.txt; cd ..; (exit 5)"""
    entry = left(ground, command, held)
    child = subprocess.Popen(
        [shell, "-c", wrapped(entry, command)], cwd=ground.repo, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    _, err = child.communicate(timeout=120)
    assert child.returncode == 5 and err.lower().count("read-only file system") == 1
    assert (ground.repo / "count.txt").read_text() == f"it's {child.pid}\n"
    assert not (ground.repo / "pwd.txt").exists()
    assert ran(ground, shell, wrapped(entry, "true")).returncode == 0
    assert (ground.repo / "pwd.txt").read_text() == f"{ground.repo}\n"


def test_what_the_statement_is_put_in_front_of_runs_as_it_stands(ground: KernelGround, shell: str) -> None:
    held = ground.locked("held.txt")
    entry = left(ground, "", held, alone=True)
    done = ran(ground, shell, f". '{entry}'; echo x > held.txt; echo \"$SWARM_KERNEL_HELD\"; cat <<'END'\n$x\nEND")
    assert done.stdout == f"claude-code {ground.session_id} \n$x\n" and "ead-only file system" in done.stderr
    plans.drop(ground.session_id)
    done = ran(ground, shell, f". '{entry}' 2> /dev/null; echo x > held.txt")
    assert held.read_text() == "x\n", "no plan: as ever"


def test_what_a_login_shell_knows_is_known_inside(ground: KernelGround, shell: str) -> None:
    """Codex has one: its profile may define functions."""
    home = Path(os.environ["HOME"])
    files_at(home, dict.fromkeys((".bash_profile", ".zprofile"), "own() { echo of my own; }\n"))
    entry = left(ground, "", ground.locked("held.txt"), alone=True)
    done = ran(ground, shell, f". '{entry}'; own; echo x > held.txt", "-lc")
    assert "of my own" in done.stdout and "ead-only file system" in done.stderr


def test_our_git_is_the_first_on_path_once(ground: KernelGround, shell: str) -> None:
    entry = left(ground, "", ground.locked("held.txt"), alone=True)
    done = ran(ground, shell, f". '{entry}'; . '{entry}'; echo $PATH; command -v git; sh -c 'command -v git'")
    path, *gits = done.stdout.splitlines()
    first, *others = path.split(":")
    assert first.endswith("integrations/kernel") and first not in others and gits == [f"{first}/git"] * 2
    free = ran(ground, shell, f". '{left(ground, '', ground.repo / 'none', alone=True)}'; echo $PATH")
    assert free.returncode == 0


def test_a_shell_that_does_not_know_its_text_goes_on(ground: KernelGround) -> None:
    if not shutil.which("dash"):
        pytest.skip("dash is not installed")
    held = ground.locked("held.txt")
    entry = left(ground, "echo x > held.txt", held)
    done = ran(ground, "dash", f". '{entry}'; echo x > held.txt; echo done")
    assert (done.returncode, done.stdout, done.stderr, held.read_text()) == (0, "done\n", "", "x\n")


@pytest.mark.parametrize("missing", ["enter.py", "the interpreter"])
def test_where_something_of_ours_is_missing_the_command_runs(ground: KernelGround, shell: str, missing: str) -> None:
    held = ground.locked("held.txt")
    entry = Path(left(ground, "echo x > held.txt", held))
    text = entry.read_text()
    lost = "enter.py" if missing == "enter.py" else os.path.basename(sys.executable)
    entry.write_text(text.replace(f"{lost}'", f"{lost}-gone'"))
    done = ran(ground, shell, f". '{entry}'; echo x > held.txt; echo done")
    assert (done.returncode, done.stdout, done.stderr, held.read_text()) == (0, "done\n", "", "x\n")


def test_with_no_plan_a_session_s_shells_look_once(ground: KernelGround, shell: str) -> None:
    held = ground.locked("held.txt")
    entry = left(ground, "make", held)
    for command in ("echo x > held.txt", "echo make > held.txt"):
        done = ran(ground, shell, wrapped(entry, command))
        assert (done.returncode, done.stderr) == (0, ""), "another command than the one with the plan"
    assert held.read_text() == "make\n"


@pytest.fixture
def caller(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    (repo / "held").write_text("theirs\n")
    peer_locks(repo, repo / "held")
    return Caller(repo, monkeypatch)


def recorded(text: str) -> None:
    """Check that one fault with this text was recorded."""
    found = [line["fault"] for line in fault_lines()]
    assert len(found) == 1 and text in found[0], found


@pytest.mark.parametrize("data", [b"", b"\xff\0\xfe", b"session=s\0path=\0path=relative\0", b"path=/etc/passwd\0"])
def test_a_broken_plan_holds_nothing(ground: KernelGround, data: bytes) -> None:
    place = ground.folder / "broken"
    place.write_bytes(data)
    done = ground.bash(place, "echo x > free; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "") and (ground.repo / "free").exists()


def test_without_our_modules_the_command_runs(ground: KernelGround) -> None:
    alone = ground.folder / "alone" / "swarm_hook_core" / "kernel" / "enter.py"
    alone.parent.mkdir(parents=True)
    shutil.copy(ground.core / "kernel" / "enter.py", alone)
    held = ground.locked("held.txt")
    ground.core = alone.parent.parent
    assert ground.bash(ground.plan(held), "echo x > held.txt; exit 3").returncode == 3 and held.read_text() == "x\n"


def test_where_nothing_can_be_written_it_is_as_if_the_kernel_held_nothing(caller: Caller) -> None:
    """A file is in the place of the folder of all plans."""
    shutil.rmtree(plans.kernel_dir())
    Path(plans.kernel_dir()).write_text("")
    verdict = caller.check()
    assert verdict.denial is None and verdict.plan is None and "held by" in verdict.notice and not verdict.failed


def test_what_goes_wrong_while_a_plan_is_made(caller: Caller, monkeypatch: pytest.MonkeyPatch, failing) -> None:
    failing(plans, "paths_of", RuntimeError("no luck"))
    verdict = caller.check()
    assert verdict.denial is None and verdict.plan is None and "held by" in verdict.notice and not verdict.failed
    recorded("no luck")
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert "SWARM_STRICT" in caller.denied()


def test_what_goes_wrong_after_a_call(caller: Caller, failing) -> None:
    assert not caller.denied()
    failing(planning, "_words", RuntimeError("no luck"))
    assert caller.after("Read-only file system") == ""
    recorded("no luck")


SHIM = ROOT / "integrations" / "kernel"


@pytest.fixture
def git_caller(work: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    git(work, "branch", "other")
    (work / "notes.md").write_text("delta\n")
    git(work, "commit", "-qam", "second")
    peer_locks(work, work / "notes.md", label="identity:p the-holder")
    return Caller(work, monkeypatch)


def git_ran(caller: Caller, *words: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
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
    asked = program_at(tmp_path / "asked", f"#!/bin/sh\necho >> {tmp_path}/was-asked\n")
    return {"SWARM_KERNEL_PYTHON": str(asked)}


@pytest.mark.parametrize(
    "words",
    [["status", "--short"], ["-C", ".", "log", "--oneline"], ["-c", "a.b=checkout", "diff"], ["--version"], ["rev-parse", "HEAD"],
     ["--git-dir", ".git", "show", "--stat"], [], ["ls-files"]],
    ids=" ".join,
)  # fmt: skip
def test_what_only_looks_asks_nobody(
    git_caller: Caller, no_python: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    done = git_ran(git_caller, *words, **no_python)
    plain = subprocess.run(["git", *words], cwd=git_caller.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert not (tmp_path / "was-asked").exists()
    assert git_ran(git_caller, "add", ".", **no_python).returncode == 0 and (tmp_path / "was-asked").exists()


@pytest.mark.parametrize(
    "words", [["checkout", "other"], ["reset", "--hard", "other"], ["-C", ".", "rm", "notes.md"], ["stash"]]
)
def test_what_would_write_a_locked_file_does_not_begin(git_caller: Caller, words: list[str]) -> None:
    (git_caller.folder / "notes.md").write_text("changed\n") if words == ["stash"] else None
    before = (git(git_caller.folder, "rev-parse", "HEAD"), git(git_caller.folder, "status", "--short"))
    done = git_ran(git_caller, *words)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("swarm: swarm lock blocked git (") and "the-holder" in done.stderr
    assert before == (git(git_caller.folder, "rev-parse", "HEAD"), git(git_caller.folder, "status", "--short"))
    assert mistakes() == []


def test_what_leaves_it_alone_runs(git_caller: Caller) -> None:
    (git_caller.folder / "other.md").write_text("mine\n")
    assert git_ran(git_caller, "add", "other.md").returncode == 0
    assert git_ran(git_caller, "hash-object", "-w", "--stdin", text="some text").stdout.strip()
    commit = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qF", "-")
    told = git_ran(git_caller, *commit, text="by hand")
    assert told.returncode == 1 and "the same command again goes ahead" in told.stderr, "the file is a person's"
    done = git_ran(git_caller, *commit, text="by hand")
    assert done.returncode == 0 and git(git_caller.folder, "log", "-1", "--format=%s") == "by hand\n", (
        "its input is git's"
    )


@pytest.mark.parametrize("env", [{"CLAUDE_CODE_SESSION_ID": "two"}, {"CODEX_THREAD_ID": "t"}])
def test_the_session_of_a_client_that_a_command_starts_asks_for_itself(git_caller: Caller, env: dict[str, str]) -> None:
    assert git_ran(git_caller, "checkout", "-q", "other", **env).returncode == 0
    assert git(git_caller.folder, "branch", "--show-current") == "other\n"


def test_where_there_is_no_git(git_caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").mkdir()
    for path in (f"{SHIM}", f"{SHIM}:{tmp_path}/bin::/nowhere", f"{SHIM}:{SHIM}/"):
        done = git_ran(git_caller, "checkout", "other", PATH=path)
        assert (done.returncode, done.stdout, done.stderr) == (127, "", "git: command not found\n")


def test_a_name_of_a_folder_with_a_blank_or_a_star(git_caller: Caller, tmp_path: Path) -> None:
    odd = folder_at(tmp_path / "a * b")
    (odd / "git").symlink_to(str(shutil.which("git")))
    assert git_ran(git_caller, "--version", PATH=f"{SHIM}:{odd}").stdout.startswith("git version")


def test_without_an_interpreter_git_runs(git_caller: Caller) -> None:
    done = git_ran(git_caller, "checkout", "-q", "other", SWARM_KERNEL_PYTHON="/nowhere/python")
    assert done.returncode == 0 and git(git_caller.folder, "branch", "--show-current") == "other\n"


def test_a_fault_of_ours_lets_it_run_and_is_recorded(git_caller: Caller, tmp_path: Path) -> None:
    text_at(tmp_path / "state-file", "")
    (Path(os.environ["SWARM_DB_PATH"])).write_bytes(b"no database" * 1000)
    done = git_ran(git_caller, "checkout", "-q", "other")
    assert done.returncode == 0
    assert [line for line in fault_lines() if line["hook"] == "git"]
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


def test_one_of_our_own_harnesses(git_caller: Caller, work: Path, store: Store) -> None:
    from support.sessions import join, new_session

    me: Any = new_session()
    join(store, work, "me", runtime="loop", session_id=me)
    done = git_ran(git_caller, "checkout", "other", SWARM_KERNEL_HELD=f"loop {me} ")
    assert done.returncode == 1 and "the-holder" in done.stderr

"""The text that the shell of a call sources: it runs the same command again, in the same process, with locked files
held.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernel_ground import USERS, KernelGround, grounds

from swarm_hook_core.kernel import plans

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
    for name in (".bash_profile", ".zprofile"):
        (home / name).write_text("own() { echo of my own; }\n")
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

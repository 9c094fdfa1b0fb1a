"""Ways around a lock that a stubborn writer would think of next, and everyday commands that must not be held up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.altered import Limits
from support.checkouts import AMPLE
from support.files import files_at

from swarm_hook_core.shell import effects_of, walk
from swarm_hook_core.shell.model import absolute
from swarm_hook_core.shell.programs.git import touched_files

FILES = ("src/app.py", "src/util.py", "other.py", "tool/__init__.py", "new.py")


@pytest.fixture(autouse=True)
def unhurried(limits: Limits) -> None:
    """The first command of a language loads its reader, which may take longer than a walk may."""
    limits(walk, SECONDS=10.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files_at(tmp_path, dict.fromkeys(FILES, "x\n"))
    return tmp_path


def seen(command: str, folder: Path):
    """Return (True if src/app.py is certainly written, True if anything may be, True if project code runs)."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SHELL": "/bin/bash"}
    effects = effects_of(command, str(folder), environment)
    locked = str(folder / "src/app.py")
    writes = any(absolute(one.folder, one.path) == locked for one in effects.writes)
    trees = [one.admits(locked) for one in effects.trees if locked.startswith(one.root.rstrip("/") + "/")]
    return writes or True in trees, bool(effects.guesses) or None in trees, effects.runs


@pytest.mark.parametrize(
    "command",
    [
        "ln -s src/app.py l && echo x > l",
        "ln src/app.py l; sed -i s/a/b/ l",
        "cp -l src/app.py l; echo x > l",
        "ln -s $PWD/src /tmp/sl-of-nobody && echo x > /tmp/sl-of-nobody/app.py",
        "mkdir t; cp new.py t/app.py; mv t/* src/",
        "npm exec -c 'echo x > src/app.py'",
        "curl -s -T new.py file://$PWD/src/app.py",
        """ruby -e '$stdout.reopen("src/app.py", "w")'""",
        """php -r '(new SplFileObject("src/app.py", "w"))->fwrite("x");'""",
    ],
)
def test_a_detour_that_can_be_followed_is_certain(command: str, folder: Path) -> None:
    assert seen(command, folder)[0]


@pytest.mark.parametrize(
    "command",
    [
        "declare -n r=f; f=src/app.py; echo x > $r",
        """perl -e '@ARGV = ("src/app.py"); $^I = ""; while (<>) { print }'""",
        """ruby -rpathname -e 'Pathname("src/app.py").write("x")'""",
        """node -e 'const w = require("fs").writeFileSync; w("src/app.py", "x")'""",
        """node -e 'const fs = require("fs"); fs["writeFileSync"]("src/app.py", "x")'""",
        """node -e 'const m = "fs"; require(m)["write" + "FileSync"]("src/app.py", "x")'""",
        "sqlite3 :memory: \"select writefile('src/app.py', 'x')\"",
        """vim -es +'call writefile(["x"], "src/app.py")' +q""",
        """perl -e 'use IO::File; my $f = IO::File->new("src/app.py", ">"); print $f "x"'""",
        "cat > scratch.py <<'E'\nopen('src/app.py', 'w')\nE\npython3 -c 'import scratch'",
        "make -f - <<'E'\nall:\n\techo x > src/app.py\nE",
        "python3 - <<'E'\nimport subprocess\nsubprocess.run(['git', 'apply', '-'], input=make(), text=True)\nE",
        "python3 - <<'E'\nimport subprocess\np = subprocess.Popen(['sh'], stdin=subprocess.PIPE)\nE",
        "python3 -c \"import shutil, tempfile; d = tempfile.mkdtemp(); shutil.copytree(d + '/s', 'src')\"",
        "printf '#!/usr/bin/env python3\\n' > info; ./info",
        """elixir -e 'File.write!("src/app.py", "x")'""",
        "echo x > /proc/$$/cwd/src/app.py",
        "sed -i s/a/b/ /proc/self/cwd/src/app.py",
        "python3 -c 'import ctypes; ctypes.CDLL(None).open(name, 1)'",
        "docker run -v $PWD:/w alpine sh -c 'echo x > /w/src/app.py'",
        "rails db:migrate",
    ],
)
def test_a_detour_that_cannot_be_followed_is_possible(command: str, folder: Path) -> None:
    certain, possible, _runs = seen(command, folder)
    assert possible and not certain


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("python3 -c 'import tool; print(tool)'", True),
        ("PYTHONPATH=src python3 -c 'from app import x; print(x)'", True),
        ("""node -e 'const {f} = require("./src/x"); console.log(f())'""", True),
        ("python3 other.py --help", True),
        ("./src/run.sh --help", True),
        ("rails routes", True),
        ("python3 -c 'import numpy'", False),
        ("swarm-mcp restore src/app.py", False),
        ("/opt/plugin/bin/swarm-mcp status", False),
        ("tmux capture-pane -p", False),
        ("ln -s src/app.py l; rm l", False),
        ("f() { local -r n=1; echo $n; }; f", False),
        ("docker run -v $PWD/tool:/w alpine ls", False),
        ("""ruby -e 'File.open("/tmp/x", "w") { |f| f.write("x") }'""", False),
        ("""node -e 'const a = [1]; a.map(f)'""", False),
        ("python3 -c \"import subprocess; subprocess.run(['git', 'log'], stdin=subprocess.DEVNULL)\"", False),
        ("touch t.tmp; rm -f *.tmp", False),
    ],
)
def test_everyday_commands_are_held_up_by_nothing(command: str, runs: bool, folder: Path) -> None:
    assert seen(command, folder) == (False, False, runs)


@pytest.fixture
def repository(folder: Path) -> Path:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)

    git("init", "-qb", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "side")
    (folder / "src/app.py").write_text("y\n")
    git("commit", "-qam", "two")
    git("checkout", "-q", "main")
    return folder


@pytest.mark.parametrize(
    ("command", "unsure"),
    [
        ("git symbolic-ref HEAD refs/heads/side && git reset --hard", True),
        ("git update-ref refs/heads/main side; git checkout -f", True),
        ("git branch tmp side && git checkout tmp", True),
        ("git tag t side; git checkout t -- src", True),
        ("git reset side -- src; git checkout .", True),
        ("git restore -s side --staged .; git restore src", True),
        ("git read-tree side && git checkout-index -af", True),
        ("git branch backup && git reset --hard main", False),
        ("git tag v1; git checkout -b new", False),
        ("git restore --staged .; git status", False),
    ],
)
def test_what_an_earlier_git_command_leads_to_is_unsure(command: str, unsure: bool, repository: Path) -> None:
    calls = effects_of(command, str(repository), {"PATH": os.environ["PATH"], "HOME": str(repository)}).git
    answers = [touched_files.touched(call, [str(repository / "src/app.py")], AMPLE) for call in calls]
    assert any(answer.unsure for answer in answers) is unsure
    assert not any(answer.certain for answer in answers)


def test_a_pull_from_the_repository_itself_is_known(repository: Path) -> None:
    (call,) = effects_of("git pull . side", str(repository), {}).git
    locked = str(repository / "src/app.py")
    assert touched_files.touched(call, [locked], AMPLE).certain == [locked]

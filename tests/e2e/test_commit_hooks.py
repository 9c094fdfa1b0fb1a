"""`swarm-mcp commit` under the real pre-commit and lint-staged: they put unstaged changes aside during a commit.

Both are fetched as their users fetch them; tests/unit/changes/test_commit_hooks.py has hooks that do the same. A person commits at a terminal, beside a session's uncommitted lines.
"""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from .client import Client
from .ground import wait_for
from .test_own_commit import asked, begin
from .test_person import typed

pytestmark = [pytest.mark.ways("install"), pytest.mark.only("codex"), pytest.mark.thorough]

# The checker waits for a file, so that the test sees the work tree while the hooks run. It mends "PERSON".
CHECKER = """
import pathlib, sys, time
aside = pathlib.Path({aside!r})
(aside / "runs").write_text(repr(sys.argv[1:]))
for _wait in range(3000):
    if (aside / "go").exists():
        break
    time.sleep(0.02)
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    path.write_text(path.read_text().replace("PERSON", "MENDED"))
"""
PRE_COMMIT = (
    "repos: [{{repo: local, hooks: [{{id: mend, name: mend, language: system, entry: {python} {checker}}}]}}]\n"
)


def do(*argv: str, cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(argv)}: {(done.stderr or done.stdout)[-2000:]}"


def pre_commit(client: Client, checker: Path) -> None:
    """Install pre-commit into an environment of its own, and its hook into the checkout."""
    folder = checker.parent / "venv"
    do(sys.executable, "-m", "venv", str(folder), cwd=checker.parent)
    do(str(folder / "bin/pip"), "install", "--quiet", "pre-commit", cwd=checker.parent)
    text = PRE_COMMIT.format(python=sys.executable, checker=checker)
    (client.ground.checkout / ".pre-commit-config.yaml").write_text(text)
    done = client.ground.run([str(folder / "bin/pre-commit"), "install"], seconds=60)
    assert done.returncode == 0, done.stderr


def lint_staged(client: Client, checker: Path) -> None:
    """Install lint-staged into the checkout, where git ignores it, and a hook as husky writes it."""
    checkout = client.ground.checkout
    (checkout / ".gitignore").write_text("node_modules/\n")
    tasks = {"lint-staged": {"*.md": f"{sys.executable} {checker}"}}
    (checkout / "package.json").write_text(json.dumps({"private": True, **tasks}))
    do("npm", "install", "--silent", "--no-save", "lint-staged@15", cwd=checkout)
    hook = checkout / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nnode_modules/.bin/lint-staged\n")
    hook.chmod(0o755)


@pytest.fixture
def checker(tmp_path: Path) -> Path:
    path = tmp_path / "checker.py"
    path.write_text(CHECKER.format(aside=str(tmp_path)))
    return path


@pytest.mark.parametrize("manager", [pre_commit, lint_staged], ids=lambda one: one.__name__)
def test_a_session_s_lines_stay_in_the_work_tree_while_the_hooks_run(client: Client, checker: Path, manager) -> None:  # type: ignore[no-untyped-def]
    checkout, aside = client.ground.checkout, checker.parent
    manager(client, checker)
    try:
        (aside / "go").touch()  # its commit has the hook, too
        file = begin(client, manager.__name__)
        for name in ("go", "runs"):
            (aside / name).unlink(missing_ok=True)
        client.run("work", client.replace(file, "beta", "SESSION"), client.create("own.md", "SESSION\n"))
        present = (checkout / file).read_text()
        done: list[subprocess.CompletedProcess[str]] = []
        thread = threading.Thread(target=lambda: done.append(typed(client, "commit", "-m", "typed")))
        thread.start()
        try:
            assert wait_for((aside / "runs").exists, 60), done
            assert (checkout / file).read_text() == present and (checkout / "own.md").exists()
            assert "own.md" not in (aside / "runs").read_text() and file in (aside / "runs").read_text()
        finally:
            (aside / "go").touch()
            thread.join(120)
        assert (checkout / file).read_text() == present and asked(client, "stash", "list") == ""
        if manager is lint_staged:  # it stages the mended files
            assert done[0].returncode == 0, done
            assert asked(client, "show", f"HEAD:{file}").split() == ["alpha", "beta", "gamma", "delta", "MENDED"]
            assert f"the hooks changed {file} in the commit" in done[0].stdout, done
        else:  # it refuses a commit with mended files
            assert done[0].returncode == 1 and "files were modified by this hook" in done[0].stderr, done
        command = (done[0].stdout + done[0].stderr).split("`")[1]
        do("sh", "-c", command, cwd=checkout)
        assert (checkout / file).read_text() == present.replace("PERSON", "MENDED")
        if manager is lint_staged:
            assert asked(client, "show", "--format=", "--name-only", "HEAD").split() == [file]
        assert asked(client, "status", "--porcelain") == f" M {file}\n?? own.md\n"
    finally:  # the next test has the same checkout
        (checkout / ".git/hooks/pre-commit").unlink()
        (checkout / ".pre-commit-config.yaml").unlink(missing_ok=True)
        shutil.rmtree(checkout / "node_modules", ignore_errors=True)

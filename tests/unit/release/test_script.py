"""The command's own script: the Python that it starts, at any place."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.repository import ROOT

SAYS = '#!/bin/sh\necho "${0##*/}" "$@"\n'


def program(path: Path, text: str = SAYS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def installed(folder: Path) -> Path:
    program(folder / "bin/swarm-locks")
    shutil.copy(ROOT / "swarm_mcp/cli/launcher.sh", folder / "bin/swarm-mcp")
    return folder / "bin/swarm-mcp"


def said(program: str | Path, cwd: Path, *words: str) -> list[str]:
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("called", ["itself", "link", "link of a link", "relative"])
@pytest.mark.parametrize("name", ["env", "with a blank"])
def test_the_python_beside_the_script_runs_it_without_site(called: str, name: str, tmp_path: Path) -> None:
    script = installed(tmp_path / name)
    program(tmp_path / name / "bin/python")
    (tmp_path / name / "pyvenv.cfg").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/one").symlink_to(script)
    (tmp_path / "bin/two").symlink_to("one")
    starts = {"itself": script, "link": tmp_path / "bin/one", "link of a link": tmp_path / "bin/two",
              "relative": f"./{name}/bin/swarm-mcp"}  # fmt: skip
    (line,) = said(starts[called], tmp_path, "lock", "a b")
    assert line.startswith("python -S ") and line.endswith(f"{name}/bin/swarm-mcp lock a b")


def test_outside_of_a_virtual_environment_the_installers_script_runs(tmp_path: Path) -> None:
    script = installed(tmp_path)
    program(tmp_path / "bin/python")
    assert said(script, tmp_path, "lock", "f") == ["swarm-locks lock f"]


def test_a_link_is_followed_without_programs_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = installed(tmp_path / "env")
    (tmp_path / "one").symlink_to(script)
    (tmp_path / "two").symlink_to("one")
    monkeypatch.setenv("PATH", "/nowhere")
    assert said(tmp_path / "two", tmp_path, "locks") == ["swarm-locks locks"]


def test_a_copy_of_the_script_runs_the_command_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(installed(tmp_path / "env"), tmp_path / "swarm-mcp")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin:{os.environ['PATH']}")
    assert said(tmp_path / "swarm-mcp", tmp_path, "locks") == ["swarm-locks locks"]


@pytest.mark.parametrize(
    "word, settings, more, has_site",
    [
        ("lock", "include-system-site-packages = false\n", "", False),
        ("--version", "include-system-site-packages = false\n", "distutils-precedence.pth", False),
        ("serve", "include-system-site-packages = false\n", "", True),
        ("lock", "include-system-site-packages = true\n", "", True),
        ("lock", "", "", True),
        ("lock", "include-system-site-packages = false\n", "theirs.pth", True),
    ],
)
def test_short_commands_do_without_site(word: str, settings: str, more: str, has_site: bool, tmp_path: Path) -> None:
    script = installed(tmp_path)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = tmp_path / "lib" / version / "site-packages/swarm_mcp/cli"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    main = """import sys

def main():
    behind = sys.path.index(__file__[: -len("/swarm_mcp/cli/main.py")])
    print('site' in sys.modules, any(path.endswith(".zip") for path in sys.path[:behind]), flush=True)
    return 0
"""
    (package / "main.py").write_text(main)
    shutil.copy(ROOT / "swarm_mcp/start.py", package.parent)
    if more:
        (package.parents[1] / more).write_text("")
    base = os.path.realpath(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\n{settings}")
    (tmp_path / "bin/python").symlink_to(base)
    assert said(script, tmp_path, word) == [f"{has_site} True"], "or the packages are before Python's own"


@pytest.mark.parametrize("left_behind", [False, True])
def test_packages_that_are_elsewhere_are_found_by_site(left_behind: bool, tmp_path: Path) -> None:
    """As those of a checkout: a file of paths leads to them, and a folder may be left of an earlier installation."""
    script = installed(tmp_path)
    packages = tmp_path / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    if left_behind:
        (packages / "swarm_mcp/__pycache__").mkdir(parents=True)
    there = tmp_path / "checkout/swarm_mcp/cli"
    there.mkdir(parents=True)
    for folder in (there.parent, there):
        (folder / "__init__.py").touch()
    (there / "main.py").write_text("def main():\n    print(__file__, flush=True)\n    return 0\n")
    (packages / "checkout.pth").write_text(f"{there.parents[1]}\n")
    base = os.path.realpath(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
    (tmp_path / "bin/python").symlink_to(base)
    assert said(script, tmp_path, "lock") == [f"{there}/main.py"]

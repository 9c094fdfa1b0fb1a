"""The wheel on a machine that has nothing else of ours: no repository, no settings, no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import repository

from swarm_mcp import __version__

pytestmark = pytest.mark.slow

REAL_HOME = os.path.expanduser("~")  # before a test has a home of its own: pip's settings there name the index


def without_the_repository() -> list[str]:
    """Return the start of a program that sees an empty folder in place of the repository; empty on a system without
    that.
    """
    hide = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']
    hide.append(str(repository.ROOT))
    try:
        seen = subprocess.run([*hide, "ls", "-A", str(repository.ROOT)], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return hide if (seen.returncode, seen.stdout) == (0, "") else []


@pytest.mark.thorough
def test_a_machine_without_a_network_gets_it_from_what_another_one_downloaded(tmp_path: Path):
    """By the very lines of docs/install.md, in an empty home, with the system's programs on PATH. From the index: all
    that we need."""
    page = (repository.ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = page.partition("\n### Without a network\n")[2].partition("\n## ")[0]
    download, install = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)

    source, carried, home = (tmp_path / name for name in ("source", "carried", "home"))
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    subprocess.run(argv, cwd=repository.copied(source), check=True, capture_output=True)
    (wheel,) = (tmp_path / "built").iterdir()
    programs = tmp_path / "bin"
    for folder in (carried, home, programs):
        folder.mkdir()
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    (programs / "python3").symlink_to(python)
    (programs / "pip").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    (programs / "pip").chmod(0o755)
    system = f"{programs}:{os.defpath}"

    alone: list[str] = []

    def run(script: str, folder: Path, **environment: str) -> str:
        done = subprocess.run([*alone, "/bin/sh", "-ec", script], cwd=folder, env={"PATH": system, **environment},
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    pip_settings = {name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "http"))}
    run(download.replace("swarm-locks", str(wheel)), carried, HOME=REAL_HOME, **pip_settings)
    run(f"rm -r {source} {wheel}", tmp_path)
    alone = without_the_repository()
    run(install, carried, HOME=str(home))

    scripts = home / ".swarm" / "bin"
    for name in ("swarm-mcp", "swarm-locks"):
        assert run(f"{scripts / name} --version", home, HOME=str(home)) == f"swarm-mcp {__version__}\n"
    assert "your four lines are still there" in run(f"{scripts / 'swarm-mcp'} demo", home, HOME=str(home), TERM="dumb")
    site = Path(
        run(f"{scripts / 'python'} -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'", home).strip()
    )
    installed = [path for path in site.iterdir() if not path.name.startswith(("pip", "setuptools", "pkg_resources"))]
    assert len([path for path in installed if path.name.endswith(".dist-info")]) <= 17, installed
    files = [file for path in installed for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 45_000_000
    for words in ("page --no-open", "lsp", "team init postgresql://nobody@127.0.0.1/nothing"):
        told = run(f"{scripts / 'swarm-mcp'} {words} 2>&1 </dev/null || test $? = 1", home, HOME=str(home))
        assert told.count("\n") == 1 and f" install 'swarm-locks[{words.split()[0]}]'" in told, (
            "a line with the command"
        )
    worker = f"{scripts / 'swarm-mcp'} worker run --harness process --command 'echo works'"
    assert "works" in run(worker, home, HOME=str(home))
    traces = subprocess.run(["grep", "-rlF", str(repository.ROOT), str(home)], capture_output=True, text=True)
    assert traces.stdout == "", "nothing names the repository"

"""The output of `make dist`: the same bytes anywhere, and a wheel that needs nothing else of ours."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support import repository

from swarm_mcp import __version__

pytestmark = pytest.mark.slow


REAL_HOME = os.path.expanduser("~")  # before a test has a home of its own: pip's settings there name the index
PLUGIN = (
    ".agents/", ".claude-plugin/", ".codex-plugin/", ".github/plugin/", "qwen-extension.json", "integrations/", "skills/",
    "LICENSE", "CHANGELOG.md",
)  # fmt: skip


def built(target: str, source: Path, folder: Path, **env: str | None) -> Path:
    """Build one `target` (sdist or wheel) with the hatchling of this environment; return the file.

    The wheel has no relay in C, unless `env` says another thing.
    """
    argv = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    given = {**os.environ, "SWARM_RELAY": "", **env}
    environment = {name: value for name, value in given.items() if value is not None}
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    return file


def described(wheel: Path) -> str:
    """The long description in the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode("utf-8").partition("\n\n")[2]


def test_the_archives_hold_what_belongs_in_them(tmp_path: Path):
    """The source archive has all of the repository; the wheel has the packages and the plugin's files."""
    there = repository.names()
    source = repository.copied(tmp_path / "source")
    sdist = built("sdist", source, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
        assert {member.uid for member in members} | {member.gid for member in members} == {0}
        held = {member.name.partition("/")[2] for member in members}
    assert held == {*there, "PKG-INFO"}

    wheel = built("wheel", source, tmp_path / "wheel")
    expected = {name for name in there if name.startswith(("swarm_hook_core/", "swarm_mcp/"))}
    expected.remove("swarm_mcp/cli/launcher.sh")  # carried as a script
    expected |= {f"swarm_mcp/_plugin/{name}" for name in there if name.startswith(PLUGIN)}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        runnable = {info.filename for info in archive.infolist() if info.external_attr >> 16 & 0o111}
    (script,) = [name for name in held if name.endswith(".data/scripts/swarm-mcp")]
    assert held == {*expected, script}
    assert runnable == {
        script, *(name for name in expected if os.access(source / name.removeprefix("swarm_mcp/_plugin/"), os.X_OK)),
    }  # fmt: skip
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True)
    again = built("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "again")
    assert again.read_bytes() == wheel.read_bytes(), "the source archive builds the same wheel"


def test_the_page_on_the_index_leads_into_the_repository_once_its_address_is_known(tmp_path: Path):
    source = repository.copied(tmp_path / "source")
    readme = (source / "README.md").read_text(encoding="utf-8")
    relative = re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", readme)
    relative += re.findall(r'\b(?:src|srcset)="([^"]+)"', readme)
    assert len(relative) > 10
    if "[project.urls]" not in (source / "pyproject.toml").read_text(encoding="utf-8"):
        assert described(built("wheel", source, tmp_path / "before")) == readme
    argv = [sys.executable, "-B", str(source / ".ci/release.py"), "address", "https://github.com/us/swarm"]
    subprocess.run(argv, check=True)
    page = described(built("wheel", source, tmp_path / "after"))
    assert page.endswith("\n<!-- mcp-name: io.github.us/swarm -->\n"), "the registry of MCP servers looks for it"
    made = re.findall(rf'https://github\.com/us/swarm/(blob|raw)/v{re.escape(__version__)}/([^)"\s]+)', page)
    assert sorted(path for _, path in made) == sorted(relative)
    assert {path for kind, path in made if kind == "raw"} == {path for path in relative if path.endswith(".svg")}


@pytest.mark.thorough
def test_two_builds_are_the_same_bytes_and_fit_for_the_index(tmp_path: Path):
    """In two folders, by people with other habits, on other days. From the index: the release's build tools."""
    results = []
    for turn, (umask, date, environment) in enumerate(
        [(0o022, 1_000_000_000, {"TZ": "UTC"}), (0o077, 1_700_000_000, {"TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "1"})]
    ):
        source = repository.copied(tmp_path / f"clone {turn}")
        for file in source.rglob("*"):
            if file.is_file():
                file.chmod((0o777 if os.access(file, os.X_OK) else 0o666) & ~umask)
                os.utime(file, (date, date))
        dist = tmp_path / f"dist{turn}"
        argv = [
            "make",
            "dist",
            "PLATFORMS=",
            f"SWARM_DEV={tmp_path / 'dev'}",
            f"DIST={dist}",
            f"PYTHON={sys.executable}",
        ]
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MAKE"))}
        done = subprocess.run(argv, cwd=source, env={**outer, **environment, "HOME": REAL_HOME}, umask=umask,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("PASSED") == 2, done.stdout
        results.append({file.name: file.read_bytes() for file in dist.iterdir()})
    assert len(results[0]) == 2 and results[0] == results[1]


@pytest.mark.parametrize("has_compiler", [True, False], ids=["cc", "no cc"])
@pytest.mark.thorough
def test_an_installation_from_a_clone_compiles_what_it_can(tmp_path: Path, has_compiler: bool):
    """As pip builds it, without a network: with the relay in C, or with the reason for `doctor`. The clone stays as it was."""
    if has_compiler and not shutil.which("cc"):
        pytest.skip("no C compiler")
    source, wheels, home = (tmp_path / name for name in ("source", "wheels", "home"))
    repository.copied(source)
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "XDG_", "CC"))}
    environment.update(HOME=str(home), **({} if has_compiler else {"PATH": str(home)}))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    make = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(wheels), str(source)]
    done = subprocess.run(make, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.iterdir()
    is_for_all = wheel.name.endswith("-py3-none-any.whl")
    assert is_for_all is not has_compiler, wheel.name
    with zipfile.ZipFile(wheel) as archive:
        added = {name for name in archive.namelist() if name.startswith("swarm_mcp/bin/")}
        assert added == {f"swarm_mcp/bin/{'swarm_relay' if has_compiler else 'not-compiled'}"}
        if not has_compiler:
            assert archive.read(*added).decode() == "no C compiler (cc) was found\n"

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    install = [*pip, "--python", str(tmp_path / "venv"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, env=environment, check=True, capture_output=True)
    doctor = [str(tmp_path / "venv/bin/swarm-mcp"), "doctor", "--no-clients", "--json"]
    environment["PATH"] = os.environ["PATH"]
    told = subprocess.run(doctor, cwd=home, env=environment, capture_output=True, text=True)
    (found,) = [check for check in json.loads(told.stdout)["checks"] if check["name"] == "relay"]
    if has_compiler:
        assert found["status"] == "ok" and "by a program in C" in found["message"], found
    else:
        assert found["status"] == "info" and "no C compiler (cc) was found" in found["message"], found


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

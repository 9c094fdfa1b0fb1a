"""A plugin straight from a repository, on machines with another PATH than that of its maker."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.requirement import requirement

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground
from .marketplace import Marketplace

USUAL_PLACES = "/usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3"


def interpreter(version: str) -> str:
    """Return a Python of this version on this machine; skip without one."""
    named = [shutil.which(f"python{version}"), *Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3")]
    for candidate in [str(name) for name in named if name]:
        asked = [candidate, "-c", "import sys, os; print(os.path.realpath(sys.executable), *sys.version_info[:2])"]
        told = subprocess.run(asked, capture_output=True, text=True).stdout.split()
        if told[1:] == version.split("."):
            return told[0]
    pytest.skip(f"no Python {version} on this machine")


@pytest.fixture
def bare(newcomer: Client) -> Client:
    """A client with the plugin of a clone of this repository, and a PATH without Python and `swarm-mcp`."""
    ground = newcomer.ground
    market = Marketplace(ground, "clone")
    clone = Path(market._cloned())
    launcher = clone / "integrations" / "hook.sh"
    assert USUAL_PLACES in launcher.read_text()
    launcher.write_text(launcher.read_text().replace(USUAL_PLACES, ""))  # this machine's own
    ground.git(clone, "commit", "-qam", "test")
    market._source = str(clone)
    market.install(newcomer.name)
    market.close()
    return newcomer


def path(ground: Ground, **programs: str) -> dict[str, str]:
    """An environment with all that was on PATH but Python and `swarm-mcp`; and `programs`, name -> where it is."""
    folder = ground.root / "path"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, program in programs.items():
        (folder / name.replace("_", "-")).symlink_to(program)
    (ground.home / ".profile").unlink(missing_ok=True)
    return {"PATH": ground.path_without(folder, "python", "pypy", "swarm-mcp")}


def stranger(ground: Ground) -> str:
    """Make another program called `swarm-mcp`: it writes the file `started` when it is started."""
    program = ground.root / "stranger"
    program.write_text(f"#!{sys.executable}\nopen({str(ground.root / 'started')!r}, 'a').write('started')\n")
    program.chmod(0o755)
    return str(program)


def write_is_denied(client: Client, script: str, env: dict[str, str]) -> None:
    client.run(script, client.replace("notes.md", "line one", "line two"), env=env)
    assert_denied(client, script, "notes.md")


def test_without_python_user_and_model_are_told(bare: Client) -> None:
    client, env = bare, path(bare.ground)
    client.ground.coordinator.register_peer()
    client.run("work", client.replace("notes.md", "line one", "line two"), env=env)
    assert_text(client, "notes.md", "line two\n")
    assert "file locks are NOT enforced in this session" in client.context("work")
    with client.interactive(env=env) as terminal:
        client.turn(terminal, "talk")
        assert re.search(r"file locks are NOT\s+enforced", terminal.screen())


@pytest.mark.thorough
def test_the_python_that_comes_first_may_be_3_9(bare: Client) -> None:
    bare.ground.coordinator.peer_lock("notes.md")
    env = path(bare.ground, python3=interpreter("3.9"), swarm_mcp=str(bare.ground.bin / "swarm-mcp"))
    write_is_denied(bare, "write", env)
    bare.run("shell", bare.shell("sed -i s/one/two/ notes.md"), env=env)
    assert_denied(bare, "shell", "notes.md")


@pytest.mark.thorough
def test_an_old_python_is_passed_over(bare: Client) -> None:
    bare.ground.coordinator.peer_lock("notes.md")
    ours = os.path.realpath(sys.executable)
    env = path(bare.ground, python3=interpreter("3.8"), python=ours, swarm_mcp=str(bare.ground.bin / "swarm-mcp"))
    write_is_denied(bare, "write", env)
    assert "registered as" in bare.context("write")
    bare.run("tools", *bare.swarm_tools(("lock_file", {"file": "other.md"})), env=env)
    assert '"ok":true' in bare.last_result("tools"), "the server has started as well"


@pytest.mark.parametrize("kind", [pytest.param("absent", marks=pytest.mark.thorough), "another program"])
@requirement("P-01")
def test_without_our_command_writes_are_checked_all_the_same(bare: Client, kind: str) -> None:
    bare.ground.coordinator.peer_lock("notes.md")
    others = {} if kind == "absent" else {"swarm_mcp": stranger(bare.ground)}
    env = path(bare.ground, python3=os.path.realpath(sys.executable), **others)
    write_is_denied(bare, "write", env)
    assert "could not be registered" in bare.context("write") and "shell commands write is checked" in bare.context(
        "write"
    )
    bare.run("shell", bare.shell("sed -i s/one/two/ notes.md"), env=env)
    assert_denied(bare, "shell", "notes.md")
    assert not (bare.ground.root / "started").exists()

"""A plugin straight from a repository, on machines whose PATH has something else than it was made with."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground
from .marketplace import Marketplace

USUAL_PLACES = "/usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3"


def interpreter(version: str) -> str:
    """A Python of this version on this machine; skips where there is none."""
    named = [shutil.which(f"python{version}"), *Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3")]
    for candidate in [str(name) for name in named if name]:
        asked = [candidate, "-c", "import sys, os; print(os.path.realpath(sys.executable), *sys.version_info[:2])"]
        told = subprocess.run(asked, capture_output=True, text=True).stdout.split()
        if told[1:] == version.split("."):
            return told[0]
    pytest.skip(f"no Python {version} on this machine")


@pytest.fixture
def bare(newcomer: Client) -> Client:
    """A client with the plugin of a clone of this repository, whose PATH has no Python and no `swarm-mcp`."""
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
    """An environment whose PATH has all that was there but Python and `swarm-mcp`, and `programs`: name -> what runs."""
    folder = ground.root / "path"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, program in programs.items():
        if program.startswith("/"):
            (folder / name.replace("_", "-")).symlink_to(program)
        else:
            (folder / name).write_text(f"#!/bin/sh\n{program}\n")
            (folder / name).chmod(0o755)
    for place in ground.path:
        for entry in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / entry.name
            if not entry.name.startswith(("python", "pypy", "swarm-mcp")) and not link.is_symlink():
                link.symlink_to(entry)
    (ground.home / ".profile").unlink(missing_ok=True)
    return {"PATH": str(folder)}


def hold(client: Client, file: str) -> None:
    client.ground.coordinator.hold(file)


def test_without_python_user_and_model_are_told(bare: Client) -> None:
    client, env = bare, path(bare.ground)
    client.ground.coordinator.register_peer()
    client.run("work", client.replace("notes.md", "line one", "line two"), env=env)
    assert_text(client, "notes.md", "line two\n")
    assert "file locks are NOT enforced in this session" in client.context("work")
    with client.interactive(env=env) as terminal:
        client.turn(terminal, "talk")
        print(terminal.screen())
        assert re.search(r"file locks are NOT\s+enforced", terminal.screen())

"""The ways that are compared, as `ways.json` has them, and how a rival is put into a home.

A rival is installed into an environment of its own under `rivals`, at the version that is named there. Its hooks come
from its own `install` commands, or are the lines of its documents, kept in the data file by client.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json"}

MAIL = "mcp-agent-mail"  # its sessions speak with a server


class Way(NamedTuple):
    """One way to work side by side.

    level     of swarm; empty for all other ways
    apart     True if each session has a work tree of its own
    package   the rival's package with its version; empty if it has none
    index     `pypi` or `npm`
    install   the commands that wire it, as its documents have them
    hooks     ``{client: hooks}``, if its documents have them written by hand
    named     the words of its hooks that name a session, to be replaced by a session's own
    ask       the command, or the tool of its server that a session asks for a file before its write
    release   likewise, to give the files back
    ignored   the line that its documents want in `.gitignore`
    wired     how it was installed and wired, for the page
    """

    name: str
    level: str
    apart: bool
    package: str
    index: str
    install: list[list[str]]
    hooks: dict[str, dict[str, Any]]
    named: str
    ask: str
    release: str
    ignored: str
    wired: str


def ways() -> list[Way]:
    """Return all ways, in the order of the page."""
    found = json.loads(Path(__file__).with_name("ways.json").read_text(encoding="utf-8"))
    return [
        Way(
            name,
            one.get("swarm", ""),
            one.get("apart", False),
            one.get("package", ""),
            one.get("from", ""),
            one.get("install", []),
            {client: one[client] for client in SETTINGS if client in one},
            one.get("named", ""),
            one.get("ask", ""),
            one.get("release", ""),
            one.get("ignored", ""),
            one["wired"],
        )
        for name, one in found.items()
    ]


def fetched(way: Way, rivals: Path) -> Path:
    """Return the folder with a rival's programs; install them there if they are not. Raises CalledProcessError."""
    place = rivals / way.package.replace("/", "-")
    programs = place / ("bin" if way.index == "pypi" else "node_modules/.bin")
    if not (place / "whole").exists():
        place.mkdir(parents=True, exist_ok=True)
        if way.index == "pypi":
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            install = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        else:
            install = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", str(place)]
        subprocess.run([*install, way.package], check=True)
        (place / "whole").touch()
    return programs


def wire(way: Way, home: Path, checkout: Path, env: dict[str, str]) -> None:
    """Put a rival's hooks into the clients' settings in `home`. Raises CalledProcessError."""
    for command in way.install:
        subprocess.run(command, cwd=checkout, env=env, check=True, capture_output=True)
    for client, hooks in way.hooks.items():
        file = home / SETTINGS[client]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"hooks": hooks}, indent=1))


def with_programs(env: dict[str, str], programs: Path) -> dict[str, str]:
    """Return the environment with these programs on its path, and their own interpreter before others."""
    return {**env, "PATH": f"{programs}{os.pathsep}{env['PATH']}"}

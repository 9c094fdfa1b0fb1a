"""A release of a client, from the package registry into a folder of its own."""

import json
import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from e2e import more

from .scenarios import Family

DATA = json.loads(Path(__file__).with_name("families.json").read_text())
CLIENTS = tuple(DATA)
MAIN = ("claude-code", "codex")  # their programs lie in one folder, beside each other client's
NEWER_NODE = "node@22"
NEED_IT = (*more.NEWER_NODE, "pi")
BESIDE = {"omp": ("bun",)}  # packages that a client needs in its folder
PINNED = "pinned"  # a release's name: the one that `make e2e` has


def families(client: str) -> list[Family]:
    """Return the families of a client's models."""
    return [Family(**family) for family in DATA[client]["families"]]


def at_hand(client: str) -> Path:
    """Return the folder of a client's pinned release, as `version_in` takes it."""
    places = {**dict.fromkeys((*MAIN, "pi"), "CLIENTS"), "hermes": "HERMES"}
    return Path(os.environ[f"SWARM_E2E_{places.get(client, 'MORE')}"])


def version_in(folder: Path, client: str) -> str:
    """Return the version of a client in npm's folder ``node_modules``, or in a virtual environment if PyPI has it."""
    kind, _, package = DATA[client]["package"].partition(":")
    if kind == "npm":
        return str(json.loads((folder / package / "package.json").read_text())["version"])
    (site,) = folder.glob("lib/python*/site-packages")
    (found,) = metadata.distributions(name=package.partition("[")[0], path=[str(site)])
    return found.version


def fetch(client: str, release: str, folder: Path) -> str:
    """Install a release (a version, or ``latest``) of a client into `folder`; return its version.

    Raises subprocess.CalledProcessError where the registry lacks it.
    """
    kind, _, package = DATA[client]["package"].partition(":")
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "pypi":
        venv.create(folder, with_pip=True)
        wanted = package if release == "latest" else f"{package}=={release}"
        _do(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--upgrade", wanted)
        return version_in(folder, client)
    npm = ("npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix")
    _do(*npm, folder, f"{package}@{release}", *BESIDE.get(client, ()))
    if client in NEED_IT:
        _do(*npm, folder / "newer", NEWER_NODE)
    return version_in(folder / "node_modules", client)


def put_in_place(client: str, folder: Path, pinned: Path) -> None:
    """Have the tests' grounds take a client from `folder`, and Claude Code and Codex from `pinned` if they are others."""
    modules, node = folder / "node_modules", folder / "newer" / "node_modules" / "node" / "bin"
    if client == "pi":
        os.environ["PATH"] = f"{node}:{os.environ['PATH']}"
    if client in MAIN or client == "pi":
        for name in ("claude", "codex"):
            link = modules / ".bin" / name
            if not link.exists():
                link.symlink_to((pinned / ".bin" / name).resolve())
        os.environ["SWARM_E2E_CLIENTS"] = str(modules)
    else:
        os.environ["SWARM_E2E_CLIENTS"] = str(pinned)
        os.environ["SWARM_E2E_MORE"] = str(modules)
        os.environ["SWARM_E2E_HERMES"] = str(folder)
        os.environ["SWARM_E2E_NODE"] = str(node)


def _do(*argv: object) -> None:
    subprocess.run([str(word) for word in argv], check=True, stdout=sys.stderr)

"""The version of a build: the release's number for its tagged commit, a number of its own for every other commit.

`1.2.3+g1a2b3c4d5e6f` is a build from that commit, with `.dirty` behind it where changes are not committed. The package
index takes no such number, so only a tagged commit can be published. A build asks for it (pyproject.toml,
`tool.hatch.version`). In a source archive its own metadata says it. A folder that is neither a clone nor a source
archive is taken for the release.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build_version(root: Path = ROOT) -> str:
    """Return the version of a build from the folder `root`."""
    source = (root / "swarm_hook_core" / "__init__.py").read_text(encoding="utf-8")
    assigned = re.search(r'^__version__ = "(.*)"$', source, re.MULTILINE)
    assert assigned, "swarm_hook_core/__init__.py names no version"
    number = assigned[1]
    if (root / "PKG-INFO").is_file():
        told = re.search(r"^Version: (\S+)$", (root / "PKG-INFO").read_text(encoding="utf-8"), re.MULTILINE)
        return told[1] if told else number
    if not (root / ".git").exists():
        return number
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    if not commit:
        return f"{number}+unknown"
    is_changed = _git(root, "status", "--porcelain") != ""
    if not is_changed and _git(root, "rev-parse", "--quiet", "--verify", f"refs/tags/v{number}^{{commit}}") == commit:
        return number
    return f"{number}+g{commit[:12]}{'.dirty' if is_changed else ''}"


def _git(root: Path, *words: str) -> str | None:
    """Return git's output, or None if git fails or is missing."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


__version__ = build_version()

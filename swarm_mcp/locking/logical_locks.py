"""The git setting by which every lock on a path holds in all work trees of a clone."""

from __future__ import annotations

import os

from swarm_hook_core import git
from swarm_hook_core.repository import Tree
from swarm_mcp.errors import SwarmError

LOGICAL = "swarm.logical"
GIT_SECONDS = 5.0


def logical_of(tree: Tree, name: str = LOGICAL) -> str | None:
    """Return ``swarm.logical``, or the setting `name`, from the clone's own configuration; None if it is not set."""
    words = ["config", "--file", _config(tree.common), "--no-includes", "--get", name]
    done = git.ask(words, tree.common, GIT_SECONDS)
    if done.code == 0:
        return str(done.stdout).removesuffix("\n")
    return None


def set_logical(common: str, value: str | None, name: str = LOGICAL) -> None:
    """Set `name` in the clone with this common git folder; None removes it. Raises SwarmError."""
    if value is not None:
        words = [name, value]
    else:
        words = ["--unset", name]
    done = git.ask(["config", "--file", _config(common), *words], common, GIT_SECONDS)
    if done.code != 0:
        raise SwarmError(f"git config {name}: {done.stderr.strip() or 'failed'}")


def _config(common: str) -> str:
    return os.path.join(common, "config")

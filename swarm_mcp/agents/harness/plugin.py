"""A child's equipment from us: the plugin with the hooks, if the user's own configuration lacks it, and skills."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_hook_core.state import make_private, open_private, state_dir
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.owned_folder import RECORD, differing

FOLDER = "plugin"


def plugin_folder() -> Path:
    """Return the folder of an up-to-date local bundle, in this user's state folder.

    A client that runs from it may be at work while a newer installation brings it up to date: files are replaced
    one by one, whole. Raises SwarmError where the folder cannot be written.
    """
    import fcntl

    target = Path(state_dir()) / FOLDER
    try:
        if _is_current(target):
            return target
        make_private(str(target.parent))
        # Many workers may start at once: one of them writes, the others find it done.
        with open(open_private(f"{target}.lock", os.O_WRONLY | os.O_CREAT), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_current(target):
                bundle.write(target, local=True, force=True)
    except OSError as error:
        raise SwarmError(f"the plugin for workers cannot be written to {target}: {error.strerror or error}") from None
    return target


def _is_current(target: Path) -> bool:
    """Return True if every file of the bundle has its right bytes; the record is written last."""
    return (target / RECORD).is_file() and not differing(target, bundle.contents(target))


OURS = "swarm-mcp"
FILE = "SKILL.md"


def skill_folders(query: Query) -> tuple[str, ...]:
    """Return the absolute folders of all skills, ours and the query's. One of the query's may replace ours.

    Raises Refused for a folder of the query without a skill, and for two skills of one name.
    """
    found = {OURS: str(plugin_source() / "skills" / OURS)}
    named: dict[str, str] = {}
    for given in query.skills:
        folder = os.path.normpath(os.path.join(query.cwd, os.path.expanduser(given)))
        name = os.path.basename(folder)
        if not os.path.isfile(os.path.join(folder, FILE)):
            raise Refused(f"{given[:200]} is no skill: it has no {FILE}")
        if named.setdefault(name, folder) != folder:
            raise Refused(f"two skills are called {name[:40]!r}: {named[name]} and {folder}")
    return tuple({**found, **named}.values())


def described(folder: str) -> tuple[str, str]:
    """Return name and description of a skill, from the frontmatter of its SKILL.md; empty where missing."""
    facts = {"name": os.path.basename(folder), "description": ""}
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8", errors="replace") as file:
            head = file.read(16384)
    except OSError:  # without a description
        return facts["name"], ""
    if head.startswith("---"):
        for line in head.split("---", 2)[1].splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() in facts and value.strip():
                facts[key.strip()] = value.strip().strip("'\"")
    return facts["name"], facts["description"]

"""The skills that a child is to find, without a file in its folder."""

from __future__ import annotations

import os

from swarm_mcp.errors import Refused
from swarm_mcp.harness.query import HarnessQuery

OURS = "swarm-mcp"
FILE = "SKILL.md"


def skill_folders(query: HarnessQuery) -> tuple[str, ...]:
    """Absolute folders of skills, each with a SKILL.md: ours, and the query's, of which one may replace ours.

    Raises Refused where a folder of the query is no skill, or two skills have one name.
    """
    from swarm_mcp.runtimes.bundle import plugin_source

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
    """Name and description of a skill, from the frontmatter of its SKILL.md; what is not there is empty."""
    facts = {"name": os.path.basename(folder), "description": ""}
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8", errors="replace") as file:
            head = file.read(16384)
    except OSError:
        return facts["name"], ""
    if head.startswith("---"):
        for line in head.split("---", 2)[1].splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() in facts and value.strip():
                facts[key.strip()] = value.strip().strip("'\"")
    return facts["name"], facts["description"]

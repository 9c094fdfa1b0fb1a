"""The commands of a prompt in a harness: skills, and commands that a person or a project keeps as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from swarm_mcp.agents.harness.adapter import CommandPlace, HarnessAdapter
from swarm_mcp.agents.harness.plugin import FILE, described, skill_folders
from swarm_mcp.agents.harness.query import Query

SKILL, COMMAND = "skill", "command"
LARGEST = 16384  # characters of a file that are looked at
_DESCRIPTION = re.compile(r"^description\s*[:=]\s*(.+?)\s*$", re.MULTILINE)


class SlashCommand(NamedTuple):
    """One thing that a prompt can invoke: `invocation` is how it does so, `kind` skill or command, `path` its file."""

    name: str
    invocation: str
    description: str
    kind: str
    path: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return self._asdict()


def slash_commands(adapter: HarnessAdapter, cwd: str, skills: tuple[str, ...] = ()) -> list[SlashCommand]:
    """Return the commands of a prompt in `cwd`, by name: the first of each name, and the run's own before all.

    `skills`: folders of a query. Nothing is started; unreadable files have no description. Raises Refused for a folder
    without a skill.
    """
    found: dict[str, SlashCommand] = {}
    can = adapter.capabilities
    if can.native_skills or can.append_system_prompt:
        own = skill_folders(Query("", cwd, skills=skills))
    else:
        own = ()
    for command in (*_skills(adapter, own), *_in(adapter, adapter.command_places(cwd))):
        found.setdefault(command.name, command)
    return [found[name] for name in sorted(found)]


def _in(adapter: HarnessAdapter, places: Iterable[CommandPlace]) -> Iterator[SlashCommand]:
    for place in places:
        if not place.ending:
            names = _names(place.folder)
            yield from _skills(adapter, [os.path.join(place.folder, name) for name in names])
            continue
        for folder, inner, names in os.walk(place.folder):
            inner.sort()
            for name in sorted(names):
                if name.endswith(place.ending):
                    path = os.path.join(folder, name)
                    words = os.path.relpath(path, place.folder).removesuffix(place.ending).split(os.sep)
                    yield SlashCommand(":".join(words), f"/{':'.join(words)}", _description(path), COMMAND, path)


def _skills(adapter: HarnessAdapter, folders: Iterable[str]) -> Iterator[SlashCommand]:
    for folder in folders:
        path = os.path.join(folder, FILE)
        if os.path.isfile(path):
            name, about = described(folder)
            yield SlashCommand(name, adapter.format_command(name), about, SKILL, path)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such folder
        return []


def _description(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = _DESCRIPTION.search(file.read(LARGEST))
    except OSError:  # without a description
        return ""
    if found:
        return found.group(1).strip("'\"")
    return ""

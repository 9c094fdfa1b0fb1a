"""The names on the disk that a shell pattern stands for, within bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any

from swarm_hook_core.shell.model import Admits
from swarm_hook_core.wildcards import (
    LONGEST_NAME,
    STAR,
    compiled,
    has_groups,
    is_magic,
    literal,
    matches,
    matches_plainly,
)

MOST_NAMES = 256  # results that are listed one by one
MOST_DEEP = 3  # `**` in a pattern that a path is compared with
MOST_ENTRIES = 4000  # entries of folders that are looked at
LETTERS_A_STEP = 200  # of patterns, that are compared with names


class _TooMany(Exception):
    """More than can be listed."""


def expand(
    pattern: str, folder: str | None, options: Collection[str], spend: Callable[[int], None]
) -> list[str] | None:
    """Return the names that `pattern` stands for in `folder`, sorted; None if there are too many to list.

    `options`: ``dotglob``, ``globstar``. `spend(steps)` is called with the work done.
    """
    if folder is None and not pattern.startswith("/"):
        return None
    parts = pattern.split("/")
    if sum(part == "**" for part in parts) > 2:
        return None
    try:
        return sorted(_Search(folder or "/", options, spend).names(parts))
    except _TooMany:  # too many to list
        return None


class _Search:
    def __init__(self, folder: str, options: Collection[str], spend: Callable[[int], None]) -> None:
        self.folder = folder
        self.options = options
        self.spend = spend
        self.looked = 0  # entries of folders

    def names(self, parts: list[str]) -> list[str]:
        found, magic = [""], False
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if part == "**" and "globstar" in self.options:
                below = [path for base in found for path in self.below(base, files=last)]
                found, magic = below if last else found + below, True
            elif is_magic(part):
                items = compiled(part, True)
                hidden = part.startswith((".", "\\.")) or "dotglob" in self.options
                found = [base + name for base in found for name in self.entries(base, items, hidden)]
                magic = True
            else:
                found = [base + literal(part) for base in found]
                if magic:
                    found = [path for path in found if os.path.lexists(os.path.join(self.folder, path))]
            if len(found) > MOST_NAMES:
                raise _TooMany
            if not last:
                found = [path if path[-1:] == "/" or (not path and part == "**") else path + "/" for path in found]
        return found

    def look(self, entries: int) -> None:
        self.looked += entries + 1
        self.spend(entries // 8)
        if self.looked > MOST_ENTRIES:
            raise _TooMany

    def entries(self, base: str, items: list[Any], hidden: bool) -> list[str]:
        names = names_in(os.path.join(self.folder, base))
        self.look(len(names))
        fits = matches_plainly
        if has_groups(items):
            fits = matches
        elif sum(item is not STAR for item in items) > LONGEST_NAME:
            return []
        self.spend(len(names) * len(items) // LETTERS_A_STEP)
        return [name for name in names if (hidden or not name.startswith(".")) and fits(name, items)]

    def below(self, base: str, files: bool) -> list[str]:
        """Paths of folders (of files too, where `files`) under `base`, without hidden ones."""
        found, waiting = [], [base]
        while waiting:
            at = waiting.pop()
            try:
                entries = [one for one in os.scandir(os.path.join(self.folder, at)) if not one.name.startswith(".")]
            except (OSError, ValueError):  # gone or unreadable, as for the shell itself
                continue
            self.look(len(entries))
            for entry in entries:
                path = at + ("" if not at or at.endswith("/") else "/") + entry.name
                inside = entry.is_dir(follow_symlinks=False)
                waiting += [path] * inside
                found += [path] * (inside or files)
        return found


def names_in(folder: str) -> list[str]:
    """Return the names of the entries of `folder`; [] if it cannot be read."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):  # gone or unreadable, as for the shell itself
        return []


def admits(pattern: str, folder: str, options: Collection[str]) -> Admits:
    """Return a predicate of absolute paths: `pattern`, seen from `folder`, would list them (see ``model.Tree``)."""
    base = folder.rstrip("/") + "/"
    if pattern.startswith("/"):
        base, pattern = "/", pattern[1:]
    parts: list[list[Any] | None] = []  # None: `**`
    for part in pattern.split("/"):
        if part != "**" or "globstar" not in options:
            parts.append(compiled(part, True))
        elif parts[-1:] != [None]:
            parts.append(None)
    unsure = parts.count(None) > MOST_DEEP

    def admit(path: str) -> bool | None:
        if unsure:
            return None
        return path.startswith(base) and _are_admitted(path[len(base) :].split("/"), parts)

    return admit


def _are_admitted(names: list[str], wanted: list[list[Any] | None]) -> bool:
    if not wanted:
        return not names
    first = wanted[0]
    if first is None:
        return len(wanted) == 1 or any(_are_admitted(names[skip:], wanted[1:]) for skip in range(len(names) + 1))
    return bool(names) and matches(names[0], first) and _are_admitted(names[1:], wanted[1:])

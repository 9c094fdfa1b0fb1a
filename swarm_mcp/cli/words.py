"""Small pieces of text that many commands print: numbers with nouns, clauses, spans, costs, excerpts, paths."""

from __future__ import annotations

import os

from swarm_hook_core.paths import git_root
from swarm_mcp.cli.output import for_people
from swarm_mcp.folders import here


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 lock``, ``2 locks``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def clause(form: str, value: object) -> str:
    """Return `form` with `value` in place of its ``{}``, or an empty text if the value is empty or None."""
    if not value:
        return ""
    return form.replace("{}", str(value))


def span(seconds: float) -> str:
    """Return a running time in short form: ``4s``, ``1m05s``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02d}s"


def dollars(cost: float | None) -> str:
    """Return a cost in US dollars; ``unknown`` for None."""
    if cost is None:
        return "unknown"
    return f"${cost:.4f}"


def excerpt(value: object, longest: int) -> str:
    """Return `value` on one line of at most `longest` characters, with an ellipsis if it is cut."""
    text = " ".join(str(value).split())
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def said_path(path: str) -> str:
    """`path` in an answer of one line: at a terminal as it is called from this folder, whole for scripts."""
    if for_people():
        return near(path, places())
    return path


def places() -> list[tuple[str, str]]:
    """Return this folder and its checkout's root, as they are typed and as they are."""
    folders = dict.fromkeys([here(), os.path.realpath(here())])
    return [(folder.rstrip(os.sep), git_root(folder).rstrip(os.sep)) for folder in folders]


def near(path: str, folders: list[tuple[str, str]]) -> str:
    """Return `path` as it is called from the first of `folders` (`places`) whose checkout it is in; else as it is."""
    for folder, root in folders:
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
        if path == folder or path.startswith(root + os.sep):
            return os.path.relpath(path, folder)
    return path

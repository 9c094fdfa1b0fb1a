"""The file names of versions: the path of the file, a mark, a time; of locked files facts, too (``locked``)."""

from __future__ import annotations

import os

from swarm_hook_core.traces import AFTER, CUT, LATER, LOOK, LOST, MERGED, WHOLE

MARKS = (LATER, LOOK, AFTER, LOST)  # a MERGED text was never the content of its file


def is_of(name: str, first: str) -> bool:
    """Return True if a version with this file `name` is of the file whose first version is called `first`."""
    if not name.startswith(first):  # mostly
        return False
    mark, rest = name[len(first) :][:2], name[len(first) + 2 :]
    return name == first or (mark in MARKS and _time_in(rest) > 0)


def read_name(name: str) -> tuple[str, str, int]:
    """Return ``(path, mark, time)`` of the version with this file name.

    The path is that of its file, empty if it was too long. The mark is empty, and the time 0, for a first version.
    """
    first, mark, at_ns = split_name(name)
    if CUT in first:
        return "", mark, at_ns
    path = first.partition(WHOLE)[0]
    for escape, letter in (("%2F", "/"), ("%5C", "\\"), ("%3A", ":"), ("%25", "%")):
        path = path.replace(escape, letter)
    return (path if os.path.isabs(path) else ""), mark, at_ns


def split_name(name: str) -> tuple[str, str, int]:
    """Return ``(name of the file's first version, mark, time)`` of the version with this file name, as `read_name`."""
    first, mark, at_ns = name, "", 0
    for one in (*MARKS, MERGED):
        head, found, rest = first.rpartition(one)
        if found and _time_in(rest):
            first, mark, at_ns = head, one, _time_in(rest)
    return first, mark, at_ns


def _time_in(text: str) -> int:
    """Return the time at the beginning of `text`, before any facts; 0 for another text."""
    at_ns = text.partition("-")[0]
    if at_ns.isdigit():
        return int(at_ns)
    return 0

"""Uncommitted lines by author, of the few files that one view shows.

Git is asked again once the file, a journal or the last commit has changed, else every `GOOD_SECONDS`.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from swarm_hook_core.repository import tree_over
from swarm_mcp.answers.edits import journal_marks
from swarm_mcp.answers.file_marks import file_marks
from swarm_mcp.answers.people import People
from swarm_mcp.changes.dirty import relative_names
from swarm_mcp.changes.owners import Owners, last_of
from swarm_mcp.changes.uncommitted import ChangedFile, uncommitted
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

LINES, FILES = 200, 5  # shown lines of one file, shown files of one session
LONGEST = 200  # characters of a line
GOOD_SECONDS = 10.0
MOST_KEPT = 20
_OF_GIT = ("HEAD", "index", "logs/HEAD")  # they change with a commit, a branch, and the index


class OwnedLine(NamedTuple):
    """One uncommitted line: its number, owner, time (Unix seconds or None), tool and text.

    A removed line has a number of the last commit, and `is_removed`.
    """

    number: int
    owner: str
    at: int | None
    tool: str
    text: str
    is_removed: bool


class OwnedFile(NamedTuple):
    """The first uncommitted lines of a file, and the number of all. `reason`: why it has no lines."""

    lines: list[OwnedLine]
    total: int
    reason: str
    owner: str


class Share(NamedTuple):
    """The part of a session in a file: lines added and removed, some of them perhaps by others (`is_shared`)."""

    path: str
    added: int
    removed: int
    is_shared: bool
    reason: str


class _Kept(NamedTuple):
    marks: object
    at: float
    found: list[ChangedFile]


_kept: dict[str, _Kept] = {}


def owned_file(store: Store, people: People, scope: str, path: str) -> OwnedFile | None:
    """Return the uncommitted lines of the file at absolute `path` in the checkout `scope`.

    None if it is as in the last commit, ignored by git, or outside of the checkout.
    """
    found = _changed(scope, path)
    if found is None:
        return None
    owners, lines = Owners(store, people), []
    for piece in found.pieces:
        last = last_of(piece.authors)
        facts = (owners.names(piece.authors), last.at_ns // 10**9 or None, last.tool)
        lines += [OwnedLine(piece.old + at + 1, *facts, _text(one), True) for at, one in enumerate(piece.removed)]
        lines += [OwnedLine(piece.new + at + 1, *facts, _text(one), False) for at, one in enumerate(piece.added)]
    return OwnedFile(lines[:LINES], len(lines), found.reason, owners.names(found.whole_authors))


def shares(scope: str, session: tuple[str, str], paths: list[str]) -> list[Share]:
    """Return the part of a session (its runtime, and its id there) in the first of these files of a checkout."""
    shown = []
    for path in paths[:FILES]:
        found = _changed(scope, path)
        if found is None or not found.is_by({session}):
            continue
        pieces = [piece for piece in found.pieces if session in piece.sessions]
        added, removed = (sum(len(getattr(piece, name)) for piece in pieces) for name in ("added", "removed"))
        shown.append(Share(path, added, removed, any(piece.is_ambiguous for piece in pieces), found.reason))
    return shown


def _changed(scope: str, path: str) -> ChangedFile | None:
    tree = tree_over(os.path.dirname(path))
    if tree is None or not scope or not os.path.realpath(path).startswith(os.path.realpath(scope).rstrip("/") + "/"):
        return None
    marks = (file_marks([path, *(os.path.join(tree.own, name) for name in _OF_GIT)]), journal_marks(scope))
    kept = _kept.get(path)
    if kept is None or kept.marks != marks or time.monotonic() - kept.at > GOOD_SECONDS:
        try:
            found = uncommitted(tree.top, relative_names(tree.top, [path]))
        except SwarmError:
            found = []  # git does not answer: the view does without
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        kept = _kept[path] = _Kept(marks, time.monotonic(), found)
    real = os.path.realpath(path)
    return next((one for one in kept.found if os.path.realpath(one.file.path) == real), None)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n").expandtabs(4)[:LONGEST]

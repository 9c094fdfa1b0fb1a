"""The uncommitted lines of one file by author, with the committed lines around them.

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
from swarm_mcp.changes.owners import Owners, last_of
from swarm_mcp.changes.present import present
from swarm_mcp.changes.uncommitted import ChangedFile
from swarm_mcp.store import Store
from swarm_mcp.view.overview.work import changed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm_hook_core.repository import Tree
    from swarm_hook_core.traces.versions.acts import Author
    from swarm_mcp.changes.pieces import Piece

    Session = tuple[str, str]

LINES = 400  # shown lines of one file
AROUND = 3  # committed lines before and after a change
LONGEST = 200  # characters of a line
GOOD_SECONDS = 10.0
MOST_KEPT = 20
ADDED, REMOVED, SAME, GAP = "added", "removed", "same", "gap"
_OF_GIT = ("HEAD", "index", "logs/HEAD")  # they change with a commit, a branch, and the index


class Owner(NamedTuple):
    """All that may have written a line: their `names`, the `session` of the last one, its time and tool.

    `at` is in Unix seconds, or None. `session` is ``("", "")`` for a person.
    """

    names: str
    session: Session
    at: int | None
    tool: str


class OwnedLine(NamedTuple):
    """One line of a file: `kind` is `ADDED`, `REMOVED`, `SAME`, or a `GAP` of lines that are left out.

    `number` counts in the present file, of a removed line in the last commit. `owner` is None for a committed line.
    """

    kind: str
    number: int
    text: str
    owner: Owner | None = None


class OwnedFile(NamedTuple):
    """The first changed lines of a file, and the number of lines left out.

    `owners` are those of all lines, with the number of their lines, in order. `reason`: why the file has no lines.
    """

    lines: list[OwnedLine]
    more: int
    reason: str
    owners: dict[Owner, int]


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
    owners = Owners(store, people)
    if found.reason or not found.pieces:
        owner = _owner(found.whole_authors, owners)
        return OwnedFile([], 0, found.reason or "its mode has changed", {owner: 0})
    lines = list(_lines(found.pieces, owners, _present(found)))
    counts: dict[Owner, int] = {}
    for line in lines:
        if line.owner:
            key = next((one for one in counts if one.names == line.owner.names), line.owner)
            counts[key] = counts.get(key, 0) + 1
    return OwnedFile(lines[:LINES], max(0, len(lines) - LINES), "", counts)


def marks_of(path: str, tree: Tree, scope: str) -> object:
    """Return a value that differs once the file, its last commit or the traces in the checkout have changed."""
    return file_marks([path, *(os.path.join(tree.own, name) for name in _OF_GIT)]), journal_marks(scope)


def _lines(pieces: list[Piece], owners: Owners, present: list[bytes]) -> Iterator[OwnedLine]:
    """Yield the changed lines with those around them. `present`: all lines of the file."""
    shown = 0  # lines of the present file that are behind us
    for at, piece in enumerate(pieces):
        begin = max(shown, piece.new - AROUND)
        if begin > shown:
            yield OwnedLine(GAP, begin + 1, "")
        for number in range(begin, min(piece.new, len(present))):
            yield OwnedLine(SAME, number + 1, _text(present[number]))
        owner = _owner(piece.authors, owners)
        for number, line in enumerate(piece.removed, piece.old + 1):
            yield OwnedLine(REMOVED, number, _text(line), owner)
        for number, line in enumerate(piece.added, piece.new + 1):
            yield OwnedLine(ADDED, number, _text(line), owner)
        shown = piece.new + len(piece.added)
        until = shown + AROUND
        if at + 1 < len(pieces):
            until = min(until, pieces[at + 1].new)
        for number in range(shown, min(until, len(present))):
            yield OwnedLine(SAME, number + 1, _text(present[number]))
        shown = max(shown, until)


def _owner(authors: Sequence[Author], owners: Owners) -> Owner:
    last = last_of(authors)
    return Owner(owners.names(authors), last.session, last.at_ns // 10**9 or None, last.tool)


def _present(found: ChangedFile) -> list[bytes]:
    try:
        return (present(found.file.path)[1] or b"").splitlines()
    except OSError:
        return []  # removed: it has no lines around


def _changed(scope: str, path: str) -> ChangedFile | None:
    tree = tree_over(os.path.dirname(path))
    if tree is None or not scope or not os.path.realpath(path).startswith(os.path.realpath(scope).rstrip("/") + "/"):
        return None
    marks = marks_of(path, tree, scope)
    kept = _kept.get(path)
    if kept is None or kept.marks != marks or time.monotonic() - kept.at > GOOD_SECONDS:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        kept = _kept[path] = _Kept(marks, time.monotonic(), changed_files([path]))
    real = os.path.realpath(path)
    return next((one for one in kept.found if os.path.realpath(one.file.path) == real), None)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n").expandtabs(4)[:LONGEST]

"""The uncommitted work and the writes of a checkout, by session: from the sessions' journals, and from git.

Reading takes up to some hundred milliseconds: a thread of its own does it (``page.live``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from swarm_hook_core.naming import UNNAMED, session_name
from swarm_hook_core.repository import Tree, tree_over
from swarm_hook_core.traces import journal, place_of
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.traces.versions.stored import journals_of
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening
from swarm_mcp.answers.work import Edit, file_marks, journal_marks
from swarm_mcp.changes.dirty import present, relative_names
from swarm_mcp.changes.owners import Owners, last_of
from swarm_mcp.changes.uncommitted import ChangedFile, Piece, uncommitted, uncommitted_files
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

Session = tuple[str, str]  # the runtime, and the client's own id of the session; ("", "") is a person

DAY = 86400
FILES = 200  # files that git is asked about
WRITES = 2000  # newest writes of one session


class Written(NamedTuple):
    """One write that was let pass, at Unix time `at`; the write itself may have failed."""

    session: Session
    path: str
    at: float
    tool: str


class Share(NamedTuple):
    """The part of a session in a file: lines added and removed, some of them perhaps by others (`is_shared`).

    `reason`: why the file has no lines to count; else empty.
    """

    path: str
    added: int
    removed: int
    is_shared: bool
    reason: str


class Work(NamedTuple):
    """The uncommitted `edits` of sessions and a person; all authors' `shares` in them; the day's `written` files."""

    edits: list[Edit]
    shares: dict[Session, list[Share]]
    written: list[Written]


NOTHING = Work([], {}, [])


def work(store: Store, scope: str, people: People) -> Work:
    """Return the uncommitted work and the writes of the last day in the checkout `scope`."""
    found = uncommitted_files(store, scope, people)
    writes = written(scope, store.now() - DAY)
    paths = dict.fromkeys([*(one.path for one in found), *(one.path for one in writes)])
    return Work(found, shares_of(changed_files(list(paths)[:FILES])), writes)


def written(scope: str, since: float) -> list[Written]:
    """Return the writes below `scope` since then, newest first, also of sessions that have ended.

    Unreadable journals count as empty.
    """
    try:
        journals = journals_of(place_of(scope))
    except (OSError, ValueError):  # the folder is gone: nothing was written
        return []
    inside, found = scope.rstrip("/") + "/", []
    for data in journals.values():
        session = journal.owner_of(data)
        for number, entry in enumerate(journal.newest_of(data, "wrote")):
            at = entry.at_ns / 1e9
            if at < since or number >= WRITES:
                break
            if entry.key.startswith(inside):
                found.append(Written(session, entry.key, at, entry.tool))
    return sorted(found, key=lambda one: -one.at)


def changed_files(paths: Iterable[str]) -> list[ChangedFile]:
    """Return the uncommitted changes of these files, in whatever work trees they are.

    A work tree for which git has no answer counts as clean.
    """
    trees: dict[str, list[str]] = {}
    for path in paths:
        tree = tree_over(os.path.dirname(path))
        if tree is not None:
            trees.setdefault(tree.top, []).append(path)
    found = []
    for top, some in trees.items():
        try:
            found += uncommitted(top, relative_names(top, some))
        except SwarmError:  # git does not answer: the view does without
            continue
    return found


def shares_of(changed: Iterable[ChangedFile]) -> dict[Session, list[Share]]:
    """Return the parts of each session in these files."""
    found: dict[Session, list[Share]] = {}
    for file in changed:
        for session in dict.fromkeys(author.session for author in file.authors):
            pieces = [piece for piece in file.pieces if session in piece.sessions]
            added, removed = (sum(len(getattr(piece, name)) for piece in pieces) for name in ("added", "removed"))
            is_shared = any(piece.is_ambiguous for piece in pieces)
            share = Share(file.file.path, added, removed, is_shared, file.reason)
            found.setdefault(session, []).append(share)
    return found


# The writes of sessions as events of a timeline: writes of one file in quick succession are one event.

EDITED = "edited"  # the kind of such an event
TOGETHER = 60  # seconds between two writes of one event


class Names:
    """The instance ids and names of sessions by the client's own ids, for one viewer."""

    def __init__(self, store: Store, people: People):
        self._store, self._people = store, people
        self._found: dict[Session, tuple[str, str]] = {}

    def of(self, session: Session) -> tuple[str, str]:
        """Return ``(instance id, name)``; the id is empty for a session that has gone.

        A viewer with an identity is told no name of a session that has gone: its identity is unknown.
        """
        if session not in self._found:
            row = self._store.instances.of_session(*session) if self._store.exists() else None
            if row:
                self._found[session] = row.id, self._people.name(row)
            elif self._people.viewer:
                self._found[session] = "", UNNAMED
            else:
                self._found[session] = "", session_name(*session)
        return self._found[session]


def edit_events(
    names: Names, scope: str, written: Iterable[Written], since: float, until: float, known: Sequence[Happening] = ()
) -> list[Happening]:
    """Return the writes between the two times as events, newest first. `written` is newest first.

    `known`: other events of this time; they have the ids of sessions that have gone.
    """
    ids = {one.name: one.instance_id for one in known if one.instance_id}
    found: list[Happening] = []
    last: dict[tuple[Session, str], int] = {}  # index of the event in `found`
    for one in written:
        if not since <= one.at <= until:
            continue
        key = (one.session, one.path)
        at = last.get(key)
        if at is not None and found[at].details["first"] - one.at <= TOGETHER:
            details = found[at].details
            details["first"], details["times"] = one.at, details["times"] + 1
            continue
        instance_id, name = names.of(one.session)
        last[key] = len(found)
        details = {"tool": one.tool, "first": one.at, "times": 1}
        found.append(Happening(0, scope, int(one.at), EDITED, instance_id or ids.get(name, ""), name, one.path, "", "",
                               0.0, "", details))  # fmt: skip
    return found


# The uncommitted lines of one file by author, with the committed lines around them.
#
# Git is asked again once the file, a journal or the last commit has changed, else every `GOOD_SECONDS`.

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

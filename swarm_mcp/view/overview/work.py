"""The uncommitted work and the writes of a checkout, by session: from the sessions' journals, and from git.

Reading takes up to some hundred milliseconds: a thread of its own does it (``page.changes``).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces import journal, place_of
from swarm_hook_core.traces.versions.stored import journals_of
from swarm_mcp.answers.edits import Edit
from swarm_mcp.answers.people import People
from swarm_mcp.changes.dirty import relative_names
from swarm_mcp.changes.uncommitted import ChangedFile, uncommitted
from swarm_mcp.changes.uncommitted_files import uncommitted_files
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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

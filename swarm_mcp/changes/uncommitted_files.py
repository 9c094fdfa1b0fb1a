"""The files with uncommitted changes of sessions and of a person, for lists (`uncommitted_files`)."""

from __future__ import annotations

import os
import time

from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.versions.notes import Notes
from swarm_mcp.answers.edits import MOST, Edit, edits
from swarm_mcp.answers.people import People
from swarm_mcp.changes.dirty import DirtyFile, dirty_files, relative_names
from swarm_mcp.changes.owners import A_PERSON
from swarm_mcp.changes.uncommitted import changed
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

SECONDS = 1.0  # for the lines of all files


def uncommitted_files(store: Store, scope: str, people: People) -> list[Edit]:
    """Return the uncommitted changes in a scope by live sessions and by a person, the newest first. Raises nothing."""
    return sorted([*edits(store, scope, people), *_of_persons(scope, MOST)], key=lambda one: -one.at)


def _of_persons(scope: str, limit: int) -> list[Edit]:
    """Return the files below the folder `scope` with uncommitted changes of a person, the newest change first.

    The `instance_id` is empty, and the time is the file's. Files that a session may have changed as well are perhaps a
    person's. At most `limit` files, and as many as can be read in time; none outside of a repository, or without an
    answer of git.
    """
    tree = tree_over(os.path.realpath(scope))
    if tree is None:
        return []
    try:
        files = dirty_files(tree.top, relative_names(tree.top, [scope]))
    except SwarmError:
        return []  # git does not answer
    found: list[Edit] = []
    end, notes = time.monotonic() + SECONDS, Notes()
    for at, file in sorted(((_changed_at(file.path), file) for file in files), key=lambda one: -one[0]):
        if len(found) == limit or time.monotonic() > end:
            break
        name = _persons_name(file, notes)
        if name:
            found.append(Edit(file.path, "", name, at, "-"))
    return found


def _persons_name(file: DirtyFile, notes: Notes) -> str:
    """Return the words for a person as an author of the file, or an empty text if no person has changed it."""
    one = changed(file, notes)
    if one is None or not any(author.is_person for author in one.authors):
        return ""
    parts = [piece.authors for piece in one.pieces] or [one.whole_authors]
    if any(len(authors) == 1 and authors[0].is_person for authors in parts):
        return A_PERSON
    return f"perhaps {A_PERSON}"


def _changed_at(path: str) -> int:
    """Return the time of the file's last change in Unix seconds; of a removed one, that of its folder."""
    for one in (path, os.path.dirname(path)):
        try:
            return int(os.lstat(one).st_mtime)
        except OSError:
            continue  # removed
    return 0

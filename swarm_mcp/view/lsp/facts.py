"""The locks over a file, and its uncommitted changes by sessions, as a person may see them."""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_mcp.answers.incident_words import through
from swarm_mcp.answers.people import People
from swarm_mcp.changes.dirty import relative_names
from swarm_mcp.changes.owners import Owners
from swarm_mcp.changes.uncommitted import uncommitted
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.sessions.agents_shell import TERMINAL
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import reach_of, rule, with_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.lock import Lock

MOST_HELD, MOST_CHANGES = 10, 200  # of one file


class Held(NamedTuple):
    """One lock over a file.

    holder      the name of its session
    through     its rule in words, empty for a lock on the file itself
    note        the holder's own words
    is_persons  a person has taken it, in a terminal
    """

    lock_id: str
    holder: str
    through: str
    note: str
    is_persons: bool


class Change(NamedTuple):
    """Lines of the file on the disk that a session may have changed.

    first    index of the first one
    lines    number of lines that are there now, 0 if lines were only removed
    removed  number of lines of the last commit that are gone
    authors  the names of all that may have made the change
    """

    first: int
    lines: int
    removed: int
    authors: str


def held(viewer: str, path: str, top: str) -> tuple[Held, ...]:
    """Return the locks over the file at absolute `path` in the checkout `top`. Raises SwarmError."""
    with Store(read_only=True) as store:
        if not store.exists():
            return ()
        people = People(store, viewer)
        reach = with_names(reach_of(nobody_in(os.path.dirname(path), top), path, as_pattern=False), False)
        return tuple(
            _held(store, people, row, rule(row, reach.file)) for row in store.locks.covering(reach)[:MOST_HELD]
        )


def _held(store: Store, people: People, row: Lock, by_rule: str) -> Held:
    shown = store.locks.listed(row, people.viewer)
    people.learn(shown["instance_id"], shown["owner_label"])
    name = people.called(shown["instance_id"])
    if shown.get("hidden"):
        name = UNNAMED
    elif shown.get("agent"):
        name = f"{agent_name(shown['agent'])} of {name}"
    session = store.instances.get(row.instance_id)
    is_persons = session is not None and session.runtime == TERMINAL
    return Held(shown["id"], name, through({**shown, "rule": by_rule}, str), shown["content"] or "", is_persons)


def changes(viewer: str, path: str, top: str) -> tuple[Change, ...]:
    """Return the uncommitted changes of the file that sessions may have made, by line. Raises SwarmError.

    For a file without lines, such as a binary one, it is one change at its beginning.
    """
    files = uncommitted(top, relative_names(top, [path]))
    if not files:
        return ()
    (one, *_) = files
    with Store(read_only=True) as store:
        owners = Owners(store, People(store, viewer))
        if not one.pieces:
            authors = one.whole_authors
            return (Change(0, 1, 0, owners.names(authors)),) * any(not author.is_person for author in authors)
        return tuple(
            Change(piece.new, len(piece.added), len(piece.removed), owners.names(piece.authors))
            for piece in one.pieces
            if any(not author.is_person for author in piece.authors)
        )[:MOST_CHANGES]

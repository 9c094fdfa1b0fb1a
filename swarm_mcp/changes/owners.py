"""Names and tasks of authors, and the sessions that a choice of authors means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from swarm_hook_core.naming import UNNAMED, agent_name, session_name
from swarm_hook_core.traces.versions.notes import Author
from swarm_mcp.answers.people import People, known_shortly
from swarm_mcp.domain import TERMINAL, Task, onlooker
from swarm_mcp.domain import Session as Row
from swarm_mcp.errors import UnknownInstance, UsageError
from swarm_mcp.sessions.acting import session_named, surrounding_session, viewer_identity
from swarm_mcp.store import Store
from swarm_mcp.store.messages import may_meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.sessions.acting import Given

Session = tuple[str, str]

A_PERSON = "a person"
PERSONS = ("", "")  # the session of a person
MOST_TASKS, MOST_EVENTS = 50, 1000  # tasks of a session, and events of tasks, that are looked through
DAY = 86400


class Owners:
    """The names and tasks of authors for one answer. Sessions that have ended keep their client and short id."""

    def __init__(self, store: Store, people: People):
        self._store = store
        self._people = people
        self._rows: dict[Session, Row | None] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._tasks: dict[Session, list[tuple[float, Task]]] = {}

    def row(self, session: Session) -> Row | None:
        """Return the store's row of a live session, `None` if it has gone."""
        if session not in self._rows:
            self._rows[session] = None
            if session != PERSONS and self._store.exists():
                self._rows[session] = self._store.instances.of_session(*session)
        return self._rows[session]

    def name(self, author: Author) -> str:
        """Return the name of one author, such as ``agent 4f of codex 5f0c2f6e`` or ``a person``."""
        key = (*author.session, author.agent)
        if key not in self._names:
            self._names[key] = self._named(author)
        return self._names[key]

    def names(self, authors: Iterable[Author]) -> str:
        """Return the names of all that may have made one change: ``codex 5f0c2f6e or a person``."""
        return " or ".join(dict.fromkeys(map(self.name, authors)))

    def described(self, author: Author) -> dict[str, Any]:
        """Return an author for JSON. Of a session of another identity only that is told."""
        name = self.name(author)
        if name == UNNAMED:
            return {"name": name, "hidden": True}
        row, task = self.row(author.session), self.task(author)
        of_task = task and {"id": task.id, "title": task.title}
        return {
            "name": name,
            "is_person": author.is_person,
            "runtime": author.runtime or None,
            "session_id": author.session_id or None,
            "instance_id": row and row.id,
            "agent": author.agent or None,
            "tool": author.tool or None,
            "at": author.at_ns // 10**9 or None,
            "task": of_task,
        }

    def task(self, author: Author) -> Task | None:
        """Return the task that the session had at the time of its call, or None if the store does not know."""
        row = self.row(author.session)
        if row is None or not author.at_ns or self.name(author) == UNNAMED:
            return None
        if author.session not in self._tasks:
            self._tasks[author.session] = self._tasks_of(row)
        at = author.at_ns / 1e9
        found = [
            (begun, task)
            for begun, task in self._tasks[author.session]
            if begun <= at and (task.status not in TERMINAL or at <= task.updated_at + 1)
        ]
        if not found:
            return None
        return max(found, key=lambda one: one[0])[1]

    def chosen(self, reference: str, scope: str, authors: Iterable[Author]) -> Session:
        """Return the session that `reference` names: see `session_called`. Raises UnknownInstance."""
        by_session = {one.session: self.name(Author(*one.session)) for one in authors if not one.is_person}
        return session_called(self._store, scope, reference, by_session)

    def _named(self, author: Author) -> str:
        if author.is_person:
            return A_PERSON
        row = self.row(author.session)
        name = session_name(*author.session)
        if row:
            name = self._people.name(row)
        if author.agent and name != UNNAMED:
            return f"{agent_name(author.agent)} of {name}"
        return name

    def _tasks_of(self, row: Row) -> list[tuple[float, Task]]:
        """Return ``[(time of its claim, task)]``; of an old claim without an event, the time of the request."""
        viewer = onlooker(self._people.viewer, row.scope)
        tasks = [task for _, task in islice(self._store.tasks.walk(viewer, assignee=row.id), MOST_TASKS)]
        if not tasks:
            return []
        now = self._store.now()
        events = self._store.activity.timeline(row.scope, now - 2 * DAY, now + 1, MOST_EVENTS, ("task",))
        claims = {one.subject: one.created_at for one in events[::-1] if one.type == "task.claimed"}
        return [(claims.get(task.id, task.created_at), task) for task in tasks]


def session_called(store: Store, scope: str, reference: str, ended: Mapping[Session, str]) -> Session:
    """Return the session that `reference` names: one of the scope, by `session_named`, or one that has ended.

    `ended`: further sessions with the names that the reader knows. One of them is meant by its client's id, the
    beginning of that id, its name or the beginning of it, or the number in its name. Raises UnknownInstance; UsageError
    for no word.
    """
    word = reference.strip()
    if not word:
        raise UsageError("--session wants a session: its name, its id, the beginning of it, or part of its label")
    try:
        row = session_named(store, scope, reference)
    except UnknownInstance as error:
        matches = {one: name for one, name in ended.items() if name != UNNAMED and _is_called(one, name, word)}
        if len(matches) == 1:
            return next(iter(matches))
        if matches:
            several = ", ".join(dict.fromkeys(matches.values()))
            raise UnknownInstance(f"{reference[:60]!r} is the name of several: {several}") from None
        known = ", ".join(sorted({*ended.values()} - {UNNAMED}))
        raise UnknownInstance(f"{error}" + f"; authors here: {known}" * bool(known)) from None
    return (row.runtime or "", row.session_id or row.id)


def _is_called(session: Session, name: str, word: str) -> bool:
    own = session_name(*session)
    return session[1].startswith(word) or own.startswith(word) or word in (name, own.rpartition(" ")[2])


def session_in_words(store: Store, session: Session, reader: Row | None) -> str:
    """Return the name of a session for `reader` (None: a person), also of one that has ended."""
    row = store.instances.of_session(*session)
    if row is None:
        return session_name(*session)
    if reader is not None and not may_meet(reader.label, row.label):
        return UNNAMED
    return known_shortly(row)


def owners_for(store: Store, args: Given) -> Owners:
    """Return the names of authors for the reader of a command."""
    own_id, own = "", surrounding_session(store)
    if own:
        own_id = own.id
    return Owners(store, People(store, viewer_identity(store, args), own_id))


def last_of(authors: Sequence[Author]) -> Author:
    """Return the author with the last call among those that may have made a change."""
    return max(authors, key=lambda author: author.at_ns)

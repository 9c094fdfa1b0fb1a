"""A picture of the store: a bounded part of it, read through ``overview`` in one go."""

from __future__ import annotations

import os
import sys
import time
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core.untrusted_text import token
from swarm_mcp import domain as states
from swarm_mcp.answers.incidents import Incident, incidents
from swarm_mcp.answers.people import People, machines_of
from swarm_mcp.answers.work import Edit, Marks, journal_marks, unread
from swarm_mcp.changes.uncommitted import uncommitted_files
from swarm_mcp.domain import ENDED, Run, Session, Task, onlooker
from swarm_mcp.folders import here
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import find_acting_session, onlooker_identity, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import Now, checkouts, now
from swarm_mcp.view.top import tables
from swarm_mcp.view.top.picture import Picture, Row, Table, Wish

ROWS = 100  # of a table
SEARCHED = 2000  # locks that are looked through for words
SCOPES = 20
DAY_SECONDS = 86400
# The order of tasks; ended ones are counted elsewhere.
AT_WORK = (states.IN_PROGRESS, states.CLAIMED, states.BLOCKED, states.APPROVAL_REQUIRED, states.OPEN)
ENDED_RUNS = 10
EDIT_SECONDS = 20.0  # Seconds after which uncommitted changes are read anew without a newer edit: a commit ends them.


class Reader:
    """Reads pictures for one viewer, in the scope where it stands. One thread at a time."""

    def __init__(self, scope: str, args: Any):
        self._scope, self._args = scope, args
        self._places = tables.Places(here())
        self._store: Store | None = None
        self._known: dict[str, _Edits] = {}

    def read(self, wish: Wish) -> Picture:
        """Read the wanted rows. Raises SwarmError if the store cannot be read."""
        if self._store is None:
            self._store = Store(read_only=True)
        store = self._store
        store.refresh()
        me = self._me(store)
        own_id, at = me.id if me else "", store.now()
        people = People(store, token(me.label or "", "identity") if me else onlooker_identity(store), own_id)
        if wish.everywhere:
            found = [one.scope for one in checkouts(store, SCOPES)]
        else:
            found = [self._scope]
        parts = [_Part(store, scope, people, self._edits(store, scope, people), bool(wish.words)) for scope in found]
        listed = (
            [row for part in parts for row in tables.sessions(part.now, part.tasks, part.edited, self._places, own_id)],
            [row for part in parts for row in tables.locks(part.now, self._places, own_id)],
            [row for part in parts for row in tables.incidents(part.incidents, at, self._places)],
            [row for part in parts for row in tables.work(part.tasks, part.runs, people.called, at)],
            [row for part in parts for row in tables.uncommitted(part.scope, part.edited, at, self._places)],
            [row for part in parts for row in tables.unread(part.scope, part.unread, at)],
        )
        counts = (
            sum(part.now.session_count for part in parts),
            sum(part.lock_count for part in parts),
            len(listed[2]),
            len(listed[3]) + sum(part.task_count - len(part.tasks) for part in parts),
            len(listed[4]),
            sum(part.unread_count for part in parts),
        )
        shown = tuple(_table(*one, wish.words) for one in zip(tables.ALL, listed, counts))
        if wish.everywhere:
            where = f"all checkouts of this machine ({len(found)})"
        else:
            where = self._places.whole(self._scope)
        news = user_settings.lowered(self._scope), tables.machines(machines_of(store, self._scope))
        return Picture(where, shown, self._scope, "; ".join(filter(None, news)))

    def _edits(self, store: Store, scope: str, people: People) -> list[Edit]:
        """Return the uncommitted changes in a scope, a person's too: read anew once a journal has grown, or now and
        then.
        """
        grown, now = journal_marks(scope), time.monotonic()
        known = self._known.get(scope)
        if known is None or known.journals != grown or now - known.at > EDIT_SECONDS:
            known = self._known[scope] = _Edits(grown, now, uncommitted_files(store, scope, people))
        return known.edits

    def _me(self, store: Store) -> Session | None:
        if self._args.value("--as"):
            return find_acting_session(store, self._args, reads=True)
        return surrounding_session(store)


class _Edits(NamedTuple):
    """The uncommitted changes, as read when the journals had these marks."""

    journals: Marks
    at: float
    edits: list[Edit]


class _Part:
    """The rows of one scope."""

    def __init__(self, store: Store, scope: str, people: People, edited: list[Edit], searches: bool):
        viewer = onlooker(people.viewer, scope)
        self.scope, self.edited = scope, edited
        self.now: Now = now(store, scope, people, limit=SEARCHED if searches else ROWS)
        self.lock_count: int = store.locks.counts(scope)["live"]
        self.incidents: list[Incident] = incidents(store, scope, people, store.now() - DAY_SECONDS, ROWS)
        self.unread = unread(store, scope, people, ROWS)
        self.unread_count: int = store.messages.counts(scope, store.now(), people.viewer)["unread"]
        self.tasks: list[Task] = []
        for status in AT_WORK:
            walk = store.tasks.walk(viewer, status)
            self.tasks += [task for _, task in islice(walk, ROWS - len(self.tasks))]
        counts = store.tasks.counts(viewer)
        self.task_count = sum(counts[status] for status in AT_WORK)
        live = store.runs.live(scope)[:ROWS]
        ended = [run for _, run in islice(store.runs.walk(scope, ENDED), ENDED_RUNS)]
        self.runs: list[Run] = [run for run in live + ended if people.may_know(_label(store, run))]
        for run in self.runs:
            people.learn_worker(run)


def _label(store: Store, run: Run) -> str | None:
    session = store.instances.get(run.instance_id)
    if session:
        return session.label
    return None


def _table(table: Table, rows: list[Row], count: int, words: str) -> Table:
    """`table` with the first of `rows`, those with all `words` where there are any. It has `count` in all."""
    wanted = words.casefold().split()
    if wanted:
        looked_at = len([row for row in rows if not row.is_below])
        rows = [row for row in rows if _has(row, wanted)]
        table = table._replace(empty="nothing with these words", searched=looked_at if looked_at < count else 0)
        count = len([row for row in rows if not row.is_below])
    return table._replace(rows=tuple(rows[:ROWS]), number=count)


def _has(row: Row, wanted: list[str]) -> bool:
    text = " ".join(row.cells).casefold()
    return all(word in text for word in wanted)


# The terminal's fitness for a full screen, and for colours.


def obstacle() -> str:
    """Return the obstacle to a full screen here, in a few words; empty without one."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output"), (sys.__stderr__, "error")):
        if stream is None or not stream.isatty():
            return f"standard {name} is no terminal"
    term = os.environ.get("TERM", "")
    if not term or term == "dumb" or _capability("cup") is False:
        return f"the terminal (TERM={term}) cannot place its cursor"
    return ""


def has_colours() -> bool:
    """Return True if colours are wanted and available."""
    return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0" and _capability("setaf") is not False


def _capability(name: str) -> bool | None:
    """Return a capability of this kind of terminal from terminfo; None if unknown."""
    try:
        import curses

        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else -1)
        return curses.tigetstr(name) is not None
    except Exception:  # no such module on this system, or no such terminal in its tables
        return None

"""The present state: the sessions of a scope, the files that they lock, wait for and edit, and their writes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED, session_name
from swarm_hook_core.process import SERVER_RUNTIME
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
from swarm_mcp.domain import REMOTE, SHARED, Lock, Session, Waiter
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.messages import seconds_since

# The queues for locks: the waiters, their obstacles, and the circles of sessions that wait for each other.

MOST_WAITERS = 100  # waiters that are shown


class Obstacle(NamedTuple):
    """The reason of a wait: a lock (`lock_id`), or the turn of an earlier waiter."""

    instance_id: str
    name: str
    agent: str
    file: str
    lock_id: str


class Line(NamedTuple):
    """A place in the queue: its session, the wanted lock, the seconds waited so far, and the obstacle.

    `gives_up_in` is None for no limit. A `silent` place has no heartbeat and is passed over once its lock is free.
    """

    ticket: int
    scope: str
    instance_id: str
    name: str
    agent: str
    mode: str
    files: tuple[str, ...]
    waited: float
    gives_up_in: float | None
    silent: bool
    obstacles: tuple[Obstacle, ...]


class Lines(NamedTuple):
    """All places, first come first; how many more there are; and each circle of waiting sessions, by their ids."""

    waiting: list[Line]
    more: int
    circles: list[list[str]]


def lines(store: Store, scope: str, people: People, limit: int = MOST_WAITERS) -> Lines:
    """Return the waiters in a scope. A place counts while its process and its session live."""
    places = [row for row in store.queue.waiting() if scope in ("", row.scope)]
    shown = [_line(store, row, people) for row in islice(places, limit)]
    return Lines(shown, len(places) - len(shown), circles(shown))


def circles(waiting: list[Line]) -> list[list[str]]:
    """Return the circles among the waiters, each as the ids of its sessions in turn, the smallest first.

    A session with several agents counts as one. A wait of one agent does not block the others, but people ask about
    sessions.
    """
    after: dict[str, list[str]] = {}
    for line in waiting:
        after.setdefault(line.instance_id, []).extend(one.instance_id for one in line.obstacles)
    found: dict[tuple[str, ...], None] = {}
    done: set[str] = set()
    for start in after:
        path: list[str] = []
        pending = [(start, 0)]
        while pending:
            who, depth = pending.pop()
            del path[depth:]
            if who in path:
                ring = path[path.index(who) :]
                first = ring.index(min(ring))
                turned = (*ring[first:], *ring[:first])
                found[turned] = None
            elif who not in done:
                path.append(who)
                pending += [(other, depth + 1) for other in after.get(who, ())]
        done.update(path)
    return [list(ring) for ring in found]


def _line(store: Store, row: Waiter, people: People) -> Line:
    now = clock.now()
    people.learn(row.instance_id, row.owner_label)
    return Line(
        row.ticket,
        row.scope,
        row.instance_id,
        people.called(row.instance_id),
        row.agent or "",
        row.mode,
        tuple(plain(reach.file) for reach in row.reaches) if people.may_know(row.owner_label) else (),
        max(0.0, now - row.since),
        None if row.until is None else max(0.0, row.until - now),
        store.queue.is_silent(row),
        tuple(_obstacle(one, people) for one in store.queue.obstacles(row)),
    )


def _obstacle(row: Lock | Waiter, people: People) -> Obstacle:
    people.learn(row.instance_id, row.owner_label)
    name, agent = people.called(row.instance_id), row.agent or ""
    if isinstance(row, Lock):
        return Obstacle(row.instance_id, name, agent, plain(row.file), row.id)
    return Obstacle(row.instance_id, name, agent, plain(row.reaches[0].file) if row.reaches else "", "")


SESSIONS, FILES = 100, 100  # that are shown
COUNTED = 1000  # locks of one session; of more it is only said that there are


class SessionNow(NamedTuple):
    """A session: its `name` for people, the seconds since its last heartbeat, the number of its locks.

    A session on another machine has no such time; `silent_for` is None. `is_guarded`: hooks of ours see its
    writes. `edited`: the number of its changed, uncommitted files. `held` counts its locks up to `COUNTED`.
    `client_id` is the client's own id of the session, empty if it is unknown.
    """

    id: str
    scope: str
    name: str
    runtime: str
    state: str
    directory: str
    silent_for: int | None
    is_guarded: bool
    held: int
    waiting: int
    edited: int
    client_id: str = ""


class Hold(NamedTuple):
    """A lock on a file: `since` in Unix seconds, None if unknown; `lapses_in` seconds if it has a lease.

    `note` is its holder's.
    """

    instance_id: str
    name: str
    agent: str
    mode: str
    note: str
    since: int | None
    lapses_in: float | None
    lock_id: str


class FileNow(NamedTuple):
    """A file with its locks, waiters and edits. `conflict` names the problem, or is empty."""

    path: str
    holds: list[Hold]
    waits: list[Line]
    edits: list[Edit]
    conflict: str


class Now(NamedTuple):
    """A scope: some of its sessions and files, and its waiters.

    `session_count`: all its sessions; `lock_count`: the locks of the sessions shown, or more.
    """

    scope: str
    at: int
    sessions: list[SessionNow]
    session_count: int
    files: list[FileNow]
    lock_count: int
    lines: Lines


def now(store: Store, scope: str, people: People, edited: Iterable[Edit] = (), limit: int = FILES) -> Now:
    """Return the present state of `scope`. `edited` is the result of ``edits.edits`` there.

    Locks with waiters stand first, then the newest. Files with a conflict stand first.
    """
    edited = list(edited)
    waiting = lines(store, scope, people)
    rows = [row for _, row in islice(store.instances.walk(scope), SESSIONS)]
    held = store.locks.counts_of([row.id for row in rows], COUNTED)
    shown = [_session(store, row, people, held[row.id], waiting, edited) for row in rows]
    wanted = [one.lock_id for line in waiting.waiting for one in line.obstacles if one.lock_id]
    locks = store.locks.recent_of([one for one in held if held[one]], people.viewer, limit, wanted)
    if len(rows) < SESSIONS:
        count = len(rows)
    else:
        count = store.instances.count(scope)
    files = files_of(locks, waiting.waiting, edited, people, limit)
    return Now(scope, store.now(), shown, count, files, sum(held.values()), waiting)


def near(path: str, scope: str) -> str:
    """A path as it is told from a checkout: relative to it where it is inside."""
    if path == scope:
        return "."
    if scope and path.startswith(scope.rstrip("/") + "/"):
        return path[len(scope.rstrip("/")) + 1 :]
    return path


def _session(store: Store, row: Session, people: People, held: int, waiting: Lines, edited: list[Edit]) -> SessionNow:
    return SessionNow(
        row.id,
        row.scope,
        people.name(row),
        row.runtime or "",
        "live" if row.runtime == REMOTE else row.state or "live",
        row.directory,
        None if row.runtime == REMOTE else seconds_since(row.last_seen or row.heartbeat, store.now()),
        row.last_seen is not None and row.runtime != SERVER_RUNTIME,
        held,
        len([line for line in waiting.waiting if line.instance_id == row.id]),
        len([one for one in edited if one.instance_id == row.id]),
        row.session_id or "",
    )


def files_of(
    locks: list[dict[str, Any]], waiting: list[Line], edited: list[Edit], people: People, limit: int
) -> list[FileNow]:
    """The files that these locks, waiters and edits are about; those with a conflict stand first."""
    holds: dict[str, list[Hold]] = {}
    waits: dict[str, list[Line]] = {}
    changed: dict[str, list[Edit]] = {}
    for lock in locks:
        holds.setdefault(lock["file"], []).append(_hold(lock, people))
    for line in waiting:
        for file in {one.file for one in line.obstacles if one.file} or set(line.files):
            waits.setdefault(file, []).append(line)
    for one in edited:
        changed.setdefault(one.path, []).append(one)
    found = []
    for path in dict.fromkeys((*waits, *changed, *holds)):
        parts = holds.get(path, []), waits.get(path, []), changed.get(path, [])
        found.append(FileNow(path, *parts, _conflict(*parts)))
    found.sort(key=lambda file: (not file.conflict, not file.waits))
    return found[:limit]


def _hold(lock: dict[str, Any], people: People) -> Hold:
    people.learn(lock["instance_id"], lock["owner_label"])
    name = people.called(lock["instance_id"])
    mode = lock.get("mode") or "exclusive"
    if isinstance(lock["created_at"], (int, float)):
        since = int(lock["created_at"])
    else:
        since = None
    rest = lock.get("lapses_in"), lock["id"]
    return Hold(lock["instance_id"], name, lock.get("agent") or "", mode, lock["content"], since, *rest)


def _conflict(holds: list[Hold], waits: list[Line], changed: list[Edit]) -> str:
    """Return the problem with a file in a few words, or an empty text."""
    holders = {one.instance_id for one in holds if one.mode != SHARED}
    others = [one for one in changed if holders and one.instance_id not in holders]
    if others:
        return "changed by one, held by another"
    if len({one.instance_id for one in changed}) > 1:
        return "changed by several"
    if waits:
        return "waited for"
    return ""


# The checkouts of this machine with sessions in them, and their counts.

MOST = 50


class Checkout(NamedTuple):
    """One scope with how many sessions are there, and how many locks they have, at least that many."""

    scope: str
    sessions: int
    locks: int


def checkouts(store: Store, limit: int = MOST) -> list[Checkout]:
    """Return the scopes with sessions, the most recently active first."""
    found = []
    for scope in store.instances.scopes(limit):
        ids = [row.id for _, row in islice(store.instances.walk(scope), SESSIONS)]
        if ids:
            found.append(Checkout(scope, len(ids), sum(store.locks.counts_of(ids, COUNTED).values())))
    return found


# Uncommitted work and writes, by session: from the sessions' journals, and from git.
#
# Reading takes up to some hundred milliseconds: a thread of its own does it (``page.live``).

SessionKey = tuple[str, str]  # the runtime, and the client's own id of the session; ("", "") is a person

DAY = 86400
ASKED_FILES = 200  # files that git is asked about
WRITES = 2000  # newest writes of one session


class Written(NamedTuple):
    """One write that was let pass, at Unix time `at`; the write itself may have failed."""

    session: SessionKey
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
    shares: dict[SessionKey, list[Share]]
    written: list[Written]


NOTHING = Work([], {}, [])


def work(store: Store, scope: str, people: People) -> Work:
    """Return the uncommitted work and the writes of the last day in the checkout `scope`."""
    found = uncommitted_files(store, scope, people)
    writes = written(scope, store.now() - DAY)
    paths = dict.fromkeys([*(one.path for one in found), *(one.path for one in writes)])
    return Work(found, shares_of(changed_files(list(paths)[:ASKED_FILES])), writes)


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


def shares_of(changed: Iterable[ChangedFile]) -> dict[SessionKey, list[Share]]:
    """Return the parts of each session in these files."""
    found: dict[SessionKey, list[Share]] = {}
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
        self._found: dict[SessionKey, tuple[str, str]] = {}

    def of(self, session: SessionKey) -> tuple[str, str]:
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
    last: dict[tuple[SessionKey, str], int] = {}  # index of the event in `found`
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
    session: SessionKey
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

"""The present state: the sessions of a scope, and the files that they have locked, wait for and have edited."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_hook_core.process import SERVER_RUNTIME
from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import Edit
from swarm_mcp.domain import REMOTE, SHARED, Lock, Session, Waiter
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

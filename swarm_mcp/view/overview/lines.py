"""The queues for locks: the waiters, their obstacles, and the circles of sessions that wait for each other."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_mcp.answers.people import People
from swarm_mcp.domain.lock import Lock, Waiter
from swarm_mcp.store import Store

MOST = 100  # waiters that are shown


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


def lines(store: Store, scope: str, people: People, limit: int = MOST) -> Lines:
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

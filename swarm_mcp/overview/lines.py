"""Who waits for which locks, behind whom, and the circles in which sessions wait for each other."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.lookup import plain
from swarm_mcp.domain.lock import Lock, Waiter
from swarm_mcp.overview.people import People
from swarm_mcp.store import Store

MOST = 100  # waiters that are shown


class Obstacle(NamedTuple):
    """What somebody waits for: a lock (`lock_id`), or somebody else's turn before its own."""

    instance_id: str
    name: str
    agent: str
    file: str
    lock_id: str


class Line(NamedTuple):
    """A place in the line: who waits for what, for how many seconds, and what for.

    `gives_up_in` is None for no limit; a `silent` one shows no life, and is passed over when what it wants is free.
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
    """Who waits in a scope. Only places whose process and session are there count."""
    places = [row for row in store.queue.waiting() if scope in ("", row.scope)]
    shown = [_line(store, row, people) for row in islice(places, limit)]
    return Lines(shown, len(places) - len(shown), circles(shown))


def circles(waiting: list[Line]) -> list[list[str]]:
    """The circles among those who wait, each as the ids of its sessions in turn, beginning with the smallest.

    A session with several agents is taken for one: what one of its agents waits for keeps the others from nothing, but
    people ask who waits for whom.
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

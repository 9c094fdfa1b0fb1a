"""The checkouts of this machine with sessions in them, and their counts."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import COUNTED, SESSIONS

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

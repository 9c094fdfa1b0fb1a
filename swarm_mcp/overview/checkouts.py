"""The checkouts of this machine in which sessions are, and how much there is in each."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from swarm_mcp.overview.now import COUNTED, SESSIONS
from swarm_mcp.store import Store

MOST = 50


class Checkout(NamedTuple):
    """One scope with how many sessions are there, and how many locks they have, at least that many."""

    scope: str
    sessions: int
    locks: int


def checkouts(store: Store, limit: int = MOST) -> list[Checkout]:
    """The scopes in which sessions are, the one that last had a sign of life first."""
    found = []
    for scope in store.instances.scopes(limit):
        ids = [row.id for _, row in islice(store.instances.walk(scope), SESSIONS)]
        if ids:
            found.append(Checkout(scope, len(ids), sum(store.locks.counts_of(ids, COUNTED).values())))
    return found

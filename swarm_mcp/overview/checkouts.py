"""The checkouts of this machine in which sessions are, and how much there is in each."""

from __future__ import annotations

from typing import NamedTuple

from swarm_mcp.store import Store

MOST = 50


class Checkout(NamedTuple):
    """One scope with how many sessions and locks it has."""

    scope: str
    sessions: int
    locks: int


def checkouts(store: Store, limit: int = MOST) -> list[Checkout]:
    """The scopes in which sessions are on record, the one that last had a sign of life first."""
    found = []
    for scope in store.instances.scopes(limit):
        found.append(Checkout(scope, store.instances.count(scope), store.locks.counts(scope)["live"]))
    return found

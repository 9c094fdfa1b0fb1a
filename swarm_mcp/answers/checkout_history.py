"""The history of a checkout: its timeline, its tasks, and its uncommitted changes."""

from __future__ import annotations

from typing import NamedTuple

from swarm_mcp.answers.edits import edits
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening, timeline
from swarm_mcp.store import Store

COUNTED = 2000  # events of one answer
CHANGED = "changed"


class CheckoutHistory(NamedTuple):
    """The newest `happenings` of a checkout, oldest first; `before`: how many there are besides, before these.

    `counts`: how often each kind happened in all. `is_cut`: there were more than are counted.
    """

    happenings: list[Happening]
    before: int
    counts: dict[str, int]
    is_cut: bool


def checkout_history(store: Store, scope: str, people: People, since: int, limit: int) -> CheckoutHistory:
    """Return the newest `limit` events in `scope` since then.

    An uncommitted change is one event for each file: the last change of it.
    """
    found = timeline(store, scope, people, since, store.now() + 1, COUNTED, with_tasks=True)
    changed = [
        Happening(0, scope, one.at, CHANGED, one.instance_id, one.name, one.path, "", "", 0.0, "", {"tool": one.tool})
        for one in edits(store, scope, people)
        if one.at >= since
    ]
    every = sorted([*found.happenings, *changed], key=lambda one: one.at)
    counts: dict[str, int] = {}
    for one in every:
        counts[one.what] = counts.get(one.what, 0) + 1
    shown = every[-limit:]
    return CheckoutHistory(shown, len(every) - len(shown), counts, found.is_cut)

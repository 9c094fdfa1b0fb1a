"""Makes a failing schedule smaller: fewer decisions that still lead to the same kind of violation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explore.recipes import Plan
    from explore.server import Server
    from explore.world import Decision

TRIES = 60


def kind(violation: str) -> str:
    """Return a violation without the parts that differ from run to run of the same defect."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "#", violation)[:60]


def smaller(server: Server, plan: Plan, violation: str) -> Plan:
    """Return the plan with a short list of decisions; each left out would lead to another end."""
    tries = 0

    def fails(decisions: list[Decision]) -> bool:
        nonlocal tries
        tries += 1
        found = server.judged(plan._replace(decisions=tuple(decisions)), is_fresh=True)
        return any(kind(one) == kind(violation) for one in found)

    server.judged(plan, is_fresh=True)
    kept = server.world.decisions()
    size = max(1, len(kept) // 2)
    while kept and tries < TRIES:
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            if fails(rest):
                kept = rest
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return plan._replace(decisions=tuple(kept))

"""How far a worker that dispatches in turn may go: as far as its own run, and not beyond.

A worker is held to its mode by its harness. A worker that it starts would be held to that one's own, so what is asked
for is looked at here. This keeps agents to what their tools allow; who has a shell has other ways.
"""

from __future__ import annotations

from collections.abc import Mapping

from swarm_mcp.dispatch.request import Order
from swarm_mcp.errors import Refused
from swarm_mcp.harness.query import EDIT, MODES, YOLO


def require_below(store, requester: dict, order: Order) -> None:
    """Raises Refused where `requester` is a worker of ours and asks for more than it may do itself."""
    run = store.runs.of_instance(requester["id"])
    if run is None:
        return
    own = mode_of(run)
    asked = order.mode or EDIT
    if MODES.index(asked) > MODES.index(own):
        raise Refused(f"a worker of mode {own} can have none of mode {asked} started; ask for mode {own}")
    if order.command and own != YOLO:
        raise Refused(f"a worker of mode {own} cannot say which command is started")


def mode_of(run: Mapping) -> str:
    """The mode of a run (its row), as its record begins; the default where that cannot be read."""
    from swarm_mcp.harness.record import read

    try:
        first = next(read(run["record"] or ""), {})
    except OSError:
        return EDIT
    return first["mode"] if first.get("mode") in MODES else EDIT

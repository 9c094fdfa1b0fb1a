"""What a worker is started with: the harness, and the words that start it."""

from __future__ import annotations

from swarm_mcp.dispatch.request import Order, may_go_wild
from swarm_mcp.dispatch.spawners import SUPERVISED
from swarm_mcp.errors import Refused
from swarm_mcp.settings import Settings

# Of an order, what is for the run of a supervised worker.
RUN = ("model", "mode", "effort", "timeout_seconds", "max_cost_usd", "fresh")


def outfit(order: Order, requester: dict, spawner: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Harness and words; no words for a supervised harness that nothing else is said of: it knows its own.

    Raises Refused where no worker could be started like this.
    """
    harness = order.harness or settings.harness(requester["label"] or "")
    if spawner not in SUPERVISED:
        if any(getattr(order, name) for name in (*RUN, "command")):
            raise Refused(
                f"{spawner} starts a harness as it is: model, mode, effort, timeout, cost limit, command and fresh are"
                f" for {' and '.join(SUPERVISED)}"
            )
        return harness, tuple(settings.harness_command(harness))
    command = split_command(order.command) if order.command else tuple(settings.harness_command(harness))
    if not order.command and command == (harness,):
        command = ()
    if order.spawn:
        from swarm_mcp.harness.demands import require_possible
        from swarm_mcp.harness.registry import get

        harness = _supervised(order, requester, harness, command)
        require_possible(get(harness), _asked(order))
    return harness, command


def left_out_of(order: Order, spawner: str, harness: str) -> list[str]:
    """What a worker that is started like this will not heed, a line for each."""
    if not order.spawn or spawner not in SUPERVISED:
        return []
    from swarm_mcp.harness.demands import left_out
    from swarm_mcp.harness.registry import get

    return left_out(get(harness), _asked(order))


def _asked(order: Order):
    """The query of a run, as far as an order has it."""
    from swarm_mcp.harness.query import EDIT, HarnessQuery

    limits = {"timeout_seconds": order.timeout_seconds, "max_cost_usd": order.max_cost_usd}
    return HarnessQuery("", order.cwd, mode=order.mode or EDIT, model=order.model, effort=order.effort, **limits)


def _supervised(order: Order, requester: dict, harness: str, command: tuple[str, ...]) -> str:
    """The harness by its own name. Raises Refused."""
    from swarm_mcp.harness.query import EFFORTS, MODES, YOLO
    from swarm_mcp.harness.registry import chosen_name

    harness = chosen_name(harness)
    if harness == "process" and not command:
        raise Refused("the harness process needs a command: --command 'make check', or SWARM_HARNESS_PROCESS")
    if order.mode not in ("", *MODES):
        raise Refused(f"unknown mode {order.mode[:40]!r}; choose from {', '.join(MODES)}")
    if order.effort not in EFFORTS:
        raise Refused(f"unknown effort {order.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
    if order.mode == YOLO and not may_go_wild(requester):
        raise Refused("mode yolo is for a person at a terminal, or where SWARM_ALLOW_YOLO=1 allows it")
    return harness


def split_command(line: str) -> tuple[str, ...]:
    """The words of a command line. Raises Refused."""
    import shlex

    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise Refused(f"--command cannot be split into words: {error}") from None
    if not words:
        raise Refused("--command has no words")
    return words

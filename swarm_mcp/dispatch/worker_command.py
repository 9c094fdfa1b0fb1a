"""How a worker would be started: by which spawner, as which harness, with which words."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from swarm_hook_core.labels import token
from swarm_mcp.dispatch.request import DispatchRequest, may_use_yolo
from swarm_mcp.dispatch.spawners import SUPERVISED, canonical
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import Refused
from swarm_mcp.settings import Settings

# The fields of a request that say how a supervised worker's run goes.
RUN_OPTIONS = ("model", "mode", "effort", "timeout_seconds", "max_cost_usd", "fresh")


class WorkerCommand(NamedTuple):
    """`words` start the harness; empty for a supervised harness that knows its own. `warnings`: a line for each thing
    that the request asks for and the harness ignores."""

    spawner: str
    harness: str
    words: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_supervised(self) -> bool:
        """Whether a supervisor of ours looks after the worker."""
        return self.spawner in SUPERVISED


def worker_command(request: DispatchRequest, requester: Session) -> WorkerCommand:
    """Return the command for a request. Raises Refused where no worker could be started like this."""
    settings = Settings(token(requester.label or "", "identity"))
    spawner = canonical(request.spawner or settings.spawner)
    harness = request.harness or settings.harness(requester.label or "")
    if spawner not in SUPERVISED:
        if any(getattr(request, name) for name in (*RUN_OPTIONS, "command")):
            raise Refused(
                f"{spawner} starts a harness as it is: model, mode, effort, timeout, cost limit, command and fresh are"
                f" for {' and '.join(SUPERVISED)}"
            )
        return WorkerCommand(spawner, harness, tuple(settings.harness_command(harness)))
    words = _split(request.command) if request.command else tuple(settings.harness_command(harness))
    if not request.command and words == (harness,):
        words = ()
    if not request.spawn:
        return WorkerCommand(spawner, harness, words)
    from swarm_mcp.harness.query import EDIT, HarnessQuery
    from swarm_mcp.harness.registry import get
    from swarm_mcp.harness.requirements import left_out, require_possible

    harness = _harness_name(harness, words)
    _require_run_options(request, requester)
    query = HarnessQuery(
        "", request.cwd, mode=request.mode or EDIT, model=request.model, effort=request.effort,
        timeout_seconds=request.timeout_seconds, max_cost_usd=request.max_cost_usd,
    )  # fmt: skip
    require_possible(get(harness), query)
    return WorkerCommand(spawner, harness, words, tuple(left_out(get(harness), query)))


def _harness_name(name: str, words: tuple[str, ...]) -> str:
    """The harness by its own name. Raises Refused."""
    from swarm_mcp.harness.registry import chosen_name

    harness = chosen_name(name)
    if harness == "process" and not words:
        raise Refused("the harness process needs a command: --command 'make check', or SWARM_HARNESS_PROCESS")
    return harness


def _require_run_options(request: DispatchRequest, requester: Session) -> None:
    from swarm_mcp.harness.query import EFFORTS, MODES, YOLO

    if request.mode not in ("", *MODES):
        raise Refused(f"unknown mode {request.mode[:40]!r}; choose from {', '.join(MODES)}")
    if request.effort not in EFFORTS:
        raise Refused(f"unknown effort {request.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
    if request.mode == YOLO and not may_use_yolo(requester):
        raise Refused("mode yolo is for a person at a terminal, or where SWARM_ALLOW_YOLO=1 allows it")


def _split(line: str) -> tuple[str, ...]:
    """The words of a command line. Raises Refused."""
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise Refused(f"--command cannot be split into words: {error}") from None
    if not words:
        raise Refused("--command has no words")
    return words

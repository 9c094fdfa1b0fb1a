"""Runs: children that agent command lines were started as."""

from __future__ import annotations

from swarm_mcp.domain.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QUEUED, STARTING, RUNNING, PAUSED, ENDED = "queued", "starting", "running", "paused", "ended"
STATES = (QUEUED, STARTING, RUNNING, PAUSED, ENDED)
CANCEL, PAUSE, RESUME = "cancel", "pause", "resume"
CONTROLS = (CANCEL, PAUSE, RESUME)
ABANDONED = "its supervisor was killed"


class Run(Record):
    """One run: `session_params`, `usage` and `result` are dicts, if known; times in Unix seconds.

    instance_id     its session
    control         the order to its supervisor (`CONTROLS`)
    record          path of the file with the record of the run
    supervisor_pid  with `supervisor_start` its supervisor's process; so ``child_`` and ``client_``
    """

    __slots__ = ()

    id: str
    scope: str
    task_id: str | None
    instance_id: str
    requester: str | None
    harness: str
    model: str | None
    cwd: str
    state: str
    control: str | None
    session_id: str | None
    session_params: dict[str, Any] | None
    record: str | None
    host: str | None
    supervisor_pid: int | None
    supervisor_start: str | None
    child_pid: int | None
    child_start: str | None
    client_pid: int | None
    client_start: str | None
    cost_usd: float | None
    usage: dict[str, Any] | None
    result: dict[str, Any] | None
    started_at: int
    updated_at: int
    ended_at: int | None


COLUMNS = tuple(Run.__annotations__)

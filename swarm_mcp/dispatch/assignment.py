"""What a supervisor is told when it is started: one JSON object, through a pipe.

Neither argv nor a file: others can read the one, and the other might be left lying about with what is in a prompt.
"""

from __future__ import annotations

from typing import NamedTuple

from swarm_mcp.dispatch.spawners import Worker
from swarm_mcp.errors import SwarmError
from swarm_mcp.settings import HARNESS_OF


class Assignment(NamedTuple):
    """One task for one worker.

    requester_id   session that asked; `requester_label` what it is called
    instance_id    the worker's, reserved by the dispatch; `label` what it will be called
    message        the instructions
    lock           name of the spawn lock; as long as that names another worker, this one is not wanted
    command        words that start the harness, empty where it knows its own
    run            ``model, mode, effort, timeout_seconds, max_cost_usd, fresh``, as they apply
    env            the environment to work in, empty where that of the process is meant
    log            file that standard error goes to, empty where somebody reads it
    """

    scope: str
    task_id: str
    run_id: str
    instance_id: str
    requester_id: str
    requester_label: str
    role: str
    harness: str
    cwd: str
    label: str
    message: str
    lock: str = ""
    command: tuple[str, ...] = ()
    run: dict = {}
    env: dict = {}
    log: str = ""

    def to_text(self) -> str:
        """The JSON object."""
        import json

        return json.dumps(self._asdict())


def assignment_of(worker: Worker, run_id: str, **more) -> Assignment:
    """The assignment of a worker that a dispatch wants started."""
    runtimes = {harness: runtime for runtime, harness in HARNESS_OF.items()}
    return Assignment(
        scope=worker.requester["scope"],
        task_id=worker.task_id,
        run_id=run_id,
        instance_id=worker.instance_id,
        requester_id=worker.requester["id"],
        requester_label=worker.requester["label"] or "",
        role=worker.role,
        harness=worker.harness,
        cwd=worker.cwd,
        label=f"{worker.words} origin:{runtimes.get(worker.harness, worker.harness)}",
        message=worker.message,
        lock=worker.lock,
        command=worker.command,
        run=worker.run,
        **more,
    )


def read(text: str) -> Assignment:
    """The assignment in `text`. Raises SwarmError where it is none, as when whoever wrote it was killed."""
    import json

    try:
        fields = json.loads(text)
        given = Assignment(**fields)
    except (ValueError, TypeError, RecursionError):
        raise SwarmError("this is no assignment; swarm-mcp dispatch gives one") from None
    return given._replace(command=tuple(given.command))

"""The order for a supervisor (one JSON object, through a pipe), and the run it leads to.

Neither argv nor a file carries it: others can read the first, and the second might be left behind with its prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from swarm_mcp.agents.dispatch.spawners import WorkerSpec
from swarm_mcp.agents.harness.prompting import (
    HAS_ASKED,
    HAS_FAILED,
    INTERRUPTED,
    run_environment,
    task_prompt,
    with_system_prompt,
)  # fmt: skip
from swarm_mcp.agents.harness.query import query_of as described
from swarm_mcp.answers.views import short
from swarm_mcp.domain.question import Question
from swarm_mcp.domain.task import Task
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import started_by

if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.agents.harness.adapter import HarnessAdapter
    from swarm_mcp.agents.harness.query import Query

GO_ON = "You were interrupted while you worked on this task, and are to go on with it. Look first at what is done."
AGAIN = "You have tried this before, and it failed: {} Look first at what is done, then try it once more; where the way\
 that you took was the cause, take another."
ANSWERED = "You asked a person: {}\nTheir answer: {}"


class Assignment(NamedTuple):
    """One task for one worker.

    requester_id   the requesting session; `requester_label` its name
    instance_id    the worker's, reserved by the dispatch; `label` its future name
    message        the instructions
    lock           name of the spawn lock; once that names another worker, this one is not wanted
    command        words that start the harness, empty for its own
    run            options of the run (``request.RUN_OPTIONS``) that were given
    env            the environment to work in, empty for that of the process
    log            file for standard error, empty if standard error is read
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
    run: dict[str, Any] = {}
    env: dict[str, Any] = {}
    log: str = ""

    def to_text(self) -> str:
        """Return the assignment as JSON."""
        return json.dumps(self._asdict())


def assignment_of(worker: WorkerSpec, run_id: str, *, env: dict[str, Any] | None = None, log: str = "") -> Assignment:
    """Return the assignment of a worker that is to be started."""
    return Assignment(
        scope=worker.requester.scope,
        task_id=worker.task_id,
        run_id=run_id,
        instance_id=worker.instance_id,
        requester_id=worker.requester.id,
        requester_label=worker.requester.label or "",
        role=worker.role,
        harness=worker.harness,
        cwd=worker.cwd,
        label=f"{worker.label_words} origin:{started_by(worker.harness)} run:{short(run_id)}",
        message=worker.message,
        lock=worker.lock,
        command=worker.command,
        run=worker.run,
        env=env or {},
        log=log,
    )


def read(text: str) -> Assignment:
    """Return the assignment in `text`. Raises SwarmError for any other text, as from a killed writer."""
    try:
        assignment = Assignment(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise SwarmError("this is no assignment; swarm-mcp worker dispatch gives one") from None
    return assignment._replace(command=tuple(assignment.command))


def query_of(
    assignment: Assignment,
    adapter: HarnessAdapter,
    task: Task,
    previous: Mapping[str, Any] | None = None,
    reached: str = "",
    message_id: int = 0,
    failure: str = "",
    asked: Sequence[Question] = (),
) -> Query:
    """Return the query to a harness on behalf of a task (its row).

    `previous`: the session to continue, None for a new one. `reached`: the progress of an earlier run, and `failure`
    its error, empty for a success. `asked`: questions to a person; the answered ones are told. `message_id`: of the
    message with the instructions, 0 for none.
    """
    config = {**assignment.run, "cwd": assignment.cwd, "command": assignment.command}
    query = described("", config)._replace(
        instance_id=assignment.instance_id,
        scope=assignment.scope,
        label=assignment.label,
        role=assignment.role,
        task_id=assignment.task_id,
        requester_id=assignment.requester_id,
        run_id=assignment.run_id,
    )
    linked = {"linked_task_ids": task.depends_on or [], "message_id": message_id or None}
    context = {**linked, "wake_reason": "task_resumed" if previous or reached else "task_assigned"}
    again: list[str] = []
    if failure:
        again, ended = [AGAIN.format(failure)], HAS_FAILED
    elif any(one.answer is not None and one.told_at is None for one in asked):
        ended = HAS_ASKED
    else:
        again, ended = [GO_ON] if previous else [], INTERRUPTED
    answers = [ANSWERED.format(one.question, one.answer) for one in asked if one.answer is not None]
    message = "\n\n".join([*again, *answers, assignment.message])
    # A session that is continued knows how far it was, but it may be found to have gone: then its successor is told.
    prompt = task_prompt(task, message, reached, query=query, context=context, ended=ended)
    return with_system_prompt(query, adapter)._replace(prompt=prompt, env=run_environment(query, context))

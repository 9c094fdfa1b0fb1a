"""What a harness is asked on behalf of a task."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_mcp.dispatch.assignment import Assignment
from swarm_mcp.harness.adapter import HarnessAdapter
from swarm_mcp.harness.prompting import run_environment, task_prompt, with_system_prompt
from swarm_mcp.harness.query import EDIT, HarnessQuery

GO_ON = "You were interrupted while you worked on this task, and are to go on with it. Look first at what is done."


def brief(
    given: Assignment, adapter: HarnessAdapter, task: Mapping, previous: Mapping | None = None, reached: str = ""
) -> HarnessQuery:
    """The query for a run of the task (its row).

    `previous`: the session that the run goes on with, None for a new one. `reached`: how far an earlier run came.
    """
    run = given.run
    query = HarnessQuery(
        prompt="",
        cwd=given.cwd,
        mode=run.get("mode") or EDIT,
        model=run.get("model") or "",
        effort=run.get("effort") or "",
        command=given.command,
        timeout_seconds=run.get("timeout_seconds") or 0.0,
        max_cost_usd=run.get("max_cost_usd") or 0.0,
        instance_id=given.instance_id,
        scope=given.scope,
        label=given.label,
        role=given.role,
        task_id=given.task_id,
        requester_id=given.requester_id,
        run_id=given.run_id,
    )
    linked = {"linked_task_ids": task["depends_on"] or []}
    context = {**linked, "wake_reason": "task_resumed" if previous or reached else "task_assigned"}
    message = f"{GO_ON}\n\n{given.message}" if previous else given.message
    # A session that is gone on with knows how far it was, but it may be found to have gone: then its successor is told.
    prompt = task_prompt(task, message, reached, query=query, context=context)
    return with_system_prompt(query, adapter)._replace(prompt=prompt, env=run_environment(query, context))

"""Claiming and reserving of tasks: here, and on all machines if the scope takes part in a team.

The store records the claim first, then the team's server confirms it, so that one machine of any number has the task.
"""

from __future__ import annotations

from swarm_hook_core.state import is_in_team
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import OPEN, Task
from swarm_mcp.errors import NotConfirmed, Refused
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_TRIES = 20  # while other machines are faster, or change the task


def claim(store: Store, instance: Session, task_id: str, ignore_unread: bool = False) -> dict[str, Any]:
    """Call ``tasks.claim``. Raises NotConfirmed, with the task unchanged, if the team cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim(instance, task_id, ignore_unread)  # raises if another machine has it by now
        if _is_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("Task is changed by other machines all the time; look at it again")


def claim_next(
    store: Store,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict[str, Any]:
    """Call ``tasks.claim_next``. Raises NotConfirmed, with the task unchanged, if the team cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim_next(instance, types, files, ignore_unread)
        if _is_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("other machines claim the same tasks all the time; try again")


def reserve(store: Store, task_id: str, worker: Session) -> Task:
    """Call ``tasks.reserve``. Raises NotConfirmed, with the task unchanged, if the team cannot be asked."""
    for _ in range(MOST_TRIES):
        task = store.tasks.reserve(task_id, worker)
        if _is_confirmed(store, task, OPEN):
            return task
    raise Refused("Task is changed by other machines all the time; look at it again")


def _is_confirmed(store: Store, task: Task, prior_status: str) -> bool:
    """Return True if the task is the same on all machines; False if another machine was faster and has changed it."""
    if not is_in_team() or task.scope not in store.team.trees():
        return True
    from swarm_mcp.team import agent_client

    told = agent_client.confirm_documents([("task", task.id)])
    if told["answer"] == agent_client.UNREACHABLE:
        store.tasks.take_back(task, prior_status)
        why = told.get("error", "")
        raise NotConfirmed(
            "the team's server cannot be reached, so nobody can know whether another machine has claimed it"
            + (f" ({why})" if why else "")
        )
    return told["answer"] != agent_client.HELD

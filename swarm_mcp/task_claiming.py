"""Beginning a task, or keeping it for somebody: here, and where the scope takes part in a team, on all machines.

It is done in the store first, then confirmed by the team's server, so that of any number of machines one has the task.
"""

from __future__ import annotations

from swarm_hook_core.state import is_in_team
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import OPEN, Task
from swarm_mcp.errors import NotConfirmed, Refused
from swarm_mcp.store import Store

MOST_TRIES = 20  # while other machines are faster, or change the task


def claim(store: Store, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
    """As ``tasks.claim``. Raises NotConfirmed, which leaves the task as it was, where the team cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim(instance, task_id, ignore_unread)  # which says so where another machine has it by now
        if _is_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("Task is changed by other machines all the time; look at it again")


def claim_next(
    store: Store,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict:
    """As ``tasks.claim_next``. Raises NotConfirmed, which leaves the task as it was, where the team cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim_next(instance, types, files, ignore_unread)
        if _is_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("other machines claim the same tasks all the time; try again")


def reserve(store: Store, task_id: str, worker: Session) -> Task:
    """As ``tasks.reserve``. Raises NotConfirmed, which leaves the task as it was, where the team cannot be asked."""
    for _ in range(MOST_TRIES):
        task = store.tasks.reserve(task_id, worker)
        if _is_confirmed(store, task, OPEN):
            return task
    raise Refused("Task is changed by other machines all the time; look at it again")


def _is_confirmed(store: Store, task: Task, prior_status: str) -> bool:
    """Whether the task is what it is here on all machines; False where another one was faster, and has changed it."""
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

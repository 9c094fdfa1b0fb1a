"""Claiming and reserving of tasks: first here, then on all machines that share them (``confirmation``)."""

from __future__ import annotations

from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import OPEN, Task
from swarm_mcp.errors import Refused
from swarm_mcp.locking.confirmation import is_task_confirmed
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_TRIES = 20  # while other machines are faster, or change the task


def claim(store: Store, instance: Session, task_id: str, ignore_unread: bool = False) -> dict[str, Any]:
    """Call ``tasks.claim``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim(instance, task_id, ignore_unread)  # raises if another machine has it by now
        if is_task_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("Task is changed by other machines all the time; look at it again")


def claim_next(
    store: Store,
    instance: Session,
    types: list[str] | None = None,
    files: list[str] | None = None,
    ignore_unread: bool = False,
) -> dict[str, Any]:
    """Call ``tasks.claim_next``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_TRIES):
        begun = store.tasks.claim_next(instance, types, files, ignore_unread)
        if is_task_confirmed(store, begun["task"], begun["prior_status"]):
            return begun
    raise Refused("other machines claim the same tasks all the time; try again")


def reserve(store: Store, task_id: str, worker: Session) -> Task:
    """Call ``tasks.reserve``. Raises NotConfirmed, with the task unchanged, if other machines cannot be asked."""
    for _ in range(MOST_TRIES):
        task = store.tasks.reserve(task_id, worker)
        if is_task_confirmed(store, task, OPEN):
            return task
    raise Refused("Task is changed by other machines all the time; look at it again")

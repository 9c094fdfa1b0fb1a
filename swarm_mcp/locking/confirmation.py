"""Confirmation of grants that must also hold on other machines, by the package that knows these machines.

A grant is written here first. Then the package has its server confirm it, so that of any number of machines one has
the lock or the task. Without such a package, or outside of the work trees that it knows, a grant needs no confirmation.
"""

from __future__ import annotations

from swarm_mcp import contributions
from swarm_mcp.contributions import LOCKS_GRANTED, TASK_CLAIMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.domain.task import Task
    from swarm_mcp.store import Store

    class Confirmation(Protocol):
        """The answer of other machines about locks that were granted here."""

        @property
        def is_lost(self) -> bool:
            """Return True if another machine was faster. The locks are not held here any more."""
            ...

        @property
        def is_everywhere(self) -> bool:
            """Return True if the locks hold on all machines."""
            ...

        @property
        def said(self) -> str:
            """Return the text beside the lock about the machines that it holds on."""
            ...

        def shown(self, lock: Lock) -> dict[str, Any]:
            """Return the fields that it adds to the answer about the first `lock`."""
            ...

        def facts(self, lock: Lock) -> dict[str, Any]:
            """Return the fields that it adds to the facts about one `lock` among others."""
            ...


def confirm_locks(store: Store, rows: list[Lock]) -> Confirmation | None:
    """Return the Confirmation of locks that were just granted, or None if they need none."""
    found: Confirmation | None = contributions.react(LOCKS_GRANTED, store, rows)
    return found


def is_task_confirmed(store: Store, task: Task, prior_status: str) -> bool:
    """Return True if the claim on `task` counts; False if another machine was faster and has changed the task.

    `prior_status`: the status before the claim. Raises NotConfirmed, with the claim taken back, if the other machines
    cannot be asked.
    """
    return contributions.react(TASK_CLAIMED, store, task, prior_status) is not False

"""The team's confirmation of locks and task claims that were just granted on this machine.

No connection is opened here: the team agent, asked over its socket, has them confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from swarm_hook_core.lookup import GLOB
from swarm_hook_core.paths import NO_CASE
from swarm_mcp.domain import Lock, Task, is_mutex, is_name
from swarm_mcp.errors import NotConfirmed
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import name_folders
from swarm_mcp.team import agent_client
from swarm_mcp.team.parts import TeamRows

SETTLED, GRANTED, UNREACHABLE, LOST = "settled", "granted", "unreachable", "lost"


class TeamGrant(NamedTuple):
    """The team's answer about locks that were taken here.

    state   `SETTLED`: they hold on all machines. `GRANTED`: they will, once every machine knows of them. `LOST`:
            another machine was faster, and they are not held here any more. `UNREACHABLE`: they hold on this machine
            only, and the team is asked later
    fences  the team's number of each, by the lock's id; locks outside of joined work trees have none
    why     the obstacle to asking the team, for people
    """

    state: str
    fences: dict[str, int] = {}
    why: str = ""

    def shown(self, lock: Lock) -> dict[str, Any]:
        """Return the field that it adds to the answer for `lock`."""
        if self.state == UNREACHABLE:
            return {"team": {"reachable": False, "error": self.why}}
        return {"team": {"fence": self.fences.get(lock.id), "settled": self.state == SETTLED}}

    def facts(self, lock: Lock) -> dict[str, Any]:
        """Return the team's number of `lock` as a field, if it has one."""
        if lock.id in self.fences:
            return {"team_fence": self.fences[lock.id]}
        return {}

    @property
    def is_lost(self) -> bool:
        """Return True if another machine was faster."""
        return self.state == LOST

    @property
    def is_everywhere(self) -> bool:
        """Return True if they hold on all machines."""
        return self.state == SETTLED

    @property
    def said(self) -> str:
        """Return the text beside the lock about the machines that it holds on."""
        if self.state == UNREACHABLE:
            return f"on this machine only: {self.why or 'the team was not reached'}"
        if self.state == SETTLED:
            return "on all machines"
        return "in the team; not every machine knows of it yet"


def confirm(store: Store, rows: list[Lock]) -> TeamGrant | None:
    """Have the team confirm locks that were just taken; None for locks outside of a team.

    Takes 2 seconds at most if the server is unreachable, and up to the lease of a mirror (some seconds) if another
    machine sleeps or is cut off.
    """
    tops = TeamRows(store).trees()
    concerned = [row.id for row in rows if _may_concern(row, tops)]
    if not concerned:
        return None
    told = agent_client.confirm(concerned)
    if told["answer"] == agent_client.LOCAL:
        return None
    if told["answer"] == agent_client.HELD:
        return TeamGrant(LOST)
    if told["answer"] == agent_client.GRANTED:
        return TeamGrant(SETTLED if told.get("settled") else GRANTED, told.get("fences", {}))
    return TeamGrant(UNREACHABLE, why=told.get("error", ""))


def confirm_task(store: Store, task: Task, prior_status: str) -> bool:
    """Return True if the task is the same on all machines; False if another machine was faster and has changed it.

    Raises NotConfirmed, with the claim taken back, if the team's server cannot be reached.
    """
    if task.scope not in TeamRows(store).trees():
        return True
    told = agent_client.confirm_documents([("task", task.id)])
    if told["answer"] == agent_client.UNREACHABLE:
        store.tasks.take_back(task, prior_status)
        why = told.get("error", "")
        raise NotConfirmed(
            "the team's server cannot be reached, so nobody can know whether another machine has claimed it"
            + (f" ({why})" if why else "")
        )
    return told["answer"] != agent_client.HELD


def _may_concern(row: Lock, tops: Iterable[str]) -> bool:
    """Return True if a lock may lie in one of these work trees."""
    if is_mutex(row.file) or row.path_key is None:
        return False
    if is_name(row.file):
        return any(row.path_key.startswith(folder + "/") for top in tops for folder in name_folders(top))
    key = row.path_key.removeprefix(GLOB)
    is_folded = key.startswith(NO_CASE)
    path = key.removeprefix(NO_CASE).rstrip("/") + "/"
    return any(path.startswith((top.casefold() if is_folded else top).rstrip("/") + "/") for top in tops)

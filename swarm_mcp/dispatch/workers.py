"""The live sessions that a task could go to, and handing its instructions to one of them."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.process import ancestors, start_time
from swarm_mcp.acting_session import NO_AGENTS
from swarm_mcp.dispatch.request import GENERALIST, DispatchRequest
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import RUN_RUNTIME, Session
from swarm_mcp.domain.task import Task
from swarm_mcp.visibility import may_meet
from swarm_mcp.workspace.prompting import deliver

# Runtimes of sessions that are no agents, or that have their one task already.
BUSY_RUNTIMES = (*NO_AGENTS, RUN_RUNTIME)


def find(store, requester: Session, request: DispatchRequest) -> Session | None:
    """Return the first live session with the wanted role, else the first generalist, else None.

    A request that says how a worker is to be started passes all of them over.
    """
    if request.force_spawn or request.wants_new_worker:
        return None
    sessions = store.instances.in_scope(requester.scope)
    runs = store.runs.live(requester.scope)
    busy = {run.instance_id for run in runs}  # a supervised worker has one task and ends with it
    starters = _processes_of(sessions, runs, store.here)
    peers = [
        row
        for row in sessions
        if row.id != requester.id
        and row.id not in busy
        and row.runtime not in BUSY_RUNTIMES
        and may_meet(requester.label, row.label)
    ]
    for roles in ((request.role,), ("", GENERALIST)):
        for row in peers:
            if token(row.label or "", "role") in roles and not _was_started_by(row, starters, store.here):
                return row
    return None


def assigned(store, requester: Session, task: Task) -> Session | None:
    """Return the live session that has the task, as far as the requester may meet it."""
    row = store.instances.live(task.assignee) if task.assignee else None
    return row if row and may_meet(requester.label, row.label) else None


def instruct(
    store, requester: Session, worker: Session, task: Task, message: str, kept: str, nudge: bool, force: bool
) -> dict:
    """Leave the instructions in the worker's inbox and wake it; not twice while they lie there unread.

    `kept` is the message without secrets, as a supervisor writes it down. A supervised worker had the instructions
    when it was started, and gets only what is new. Returns how the worker was woken (``workspace.prompting``).
    """
    content = f"[task:{task.id}] {message}"
    had_them_read = store.runs.of_instance(worker.id) is not None
    store.messages.hand_over(requester, worker.id, content, f"[task:{task.id}] {kept}", had_them_read)
    return deliver(store, requester, worker.id, content, nudge, force)


def _processes_of(sessions: list[Session], runs: list[Run], here: str) -> set[tuple[int | None, str | None]]:
    """Pid and start time of the agents at work on this machine, and of the supervisors of runs."""
    agents = [row for row in sessions if row.runtime not in NO_AGENTS]
    found = {(row.client_pid, row.client_start) for row in agents if row.client_pid and row.host == here}
    return found | {(run.supervisor_pid, run.supervisor_start) for run in runs if run.host == here}


def _was_started_by(row: Session, starters: set[tuple[int | None, str | None]], here: str) -> bool:
    """Whether an agent, or a run, has started this session: then it works for that one, and ends when it is done."""
    if not row.client_pid or row.host != here:
        return False
    pids = {pid for pid, _started in starters}
    return any(pid in pids and (pid, start_time(pid)) in starters for pid in ancestors(below=row.client_pid))

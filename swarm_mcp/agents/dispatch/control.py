"""Cancelling, pausing and resuming of workers.

The task decides: cancelling it ends its worker, in any process. Pausing and resuming are requests to the worker's
supervisor, through its run's row; it reacts within half a second, plus the time its child takes to end.
"""

from __future__ import annotations

from swarm_mcp.answers.views import name_of
from swarm_mcp.domain.run import CANCEL, ENDED, PAUSE, PAUSED, RESUME, Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import CANCELLED, TERMINAL, Task
from swarm_mcp.errors import Refused
from swarm_mcp.sessions.acting import may_dispatch
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_ALIKE = 100  # tasks that are counted where one id is not enough to tell them apart


def named_task(store: Store, viewer: Session, reference: str) -> Task:
    """Return the task that `reference` names: its id, or the beginning of the id of one task. Raises Refused."""
    task = store.tasks.seen(viewer, reference)
    if task:
        return task
    if reference:
        found = store.tasks.beginning(viewer, reference, MOST_ALIKE)
    else:
        found = []
    if len(found) > 1:
        raise Refused(f"{reference[:60]!r} is how {len(found)} tasks begin: {', '.join(t.id for t in found[:5])}")
    if not found:
        raise Refused("Task not found")
    return found[0]


def cancel(store: Store, actor: Session, reference: str) -> dict[str, Any]:
    """Cancel a task or a run: ``{task_id, run_id, status, worker}``; `worker` is True if one is being ended.

    Raises Refused: only the requester and the worker may, or a gateway if the requester has gone.
    """
    task, run = _meant(store, actor, reference)
    if task is None:
        assert run is not None
        _require_party(store, actor, run.requester, run.instance_id)
        store.runs.ask(run.id, CANCEL)
        return _answer(task, run, CANCELLED)
    if task.status in TERMINAL:
        raise Refused(f"Task is already {task.status}")
    _require_party(store, actor, task.requester, task.assignee)
    if actor.id in (task.requester, task.assignee):
        store.tasks.end(actor, task.id, CANCELLED)
    elif run:
        store.runs.ask(run.id, f"{CANCEL} by {name_of(actor)}")  # its worker is a party to it
    else:
        raise Refused("the session that asked for this task has gone and no worker has it; it expires by itself")
    return _answer(task, run, CANCELLED)


def pause(store: Store, actor: Session, reference: str) -> dict[str, Any]:
    """Have a worker's child ended, and its task kept for `resume`: ``{task_id, run_id, status}``. Raises Refused."""
    task, run = _worked_on(store, actor, reference)
    if run.state == PAUSED:
        raise Refused("it is paused already")
    store.runs.ask(run.id, f"{PAUSE} by {name_of(actor)}")
    return _answer(task, run, "pausing")


def resume(store: Store, actor: Session, reference: str) -> dict[str, Any]:
    """Have a paused worker go on: ``{task_id, run_id, status}``. Raises Refused."""
    task, run = _worked_on(store, actor, reference)
    if run.state != PAUSED and (run.control or "").partition(" ")[0] != PAUSE:
        raise Refused("it is not paused")
    store.runs.ask(run.id, f"{RESUME} by {name_of(actor)}")
    return _answer(task, run, "resuming")


def _meant(store: Store, actor: Session, reference: str) -> tuple[Task | None, Run | None]:
    """Return the task that `reference` names (None: a run without a task) and its live run (None: no worker)."""
    task: Task | None
    run: Run | None = None
    try:
        task = named_task(store, actor, reference)
    except Refused as none:
        try:
            run = found = store.runs.find(actor.scope, reference)
        except Refused:
            raise none from None
        if found.task_id:
            task = store.tasks.seen(actor, found.task_id)
        else:
            task = None
        if found.task_id and task is None:
            raise none from None
        if found.state == ENDED and task is None:
            raise Refused("that run has ended") from None
    if task:
        run = next((row for row in store.runs.of_task(task.scope, task.id) if row.state != ENDED), None)
    return task, run


def _worked_on(store: Store, actor: Session, reference: str) -> tuple[Task, Run]:
    task, run = _meant(store, actor, reference)
    if task is None:
        raise Refused("that run is for no task, and cannot be paused")
    if task.status in TERMINAL:
        raise Refused(f"Task is already {task.status}")
    if run is None:
        raise Refused(f"no worker of ours is at it; swarm-mcp worker dispatch --resume {task.id} starts one")
    _require_party(store, actor, task.requester, task.assignee)
    return task, run


def _require_party(store: Store, actor: Session, requester: str | None, worker: str | None) -> None:
    if actor.id in (requester, worker):
        return
    if requester and store.instances.live(requester) is None and may_dispatch(actor):
        return
    raise Refused("only the session that asked for it and its worker may")


def _answer(task: Task | None, run: Run | None, status: str) -> dict[str, Any]:
    answer = {"task_id": task and task.id, "run_id": run and run.id, "status": status}
    return {"ok": True, **answer, "worker": run is not None}

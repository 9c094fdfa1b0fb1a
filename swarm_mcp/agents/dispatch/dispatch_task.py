"""The task of a dispatch, and its possible workers.

The task is that of an equal dispatch, the one to resume, or a new one. Possible workers are live sessions; one of them
gets the instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.labels import token
from swarm_hook_core.process import ancestors, start_time
from swarm_mcp import contributions
from swarm_mcp.agents.dispatch import promotion
from swarm_mcp.agents.dispatch.control import named_task
from swarm_mcp.agents.dispatch.request import GENERALIST, DispatchRequest, PublicTexts, public_text
from swarm_mcp.answers.views import may_meet
from swarm_mcp.domain.message import of_task
from swarm_mcp.domain.session import DETACHED, REMOTE, RUN_RUNTIME, Session
from swarm_mcp.domain.task import Task
from swarm_mcp.errors import Refused
from swarm_mcp.sessions.agents_shell import NO_AGENTS
from swarm_mcp.store import Store
from swarm_mcp.store.known_values import entry_in
from swarm_mcp.workspace.panes import deliver

# Runtimes of sessions that are no agents, or that have their one task already.
BUSY_RUNTIMES = (*NO_AGENTS, RUN_RUNTIME)


def find_worker(store: Store, requester: Session, request: DispatchRequest) -> Session | None:
    """Return the first live session with the wanted role, else the first generalist, else None.

    Sessions of this machine come before those of others. A request with options for a new worker passes all of them
    over.
    """
    if request.force_spawn or request.wants_new_worker:
        return None
    everybody = store.instances.on_all_machines(requester.scope)
    sessions = [row for row in everybody if row.runtime != REMOTE]
    runs = store.runs.live(requester.scope)
    busy = {run.instance_id for run in runs}  # a supervised worker has one task and ends with it
    here = store.here
    agents = [row for row in sessions if row.runtime not in NO_AGENTS]
    found = {(row.client_pid, row.client_start) for row in agents if row.client_pid and row.host == here}
    starters = found | {(run.supervisor_pid, run.supervisor_start) for run in runs if run.host == here}
    peers = [
        row
        for row in sessions
        if row.id != requester.id
        and row.id not in busy
        and row.runtime not in BUSY_RUNTIMES
        and may_meet(requester.label, row.label)
    ]
    elsewhere = [row for row in everybody if _is_free_elsewhere(row) and may_meet(requester.label, row.label)]
    # A session without a role on another machine is a person's own work.
    for rows, roles in (
        (peers, (request.role,)),
        (elsewhere, (request.role,)),
        (peers, ("", GENERALIST)),
        (elsewhere, (GENERALIST,)),
    ):
        for row in rows:
            if token(row.label or "", "role") in roles and not _was_started_by(row, starters, store.here):
                return row
    return None


def _is_free_elsewhere(row: Session) -> bool:
    """Return True for an agent's session on another machine without a task for life, judging by its label."""
    label = row.label or ""
    is_agent = token(label, "origin") not in NO_AGENTS and DETACHED not in label.split()
    return row.runtime == REMOTE and is_agent and not token(label, "run")


def assigned_worker(store: Store, requester: Session, task: Task) -> Session | None:
    """Return the live session that has the task, as far as the requester may meet it."""
    if task.assignee:
        row = store.instances.live(task.assignee)
    else:
        row = None
    if row and may_meet(requester.label, row.label):
        return row
    return None


def instruct(
    store: Store, requester: Session, worker: Session, task: Task, message: str, kept: str, nudge: bool, force: bool
) -> dict[str, Any]:
    """Leave the instructions in the worker's inbox and wake it; once only, while they lie there unread.

    `kept` is the message without secrets, as a supervisor writes it down. A supervised worker received the instructions
    when it was started, and gets only new ones. Returns the way the worker was woken (``workspace.prompting``).
    """
    content = of_task(task.id, message)
    had_them_read = store.runs.of_instance(worker.id) is not None
    store.messages.hand_over(requester, worker.id, content, of_task(task.id, kept), had_them_read)
    return deliver(store, requester, worker.id, content, nudge, force)


def _was_started_by(row: Session, starters: set[tuple[int | None, str | None]], here: str) -> bool:
    """Return True if an agent, or a run, has started this session: it works for that one, and ends when it is done."""
    if not row.client_pid or row.host != here:
        return False
    pids = {pid for pid, _started in starters}
    return any(pid in pids and (pid, start_time(pid)) in starters for pid in ancestors(below=row.client_pid))


TRIES = 3  # attempts to name an assignee, since it may leave at that moment


class DispatchTask(NamedTuple):
    """The task and its circumstances.

    key        equal for equal dispatches
    message    the worker's instructions; a task resumed without new ones keeps its earlier ones
               `public_message` is the same without secrets
    decision   the decision about the work tracker for a new task; empty for an old one
    worker     a live session that could take it, None without one
    """

    task: Task
    key: str
    message: str
    public_message: str
    decision: dict[str, Any] = {}
    worker: Session | None = None


def find_or_make(store: Store, requester: Session, request: DispatchRequest, texts: PublicTexts) -> DispatchTask:
    """Return the task of a dispatch by `requester` (its row), made if it does not exist. Raises Refused."""
    if request.resume:
        # The task that is to go on
        task = named_task(store, requester, request.resume)
        key = task.idempotency_key or f"task:{task.id}"
        if request.message:
            return DispatchTask(task, key, request.message, texts.message)
        message = task.description or task.title
        return DispatchTask(task, key, message, public_text(message))
    key = request.key(requester, contributions.react(contributions.REPOSITORY_NAME, store, requester.scope) or "")
    decision = promotion.decide(_facts(store, requester, request))
    spec = {
        "type": request.type,
        "title": texts.title,
        "description": texts.description,
        "files": list(request.files),
        "priority": request.priority,
        "depends_on": list(request.depends_on),
        "idempotency_key": key,
        "parent_task_id": request.parent_task_id,
        "approval_required": request.approval_required,
    }
    if decision["promote"]:
        spec.update(tracker_required=True, tracker_provider=decision["provider"])
    made, worker = _requested(store, requester, request, spec)
    task = Task(made["task"])
    _link_tracker_entry(store, requester, request, decision, task)
    return DispatchTask(task, key, request.message, texts.message, {} if made["existing"] else decision, worker)


def _requested(
    store: Store, requester: Session, request: DispatchRequest, spec: dict[str, Any]
) -> tuple[dict[str, Any], Session | None]:
    """Return the answer to the task's request, and the live worker that became its assignee."""
    for attempt in range(1, TRIES + 1):
        worker = find_worker(store, requester, request)
        try:
            # No notice: the instructions follow, with more to say, and the next dispatch brings them if not this.
            return store.tasks.request(requester, {**spec, "assignee": worker and worker.id}, notify=False), worker
        except Refused:
            if attempt == TRIES or worker is None or store.instances.live(worker.id):
                raise
    raise AssertionError("the last try returns or raises")


def _facts(store: Store, requester: Session, request: DispatchRequest) -> promotion.Work:
    """The facts of the promotion decision."""
    configured = store.tracker.of(requester)
    if configured:
        value = configured["value"]
    else:
        value = None
    provider = promotion.provider_of(value)
    if request.parent_task_id:
        parent = store.tasks.get(requester.scope, request.parent_task_id)
    else:
        parent = None
    named = request.promote_identifier.strip()
    return promotion.Work(
        identity=token(requester.label or "", "identity"),
        tracker=value,
        type=request.type,
        title=request.title,
        description=request.description,
        files=tuple(dict.fromkeys(request.files)),
        promote=request.promote,
        identifier=entry_in(named) or named,
        # Only one tracker's entries can be told from other words.
        mentioned=(entry_in(request.title) or entry_in(request.description)) if provider == "linear" else "",
        parent=promotion.Parent(bool(parent.tracker_required), store.tracker.entry(requester, provider, parent.id))
        if parent
        else None,
    )


def _link_tracker_entry(
    store: Store, requester: Session, request: DispatchRequest, decision: dict[str, Any], task: Task
) -> None:
    """Remember the tracker entry of a task that was made with one, also where a dispatch before this was killed."""
    if not decision.get("identifier") or not task.tracker_required:
        return
    if store.tracker.entry(requester, decision["provider"], task.id):
        return
    named = request.promote_identifier.strip()
    url = decision.get("existing_binding", {}).get("url") or (named if "://" in named else "")
    store.tracker.link(requester, decision["provider"], task.id, decision["identifier"], url)

"""The task of a dispatch: the one that an equal dispatch has made, the one that is to be resumed, or a new one."""

from __future__ import annotations

from typing import NamedTuple

from swarm_hook_core.labels import token
from swarm_mcp.dispatch import promotion, workers
from swarm_mcp.dispatch.control import named_task
from swarm_mcp.dispatch.request import DispatchRequest, PublicTexts, public_text
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import Task
from swarm_mcp.errors import Refused
from swarm_mcp.store.known_values import entry_in

TRIES = 3  # at naming an assignee who may leave at that very moment


class DispatchTask(NamedTuple):
    """The task, and what goes with it.

    key        what makes two dispatches one
    message    what its worker is told; of a resumed task that nobody says anything new about, what it was told before.
               `public_message` is the same without secrets
    decision   whether a new task belongs in the work tracker; empty for one that was there before
    """

    task: Task
    key: str
    message: str
    public_message: str
    decision: dict = {}


def find_or_make(store, requester: Session, request: DispatchRequest, texts: PublicTexts) -> DispatchTask:
    """Return the task of a dispatch by `requester` (its row), made where there is none yet. Raises Refused."""
    if request.resume:
        return _resumed(store, requester, request, texts)
    key = request.key(requester)
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
    made = _requested(store, requester, request, spec)
    task = Task(made["task"])
    _link_tracker_entry(store, requester, request, decision, task)
    return DispatchTask(task, key, request.message, texts.message, {} if made["existing"] else decision)


def _requested(store, requester: Session, request: DispatchRequest, spec: dict) -> dict:
    """The answer to the task's request, with a live worker as its assignee where there is one."""
    for attempt in range(1, TRIES + 1):
        worker = workers.find(store, requester, request)
        try:
            # No notice: the instructions follow, with more to say, and the next dispatch brings them if not this.
            return store.tasks.request(requester, {**spec, "assignee": worker and worker.id}, notify=False)
        except Refused:
            if attempt == TRIES or worker is None or store.instances.live(worker.id):
                raise
    raise AssertionError("the last try returns or raises")


def _resumed(store, requester: Session, request: DispatchRequest, texts: PublicTexts) -> DispatchTask:
    """The task that is to go on."""
    task = named_task(store, requester, request.resume)
    key = task.idempotency_key or f"task:{task.id}"
    if request.message:
        return DispatchTask(task, key, request.message, texts.message)
    message = task.description or task.title
    return DispatchTask(task, key, message, public_text(message))


def _facts(store, requester: Session, request: DispatchRequest) -> promotion.Work:
    """The facts of the promotion decision."""
    configured = store.tracker.of(requester)
    value = configured["value"] if configured else None
    provider = promotion.provider_of(value)
    parent = store.tasks.get(requester.scope, request.parent_task_id) if request.parent_task_id else None
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
        parent=parent
        and promotion.Parent(bool(parent.tracker_required), store.tracker.entry(requester, provider, parent.id)),
    )


def _link_tracker_entry(store, requester: Session, request: DispatchRequest, decision: dict, task: Task) -> None:
    """Remember the tracker entry of a task that was made with one, also where a dispatch before this was killed."""
    if not decision.get("identifier") or not task.tracker_required:
        return
    if store.tracker.entry(requester, decision["provider"], task.id):
        return
    named = request.promote_identifier.strip()
    url = decision.get("existing_binding", {}).get("url") or (named if "://" in named else "")
    store.tracker.link(requester, decision["provider"], task.id, decision["identifier"], url)

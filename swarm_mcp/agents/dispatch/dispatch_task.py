"""The task of a dispatch, and its possible workers.

The task is that of an equal dispatch, the one to resume, or a new one. Possible workers are live sessions; one of them
gets the instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.environment import is_word
from swarm_hook_core.process import ancestors, start_time
from swarm_hook_core.untrusted_text import token
from swarm_mcp import contributions
from swarm_mcp.agents.dispatch.processes import named_task
from swarm_mcp.agents.dispatch.request import GENERALIST, DispatchRequest, PublicTexts, public_text
from swarm_mcp.domain import DETACHED, MUTEX_PREFIX, REMOTE, RUN_RUNTIME, Session, Task, of_task
from swarm_mcp.errors import Refused
from swarm_mcp.panes import deliver
from swarm_mcp.sessions.acting import NO_AGENTS
from swarm_mcp.store import Store
from swarm_mcp.store.messages import may_meet
from swarm_mcp.store.values import entry_in

# The decision if a dispatched task belongs in the work tracker. It depends on the given facts alone and has no effect.
#
# The first applicable rule decides. Necessary conditions come first, then the person's word, then the task's own text,
# then the repository's settings, and last the size.
#
# rule                     decision                        precedence
# no identity              missing_identity_label
# no tracker               no_tracker_configured
# the tracker is another's identity_mismatch
# told not to              operator_suppressed             operator
# an entry was named       explicit_identifier    link     operator
# only coordination files  synthetic_resource              task
# told to                  operator_requested     create   operator
# its text names an entry  explicit_identifier    link     task
# the parent has an entry  parent_binding_inherited link   parent
# the parent has none      parent_routine_skipped          parent
# review, other            type_not_promotable             type
# "always"                 repo_default_always    create   repository
# "explicit-only"          repo_explicit_only              repository
# large enough             medium_or_larger       create   size
# else                     trivial_inline_edit             size

# A review is a step of the task that it reviews, and "other" is housekeeping: neither is work of its own.
PROMOTABLE_TYPES = ("implement", "fix", "test", "research")
LONG_TITLE, LONG_DESCRIPTION = 60, 80  # characters; above these, work is of medium size


class Parent(NamedTuple):
    """The task that a task is part of: its need of a tracker entry, and its entry."""

    tracked: bool
    entry: dict[str, Any] | None = None


class Work(NamedTuple):
    """The facts of a decision.

    identity      name of the requester's identity, may be empty
    tracker       value of the configured tracker: ``{provider, [identity, default_promotion,
                  promotable_types]}`` or the text ``provider[:server]``; None without one
    promote       the requester's word: True, False, or None for nothing
    identifier    the entry that the requester named, may be empty
    mentioned     the entry that the task's own text names, may be empty
    """

    identity: str
    tracker: object
    type: str
    title: str
    description: str = ""
    files: tuple[str, ...] = ()
    promote: bool | None = None
    identifier: str = ""
    mentioned: str = ""
    parent: Parent | None = None


def decide(work: Work) -> dict[str, Any]:
    """Return ``{promote, reason, identity, provider}``, and, as they apply, ``mode``, ``precedence``, ``identifier``,
    ``existing_binding`` (the parent's entry, shared by the task).
    """
    provider = provider_of(work.tracker)
    if isinstance(work.tracker, dict):
        settings = work.tracker
    else:
        settings = {}

    def answer(promote: bool, reason: str, precedence: str = "", **more: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {"promote": promote}
        if promote:
            shown["mode"] = "link" if more.get("identifier") else "create"
        shown.update(reason=reason, identity=work.identity or None, provider=provider or None)
        if precedence:
            shown["precedence"] = precedence
        return {**shown, **more}

    def deny(reason: str, precedence: str = "") -> dict[str, Any]:
        return answer(False, reason, precedence)

    owner = settings.get("identity")
    if not work.identity:
        return deny("missing_identity_label")
    if not provider:
        return deny("no_tracker_configured")
    if isinstance(owner, str) and owner.removeprefix("identity:") not in ("", work.identity):
        return deny("identity_mismatch")
    if work.promote is False:
        return deny("operator_suppressed", "operator")
    if work.identifier:
        return answer(True, "explicit_identifier", "operator", identifier=work.identifier)
    if work.files and all(path.startswith(MUTEX_PREFIX) for path in work.files):
        return deny("synthetic_resource", "task")
    if work.promote:
        return answer(True, "operator_requested", "operator")
    if work.mentioned:
        return answer(True, "explicit_identifier", "task", identifier=work.mentioned)
    if work.parent and work.parent.entry:
        entry = work.parent.entry
        return answer(
            True, "parent_binding_inherited", "parent", identifier=entry["identifier"], existing_binding=entry
        )
    if work.parent and not work.parent.tracked:
        return deny("parent_routine_skipped", "parent")
    types = settings.get("promotable_types")
    if work.type not in (types if isinstance(types, list) else PROMOTABLE_TYPES):
        return deny("type_not_promotable", "type")
    default = settings.get("default_promotion")
    if default == "always":
        return answer(True, "repo_default_always", "repository")
    if default == "explicit-only":
        return deny("repo_explicit_only", "repository")
    large = len(work.files) > 1 or len(work.description) > LONG_DESCRIPTION or len(work.title) > LONG_TITLE
    if large:
        return answer(True, "medium_or_larger", "size")
    return deny("trivial_inline_edit", "size")


def provider_of(tracker: object) -> str:
    """Return the provider's name in a configured tracker's value; empty if it names no usable one."""
    if isinstance(tracker, dict):
        tracker = tracker.get("provider")
    if isinstance(tracker, str):
        name = tracker.partition(":")[0].strip()
    else:
        name = ""
    if is_word(name):
        return name
    return ""


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
    when it was started, and gets only new ones. Returns the way the worker was woken (``panes.deliver``).
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
    decision = decide(_facts(store, requester, request))
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


def _facts(store: Store, requester: Session, request: DispatchRequest) -> Work:
    """The facts of the promotion decision."""
    configured = store.tracker.of(requester)
    if configured:
        value = configured["value"]
    else:
        value = None
    provider = provider_of(value)
    if request.parent_task_id:
        parent = store.tasks.get(requester.scope, request.parent_task_id)
    else:
        parent = None
    named = request.promote_identifier.strip()
    return Work(
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
        parent=Parent(bool(parent.tracker_required), store.tracker.entry(requester, provider, parent.id))
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

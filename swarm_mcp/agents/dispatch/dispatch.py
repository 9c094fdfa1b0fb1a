"""A dispatch: a request becomes a task, the task gets a worker, the requester gets an answer.

The flow is a chain of states, each an unchanging record::

  Planned -> (task, worker) -> Starting -> Answered -> AwaitingEnd -> Finished

A task taken by a live worker skips ``Starting``; an answer without a wait skips ``AwaitingEnd``. ``Starting`` and
``AwaitingEnd`` wait for a change of the store, so a dispatch is asked again after each (`advance`): a command blocks in
between, a server must not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_hook_core.process import ancestors, start_time
from swarm_hook_core.untrusted_text import token
from swarm_mcp import contributions
from swarm_mcp.agents.dispatch.processes import named_task
from swarm_mcp.agents.dispatch.request import (
    GENERALIST,
    DispatchRequest,
    Parent,
    PublicTexts,
    SpawnFailed,
    Work,
    WorkerCommand,
    WorkerSpec,
    as_before,
    checked,
    decide,
    provider_of,
    public_text,
    public_texts,
    require_gateway,
    require_own_limits,
    run_facts,
    spawner,
    worker_command,
)
from swarm_mcp.domain import (
    DETACHED,
    OPEN,
    PAUSED,
    REMOTE,
    RESUME,
    RUN_RUNTIME,
    TERMINAL,
    Lock,
    Session,
    Task,
    new_id,
    of_task,
)
from swarm_mcp.errors import NotConfirmed, Refused
from swarm_mcp.folders import clean
from swarm_mcp.locking.acquisition import reserve
from swarm_mcp.panes import deliver
from swarm_mcp.sessions.acting import NO_AGENTS
from swarm_mcp.store import Store, runs
from swarm_mcp.store.messages import may_meet, name_of
from swarm_mcp.store.values import entry_in

# The wait of a dispatch's requester for the end of the task.

ALL = -1  # messages, in one go


class CompletionWait(NamedTuple):
    """A wait for the end of one task of `requester`, begun at `begun` (``time.monotonic()``), for at most `seconds`."""

    requester: Session
    task_id: str
    seconds: float
    begun: float

    @classmethod
    def of(cls, requester: Session, task_id: str, seconds: float) -> CompletionWait:
        """Return a wait that begins now."""
        return cls(requester, task_id, seconds, time.monotonic())

    def seconds_left(self) -> float:
        """Return the seconds until the wait is over."""
        return max(0.0, self.begun + self.seconds - time.monotonic())

    def look(self, store: Store) -> dict[str, Any] | None:
        """Return the end of the wait, None while it goes on.

        ``{status, task_id, waited_seconds, waited_ms}``. `status` is ``completed`` (with ``task_status`` done, failed
        or cancelled, ``result`` and ``domain``), ``timeout`` (the same, in the present state) or ``missing`` (the task
        was deleted). ``messages`` is the requester's unread mail about this task. That mail is claimed, not yet read:
        acknowledge its ids after handing it out.
        """
        task = store.tasks.get(self.requester.scope, self.task_id)
        if task is None:
            status = "missing"
        elif task.status in TERMINAL:
            status = "completed"
        elif not self.seconds_left():
            status = "timeout"
        else:
            return None
        waited = round(time.monotonic() - self.begun, 3)
        ended: dict[str, Any] = {"status": status, "task_id": self.task_id, "waited_seconds": waited}
        ended["waited_ms"] = round(waited * 1000)
        if task:
            ended.update(task_status=task.status, result=task.result, task=task)
        ended["messages"] = store.messages.take(self.requester, ALL, about=self.task_id)
        return ended


POLL_SECONDS = 0.5
_INTERNAL_FACTS = ("supervisor", "log")  # of a spawn; not for the answer
SECRET_WARNING = (
    "the dispatch has a secret in it: the task's title and description have it masked, the worker is told it"
    " as it stands; better name the variable or file that holds it"
)


# --------------------------------------------------------------------- states


class Planned(NamedTuple):
    """A dispatch before it touches the store: the requester, the request, and the way to start a worker."""

    requester: Session
    request: DispatchRequest
    command: WorkerCommand
    cwd: str
    texts: PublicTexts
    warnings: tuple[str, ...] = ()


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


class Starting(NamedTuple):
    """A worker has been set going. `facts` find it, `lock` keeps other dispatches from starting one more, and
    `give_up_at` (``time.monotonic()``) is when the requester is told that it is still on its way."""

    plan: Planned
    work: DispatchTask
    lock: Lock
    facts: dict[str, Any]
    give_up_at: float


class Answered(NamedTuple):
    """The result of the dispatch is known."""

    plan: Planned
    answer: dict[str, Any]


class AwaitingEnd(NamedTuple):
    """The requester waits for the task's end."""

    answer: dict[str, Any]
    wait: CompletionWait


class Finished(NamedTuple):
    """The whole answer. Mail in its ``completion`` is claimed: acknowledge its ids once it has been handed out."""

    answer: dict[str, Any]


State = Planned | Starting | Answered | AwaitingEnd | Finished


class Dispatch:
    """One dispatch under way by `requester` (its row). Raises Refused for a request that cannot be carried out.

    `tell` is called with each state that is reached after the first.
    """

    def __init__(
        self,
        requester: Session,
        request: DispatchRequest,
        tell: Callable[[State], object] | None = None,
    ):
        self._state: State = plan(requester, request)
        self._tell = tell

    def advance(self, store: Store) -> dict[str, Any] | None:
        """Go on as far as possible; return the answer, None during a wait.

        The answer is ``{status, task_id, task, ...}`` in the contract's form for each status. Raises the store's
        errors.
        """
        while not isinstance(self._state, Finished):
            following = _next(store, self._state)
            if following is None:
                return None
            self._state = following
            if self._tell:
                self._tell(following)
        return self._state.answer

    def seconds_left(self) -> float:
        """Return the seconds after which `advance` is due without a change in the store."""
        state = self._state
        if isinstance(state, AwaitingEnd):
            return state.wait.seconds_left()
        if not isinstance(state, Starting):
            return 0.0
        left = max(0.0, state.give_up_at - time.monotonic())
        # That a supervisor has died changes nothing in the store.
        if state.plan.command.is_supervised:
            return min(left, POLL_SECONDS)
        return left


def carry_out(
    store: Store, requester: Session, request: DispatchRequest, tell: Callable[[State], object] | None = None
) -> dict[str, Any]:
    """Dispatch and block until the answer. `tell` is called with each state as it is reached.

    Raises the errors of a `Dispatch`.
    """
    dispatch = Dispatch(requester, request, tell)
    with store.changes() as changes:
        while (answer := dispatch.advance(store)) is None:
            changes.wait(dispatch.seconds_left())
    return answer


# ---------------------------------------------------------------------- steps


def plan(requester: Session, request: DispatchRequest) -> Planned:
    """Return the plan for the request. Raises Refused."""
    require_gateway(requester)
    request = checked(request)
    request = request._replace(skills=tuple(clean(skill, requester.directory) for skill in request.skills))
    command = worker_command(request, requester)
    cwd = requester.directory
    if request.cwd:
        cwd = clean(request.cwd, cwd)
    if request.spawn and not os.path.isdir(cwd):
        raise Refused(f"a worker cannot be started in {cwd}: there is no such folder")
    texts, warnings = public_texts(request), command.warnings
    if texts != (request.title, request.description, request.message):
        warnings = (*warnings, SECRET_WARNING)
    return Planned(requester, request, command, cwd, texts, warnings)


def _begin(store: Store, state: Planned) -> Starting | Answered:
    """Find or make the task, then hand it to a live worker or have one started."""
    requester, request = state.requester, state.request
    if request.spawn:
        require_own_limits(store, requester, request)
    work = _find_or_make(store, requester, request, state.texts)
    if work.task.status in TERMINAL:
        return _answered(state, work, "already_terminal")
    worker = _worker_of(store, state, work) or work.worker  # a forced start has looked for none
    if worker and work.task.status == OPEN:
        try:
            work = work._replace(task=reserve(store, work.task.id, worker))
        except NotConfirmed as error:  # nor could a worker that was started for it begin
            state = state._replace(warnings=(*state.warnings, str(error)))
            return _answered(state, work, "no_worker", role=request.role)
        except Refused:
            work = _reread(store, state, work)
        worker = _worker_of(store, state, work)
    if worker:
        return _handed_over(store, state, work, worker)
    if not request.spawn:
        return _answered(state, work, "no_worker", role=request.role)
    return _start_worker(store, state, work)


def _start_worker(store: Store, state: Planned, work: DispatchTask) -> Starting | Answered:
    """Have a worker started, unless another dispatch is at it."""
    requester, request = state.requester, state.request
    name, instance_id = runs.name_of(request.role, work.key), new_id()
    lock = store.spawn_locks.take(requester, name, work.task.id, instance_id)
    if lock is None:
        return _started_elsewhere(store, state, work, name)
    # The previous holder of the lock may have brought a worker between our look and this.
    work = _reread(store, state, work)
    worker = _worker_of(store, state, work)
    if worker:
        store.spawn_locks.release(lock, "worker_found")
        return _handed_over(store, state, work, worker)
    chosen = spawner(state.command.spawner)
    try:
        facts = chosen.start(store, _worker_spec(_as_before(store, state, work), work, instance_id, name))
    except SpawnFailed as error:
        store.spawn_locks.release(lock, "spawn_failed")
        return _answered(state, work, "spawn_failed", spawner=state.command.spawner, error=str(error))
    except BaseException:
        store.spawn_locks.release(lock, "spawn_failed")  # a server lives on, and would block the next dispatch
        raise
    store.spawn_locks.started(lock, {"spawner": state.command.spawner, **facts})
    patience = request.wait_seconds
    if patience is None:
        patience = chosen.patience
    return Starting(state, work, lock, facts, time.monotonic() + patience)


def _look_for_worker(store: Store, state: Starting) -> Answered | None:
    """Return the answer once the worker has come up, has failed, or has taken too long; None before."""
    plan, work, lock = state.plan, state.work, state.lock
    command = plan.command
    details: dict[str, Any] = {"spawner": command.spawner}
    shown = {name: value for name, value in state.facts.items() if name not in _INTERNAL_FACTS}
    try:
        seen = spawner(command.spawner).look(store, state.facts)
    except SpawnFailed as error:
        store.spawn_locks.release(lock, "spawn_failed")
        return _answered(plan, work, "spawn_failed", **details, error=str(error), **shown)
    details.update(shown)
    if seen is None:
        if time.monotonic() < state.give_up_at:
            return None
        if "ui_command_id" in shown:
            details["ui_command"] = store.ui_commands.get(shown["ui_command_id"])
        return _answered(plan, work, "spawn_in_flight", **details, spawn_lock=lock.file)
    worker = store.instances.live(seen.get("instance_id") or "")
    if worker:
        if work.task.status == OPEN:
            work = _reserved(store, plan, work, worker)
        if not command.is_supervised:
            _instruct(store, plan, work, worker)
        if work.task.assignee == worker.id:
            store.spawn_locks.release(lock, "worker_arrived")  # the next dispatch may start another
    elif command.is_supervised:
        store.spawn_locks.release(lock, "worker_through")  # it was quicker than this look
    if command.is_supervised:
        work = _reread(store, plan, work)
    return _answered(plan, work, "spawned", **{**details, **seen}, spawn_lock=lock.file)


def _next(store: Store, state: State) -> State | None:
    """Return the state after this one; None during a wait."""
    if isinstance(state, Planned):
        return _begin(store, state)
    if isinstance(state, Starting):
        return _look_for_worker(store, state)
    if isinstance(state, Answered):
        # Wait for the task's end where the requester wants that. After a failed start the error is worth more at once.
        seconds = state.plan.request.completion_wait_seconds
        if seconds > 0 and state.answer["status"] != "spawn_failed":
            return AwaitingEnd(state.answer, CompletionWait.of(state.plan.requester, state.answer["task_id"], seconds))
        return Finished(state.answer)
    if isinstance(state, AwaitingEnd):
        ended = state.wait.look(store)
        if ended is None:
            return None
        return Finished({**state.answer, "completion": ended})
    return state


# ---------------------------------------------------------------------- parts


def _worker_of(store: Store, plan: Planned, work: DispatchTask) -> Session | None:
    """Return the live session that has the task, as far as the requester may meet it, unless a start is forced."""
    if plan.request.force_spawn or not work.task.assignee:
        return None
    row = store.instances.live(work.task.assignee)
    if row and may_meet(plan.requester.label, row.label):
        return row
    return None


def _reread(store: Store, plan: Planned, work: DispatchTask) -> DispatchTask:
    return work._replace(task=store.tasks.get(plan.requester.scope, work.task.id) or work.task)


def _reserved(store: Store, plan: Planned, work: DispatchTask, worker: Session) -> DispatchTask:
    """Give an open task to `worker`, unless another was faster."""
    try:
        return work._replace(task=reserve(store, work.task.id, worker))
    except Refused:  # another was faster
        return _reread(store, plan, work)


def _instruct(store: Store, plan: Planned, work: DispatchTask, worker: Session) -> dict[str, Any]:
    """Leave the instructions in the worker's inbox and wake it; once only, while they lie there unread.

    The inbox has them without secrets, as a supervisor writes them down. A supervised worker received the instructions
    when it was started, and gets only new ones. Returns the way the worker was woken (``panes.deliver``).
    """
    requester, task_id = plan.requester, work.task.id
    content = of_task(task_id, work.message)
    had_them_read = store.runs.of_instance(worker.id) is not None
    store.messages.hand_over(requester, worker.id, content, of_task(task_id, work.public_message), had_them_read)
    return deliver(store, requester, worker.id, content, plan.request.nudge, plan.request.force)


def _handed_over(store: Store, plan: Planned, work: DispatchTask, worker: Session) -> Answered:
    """Tell a live worker, and the requester that it has been told."""
    run = store.runs.of_instance(worker.id)
    if plan.request.resume and run and run.state == PAUSED:
        store.runs.ask(run.id, RESUME)
    sent = _instruct(store, plan, work, worker)
    more = {}
    if plan.request.wants_new_worker and not (run and run.harness == plan.command.harness):
        more["not_started"] = f"{name_of(worker)} works on it already"
    return _answered(plan, work, "dispatched", recipient=worker.id, prompt=sent, **more)


def _started_elsewhere(store: Store, plan: Planned, work: DispatchTask, name: str) -> Answered:
    """Another dispatch is starting a worker; where that has come up unnoticed, it gets the work."""
    held = store.spawn_locks.holder(plan.requester.scope, name)
    worker = None
    if held:
        worker = store.spawn_locks.worker_of(held)
    if worker and may_meet(plan.requester.label, worker.label):
        if work.task.status == OPEN:
            work = _reserved(store, plan, work, worker)
        return _handed_over(store, plan, work, worker)
    viewer = token(plan.requester.label or "", "identity")
    return _answered(plan, work, "spawn_in_flight", lock=store.locks.describe(held, viewer) if held else None)


def _as_before(store: Store, plan: Planned, work: DispatchTask) -> Planned:
    """Return the plan with the settings of the task's last worker, such as its folder."""
    if not plan.command.is_supervised:
        return plan
    last = next(iter(store.runs.of_task(plan.requester.scope, work.task.id)), None)
    request = as_before(plan.request, plan.command.harness, last)
    moved = request.cwd and not plan.request.cwd
    return plan._replace(request=request, cwd=request.cwd if moved else plan.cwd)


def _worker_spec(plan: Planned, work: DispatchTask, instance_id: str, lock: str) -> WorkerSpec:
    request, task = plan.request, work.task
    return WorkerSpec(
        requester=plan.requester,
        task_id=task.id,
        instance_id=instance_id,
        role=request.role,
        harness=plan.command.harness,
        command=plan.command.words,
        cwd=plan.cwd,
        label=request.label,
        name=request.name,
        message=work.message,
        placement=request.placement,
        title=task.title,
        lock=lock,
        run=run_facts(request),
    )


def _answered(plan: Planned, work: DispatchTask, status: str, **more: Any) -> Answered:
    answer = {"status": status, "task_id": work.task.id, "task": work.task, **more}
    if plan.warnings:
        answer["warnings"] = list(plan.warnings)
    if work.decision:
        answer["promotion"] = {"decision": work.decision}
    return Answered(plan, answer)


# ------------------------------------------------------- the task and a live worker

TRIES = 3  # attempts to name an assignee, since it may leave at that moment


def _find_or_make(store: Store, requester: Session, request: DispatchRequest, texts: PublicTexts) -> DispatchTask:
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
        worker = _find_worker(store, requester, request)
        try:
            # No notice: the instructions follow, with more to say, and the next dispatch brings them if not this.
            return store.tasks.request(requester, {**spec, "assignee": worker and worker.id}, notify=False), worker
        except Refused:
            if attempt == TRIES or worker is None or store.instances.live(worker.id):
                raise
    raise AssertionError("the last try returns or raises")


# Runtimes of sessions that are no agents, or that have their one task already.
BUSY_RUNTIMES = (*NO_AGENTS, RUN_RUNTIME)


def _find_worker(store: Store, requester: Session, request: DispatchRequest) -> Session | None:
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


def _was_started_by(row: Session, starters: set[tuple[int | None, str | None]], here: str) -> bool:
    """Return True if an agent, or a run, has started this session: it works for that one, and ends when it is done."""
    if not row.client_pid or row.host != here:
        return False
    pids = {pid for pid, _started in starters}
    return any(pid in pids and (pid, start_time(pid)) in starters for pid in ancestors(below=row.client_pid))


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

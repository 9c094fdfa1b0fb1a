"""Workers in the background: started by a supervisor of ours, paused, resumed and cancelled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from swarm_hook_core.process import gone, start_time
from swarm_hook_core.state import make_private, state_dir
from swarm_mcp.agents.dispatch.request import SpawnFailed, WorkerSpec
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.environment import independent
from swarm_mcp.agents.harness.prompting import (
    HAS_ASKED,  # fmt: skip
    HAS_FAILED,  # fmt: skip
    INTERRUPTED,  # fmt: skip
    run_environment,  # fmt: skip
    task_prompt,  # fmt: skip
    with_system_prompt,  # fmt: skip
)
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.query import query_of as described
from swarm_mcp.agents.harness.registry import get
from swarm_mcp.answers.people import short
from swarm_mcp.domain import (
    ABANDONED,
    CANCEL,
    CANCELLED,
    ENDED,
    PAUSE,
    PAUSED,
    RESUME,
    STARTING,
    TERMINAL,
    Question,
    Run,
    Session,
    Task,
    new_id,
)
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import started_by
from swarm_mcp.sessions.acting import may_dispatch
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of

# The order for a supervisor (one JSON object, through a pipe), and the run it leads to.
#
# Neither argv nor a file carries it: others can read the first, and the second might be left behind with its prompt.

GO_ON = "You were interrupted while you worked on this task, and are to go on with it. Look first at what is done."
AGAIN = "You have tried this before, and it failed: {} Look first at what is done, then try it once more; where the way\
 that you took was the cause, take another."
ANSWERED = "You asked a person: {}\nTheir answer: {}"


class Assignment(NamedTuple):
    """One task for one worker.

    requester_id   the requesting session; `requester_label` its name
    instance_id    the worker's, reserved by the dispatch; `label` its future name
    message        the instructions
    lock           name of the spawn lock; once that names another worker, this one is not wanted
    command        words that start the harness, empty for its own
    run            options of the run (``request.RUN_OPTIONS``) that were given
    env            the environment to work in, empty for that of the process
    log            file for standard error, empty if standard error is read
    """

    scope: str
    task_id: str
    run_id: str
    instance_id: str
    requester_id: str
    requester_label: str
    role: str
    harness: str
    cwd: str
    label: str
    message: str
    lock: str = ""
    command: tuple[str, ...] = ()
    run: dict[str, Any] = {}
    env: dict[str, Any] = {}
    log: str = ""

    def to_text(self) -> str:
        """Return the assignment as JSON."""
        return json.dumps(self._asdict())


def assignment_of(worker: WorkerSpec, run_id: str, *, env: dict[str, Any] | None = None, log: str = "") -> Assignment:
    """Return the assignment of a worker that is to be started."""
    return Assignment(
        scope=worker.requester.scope,
        task_id=worker.task_id,
        run_id=run_id,
        instance_id=worker.instance_id,
        requester_id=worker.requester.id,
        requester_label=worker.requester.label or "",
        role=worker.role,
        harness=worker.harness,
        cwd=worker.cwd,
        label=f"{worker.label_words} origin:{started_by(worker.harness)} run:{short(run_id)}",
        message=worker.message,
        lock=worker.lock,
        command=worker.command,
        run=worker.run,
        env=env or {},
        log=log,
    )


def read(text: str) -> Assignment:
    """Return the assignment in `text`. Raises SwarmError for any other text, as from a killed writer."""
    try:
        assignment = Assignment(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise SwarmError("this is no assignment; swarm-mcp worker dispatch gives one") from None
    return assignment._replace(command=tuple(assignment.command))


def query_of(
    assignment: Assignment,
    adapter: HarnessAdapter,
    task: Task,
    previous: Mapping[str, Any] | None = None,
    reached: str = "",
    message_id: int = 0,
    failure: str = "",
    asked: Sequence[Question] = (),
    approval: int | None = None,
) -> Query:
    """Return the query to a harness on behalf of a task (its row).

    `previous`: the session to continue, None for a new one. `reached`: the progress of an earlier run, and `failure`
    its error, empty for a success. `asked`: questions to a person; the answered ones are told. `message_id`: of the
    message with the instructions, 0 for none. `approval`: the number of the task's approval.
    """
    config = {**assignment.run, "cwd": assignment.cwd, "command": assignment.command}
    query = described("", config)._replace(
        instance_id=assignment.instance_id,
        scope=assignment.scope,
        label=assignment.label,
        role=assignment.role,
        task_id=assignment.task_id,
        requester_id=assignment.requester_id,
        run_id=assignment.run_id,
    )
    linked = {"linked_task_ids": task.depends_on or [], "message_id": message_id or None}
    context = {**linked, "wake_reason": "task_resumed" if previous or reached else "task_assigned"}
    if approval:
        context.update(approval_id=approval, approval_status="approved")
    again: list[str] = []
    if failure:
        again, ended = [AGAIN.format(failure)], HAS_FAILED
    elif any(one.answer is not None and one.told_at is None for one in asked):
        ended = HAS_ASKED
    else:
        again, ended = [GO_ON] if previous else [], INTERRUPTED
    answers = [ANSWERED.format(one.question, one.answer) for one in asked if one.answer is not None]
    message = "\n\n".join([*again, *answers, assignment.message])
    # A session that is continued knows how far it was, but it may be found to have gone: then its successor is told.
    prompt = task_prompt(task, message, reached, query=query, context=context, ended=ended)
    return with_system_prompt(query, adapter)._replace(prompt=prompt, env=run_environment(query, context))


# The supervisor is detached, in a session of its own, so that it outlives the dispatcher, its terminal and its process
# group. An asynchronous list would read /dev/null, hence the detour of its input.
DETACH = 'exec 3<&0; log=$1; shift; "$@" <&3 3<&- >/dev/null 2>>"$log" & echo $!'
HAND_OVER_SECONDS = 30.0
KEPT_LOG_SECONDS = 7 * 86400
# The dispatcher's place; ``independent`` leaves out its identity.
PLACE = ("SWARM_MCP_DIRECTORY", "HERDR_TAB_ID", "HERDR_WORKSPACE_ID")


class Processes:
    """The spawner ``session_hooks``."""

    patience = 30.0

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        require_startable(store, worker)
        log = _log_file(worker.instance_id)
        run_id = new_id()
        text = assignment_of(worker, run_id, log=log).to_text()
        pid = self.launch(text, log)
        facts = {"instance_id": worker.instance_id, "run_id": run_id}
        return {**facts, "supervisor": [store.here, pid, start_time(pid)], "log": log}

    def launch(self, text: str, log: str) -> int:
        """Start a supervisor with the assignment `text` and standard error in `log`; its pid. Raises SpawnFailed."""
        words = ["/bin/sh", "-c", DETACH, "sh", log, *coordinator_command(), "work"]
        try:
            shell = subprocess.Popen(
                words, cwd="/", env=environment(), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            said, _ = shell.communicate(text.encode(), HAND_OVER_SECONDS)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.communicate()
            raise SpawnFailed("the worker's supervisor did not take its instructions") from None
        except OSError as error:
            raise SpawnFailed(f"the worker's supervisor cannot be started: {error.strerror or error}") from None
        if said.strip().isdigit():
            pid = int(said)
        else:
            pid = 0
        if not pid:
            raise SpawnFailed("the worker's supervisor cannot be started")
        return pid

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return the facts about a supervised worker, None while it is starting. Raises SpawnFailed."""
        worker = facts["instance_id"]
        run = store.runs.get(facts["run_id"])
        said = (run.result if run else None) or {}
        if said.get("declined"):
            raise SpawnFailed(said["declined"])
        died = run and run.state == ENDED and (not said or said.get("error_message") == ABANDONED)
        if run and not died and (run.state == ENDED or (run.state != STARTING and store.instances.live(worker))):
            return {"instance_id": worker, "run_id": run.id}
        host, pid, started = facts["supervisor"]
        if died or gone(host, pid, started, store.here) or started == "":
            raise SpawnFailed(f"the worker's supervisor ended at once: {_last_words(facts.get('log', ''))}")
        return None


def require_startable(store: Store, worker: WorkerSpec) -> None:
    """Raise SpawnFailed where it is plain that the worker would do nothing."""
    task = store.tasks.get(worker.requester.scope, worker.task_id)
    if task and task.assignee:
        holder = store.instances.live(task.assignee)
    else:
        holder = None
    if holder and holder.id != worker.instance_id:
        raise SpawnFailed(f"{name_of(holder)} works on it already")
    adapter = get(worker.harness)
    if adapter.program and not worker.command and not shutil.which(adapter.program):
        raise SpawnFailed(f"{adapter.program} is not installed. {' '.join(adapter.instructions.split())}".strip())


def environment() -> dict[str, str]:
    """Return the environment of a supervisor: this process's, without the dispatcher's identity and place."""
    return independent(drop=PLACE)


def _log_file(instance_id: str) -> str:
    """A new supervisor's standard error; empty ones go with their supervisors, others after a week."""
    folder = os.path.join(state_dir(), "work")
    try:
        make_private(folder)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".log") and time.time() - os.path.getmtime(path) > KEPT_LOG_SECONDS:
                os.remove(path)
    except FileNotFoundError:
        pass  # another dispatch cleans as well
    except OSError as error:
        raise SpawnFailed(f"the state folder cannot be used: {error}") from None
    return os.path.join(folder, f"{instance_id}.log")


def _last_words(log: str) -> str:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read()[-2000:].splitlines() if line.strip()]
    except OSError:
        lines = []
    if lines:
        return lines[-1][:300]
    return "it did not say why"


# Cancelling, pausing and resuming of workers.
#
# The task decides: cancelling it ends its worker, in any process. Pausing and resuming are requests to the worker's
# supervisor, through its run's row; it reacts within half a second, plus the time its child takes to end.

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

"""``swarm-mcp worker dispatch``: handing a task to a live worker, or starting one for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from swarm_hook_core.environment import is_on
from swarm_hook_core.untrusted_text import token
from swarm_hook_core.wording import duration
from swarm_mcp.agents.commands import run
from swarm_mcp.agents.dispatch.dispatch import Answered, AwaitingEnd, Finished, Starting, State, carry_out
from swarm_mcp.agents.dispatch.request import DEFAULT_ROLE, DEFAULT_TYPE, NO_YOLO, SUPERVISED, DispatchRequest
from swarm_mcp.agents.harness.query import YOLO
from swarm_mcp.answers.people import short
from swarm_mcp.cli.arguments import (
    DOING,
    EFFORTS,
    FOLDERS,
    MODES,
    ROLES,
    TASKS,
    WORKER,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.output import complain, flush, refused, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import Reader
from swarm_mcp.domain import ENDED, TYPES, Run
from swarm_mcp.errors import Refused
from swarm_mcp.sessions.acting import dispatching_session, is_unattended
from swarm_mcp.store import Store

# The progress and the outcome of one dispatch, in lines for people.

LAST_WORDS_SECONDS = 15.0  # for an agent to end after it has ended its task
_OUTCOMES = {
    "dispatched": "dispatched task {task} to {recipient}",
    "no_worker": "task {task} waits to be claimed: no live worker for role {role}",
    "already_terminal": "task {task} is already {status}",
    "spawn_in_flight": "task {task} waits for its worker to come up",
    "spawned": "task {task}: {worker} is up",
    "spawn_failed": "task {task} waits to be claimed: no worker could be started: {error}",
}


class DispatchDisplay:
    """Shows the states of a dispatch. `last_run` returns the run that has ended a task, if there is one."""

    def __init__(self, progress: Progress, reader: Reader, last_run: Callable[[str], Run | None]):
        self._progress, self._reader, self._last_run = progress, reader, last_run

    def show(self, state: State) -> None:
        """Print the step that begins, or the outcome, in this state."""
        if isinstance(state, Starting):
            command = state.plan.command
            harness = command.harness or "the default harness"
            self._progress.begin(f"starting a worker ({harness}, {command.spawner})")
        elif isinstance(state, Answered):
            self._end(self._outcome(state.answer))
        elif isinstance(state, AwaitingEnd):
            longest = duration(state.wait.seconds)
            self._progress.begin(f"waiting for task {short(state.wait.task_id)} to end, at most {longest}")
        elif isinstance(state, Finished):
            if "completion" in state.answer:
                self._end(self._ending(state.answer))
            status = state.answer.get("completion", {}).get("status", state.answer["status"])
            if status in ("timeout", "spawn_in_flight"):
                self._progress.say(f"next: {_next_step(state.answer)}")

    def _end(self, lines: list[str]) -> None:
        self._progress.end(lines[0])
        for line in lines[1:]:
            self._progress.say(line)

    def _outcome(self, answer: dict[str, Any]) -> list[str]:
        """Return lines on the worker of the task."""
        if not answer.get("instance_id"):
            worker = "worker"
        else:
            worker = self._reader.called(answer["instance_id"])
        facts = {
            "task": answer["task_id"],
            "recipient": answer.get("recipient") and self._reader.called(answer["recipient"]),
            "role": answer.get("role"),
            "status": answer.get("task", {}).get("status"),
            "worker": worker,
            "error": answer.get("error"),
        }
        lines = [_OUTCOMES[answer["status"]].format(**facts)]
        if answer.get("not_started"):
            lines.append(f"no worker was started: {answer['not_started']}")
        return lines

    def _ending(self, answer: dict[str, Any]) -> list[str]:
        """Return lines on the end of the task: report, changes, cost, messages."""
        task, ended = answer["task_id"], answer["completion"]
        lines = [f"task {task} has not ended yet"]
        if ended["status"] == "missing":
            lines = [f"task {task} is gone"]
        elif ended["status"] == "completed":
            first, *more = run.report_lines(ended["result"]) or ["(no result)"]
            lines = [f"task {task} {ended['task_status']}: {first}", *more]
            last = self._last_run(task)
            if last:
                lines += [f"  {line}" for line in run.run_lines(last)]
        messages = [f"message from {self._reader.called(mail['sender'])}: {mail['content']}"
                    for mail in ended["messages"]]  # fmt: skip
        return lines + messages


def last_run(store: Store, scope: str, task_id: str) -> Run | None:
    """Return the last run of a task, or None. Waits a moment for its end: the agent may have ended the task itself."""
    found = store.runs.of_task(scope, task_id)
    if not found:
        return None
    wait_for_end(store, found[0].id, LAST_WORDS_SECONDS)
    return store.runs.get(found[0].id) or found[0]


def wait_for_end(store: Store, run_id: str, seconds: float) -> bool:
    """Wait at most so many seconds for the end of a run; return True if it has ended."""
    until = time.monotonic() + seconds
    with store.changes() as changes:
        while True:
            row = store.runs.get(run_id)
            if row is None or row.state == ENDED:
                return True
            if time.monotonic() >= until:
                return False
            changes.wait(min(1.0, until - time.monotonic()))


def _next_step(answer: dict[str, Any]) -> str:
    """Return the command that shows how the task goes on: the log of its worker, if a supervisor of ours keeps one."""
    task = short(answer["task_id"])
    if answer["status"] == "spawned" and answer["spawner"] in SUPERVISED:
        return f"swarm-mcp worker logs {task} -f"
    return f"swarm-mcp task show {task}"


OPTIONS = (
    Option("--message TEXT", "the prompt of the worker (default: the title)"),
    Option("--description TEXT", "the description of the task (default: the message)"),
    Option("--type TYPE", "implement (default), fix, test, review, research or other", source=TYPES),
    Option(
        "--role ROLE",
        "the role of the worker: a live session with role:ROLE in its label, else a generalist (default: implementer)",
        source=ROLES,
    ),
    Option("--file PATH", "a file that the work is about", repeatable=True),
    Option("--priority N", "a higher one is claimed first (default: 0)"),
    Option("--depends-on ID,ID", "tasks that must be done first", source=TASKS),
    Option("--parent-task ID", "the task above this one", source=TASKS),
    Option(
        "--idempotency-key KEY",
        "dispatches with the same key are one task (default: those with the same type, title and role)",
    ),
    Option("--approval-required", "the task cannot be claimed before it is approved"),
    Option("--no-spawn", "start no worker: without a live one, the task waits to be claimed"),
    Option("--force-spawn", "start a worker even if one lives"),
    Option(
        "--spawner NAME",
        "process (in the background) or swarm-ui (default: SWARM_DISPATCH_SPAWNER, SWARM_SPAWNER, process)",
    ),
    Option(
        "--harness NAME",
        "the harness to start: claude, codex, ..., as in `swarm-mcp worker harness list` (default:"
        " SWARM_DISPATCH_HARNESS, SWARM_WORKER_HARNESS, HARNESS_PROVIDER, the one of this session)",
    ),
    Option("--directory DIR", "where to start it (default: this session's folder)", source=FOLDERS),
    Option("--label TEXT", "more words for the worker's label"),
    Option("--name TEXT", "the name of its pane"),
    Option("--wait S", "wait up to S seconds until it has come up (default: 30; swarm-ui: 5)"),
    Option(
        "--completion-wait S",
        "wait up to S seconds for the task to end, and print how it ended (--wait-for-completion is the same)",
        also="--wait-for-completion",
    ),
    Option("--no-nudge", "leave the worker's terminal alone"),
    Option("--force", "wake the worker even while it is busy in its terminal"),
    Option("--model NAME", "the model of the worker, as its harness names it"),
    Option("--effort LEVEL", "how much it is to think: low, medium, high or max", source=EFFORTS),
    Option(
        "--mode MODE",
        "its rights: read-only, edit (default), or yolo, without the harness's own checks"
        " (dangerous; only for a person at a terminal, or with SWARM_ALLOW_YOLO=1). Locks hold in all"
        " three",
        source=MODES,
    ),
    Option("--timeout S", "end it after S seconds (default: 0, never)"),
    Option("--max-cost USD", "end it once it has cost that much; refused where the harness cannot tell in time"),
    Option(
        "--command LINE",
        "the command of the harness `process`; for other harnesses, a command instead of their own",
    ),
    *run.OPTIONS,
    Option("--fresh", "begin a new conversation, instead of continuing that of the task's earlier run"),
    *DOING,
)
# Options on the start of a worker, for any task.
OF_WORKERS = (
    "--spawner", "--harness", "--directory", "--label", "--model", "--effort", "--mode", "--timeout", "--command",
    "--fresh", "--person", "--as", "--scope", "--json", *(option.name for option in run.OPTIONS),
)  # fmt: skip


@verb(
    Usage(Word("TITLE", "the title", repeated=True), *OPTIONS),
    Usage(
        Option(
            "--resume TASK",
            "start a worker for a task that has lost its own (its id, or the beginning)",
            required=True,
            source=TASKS,
        ),
        *OPTIONS,
    ),
    group=WORKER,
)
def dispatch(args: Arguments) -> int:
    """dispatch: hand a task to a live worker, or start one for it

    A live session with the role gets the task. Without such a session a worker is started. An option about the start
    (harness, command, model, mode, effort or a limit) starts a worker in any case, unless the task has such a worker
    already. At most SWARM_MAX_WORKERS (default: 4; 0: any number) run at once on this machine; the others wait.

    Only gateways may dispatch: a session with mode:gateway in its label, a person at a terminal, a script outside of
    any agent, or any caller with SWARM_MCP_ALLOW_SPAWN=1. Exit 1 if the dispatch is refused. Exit 0 once the task
    exists, even if no worker could be started for it (status spawn_failed), and however it ends; --json has the status.

    example: swarm-mcp worker dispatch "Renumber the migrations" --file db/schema.sql --completion-wait 600
    """
    request = request_of(args)
    with Store() as store:
        requester = dispatching_session(store, args)
        if request.mode == YOLO and is_unattended(store, requester) and not is_on("SWARM_ALLOW_YOLO"):
            if not args.json:
                raise Refused(NO_YOLO)
            return refused(args, "dispatch", {"error": NO_YOLO})
        reader = Reader(args, store, token(requester.label or "", "identity"))
        with Progress(args.json) as progress:
            display = DispatchDisplay(progress, reader, partial(last_run, store, requester.scope))
            try:
                answer = carry_out(store, requester, request, display.show)
            except Refused as refusal:
                if not args.json:
                    raise  # the contract has it as an error of the command: `swarm-mcp dispatch: ...`
                return refused(args, "dispatch", refusal.answer)
        if args.json:
            show(answer)
        for warning in answer.get("warnings", ()):
            complain(f"swarm-mcp dispatch: {warning}")
        if flush():  # messages count as delivered once the output is written
            store.messages.acknowledge([mail["id"] for mail in answer.get("completion", {}).get("messages", ())])
    return 0


def request_of(args: Arguments) -> DispatchRequest:
    """Return the request in a command line."""
    return DispatchRequest(
        title=" ".join(args.words),
        message=args.value("--message"),
        description=args.value("--description"),
        type=args.value("--type") or DEFAULT_TYPE,
        role=args.value("--role") or DEFAULT_ROLE,
        files=tuple(args.all("--file")),
        priority=args.number("--priority"),
        depends_on=tuple(part.strip() for part in args.value("--depends-on").split(",") if part.strip()),
        idempotency_key=args.value("--idempotency-key"),
        parent_task_id=args.value("--parent-task"),
        approval_required=args.given("--approval-required"),
        spawn=not args.given("--no-spawn"),
        force_spawn=args.given("--force-spawn"),
        spawner=args.value("--spawner"),
        harness=args.value("--harness"),
        cwd=args.value("--directory"),
        label=args.value("--label"),
        name=args.value("--name"),
        wait_seconds=_wait(args),
        completion_wait_seconds=_completion_wait(args),
        nudge=not args.given("--no-nudge"),
        force=args.given("--force"),
        resume=args.value("--resume"),
        model=args.value("--model"),
        mode=args.value("--mode"),
        effort=args.value("--effort"),
        timeout_seconds=args.seconds("--timeout"),
        max_cost_usd=args.seconds("--max-cost"),
        command=args.value("--command"),
        fresh=args.given("--fresh"),
        append_system_prompt=args.value("--system-prompt"),
        skills=run.skills(args),
        output_schema=run.schema(args),
        env=run.variables(args),
        mcp_servers=run.servers(args),
    )


def _completion_wait(args: Arguments) -> float:
    """Seconds from either of the flag's two names; 0 for no wait."""
    flags = ("--completion-wait", "--wait-for-completion")
    return next((args.seconds(flag) for flag in flags if args.value(flag).strip()), 0.0)


def _wait(args: Arguments) -> float | None:
    """Seconds of --wait; None for the spawner's own default."""
    if not args.value("--wait").strip():
        return None
    return args.seconds("--wait")

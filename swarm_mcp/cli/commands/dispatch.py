"""Work that a session is started for, or found for: ordering it, ending it, pausing it, and looking after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

from swarm_hook_core.environment import is_on
from swarm_hook_core.labels import token
from swarm_hook_core.wording import duration
from swarm_mcp.acting_session import acting_session, dispatching_session, is_unattended
from swarm_mcp.cli import run_options
from swarm_mcp.cli.arguments import (
    ACTING,
    EFFORTS,
    FOLDERS,
    INTERNAL,
    MODES,
    ROLES,
    TASKS,
    WORKERS,
    Arguments,
    Option,
    Usage,
    Word,
    verb,
)
from swarm_mcp.cli.output import complain, flush, refused, say, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.work_words import report_lines, run_lines
from swarm_mcp.dispatch import control, task_trees
from swarm_mcp.dispatch.dispatch import Answered, AwaitingEnd, Finished, Starting, State, carry_out
from swarm_mcp.dispatch.request import DEFAULT_ROLE, DEFAULT_TYPE, NO_YOLO, DispatchRequest
from swarm_mcp.dispatch.spawners import SUPERVISED
from swarm_mcp.dispatch.task_trees import TaskTree
from swarm_mcp.domain.run import ENDED, Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import TERMINAL, TYPES
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import here
from swarm_mcp.harness.query import YOLO
from swarm_mcp.store import Store
from swarm_mcp.views import short

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
        "process (in the background), tmux, herdr or swarm-ui (default: SWARM_DISPATCH_SPAWNER, SWARM_SPAWNER,"
        " process)",
    ),
    Option(
        "--harness NAME",
        "the harness to start: claude, codex, ..., as in `swarm-mcp harness list` (default:"
        " SWARM_DISPATCH_HARNESS, SWARM_WORKER_HARNESS, HARNESS_PROVIDER, the one of this session)",
    ),
    Option("--directory DIR", "where to start it (default: this session's folder)", source=FOLDERS),
    Option("--label TEXT", "more words for the worker's label"),
    Option("--name TEXT", "the name of its pane or window"),
    Option("--wait S", "wait up to S seconds until it has come up (default: 30; swarm-ui: 5)"),
    Option(
        "--completion-wait S",
        "wait up to S seconds for the task to end, and print how it ended (--wait-for-completion is the same)",
        also="--wait-for-completion",
    ),
    Option("--no-nudge", "leave the worker's terminal alone"),
    Option("--force", "wake the worker even while it is busy in its terminal"),
    Option("--model NAME", "the model of a worker that process or tmux starts, as its harness names it"),
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
    *run_options.OPTIONS,
    Option("--fresh", "begin a new conversation, instead of continuing that of the task's earlier run"),
    Option(
        "--worktree",
        "give the task a work tree of the repository for itself, on a branch of its own; `swarm-mcp merge TASK` brings"
        " its commits back",
    ),
    *ACTING,
)
# Options on the start of a worker, for any task.
OF_WORKERS = (
    "--spawner", "--harness", "--directory", "--label", "--model", "--effort", "--mode", "--timeout", "--command",
    "--fresh", "--worktree", "--as", "--scope", "--json", *(option.name for option in run_options.OPTIONS),
)  # fmt: skip

LAST_WORDS_SECONDS = 15.0


@verb(
    Usage(Word("TITLE", "the title", repeated=True), *OPTIONS),
    Usage(
        Option("--all", "work on all open tasks of this scope, and on those that wait for them", required=True),
        Option("--max N", "at most N workers at a time (default: SWARM_MAX_WORKERS, 4)"),
        Option("--max-cost USD", "start no more workers once all of them together have cost that much"),
        Option("--parent-task ID", "only the tasks under this one", source=TASKS),
        *(option for option in OPTIONS if option.name in OF_WORKERS),
    ),
    Usage(
        Option(
            "--resume TASK",
            "start a worker for a task that has lost its own (its id, or the beginning)",
            required=True,
            source=TASKS,
        ),
        *OPTIONS,
    ),
    group=WORKERS,
)
def dispatch(args: Arguments) -> int:
    """dispatch: hand a task to a live worker, or start one for it

    A live session with the role gets the task. Without such a session a worker is started. An option about the start
    (harness, command, model, mode, effort or a limit) starts a worker in any case, unless the task has such a worker
    already. At most SWARM_MAX_WORKERS (default: 4; 0: any number) run at once on this machine; the others wait.

    --all works on the open tasks of this scope (`swarm-mcp request-task`, with --depends-on), each as soon as the tasks
    that it depends on are done, and waits for the end. A failed task is tried once more, and the new worker is told the
    reason. Each worker may spend an even share of the rest of --max-cost, if its harness can be held to a limit. After
    an interruption, type the same command again: finished tasks stay done, and running workers are waited for. Exit 1
    unless all tasks are done.

    Only gateways may dispatch: a session with mode:gateway in its label, a person at a terminal, a script outside of
    any agent, or any caller with SWARM_MCP_ALLOW_SPAWN=1. Exit 1 if the dispatch is refused. Exit 0 once the task
    exists, even if no worker could be started for it (status spawn_failed), and however it ends; --json has the status.

    example: swarm-mcp dispatch "Renumber the migrations" --role implementer --file db/schema.sql --completion-wait 600
    """
    request = _request(args)
    with Store() as store:
        requester = dispatching_session(store, args)
        if request.mode == YOLO and is_unattended(store, requester) and not is_on("SWARM_ALLOW_YOLO"):
            if not args.json:
                raise Refused(NO_YOLO)
            return refused(args, "dispatch", {"error": NO_YOLO})
        reader = Reader(args, store, token(requester.label or "", "identity"))
        if args.given("--all"):
            from swarm_mcp.cli.all_tasks import dispatch_all

            return dispatch_all(args, store, requester, request, reader)
        last_run = partial(_last_run, store, requester.scope)
        with Progress(args.json) as progress:
            try:
                answer = carry_out(store, requester, request, partial(_tell, progress, reader, last_run))
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


def _request(args) -> DispatchRequest:
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
        wait_seconds=args.seconds("--wait") if args.value("--wait").strip() else None,
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
        worktree=args.given("--worktree"),
        append_system_prompt=args.value("--system-prompt"),
        skills=run_options.skills(args),
        output_schema=run_options.schema(args),
        env=run_options.variables(args),
        mcp_servers=run_options.servers(args),
    )


def _completion_wait(args) -> float:
    """Seconds from either of the flag's two names; 0 for no wait."""
    flags = ("--completion-wait", "--wait-for-completion")
    return next((args.seconds(flag) for flag in flags if args.value(flag).strip()), 0.0)


def _tell(progress: Progress, reader: Reader, last_run: Callable[[str], Run | None], state: State) -> None:
    """Print the step that begins, or the outcome, in this state of a dispatch."""
    if isinstance(state, Starting):
        command = state.plan.command
        progress.begin(f"starting a worker ({command.harness or 'the default harness'}, {command.spawner})")
    elif isinstance(state, Answered):
        first, *more = _outcome(state.answer, reader)
        progress.end(first)
        for line in more:
            progress.say(line)
    elif isinstance(state, AwaitingEnd):
        span = duration(state.wait.seconds)
        progress.begin(f"waiting for task {short(state.wait.task_id)} to end, at most {span}")
    elif isinstance(state, Finished):
        if "completion" in state.answer:
            first, *more = _ending(state.answer, reader, last_run)
            progress.end(first)
            for line in more:
                progress.say(line)
        if state.answer.get("completion", {}).get("status", state.answer["status"]) in ("timeout", "spawn_in_flight"):
            progress.say(f"next: {_next_step(state.answer)}")


def _outcome(answer: dict, reader: Reader) -> list[str]:
    """Lines for people on the worker of the task."""
    status, task = answer["status"], answer["task_id"]
    lines = {
        "dispatched": lambda: f"dispatched task {task} to {reader.called(answer['recipient'])}",
        "no_worker": lambda: f"task {task} waits to be claimed: no live worker for role {answer['role']}",
        "already_terminal": lambda: f"task {task} is already {answer['task']['status']}",
        "spawn_in_flight": lambda: f"task {task} waits for its worker to come up",
        "spawned": lambda: f"task {task}: {_worker(answer, reader)} is up",
        "spawn_failed": lambda: f"task {task} waits to be claimed: no worker could be started: {answer['error']}",
    }
    shown = [lines[status]()]
    if answer.get("not_started"):
        shown.append(f"no worker was started: {answer['not_started']}")
    return shown


def _worker(answer: dict, reader: Reader) -> str:
    """The name of the started worker; `worker` alone before it is a session."""
    return reader.called(answer["instance_id"]) if answer.get("instance_id") else "worker"


def _ending(answer: dict, reader: Reader, last_run: Callable[[str], Run | None]) -> list[str]:
    """Lines for people on the end of the task: report, changes, cost."""
    task, ended = answer["task_id"], answer["completion"]
    if ended["status"] == "completed":
        first, *more = report_lines(ended["result"]) or ["(no result)"]
        shown = [f"task {task} {ended['task_status']}: {first}", *more]
        run = last_run(task)
        shown += [f"  {line}" for line in run_lines(run)] if run else []
    elif ended["status"] == "missing":
        shown = [f"task {task} is gone"]
    else:
        shown = [f"task {task} has not ended yet"]
    return [*shown, *(f"message from {reader.called(mail['sender'])}: {mail['content']}" for mail in ended["messages"])]


def _last_run(store: Store, scope: str, task_id: str) -> Run | None:
    """The run that has ended the task, once it is over too: its agent may have said so itself, and have words left."""
    found = store.runs.of_task(scope, task_id)
    if found and not _ends(store, found[0].id, LAST_WORDS_SECONDS):
        return found[0]
    return store.runs.get(found[0].id) if found else None


def _next_step(answer: dict) -> str:
    """The command that shows how the task goes on: the log of its worker, if a supervisor of ours keeps one."""
    is_recorded = answer["status"] == "spawned" and answer["spawner"] in SUPERVISED
    return f"swarm-mcp {'logs {} -f' if is_recorded else 'task {}'}".format(short(answer["task_id"]))


@verb(
    Usage(
        Word("TASK", "id of a task or of a run, or the beginning of one", source=TASKS),
        Option("--wait S", "wait up to S seconds until the worker has ended (default: 0; with --discard 30)"),
        Option("--discard", "throw away the task's work tree with unmerged changes, once the worker has ended"),
        *ACTING,
    ),
    group=WORKERS,
)
def cancel(args: Arguments) -> int:
    """cancel: cancel a task, and end its worker

    The worker's whole process group is asked to end, and is killed after its grace time (15 s). Tasks that depend on
    this one are cancelled with it. The requester and the assignee of a task may cancel it; if the requester is gone,
    any gateway may.

    A work tree from `swarm-mcp dispatch --worktree` stays, with its changes, until `swarm-mcp merge`. --discard throws
    it away, and prints the last commits of its branches. It also works after the task has ended.

    example: swarm-mcp cancel 6ff1c928
    """
    reference = args.words[0]
    with Store() as store:
        try:
            actor = acting_session(store, args)
            tree = _tree_to_discard(reference) if args.given("--discard") else None
            answer = _cancelled(store, actor, reference, tree)
            if answer["worker"]:
                seconds = args.seconds("--wait", DISCARD_SECONDS if tree else 0.0)
                answer["worker"] = "ended" if _ends(store, answer["run_id"], seconds) else "ending"
            else:
                answer["worker"] = "none"
            if tree:
                answer["discarded"] = control.discard(store, actor, tree)
        except Refused as refusal:
            return refused(args, "cancel", refusal.answer)
    if args.json:
        show(answer)
        return 0
    of_it = {"none": "it had no worker", "ending": "its worker is being ended", "ended": "its worker has ended"}
    if "over" not in answer:
        say(f"{_subject(answer)} cancelled; {of_it[answer['worker']]}")
    if "discarded" in answer:
        _say_discarded(answer["discarded"])
    return 0


DISCARD_SECONDS = 30.0


def _tree_to_discard(reference: str) -> TaskTree:
    """The work tree of the task that is meant. Raises Refused."""
    tree = task_trees.find(task_trees.work_tree_at(here()), reference)
    if tree is None:
        raise Refused(f"no task {reference[:60]!r} has a work tree of this repository; swarm-mcp merge lists them")
    return tree


def _cancelled(store: Store, actor: Session, reference: str, tree: TaskTree | None) -> dict:
    """The answer to a cancellation; of a task that is over already where its `tree` is all that it is about."""
    task = store.tasks.get(tree.scope, tree.task_id) if tree else None
    if tree and (task is None or task.status in TERMINAL):
        live = next((run for run in store.runs.live() if run.task_id == tree.task_id), None)
        status = task.status if task else None
        return {"ok": True, "task_id": tree.task_id, "run_id": live and live.id, "status": status,
                "worker": live is not None, "over": True}  # fmt: skip
    return control.cancel(store, actor, tree.task_id if tree else reference)


def _say_discarded(gone: dict) -> None:
    files = len(gone["files"])
    more = f", {files} file{'' if files == 1 else 's'} in it that {'was' if files == 1 else 'were'} not committed"
    say(f"thrown away: the work tree {gone['path']}{more if files else ''}")
    for line in gone["branches"]:
        name, _, commit = line.partition(": ")
        say(f"  branch {name}: git branch {name} {commit[:12]} has its commits back, while git keeps them")
    for line in gone["left"]:
        complain(f"swarm-mcp cancel: {line}")


def _ends(store: Store, run_id: str, seconds: float) -> bool:
    """Wait at most so many seconds for the end of that run; return True if it has ended."""
    import time

    until = time.monotonic() + seconds
    with store.changes() as changes:
        while True:
            row = store.runs.get(run_id)
            if row is None or row.state == ENDED:
                return True
            if time.monotonic() >= until:
                return False
            changes.wait(min(1.0, until - time.monotonic()))


def _subject(answer: dict) -> str:
    return f"task {answer['task_id']}" if answer["task_id"] else f"run {answer['run_id']}"


@verb(
    Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *ACTING),
    group=WORKERS,
)
def pause(args: Arguments) -> int:
    """pause: stop a worker for now; it keeps its task

    The worker's agent is ended; its session, its locks and its task are kept until `swarm-mcp resume` or `swarm-mcp
    cancel`. This works for workers under a supervisor of swarm-mcp (spawners process and tmux).

    example: swarm-mcp pause 6ff1c928
    """
    return _told_to(args, "pause", control.pause, "is being paused; swarm-mcp resume goes on with it")


@verb(
    Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *ACTING),
    group=WORKERS,
)
def resume(args: Arguments) -> int:
    """resume: let a paused worker go on

    It continues its conversation where the harness can do that; else it starts anew and is told how far it was. Where
    no worker has the task any more, `swarm-mcp dispatch --resume TASK` starts one.

    example: swarm-mcp resume 6ff1c928
    """
    return _told_to(args, "resume", control.resume, "goes on")


def _told_to(args: Arguments, name: str, order: Callable[..., dict], said: str) -> int:
    """Carry out `order`, the verb `name`, on the task that `args` names, and print that the task `said`."""
    with Store() as store:
        try:
            answer = order(store, acting_session(store, args), args.words[0])
        except Refused as refusal:
            return refused(args, name, refusal.answer)
    show(answer) if args.json else say(f"task {answer['task_id']} {said}")
    return 0


LARGEST = 64 << 20


@verb(
    Usage(
        Option("--from PIPE", "where the assignment is read from (default: standard input)"),
        Option("--watch", "print the worker's events as they happen"),
        Option("--many", "start a supervisor for each line that is read (dispatch --all starts this)"),
    ),
    group=INTERNAL,
)
def work(args: Arguments) -> int:
    """work: supervise one worker (dispatch starts this)

    This process lives as long as the worker, and holds its session, its locks and its task. Exit 0 however the task
    ends: the task itself has the result. Exit 1 if the worker could not be registered.

    example: swarm-mcp work < assignment.json
    """
    if args.given("--many"):
        from swarm_mcp.cli.main import main
        from swarm_mcp.dispatch.nursery import tend

        tend(sys.stdin.buffer, sys.stdout.fileno(), main)
        return 0
    from swarm_mcp.dispatch.assignment import read

    given = read(_text(args.value("--from")))
    os.environ.update(given.env)  # before anything asks where the store and the state are
    from swarm_mcp.cli.live import Live
    from swarm_mcp.dispatch.supervision import Supervisor

    live = Live.at_terminal(sys.stdout, folder=given.cwd) if args.given("--watch") else None
    try:
        with Store() as store:
            Supervisor(store, given, live.show if live else None).carry_out()
    finally:
        if live:
            live.close()
    _forget(given.log)
    return 0


def _text(pipe: str) -> str:
    try:
        if not pipe:
            return sys.stdin.buffer.read(LARGEST).decode()
        with open(pipe, "rb") as file:
            return file.read(LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SwarmError(f"the assignment cannot be read: {error}") from None


def _forget(log: str) -> None:
    """Remove the file of our standard error, where nothing was said."""
    try:
        if log and not os.path.getsize(log):
            os.remove(log)
    except OSError:
        pass

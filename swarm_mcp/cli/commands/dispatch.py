"""dispatch: hand work to a live worker, or have one started for it

usage: swarm-mcp dispatch TITLE... [--message TEXT] [--description TEXT] [--type TYPE] [--role ROLE]
                          [--file PATH]... [--priority N] [--depends-on ID,ID] [--parent-task ID]
                          [--idempotency-key KEY] [--approval-required] [--no-spawn | --force-spawn]
                          [--spawner NAME] [--harness NAME] [--model NAME] [--mode MODE] [--effort LEVEL]
                          [--timeout S] [--max-cost USD] [--command LINE] [--directory DIR] [--label TEXT]
                          [--name TEXT] [--wait S] [--completion-wait S] [--no-nudge] [--force] [--fresh]
                          [--as WHO] [--json]
       swarm-mcp dispatch --resume TASK [--message TEXT] [the other flags]

  --message TEXT        what the worker is told (default: the title)
  --description TEXT    what the task says (default: the message)
  --type TYPE           implement (default), fix, test, review, research or other
  --role ROLE           who is wanted: a live session with role:ROLE in its label, else a generalist
                        (default: implementer)
  --idempotency-key K   dispatches with one key are one task; without it those of one type, title and role
  --no-spawn            start nobody: where no worker lives, the task waits to be claimed
  --force-spawn         start a worker even if one lives
  --resume TASK         go on with a task that is there and has no worker any more (id, or its beginning)
  --spawner NAME        process (in the background), tmux, herdr or swarm-ui (default: SWARM_DISPATCH_SPAWNER,
                        SWARM_SPAWNER, process)
  --harness NAME        what to start: claude, codex, ... (default: SWARM_DISPATCH_HARNESS,
                        SWARM_WORKER_HARNESS, HARNESS_PROVIDER, what this session is); swarm-mcp harness list.
                        Who names one, or says with which command, model, mode, effort or limits to start it,
                        has a worker started also where one lives that does not have the task yet
  --directory DIR       where to start it (default: this session's folder)
  --label, --name TEXT  more words for the worker's label; what its pane or window is called
  --wait S              seconds to wait until it has come up (process, tmux, herdr: 30, swarm-ui: 5)
  --completion-wait S   wait up to S seconds for the task to end, and print how it did
                        (--wait-for-completion S is the same)
  --no-nudge, --force   leave the worker's terminal alone; wake it even while it is busy there

Of workers that process and tmux start:

  --model, --effort     as the harness names them; low, medium, high or max
  --mode MODE           read-only, edit (default), or yolo: without the harness's own checks (dangerous; a person at
                        a terminal may, others with SWARM_ALLOW_YOLO=1). Locks hold in all three
  --timeout S           end it after S seconds (default: 0, never)
  --max-cost USD        end it when it has cost that much; refused where the harness cannot tell in time
  --command LINE        the command that the harness process runs; of others, what to start instead of their own
  --fresh               leave the session of the task's earlier run alone; else it is gone on with

At most SWARM_MAX_WORKERS of them (default: 4, 0: any number) run at once on this machine; the others wait for a slot.

For gateways: a session with mode:gateway in its label, a person at a terminal, or SWARM_MCP_ALLOW_SPAWN=1. Exit 1
where the dispatch is refused; 0 where the task is there, also if no worker could be started for it (status
spawn_failed), and however the task has ended: --json says it.

example: swarm-mcp dispatch "Renumber the migrations" --role implementer --file db/schema.sql --completion-wait 600
"""

from __future__ import annotations

from swarm_mcp.actor import person
from swarm_mcp.cli.output import complain, flush, refused, say, show
from swarm_mcp.dispatch.dispatch import carry_out
from swarm_mcp.dispatch.request import DEFAULT_ROLE, DEFAULT_TYPE, DispatchRequest
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.views import short

WORDS = None


def run(args) -> int:
    """Dispatch; print what came of it."""
    if not args.value("--resume"):
        args.word(0, "the title: swarm-mcp dispatch TITLE...")
    elif args.words:
        raise UsageError("--resume names the task; what its worker is told now goes into --message")
    request = _request(args)
    with Store() as store:
        requester = person(store, args)
        try:
            answer = carry_out(store, requester, request)
        except Refused as refusal:
            if not args.json:
                raise  # the contract has it as an error of the command: `swarm-mcp dispatch: ...`
            return refused(args, "dispatch", refusal.answer)
        if args.json:
            show(answer)
        else:
            for line in _lines(answer):
                say(line)
        for warning in answer.get("warnings", ()):
            complain(f"swarm-mcp dispatch: {warning}")
        if flush():  # only what is out of this process has been delivered
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
        approval_required=args.has("--approval-required"),
        spawn=not args.has("--no-spawn"),
        force_spawn=args.has("--force-spawn"),
        spawner=args.value("--spawner"),
        harness=args.value("--harness"),
        cwd=args.value("--directory"),
        label=args.value("--label"),
        name=args.value("--name"),
        wait_seconds=args.seconds("--wait") if args.value("--wait").strip() else None,
        completion_wait_seconds=_completion_wait(args),
        nudge=not args.has("--no-nudge"),
        force=args.has("--force"),
        resume=args.value("--resume"),
        model=args.value("--model"),
        mode=args.value("--mode"),
        effort=args.value("--effort"),
        timeout_seconds=args.seconds("--timeout"),
        max_cost_usd=args.seconds("--max-cost"),
        command=args.value("--command"),
        fresh=args.has("--fresh"),
    )


def _completion_wait(args) -> float:
    """Seconds, from whichever of the flag's two names was given; 0 for no wait."""
    flags = ("--completion-wait", "--wait-for-completion")
    return next((args.seconds(flag) for flag in flags if args.value(flag).strip()), 0.0)


def _lines(answer: dict) -> list[str]:
    """What people read: a line for the status, and for the end of the task."""
    status, task = answer["status"], answer["task_id"]
    lines = {
        "dispatched": lambda: f"dispatched task {task} to {short(answer['recipient'])}",
        "no_worker": lambda: f"task {task} waits to be claimed: no live worker for role {answer['role']}",
        "already_terminal": lambda: f"task {task} is already {answer['task']['status']}",
        "spawn_in_flight": lambda: f"task {task} waits for its worker, which is being started",
        "spawned": lambda: f"task {task}: worker {short(answer.get('instance_id') or 'started')} is up",
        "spawn_failed": lambda: f"task {task} waits to be claimed: no worker could be started: {answer['error']}",
    }
    shown = [lines[status]()]
    if answer.get("not_started"):
        shown.append(f"no worker was started: {answer['not_started']}")
    ended = answer.get("completion")
    if ended and ended["status"] == "completed":
        shown.append(f"task {task} {ended['task_status']}: {ended['result'] or '(no result)'}")
    elif ended:
        shown.append(f"task {task} {'is gone' if ended['status'] == 'missing' else 'has not ended yet'}")
    for mail in ended["messages"] if ended else ():
        shown.append(f"message from {short(mail['sender'])}: {mail['content']}")
    return shown

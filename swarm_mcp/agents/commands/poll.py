"""``swarm-mcp worker poll``: a standing worker."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from swarm_hook_core.environment import is_on
from swarm_mcp.agents.commands.dispatch import OF_WORKERS, OPTIONS, request_of
from swarm_mcp.agents.dispatch.request import NO_YOLO
from swarm_mcp.agents.dispatch.standing import StandingWorker
from swarm_mcp.agents.harness.query import YOLO
from swarm_mcp.answers.views import short
from swarm_mcp.cli.arguments import ROLES, WORKER, Arguments, Option, Usage, verb
from swarm_mcp.cli.output import complain, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.domain.task import DONE, FAILED, TYPES, Task
from swarm_mcp.errors import Refused
from swarm_mcp.sessions.acting import dispatching_session, is_unattended
from swarm_mcp.store import Store

# Role -> the types of its tasks; roles without an entry take all.
TYPES_OF = {"implementer": ("implement", "fix", "test"), "reviewer": ("review",), "researcher": ("research",)}


@verb(
    Usage(
        Option("--role ROLE", "take the tasks of that role: implementer (implement, fix, test), reviewer, researcher,"
               " generalist (all; the default)", source=ROLES),
        Option("--type TYPE", "take tasks of that type, instead of those of a role", repeatable=True, source=TYPES),
        Option("--max N", "at most N workers at a time (default: 1), beside those that wait for a person"),
        Option("--max-tasks N", "end after N tasks (default: 0, any number)"),
        Option("--max-cost USD", "end once all tasks together have cost that much"),
        Option("--for S", "take no more tasks after S seconds (default: 0, for ever)"),
        Option("--grace S", "at SIGTERM and Ctrl-C let workers go on for S seconds (default: 60)"),
        *(option for option in OPTIONS if option.name in OF_WORKERS),
    ),
    group=WORKER,
)  # fmt: skip
def poll(args: Arguments) -> int:
    """poll: a standing worker: take tasks as they come, until it is ended

    It waits for tasks of this scope that are open and that its role fits (`swarm-mcp task request`), and has each done
    by a worker of its own, as `worker dispatch` does. Tasks of other live sessions are left to them. A failed task is
    tried once more. After a failure, or if no worker can be started, it waits 5 s, then twice as long each time up to
    300 s, until a task is done.

    SIGTERM or Ctrl-C: it takes no more tasks, and waits --grace seconds for those at work. Then, or at the second
    signal, it hands them back: their agents end, the tasks are open again, and the next worker goes on with the same
    sessions. After kill -9 workers go on, and the next `poll` follows them. Exit 0, also if tasks have failed.

    Who may dispatch may poll. --json prints {"counts", "stopped"} at the end.

    example: swarm-mcp worker poll --role implementer --harness codex --max 2
    """
    request = request_of(args)
    types = args.all("--type") or TYPES_OF.get(args.value("--role"), ())
    seconds = args.seconds("--for")
    until = time.monotonic() + seconds if seconds else float("inf")
    with Store() as store:
        requester = dispatching_session(store, args)
        if request.mode == YOLO and is_unattended(store, requester) and not is_on("SWARM_ALLOW_YOLO"):
            raise Refused(NO_YOLO)
        with Progress(args.json) as progress, _signals() as received:

            def tell(task: Task, words: str) -> None:
                progress.end(f"{short(task.id)} {words}: {task.title}", short(task.id))

            most, most_tasks = args.number("--max", 1), args.number("--max-tasks")
            work = StandingWorker(store, requester, request, types, most, most_tasks, tell)
            for warning in work.warnings:
                complain(f"swarm-mcp poll: {warning}")
            progress.say(f"takes {', '.join(types) or 'all'} tasks of {requester.scope}; Ctrl-C ends it")
            give_up_at = float("inf")
            with store.changes() as changes:
                while not work.advance(store):
                    if (received or time.monotonic() >= until) and not work.is_ending:
                        work.end()
                        progress.say("takes no more tasks")
                    if received and give_up_at == float("inf"):
                        give_up_at = time.monotonic() + args.seconds("--grace", 60.0)
                    if len(received) > 1 or time.monotonic() >= give_up_at:
                        work.hand_back(store)
                    changes.wait(work.rest_seconds())
                    time.sleep(work.seconds_left())  # many changes at once are one look
    counts = work.counts_of_ends
    if args.json:
        show({"counts": dict(counts), "stopped": work.stopped or None})
    else:
        progress.say(f"{counts[DONE]} done, {counts[FAILED]} failed" + (f"; {work.stopped}" if work.stopped else ""))
    return 0


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGTERM, SIGINT and SIGHUP in a list, for a ``with`` block."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {one: signal.signal(one, note) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

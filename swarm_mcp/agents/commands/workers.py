"""Commands on workers: cancelling, pausing and resuming them, and supervising one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from swarm_mcp.agents.commands.dispatch_display import wait_for_end
from swarm_mcp.agents.commands.live import Live
from swarm_mcp.agents.dispatch import control
from swarm_mcp.agents.dispatch.assignment import read
from swarm_mcp.agents.dispatch.supervision import supervise
from swarm_mcp.cli.arguments import DOING, INTERNAL, TASKS, WORKER, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer as print_answer
from swarm_mcp.cli.output import say, show
from swarm_mcp.cli.words import clause
from swarm_mcp.errors import SwarmError
from swarm_mcp.sessions.acting import acting_session
from swarm_mcp.store import Store

LARGEST = 64 << 20  # bytes of an assignment
_ENDS = {"none": "it had no worker", "ending": "its worker is being ended", "ended": "its worker has ended"}


@verb(
    Usage(
        Word("TASK", "id of a task or of a run, or the beginning of one", source=TASKS),
        Option("--wait S", "wait up to S seconds until the worker has ended (default: 0)"),
        *DOING,
    ),
    refuses=True,
    group=WORKER,
)
def cancel(args: Arguments) -> int:
    """cancel: cancel a task, and end its worker

    The worker's whole process group is asked to end, and is killed after its grace time (15 s). Tasks that depend on
    this one are cancelled with it. The requester and the assignee of a task may cancel it; if the requester is gone,
    any gateway may.

    example: swarm-mcp worker cancel 6ff1c928
    """
    reference = args.words[0]
    with Store() as store:
        answer = control.cancel(store, acting_session(store, args), reference)
        worker = "none"
        if answer["worker"]:
            worker = "ending"
            if wait_for_end(store, answer["run_id"], args.seconds("--wait")):
                worker = "ended"
        answer["worker"] = worker
    if args.json:
        show(answer)
    else:
        say(f"{_subject(answer)} cancelled; {_ENDS[worker]}")
    return 0


def _subject(answer: dict[str, Any]) -> str:
    return clause("task {}", answer["task_id"]) or f"run {answer['run_id']}"


@verb(
    Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *DOING),
    refuses=True,
    group=WORKER,
)
def pause(args: Arguments) -> int:
    """pause: stop a worker for now; it keeps its task

    The worker's agent is ended; its session, its locks and its task are kept until `swarm-mcp worker resume` or
    `swarm-mcp worker cancel`. This works for workers under a supervisor of swarm-mcp (spawner process).

    example: swarm-mcp worker pause 6ff1c928
    """
    return _order(args, control.pause, "is being paused; swarm-mcp worker resume goes on with it")


@verb(
    Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *DOING),
    refuses=True,
    group=WORKER,
)
def resume(args: Arguments) -> int:
    """resume: let a paused worker go on

    It continues its conversation where the harness can do that; else it starts anew and is told how far it was. Where
    no worker has the task any more, `swarm-mcp worker dispatch --resume TASK` starts one.

    example: swarm-mcp worker resume 6ff1c928
    """
    return _order(args, control.resume, "goes on")


def _order(args: Arguments, order: Callable[..., dict[str, Any]], outcome: str) -> int:
    """Carry out `order` on the task in `args`, and print the `outcome`."""
    with Store() as store:
        answer = order(store, acting_session(store, args), args.words[0])
    return print_answer(args, answer, f"task {answer['task_id']} {outcome}")


@verb(
    Usage(
        Option("--from PIPE", "where the assignment is read from (default: standard input)"),
        Option("--watch", "print the worker's events as they happen"),
    ),
    group=INTERNAL,
)
def work(args: Arguments) -> int:
    """work: supervise one worker (dispatch starts this)

    This process lives as long as the worker, and holds its session, its locks and its task. Exit 0 however the task
    ends: the task itself has the result. Exit 1 if the worker could not be registered.

    example: swarm-mcp work < assignment.json
    """
    given = read(_text(args.value("--from")))
    os.environ.update(given.env)  # before anything asks where the store and the state are
    with ExitStack() as ending:
        show_event = None
        if args.given("--watch"):
            live = Live.at_terminal(sys.stdout, folder=given.cwd)
            ending.callback(live.close)
            show_event = live.show
        supervise(given, show_event)
    with suppress(OSError):  # it may be gone already
        if given.log and not os.path.getsize(given.log):
            os.remove(given.log)
    return 0


def _text(pipe: str) -> str:
    try:
        if not pipe:
            return sys.stdin.buffer.read(LARGEST).decode()
        with open(pipe, "rb") as file:
            return file.read(LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SwarmError(f"the assignment cannot be read: {error}") from None

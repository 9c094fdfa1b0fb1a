"""Commands on workers: a standing one, the built-in agent, cancelling, pausing, resuming, supervising."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

from swarm_hook_core.environment import is_on
from swarm_mcp import __version__
from swarm_mcp.agents.commands import run
from swarm_mcp.agents.commands.dispatch import OF_WORKERS, OPTIONS, request_of, wait_for_end
from swarm_mcp.agents.commands.run import Live
from swarm_mcp.agents.dispatch import processes
from swarm_mcp.agents.dispatch.processes import read
from swarm_mcp.agents.dispatch.request import NO_YOLO
from swarm_mcp.agents.dispatch.standing import StandingWorker
from swarm_mcp.agents.dispatch.supervision import supervise
from swarm_mcp.agents.harness.query import YOLO
from swarm_mcp.agents.loop import agent, tools
from swarm_mcp.agents.loop.settings import LoopSettings
from swarm_mcp.answers.people import short
from swarm_mcp.cli.arguments import (
    DOING,
    INTERNAL,
    MODES,
    ROLES,
    TASKS,
    WORKER,
    Arguments,
    Option,
    Usage,
    Word,
    choice,
    retired,
    verb,
)
from swarm_mcp.cli.output import answer as print_answer
from swarm_mcp.cli.output import complain, say, say_text, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import clause
from swarm_mcp.domain import DONE, FAILED, TYPES, Task
from swarm_mcp.errors import Refused, SwarmError, UsageError
from swarm_mcp.sessions.acting import acting_session, dispatching_session, is_unattended
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
        answer = processes.cancel(store, acting_session(store, args), reference)
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
    return _order(args, processes.pause, "is being paused; swarm-mcp worker resume goes on with it")


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
    return _order(args, processes.resume, "goes on")


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


# The built-in agent.

_BESIDE = ("session", "tools", "hooks", "help")
_INNER = ("tool", "provider")  # started by the executables of built-in plugins


@verb(
    Usage(
        Word("WORDS", "[agent] [SESSION] and the prompt", optional=True, repeated=True),
        Option("--resume SESSION", "go on with that session; so does a first word that is a session's id", source=()),
        Option("--model NAME", "the model", source=()),
        Option("--mode MODE", "read-only: no tool that writes files, and no commands; or edit", source=MODES),
        Option("--schema FILE", "a JSON schema that the answer is to follow"),
        Option("--json", "print events, one JSON object a line"),
    ),
    Usage(choice("session"), choice("list", "show", "dir"), Word("ID", optional=True, source=())),
    Usage(choice("tools", "hooks", "help", "version")),
    group=WORKER,
)
def loop(args: Arguments) -> int:
    """loop: run the embedded agent loop, as a plugin of the bash harness

    Works on a prompt (WORDS, or standard input) with a model and tools until it is done, and prints the answer; at a
    terminal word by word, and with its cost. It needs a model's endpoint: ANTHROPIC_API_KEY, or OPENAI_API_KEY, or
    OPENAI_API_URL for a server of your own. Plugins are found in ~/.harness (HARNESS_HOME) and in every .harness from
    there down to this folder. `loop help` lists providers and their variables. Words for a plugin's own command that
    begin with -- go behind a --.

    Its writes are checked against the locks of other sessions, like those of every client here.

    Exit codes: 0 done; 1 it could not begin (no provider, no such session, a plugin failed); 4 the model could not be
    asked, failed, or did not follow --schema; 5 it has taken as many turns as it may (HARNESS_MAX_TURNS); 130
    interrupted; 143 ended by a signal.

    example: swarm-mcp worker loop "add a test for the empty list in parse.py"
    """
    words = list(args.words) or ["agent"]
    name = words[0]
    if name in _INNER and len(words) > 1:
        return int(getattr(agent, name)(words[1:]))
    if retired("loop", [name]):
        raise UsageError(retired("loop", [name]))
    if name == "version":
        say(f"swarm-mcp {__version__}")
        return 0
    if name in _BESIDE and not args.value("--resume"):
        return _beside(name, words[1:])
    return _agent(name, words, args)


def _agent(name: str, words: list[str], args: Arguments) -> int:
    """Run the agent, or a plugin's command of that name instead."""
    settings = LoopSettings()
    places = tools.walk("", settings.home, settings.folder)
    path = ""
    if name.isidentifier() or "-" in name:
        path = tools.executables(places, "commands").get(name, "")
    if path and not args.value("--resume"):
        return _become(path, words[1:])
    if name == "agent":
        words = words[1:]
    given = {name: args.value(f"--{name}") for name in ("mode", "model")}
    wishes = agent.Wishes(**given, schema=run.schema(args))
    return int(agent.run(words, wishes, as_json=args.json, resume=args.value("--resume")))


def _beside(name: str, words: list[str]) -> int:
    loop = agent.prepared()
    path = agent.override(name, loop)
    if path:
        return _become(path, words)
    if name == "session":
        lines = agent.show_session(words)
    else:
        lines = {"tools": agent.show_tools, "hooks": agent.show_hooks, "help": agent.show_help}[name](loop)
    say_text("\n".join(lines))
    return 0


def _become(path: str, words: list[str]) -> int:
    return int(agent.execute(path, words, agent.prepared()))


# ``swarm-mcp worker poll``: a standing worker.

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

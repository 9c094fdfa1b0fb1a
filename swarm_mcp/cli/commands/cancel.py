"""cancel: call a task off, and end the worker that is at it

The worker's whole process group is told to end, and killed if it does not within its grace (15 s). What depends on
the task is cancelled with it. For who asked for the task or does it; where who asked has gone, for any gateway.

example: swarm-mcp cancel 6ff1c928
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.dispatch.control import cancel
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (
    Usage(
        Word("TASK", "id of a task or of a run, or the beginning of one", source=TASKS),
        Option("--wait S", "wait up to S seconds until the worker has ended (default: 0)"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Cancel it; say what becomes of its worker."""
    reference = args.words[0]
    with Store() as store:
        try:
            answer = cancel(store, acting_session(store, args), reference)
        except Refused as refusal:
            return refused(args, "cancel", refusal.answer)
        if answer["worker"]:
            answer["worker"] = "ended" if _ends(store, answer["run_id"], args.seconds("--wait")) else "ending"
        else:
            answer["worker"] = "none"
    if args.json:
        show(answer)
    else:
        of_it = {"none": "nobody was at it", "ending": "its worker is being ended", "ended": "its worker has ended"}
        say(f"{_subject(answer)} cancelled; {of_it[answer['worker']]}")
    return 0


def _ends(store: Store, run_id: str, seconds: float) -> bool:
    """Whether that run has ended, after waiting for it at most that long."""
    import time

    from swarm_mcp.domain.run import ENDED

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

"""pause: have a worker stop for now, and keep its task

The worker's child is ended; its session, locks and task are kept until swarm-mcp resume or swarm-mcp cancel. For
workers that swarm-mcp itself supervises (spawners process and tmux).

example: swarm-mcp pause 6ff1c928
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.dispatch.control import pause
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *ACTING),)


def run(args: Arguments) -> int:
    """Ask for it."""
    reference = args.words[0]
    with Store() as store:
        try:
            answer = pause(store, acting_session(store, args), reference)
        except Refused as refusal:
            return refused(args, "pause", refusal.answer)
    show(answer) if args.json else say(f"task {answer['task_id']} is being paused; swarm-mcp resume goes on with it")
    return 0

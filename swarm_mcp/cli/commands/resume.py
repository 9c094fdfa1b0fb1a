"""resume: have a paused worker go on

It goes on with its session where the harness can, else anew, told how far it was. Where no worker is at the task any
more, swarm-mcp dispatch --resume TASK starts one.

example: swarm-mcp resume 6ff1c928
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.dispatch.control import resume
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (Usage(Word("TASK", "id of a task or of its run, or the beginning of one", source=TASKS), *ACTING),)


def run(args: Arguments) -> int:
    """Ask for it."""
    reference = args.words[0]
    with Store() as store:
        try:
            answer = resume(store, acting_session(store, args), reference)
        except Refused as refusal:
            return refused(args, "resume", refusal.answer)
    show(answer) if args.json else say(f"task {answer['task_id']} goes on")
    return 0

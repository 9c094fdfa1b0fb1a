"""claim: begin a task

The task must be open, or assigned to this session; it is in_progress then. Of several sessions that
claim it one succeeds. Exit 1 where it cannot be claimed; with --json the refusal is {"error", ...} on
standard output.

example: swarm-mcp claim 6ff1c928-7a25-430a-b3ff-3033125a34f5
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (
    Usage(
        Word("TASK-ID", "the task", source=TASKS, statuses=("open", "claimed")),
        Option("--force", "also while this session has unread messages"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Claim it."""
    task_id = args.words[0]
    with Store() as store:
        instance = acting_session(store, args)
        try:
            store.tasks.claim(instance, task_id, args.given("--force"))
        except Refused as refusal:
            return refused(args, "claim", refusal.answer)
    show({"ok": True, "task_id": task_id}) if args.json else say(f"claimed {task_id}")
    return 0

"""claim: begin a task

usage: swarm-mcp claim TASK-ID [--force] [--as WHO] [--json]

  --force   also while this session has unread messages

The task must be open, or assigned to this session; it is in_progress then. Of several sessions that
claim it one succeeds. Exit 1 where it cannot be claimed; with --json the refusal is {"error", ...} on
standard output.

example: swarm-mcp claim 6ff1c928-7a25-430a-b3ff-3033125a34f5
"""

from __future__ import annotations

from swarm_mcp.actor import person
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Claim it."""
    task_id = args.word(0, "the task: swarm-mcp claim TASK-ID")
    with Store() as store:
        instance = person(store, args)
        try:
            store.tasks.claim(instance, task_id, args.has("--force"))
        except Refused as refusal:
            return refused(args, "claim", refusal.answer)
    show({"ok": True, "task_id": task_id}) if args.json else say(f"claimed {task_id}")
    return 0

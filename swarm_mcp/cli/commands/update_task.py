"""update-task: end a task

usage: swarm-mcp update-task TASK-ID --status done|failed|cancelled [--note TEXT] [--as WHO] [--json]

  --status   done and failed are for the session that has the task, cancelled also for the one that asked
  --note     the outcome; the requester is sent it with the message that the task has ended

Locks taken for the task are released; tasks that waited for it may begin, or are cancelled with it. Exit 1
where that is not allowed; with --json the refusal is {"error"} on standard output.

example: swarm-mcp update-task 6ff1c928-7a25-430a-b3ff-3033125a34f5 --status done --note "merged as 4f1a"
"""

from __future__ import annotations

from swarm_mcp.actor import person
from swarm_mcp.cli.arguments import one_of
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.workspace.prompting import deliver

WORDS = 1


def run(args) -> int:
    """End it, and tell whoever waits for it."""
    task_id, status = args.word(0, "the task: swarm-mcp update-task TASK-ID --status done"), args.value("--status")
    if not status:
        raise UsageError(f"missing how it ended: --status {'|'.join(TERMINAL)}")
    one_of(status, TERMINAL, "status of an ended task")
    with Store() as store:
        instance = person(store, args)
        try:
            ended = store.tasks.end(instance, task_id, status, args.value("--note") or None)
        except Refused as refusal:
            return refused(args, "update-task", refusal.answer)
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(store, instance, recipient, content)
    answer = {"ok": True, "task_id": task_id, "status": status}
    show(answer) if args.json else say(f"task {task_id} -> {status}")
    return 0

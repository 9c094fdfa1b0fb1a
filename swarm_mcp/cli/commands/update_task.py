"""update-task: end a task

Locks taken for the task are released; tasks that waited for it may begin, or are cancelled with it. Exit 1
where that is not allowed; with --json the refusal is {"error"} on standard output.

example: swarm-mcp update-task 6ff1c928-7a25-430a-b3ff-3033125a34f5 --status done --note "merged as 4f1a"
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.workspace.prompting import deliver

USAGES = (
    Usage(
        Word(
            "TASK-ID",
            "the task",
            source=TASKS,
            statuses=("open", "claimed", "in_progress", "blocked", "approval_required"),
        ),
        Option(
            "--status STATUS",
            "how it ended: done and failed are for the session that has the task, cancelled also for who asked",
            required=True,
            choices=TERMINAL,
        ),
        Option("--note TEXT", "the outcome; the requester is sent it with the message that the task has ended"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """End it, and tell whoever waits for it."""
    task_id, status = args.words[0], args.value("--status")
    with Store() as store:
        instance = acting_session(store, args)
        try:
            ended = store.tasks.end(instance, task_id, status, args.value("--note") or None)
        except Refused as refusal:
            return refused(args, "update-task", refusal.answer)
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(store, instance, recipient, content)
    answer = {"ok": True, "task_id": task_id, "status": status}
    show(answer) if args.json else say(f"task {task_id} -> {status}")
    return 0

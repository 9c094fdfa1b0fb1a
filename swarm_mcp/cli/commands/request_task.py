"""request-task: hand work to another session, or to whoever claims it first

example: swarm-mcp request-task review "look at the new parser" --file src/parse.py --priority 2
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session, session_named
from swarm_mcp.cli.arguments import ACTING, INSTANCES, TASKS, Arguments, Option, Usage, Word, unknown
from swarm_mcp.cli.output import say, show
from swarm_mcp.domain.task import TYPES
from swarm_mcp.errors import UsageError
from swarm_mcp.store import Store
from swarm_mcp.workspace.prompting import deliver

USAGES = (
    Usage(
        Word("TYPE", f"{', '.join(TYPES)}; --type TYPE is the same", optional=True, source=TYPES),
        Word("TITLE", "the title", optional=True, repeated=True),
        Option("--type TYPE", hidden=True, source=TYPES),
        Option("--description TEXT", "all that the worker needs to know"),
        Option("--file PATH", "a file that the work is about", repeatable=True),
        Option(
            "--assignee WHO", "the session that shall do it: id, start of an id, or part of its label", source=INSTANCES
        ),
        Option("--depends-on ID,ID", "tasks that must be done first", source=TASKS),
        Option("--parent-task ID", "the task that this one is a part of", source=TASKS),
        Option("--priority N", "higher is claimed first; 0 where not given"),
        Option("--idempotency-key NAME", "a second request with this name returns the first one's task"),
        Option("--approval-required", "nobody can claim it before it is approved"),
        Option("--no-nudge", "do not wake the assignee"),
        Option("--force", "wake the assignee even while it works"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Create the task, and wake its assignee."""
    kind, title = _kind_and_title(args)
    with Store() as store:
        requester = acting_session(store, args)
        wanted = args.value("--assignee")
        spec = {
            "type": kind,
            "title": title,
            "description": args.value("--description"),
            "files": args.all("--file"),
            "assignee": session_named(store, requester.scope, wanted).id if wanted else "",
            "depends_on": [item for item in args.value("--depends-on").split(",") if item.strip()],
            "parent_task_id": args.value("--parent-task"),
            "priority": args.number("--priority"),
            "idempotency_key": args.value("--idempotency-key"),
            "approval_required": args.given("--approval-required"),
        }
        made = store.tasks.request(requester, spec)
        task = made["task"]
        answer = {"id": task["id"], "status": task["status"], **({"existing": True} if made["existing"] else {})}
        answer["task"] = task
        for recipient, content in made["notices"]:
            nudge = not args.given("--no-nudge")
            answer["prompt"] = deliver(store, requester, recipient, content, nudge, args.given("--force"))
    if args.json:
        show(answer)
    else:
        say(f"{'existing' if made['existing'] else 'created'} task {task['id']} [{task['status']}] {task['title']}")
    return 0


def _kind_and_title(args: Arguments) -> tuple[str, str]:
    words = list(args.words)
    kind = args.value("--type")
    if not kind:
        # One word alone can only be the title.
        kind = words.pop(0) if len(words) > 1 or (words and words[0] in TYPES) else "other"
    if kind not in TYPES:
        raise UsageError(unknown(kind, TYPES, "task type"))
    title = " ".join(words).strip()
    if not title:
        raise UsageError("missing the title: swarm-mcp request-task TYPE TITLE...")
    return kind, title

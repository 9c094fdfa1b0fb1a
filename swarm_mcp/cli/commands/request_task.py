"""request-task: hand work to another session, or to whoever claims it first

usage: swarm-mcp request-task TYPE TITLE... [--description TEXT] [--file PATH]... [--assignee WHO]
                              [--depends-on ID,ID] [--parent-task ID] [--priority N] [--idempotency-key NAME]
                              [--approval-required] [--no-nudge] [--force] [--as WHO] [--json]
       swarm-mcp request-task --type TYPE TITLE... (and the same flags)

  TYPE                     review, implement, fix, test, research or other
  --description TEXT       all that the worker needs to know
  --file PATH              a file that the work is about; may be repeated
  --assignee WHO           the session that shall do it: id, start of an id, or part of its label
  --depends-on ID,ID       tasks that must be done first
  --parent-task ID         the task that this one is a part of
  --priority N             higher is claimed first; 0 where not given
  --idempotency-key NAME   a second request with this name returns the first one's task
  --approval-required      nobody can claim it before it is approved
  --no-nudge, --force      do not wake the assignee; wake it even while it works

example: swarm-mcp request-task review "look at the new parser" --file src/parse.py --priority 2
"""

from __future__ import annotations

from swarm_mcp.actor import person, resolve
from swarm_mcp.cli.arguments import one_of
from swarm_mcp.cli.output import say, show
from swarm_mcp.domain.task import TYPES
from swarm_mcp.errors import UsageError
from swarm_mcp.store import Store
from swarm_mcp.workspace.prompting import deliver

WORDS = None


def run(args) -> int:
    """Create the task, and wake its assignee."""
    kind, title = _kind_and_title(args)
    with Store() as store:
        requester = person(store, args)
        wanted = args.value("--assignee")
        spec = {
            "type": kind,
            "title": title,
            "description": args.value("--description"),
            "files": args.all("--file"),
            "assignee": resolve(store, requester["scope"], wanted)["id"] if wanted else "",
            "depends_on": [item for item in args.value("--depends-on").split(",") if item.strip()],
            "parent_task_id": args.value("--parent-task"),
            "priority": args.number("--priority"),
            "idempotency_key": args.value("--idempotency-key"),
            "approval_required": args.has("--approval-required"),
        }
        made = store.tasks.request(requester, spec)
        task = made["task"]
        answer = {"id": task["id"], "status": task["status"], **({"existing": True} if made["existing"] else {})}
        answer["task"] = task
        for recipient, content in made["notices"]:
            nudge = not args.has("--no-nudge")
            answer["prompt"] = deliver(store, requester, recipient, content, nudge, args.has("--force"))
    if args.json:
        show(answer)
    else:
        say(f"{'existing' if made['existing'] else 'created'} task {task['id']} [{task['status']}] {task['title']}")
    return 0


def _kind_and_title(args) -> tuple[str, str]:
    words = list(args.words)
    kind = args.value("--type")
    if not kind:
        # One word alone can only be the title.
        kind = words.pop(0) if len(words) > 1 or (words and words[0] in TYPES) else "other"
    one_of(kind, TYPES, "task type")
    title = " ".join(words).strip()
    if not title:
        raise UsageError("missing the title: swarm-mcp request-task TYPE TITLE...")
    return kind, title

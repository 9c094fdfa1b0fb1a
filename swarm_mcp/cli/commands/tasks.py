"""tasks: the tasks of this scope

In order of creation; those that ended stay for a day. Tasks of another identity are not shown.

example: swarm-mcp tasks --status open
"""

from __future__ import annotations

from swarm_mcp.acting_session import viewer_identity
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage
from swarm_mcp.cli.output import listing, show
from swarm_mcp.domain.session import onlooker
from swarm_mcp.domain.task import STATUSES
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (Usage(Option("--status STATUS", "only tasks with this status", choices=STATUSES), *ACTING),)


def run(args: Arguments) -> int:
    """List tasks, oldest first."""
    status = args.value("--status")
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        tasks = store.tasks.in_order(onlooker(viewer_identity(store, args), scope), status)
    if args.json:
        names = ("id", "type", "title", "status", "assignee", "requester", "priority", "created_at")
        show([{name: task[name] for name in names} for task in tasks])
        return 0
    cells, plain = [], []
    for task in tasks:
        who = short(task.assignee or "-")
        cells.append((short(task.id), task.status, task.type, task.priority, who, task.title))
        plain.append(
            f"  {short(task.id)}  [{task.status}]  {task.type}  p{task.priority}  assignee={who}  {task.title}"
        )
    listing(("id", "status", "type", "priority", "assignee", "title"), cells, plain, empty="(no tasks)")
    return 0

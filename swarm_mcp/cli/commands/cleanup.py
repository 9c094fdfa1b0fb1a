"""cleanup: remove what has fallen due

Sessions whose client is gone, messages older than an hour, finished tasks and events older than a day,
values whose publisher is gone. Without --scope (or SWARM_MCP_SCOPE): in all scopes.

example: swarm-mcp cleanup --dry-run
"""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import JSON, SCOPE, Arguments, Option, Usage
from swarm_mcp.cli.output import say, show
from swarm_mcp.scope import clean
from swarm_mcp.store import Store

COUNTERS = {  # as in JSON -> as in text
    "instances_reclaimed": "instances reclaimed",
    "tasks_reopened": "tasks reopened",
    "task_assignees_cleared": "task assignees cleared",
    "locks_deleted": "locks deleted",
    "terminal_spawn_locks_deleted": "terminal spawn locks deleted",
    "messages_deleted": "messages deleted",
    "terminal_tasks_deleted": "terminal tasks deleted",
    "non_lock_context_rows_deleted": "legacy context rows deleted",
    "events_deleted": "events deleted",
    "kv_deleted": "kv rows deleted",
}

USAGES = (Usage(SCOPE, Option("--dry-run", "say what would be removed, and remove nothing"), JSON),)


def run(args: Arguments) -> int:
    """Clean, or say what would be cleaned."""
    chosen = args.value("--scope").strip() or os.environ.get("SWARM_MCP_SCOPE", "").strip()
    scope = clean(chosen) if chosen else None
    with Store() as store:
        report = store.cleanup.clean(scope, args.given("--dry-run"))
    if args.json:
        show(report)
        return 0
    say(f"{'would clean' if args.given('--dry-run') else 'cleaned'} {scope or 'all scopes'}")
    for name, words in COUNTERS.items():
        say(f"  {words}: {report[name]}")
    return 0

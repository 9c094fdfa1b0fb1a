"""status: who is here, what is locked, and whether it is enforced, at a glance

usage: swarm-mcp status [--scope DIR] [--json]

example: swarm-mcp status
"""

from __future__ import annotations

import os

from swarm_hook_core.decision import duration
from swarm_mcp.cli.actor import surrounding_session, viewer_identity
from swarm_mcp.cli.output import public_instance, say, short, show
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store

ENDED = ("done", "failed", "cancelled")


def run(args) -> int:
    """Print a page that fits a terminal."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        sessions = store.instances.in_scope(scope)
        locks = store.locks.held(scope, viewer_identity(store, args))
        counts = store.records.task_counts(scope)
        me = surrounding_session(store)
    tasks = {status: count for status, count in counts.items() if status not in ENDED}
    if args.json:
        me_shown = public_instance(me) if me else None
        shown = [{**public_instance(row), "state": row["state"], "last_seen": row["last_seen"]} for row in sessions]
        show({"scope": scope, "me": me_shown, "instances": shown, "locks": locks, "open_tasks": tasks})
        return 0
    say(f"scope {scope}")
    say(f"{_count(len(sessions), 'session')}, {_count(len(locks), 'lock')}, {_count(sum(tasks.values()), 'open task')}")
    for row in sessions:
        seen = duration(now - (row["last_seen"] or row["heartbeat"]))
        mine = "  (this session)" if me and me["id"] == row["id"] else ""
        say(f"  {short(row['id'])}  {row['state'] or 'live':<8} seen {seen} ago  {row['label'] or '-'}{mine}")
    for row in locks:
        who = "another identity" if row.get("hidden") else row["owner_label"] or short(row["instance_id"])
        note = f" ({row['content']})" if row["content"] else ""
        say(f"  locked  {_near(row['file'], scope)}  by {who}, {duration(now - row['created_at'])} ago{note}")
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _near(path: str, scope: str) -> str:
    return os.path.relpath(path, scope) if path.startswith(scope + os.sep) else path

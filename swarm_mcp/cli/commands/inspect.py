"""inspect: everything in this scope at once

usage: swarm-mcp inspect [--scope DIR] [--json]

Sessions, the newest 20 messages, tasks, locks and keys. Nothing is marked as read.

example: swarm-mcp inspect --json
"""

from __future__ import annotations

from swarm_mcp.actor import viewer_identity
from swarm_mcp.circle import mail_between, veiled
from swarm_mcp.cli.output import moment, presence, say, show
from swarm_mcp.scope import current_scope
from swarm_mcp.shapes import public_instance, short
from swarm_mcp.store import Store


def run(args) -> int:
    """Print the whole scope."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        viewer = viewer_identity(store, args)
        everyone = store.instances.in_scope(scope)
        instances = veiled(everyone, viewer)
        messages, tasks = mail_between(store.records.messages(scope), everyone, viewer), store.records.tasks(scope)
        locks, keys = store.locks.held(scope, viewer), store.kv.items(scope)
    if args.json:
        names = ("id", "instance_id", "file", "type", "content", "created_at")
        show(
            {
                "scope": scope,
                "instances": [public_instance(row) for row in instances],
                "messages": messages,
                "tasks": tasks,
                "locks": [{name: row[name] for name in names} for row in locks],
                "kv": keys,
            }
        )
        return 0
    say(f"scope: {scope}")
    say(f"\ninstances ({len(instances)}):")
    for row in instances:
        say(f"  {short(row['id'])}  {row['label'] or '-'}  {presence(row, now)}")
    say(f"\ntasks ({len(tasks)}):")
    for row in tasks:
        say(f"  {short(row['id'])}  [{row['status']}]  {row['type']}  {row['title']}")
    say(f"\nlocks ({len(locks)}):")
    for row in locks:
        say(f"  {row['owner_label'] or short(row['instance_id'])}  {row['file']}  — {row['content']}")
    say(f"\nkv ({len(keys)}):")
    for row in keys:
        say(f"  {row['key']}  ({moment(row['updated_at'])})")
    say(f"\nrecent messages ({len(messages)}, newest last):")
    for row in messages:
        receiver = short(row["recipient"] or "all")
        say(f"  #{row['id']}  {moment(row['created_at'])}  {short(row['sender'])} → {receiver}  {row['content']}")
    return 0

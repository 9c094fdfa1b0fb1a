"""inspect: everything in this scope at once

Sessions, the newest 20 messages, tasks (those that have not ended first), locks and keys. Nothing is marked as
read. What is another identity's is not shown, but for the files that its sessions hold.

example: swarm-mcp inspect --json
"""

from __future__ import annotations

from swarm_mcp.acting_session import viewer_identity
from swarm_mcp.cli import lock_columns
from swarm_mcp.cli.arguments import ACTING, Arguments, Usage
from swarm_mcp.cli.lock_columns import counted
from swarm_mcp.cli.output import listing, moment, presence, say, show
from swarm_mcp.domain.session import onlooker
from swarm_mcp.domain.task import TERMINAL
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.views import public_instance, short
from swarm_mcp.visibility import veiled

MESSAGES = 20
# Of a lock, beyond the contract's columns, where there is anything to say.
MORE = ("mode", "agent", "pattern", "repository", "fence", "ttl", "lapses_in", "expected_end", "waiting")

USAGES = (Usage(*ACTING),)


def run(args: Arguments) -> int:
    """Print the whole scope."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        viewer = viewer_identity(store, args)
        instances = veiled(store.instances.in_scope(scope), viewer)
        messages = store.messages.recent(scope, MESSAGES, viewer=viewer)
        tasks = store.tasks.in_order(onlooker(viewer, scope))
        tasks.sort(key=lambda task: task.status in TERMINAL)
        locks = counted(store, store.locks.held(scope, viewer))
        keys = store.kv.items(scope, "", f"identity:{viewer}" if viewer else None)
    if args.json:
        names = ("id", "instance_id", "file", "type", "content", "created_at")
        of_task = ("id", "type", "title", "status", "assignee", "requester")
        show(
            {
                "scope": scope,
                "instances": [public_instance(row) for row in instances],
                "messages": messages,
                "tasks": [{name: task[name] for name in of_task} for task in tasks],
                "locks": [{name: row[name] for name in (*names, *MORE) if name in row} for row in locks],
                "kv": keys,
            }
        )
        return 0
    say(f"scope: {scope}")
    cells: list[tuple] = [(short(row.id), row.label or "-", presence(row, now)) for row in instances]
    _section(f"instances ({len(cells)}):", ("id", "label", "state"), cells, "  {}  {}  {}")
    cells = [(short(row.id), row.status, row.type, row.title) for row in tasks]
    _section(f"tasks ({len(cells)}):", ("id", "status", "type", "title"), cells, "  {}  [{}]  {}  {}")
    held = [(row["owner_label"] or short(row["instance_id"]), row["file"], row["content"] or "") for row in locks]
    cells = [(*one, *lock_columns.cells(row, now)) for one, row in zip(held, locks)]
    lines = [f"  {row[0]}  {row[1]}  — {row[2]}{lock_columns.suffix(lock, now)}" for row, lock in zip(cells, locks)]
    say()
    say(f"locks ({len(cells)}):")
    listing(("who", "file", "note", *lock_columns.HEADERS), cells, lines)
    cells = [(row.key, moment(row.updated_at)) for row in keys]
    _section(f"kv ({len(cells)}):", ("key", "time"), cells, "  {}  ({})")
    cells = [
        (row.id, moment(row.created_at), short(row.sender), short(row.recipient or "all"), row.content)
        for row in messages
    ]
    headers = ("id", "time", "from", "to", "message")
    _section(f"recent messages ({len(cells)}, newest last):", headers, cells, "  #{}  {}  {} → {}  {}")
    return 0


def _section(title: str, headers: tuple[str, ...], cells: list[tuple], line: str) -> None:
    say()
    say(title)
    listing(headers, cells, [line.format(*row) for row in cells])

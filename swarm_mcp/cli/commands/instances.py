"""instances: the sessions of this scope

usage: swarm-mcp instances [--scope DIR] [--json]

example: swarm-mcp instances --scope ~/src/shop
"""

from __future__ import annotations

from swarm_mcp.actor import viewer_identity
from swarm_mcp.circle import veiled
from swarm_mcp.cli.output import presence, say, show
from swarm_mcp.scope import current_scope
from swarm_mcp.shapes import public_instance, short
from swarm_mcp.store import Store
from swarm_mcp.store.panes import instance_with_pane


def run(args) -> int:
    """List live instances in order of registration."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        rows = veiled(store.instances.in_scope(scope), viewer_identity(store, args))
        shown = [instance_with_pane(store, public_instance(row)) for row in rows]
    if args.json:
        show(shown)
    elif not rows:
        say(f"(no instances in scope {scope})")
    else:
        say(f"scope: {scope}")
        for row, public in zip(rows, shown):
            pane = f"  pane={public['pane_id']}" if public.get("pane_id") else ""
            say(f"  {short(row['id'])}  {row['label'] or '-'}  pid={row['pid']}  {presence(row, now)}{pane}")
    return 0

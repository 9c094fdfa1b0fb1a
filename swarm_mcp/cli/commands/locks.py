"""locks: what is locked in this scope, by whom and why

usage: swarm-mcp locks [--scope DIR] [--as WHO] [--json]

A lock holds machine-wide, whatever the scope; this lists the ones taken from here. Holders of another
identity are listed without name and note.

example: swarm-mcp locks --json
"""

from __future__ import annotations

from swarm_mcp.actor import viewer_identity
from swarm_mcp.cli.output import say, show
from swarm_mcp.scope import current_scope
from swarm_mcp.shapes import short
from swarm_mcp.store import Store
from swarm_mcp.store.panes import lock_with_pane


def run(args) -> int:
    """List live locks, oldest first."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        rows = store.locks.held(scope, viewer_identity(store, args))
        rows = [row if row.get("hidden") else lock_with_pane(store, row) for row in rows]
    if args.json:
        show(rows)
    elif not rows:
        say("(no locks)")
    else:
        for row in rows:
            who = "another identity" if row.get("hidden") else row["owner_label"] or short(row["instance_id"])
            pane = f" (pane {row['pane_id']})" if row.get("pane_id") else ""
            say(f"  {who}{pane}  {row['file']}  — {row['content']}")
    return 0

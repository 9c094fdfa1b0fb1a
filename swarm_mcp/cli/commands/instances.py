"""instances: the sessions of this scope

example: swarm-mcp instances --scope ~/src/shop
"""

from __future__ import annotations

from swarm_mcp.acting_session import viewer_identity
from swarm_mcp.cli.arguments import ACTING, Arguments, Usage
from swarm_mcp.cli.output import listing, presence, show
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.views import public_instance, short
from swarm_mcp.visibility import veiled

USAGES = (Usage(*ACTING),)


def run(args: Arguments) -> int:
    """List live instances in order of registration."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        now = store.now()
        rows = veiled(store.instances.in_scope(scope), viewer_identity(store, args))
        shown = [store.panes.with_session(public_instance(row)) for row in rows]
    if args.json:
        show(shown)
        return 0
    cells, plain = [], []
    for row, public in zip(rows, shown):
        pane = public.get("pane_id") or ""
        cells.append((short(row.id), presence(row, now), row.pid, pane, row.label))
        line = f"  {short(row.id)}  {row.label or '-'}  pid={row.pid}  {presence(row, now)}"
        plain.append(f"{line}  pane={pane}" if pane else line)
    listing(
        ("id", "state", "pid", "pane", "label"), cells, plain,
        title=f"scope: {scope}", empty=f"(no instances in scope {scope})",
    )  # fmt: skip
    return 0

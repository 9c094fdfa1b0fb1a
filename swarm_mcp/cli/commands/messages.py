"""messages: what sessions of this scope have written to each other

Only looks: nothing is marked as read. A * stands before what has not been read. Mail of sessions that work
under another identity is not shown.

example: swarm-mcp messages --to reviewer --limit 10
"""

from __future__ import annotations

from swarm_mcp.acting_session import session_named, viewer_identity
from swarm_mcp.cli.arguments import ACTING, INSTANCES, Arguments, Option, Usage
from swarm_mcp.cli.output import listing, moment, show
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (
    Usage(
        Option("--to WHO", "only to this session", source=INSTANCES),
        Option("--from WHO", "only from this session", source=INSTANCES),
        Option("--limit N", "the newest N (default 50; 0 for none, -1 for all)"),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """List the newest messages, oldest first."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        named = [args.value(flag) for flag in ("--to", "--from")]
        to, sender = (session_named(store, scope, who).id if who else "" for who in named)
        limit = args.number("--limit", 50)
        rows = store.messages.recent(scope, limit, to, sender, viewer_identity(store, args))
    if args.json:
        show(rows)
        return 0
    cells, plain, details = [], [], []
    for row in rows:
        mark, names = " " if row.read else "*", (short(row.sender), short(row.recipient or "all"))
        text = [f"    {line}" for line in row.content.split("\n")]
        cells.append((mark.strip(), f"#{row.id}", moment(row.created_at), *names))
        plain += [f"{mark} #{row.id}  {moment(row.created_at)}  {names[0]} → {names[1]}", *text]
        details.append(text)
    listing(("new", "id", "time", "from", "to"), cells, plain, empty="(no messages)", details=details)
    return 0

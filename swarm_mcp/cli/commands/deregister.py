"""deregister: end a session; its locks and claims go with it

usage: swarm-mcp deregister [--as WHO] [--scope DIR] [--json]
       swarm-mcp deregister --runtime NAME --session-id ID [--json]

Published identity, locks, unread mail and claimed tasks are released in the same step.

example: swarm-mcp deregister --as role:reviewer
"""

from __future__ import annotations

from swarm_mcp.actor import actor
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.store import Store


def run(args) -> int:
    """Remove the instance; a session that is not registered (any more) is no error."""
    with Store(busy_seconds=args.patience) as store:
        session_id, runtime = args.value("--session-id"), args.value("--runtime")
        if bool(session_id) != bool(runtime):
            raise UsageError("--runtime and --session-id go together")
        if session_id:
            row = store.instances.of_session(runtime, session_id)
        else:
            row = actor(store, args)
        if row:
            store.instances.remove(row["id"])
    if args.json:
        show({"ok": True, "id": row and row["id"], "scope": row and row["scope"]})
    else:
        say(f"deregistered {row['id']}" if row else "nothing to deregister")
    return 0

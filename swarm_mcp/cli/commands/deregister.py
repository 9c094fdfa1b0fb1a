"""deregister: end a session; its locks and claims go with it

Published identity, locks, unread mail and claimed tasks are released in the same step. Another session than
one's own goes only with --force, because it would lose its locks in the middle of its work; one that has
gone already needs none. Exit 1 where that is refused, with --json as {"error"}.

example: swarm-mcp deregister --as role:reviewer --force
"""

from __future__ import annotations

from swarm_mcp.acting_session import find_acting_session, session_of_caller
from swarm_mcp.cli.arguments import ACTING, JSON, PATIENCE, RUNTIME, SESSION_ID, Arguments, Option, Usage
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store

USAGES = (
    Usage(Option("--force", "also another session than one's own"), PATIENCE, *ACTING),
    Usage(
        RUNTIME,
        SESSION_ID,
        Option(
            "--client PID:START",
            "the client in which the session has ended: it goes on where another client has it open too",
        ),
        PATIENCE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Remove the instance; a session that is not registered (any more) is no error."""
    with Store(busy_seconds=args.patience) as store:
        session_id, runtime, ended = args.value("--session-id"), args.value("--runtime"), True
        if session_id:
            row = store.instances.of_session(runtime, session_id)
        else:
            row = _gone(store, args.value("--as")) or find_acting_session(store, args)
            if args.value("--as") and not args.given("--force") and not _may_go(store, args, row):
                error = f"{row.id} is a live session and not this one; --force removes it all the same"
                return refused(args, "deregister", {"error": error})
        if row and session_id:
            ended = store.instances.end_session(row, args.process("--client"))
        elif row:
            store.instances.remove(row.id)
    if args.json:
        show({"ok": True, "id": row and row.id, "scope": row and row.scope})
    else:
        verb = "deregistered" if ended else "still registered, for another client or its run:"
        say(f"{verb} {row.id}" if row else "nothing to deregister")
    return 0


def _gone(store: Store, reference: str) -> Session | None:
    """The session that has gone and is still on record under this whole id, or None."""
    row = store.instances.get(reference) if reference else None
    return row if row and store.instances.live(reference) is None else None


def _may_go(store: Store, args, row: Session) -> bool:
    """Whether `row` is the caller's own session, or has gone."""
    if store.instances.live(row.id) is None:
        return True
    try:
        return session_of_caller(store, current_scope(args.value("--scope"))).id == row.id
    except UnknownInstance:
        return False

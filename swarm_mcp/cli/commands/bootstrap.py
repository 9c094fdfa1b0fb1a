"""bootstrap: where this session stands: peers, unread messages, tasks

The answer is JSON with and without --json. The messages in it count as read once it is written, and only
then. Where SWARM_MCP_INSTANCE_ID names an instance that is not registered yet, it is registered.

example: swarm-mcp bootstrap --as role:reviewer
"""

from __future__ import annotations

import os

from swarm_mcp.acting_session import find_acting_session
from swarm_mcp.cli.arguments import ACTING, FOLDERS, INSTANCES, PLACE, Arguments, Option, Usage, Word
from swarm_mcp.cli.commands.register import asked_for
from swarm_mcp.cli.output import flush, show
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import SwarmError, UnknownInstance
from swarm_mcp.session_summary import bootstrap_summary, neighbours_of
from swarm_mcp.store import Store

USAGES = (
    Usage(
        Word("DIRECTORY", "where it works, for a session that is registered by this", optional=True, source=FOLDERS),
        Option("--limit N", "at most N unread messages (default 50; 0 for none, -1 for all)"),
        Option(
            "--adopt-instance-id ID",
            "become this reserved instance first; it must wait in this scope and DIRECTORY",
            source=INSTANCES,
        ),
        *PLACE,
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Print where the session stands; what was printed is read."""
    with Store() as store:
        row = _session(store, args)
        tasks, peers = store.tasks.current(row), neighbours_of(store, row)
        limit = args.number("--limit", 50)
        messages = store.messages.take(row, limit) if limit else []
        show(bootstrap_summary(store, row, peers, messages, tasks))
        if flush():
            store.messages.acknowledge([message.id for message in messages])
    return 0


def _session(store: Store, args: Arguments) -> Session:
    """The session this is for, adopted or registered where that was asked for."""
    wanted = args.value("--adopt-instance-id")
    reserved = os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
    if wanted:
        request = asked_for(args, adopt_id=wanted)
        waiting = store.instances.live(wanted)
        if waiting and (waiting.scope, waiting.directory) == (request.scope, request.directory):
            return store.instances.register(request)
        if wanted == reserved:
            return store.instances.register(asked_for(args, preassigned_id=wanted))
        raise SwarmError(f"instance {wanted} cannot be adopted: none waits under that id in {request.directory}")
    try:
        return find_acting_session(store, args)
    except UnknownInstance:
        if not reserved or args.value("--as"):
            raise
        return store.instances.register(asked_for(args, preassigned_id=reserved))

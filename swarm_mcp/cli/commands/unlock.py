"""unlock: release a lock of this session

usage: swarm-mcp unlock FILE [--as WHO] [--json]
       swarm-mcp unlock --git [--as WHO] [--json]

  --git   the git repository of this session's folder, as `lock --git` took it

Only one's own lock goes; a file that this session does not hold is left as it is, which is no error.

example: swarm-mcp unlock src/schema.sql
"""

from __future__ import annotations

from swarm_mcp.actor import actor
from swarm_mcp.cli.commands.lock import repository_of, wanted
from swarm_mcp.cli.output import say, show
from swarm_mcp.scope import file_of
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Release the lock."""
    file = wanted(args, "the file to unlock: swarm-mcp unlock FILE")
    with Store() as store:
        instance = actor(store, args)
        file = file or repository_of(instance)
        store.locks.release(instance, file)
        path = file_of(instance, file)
    if args.json:
        show({"ok": True, "file": path})
    else:
        say(f"unlocked {path}")
    return 0

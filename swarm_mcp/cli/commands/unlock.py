"""unlock: release locks of this session

usage: swarm-mcp unlock FILE ... [--fence N] [--agent ID] [--as WHO] [--json]
       swarm-mcp unlock --git [--as WHO] [--json]

  --git        the git repository of this session's folder, as `lock --git` took it
  --fence N    only the grant with this number: where the lock has lapsed or changed hands since, exit 1
  --agent ID   only what this subagent of the session holds

Only one's own locks go; a file that this session does not hold is left as it is, which is no error. Whoever is
first in line for it gets it at once.

example: swarm-mcp unlock src/schema.sql
"""

from __future__ import annotations

from swarm_mcp.actor import person
from swarm_mcp.cli.commands.lock import repository_of, wanted
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.scope import file_of
from swarm_mcp.store import Store

WORDS = None


def run(args) -> int:
    """Release the locks."""
    files = wanted(args, "the file to unlock: swarm-mcp unlock FILE")
    fence = args.number("--fence") if args.given("--fence") else None
    if fence is not None and len(files) > 1:
        raise UsageError("--fence is of one lock: give one FILE")
    with Store() as store:
        instance = person(store, args)
        files = files or [repository_of(instance)]
        for file in files:
            try:
                store.locks.release(instance, file, args.value("--agent").strip(), fence)
            except Refused as refusal:
                return refused(args, "unlock", refusal.answer)
        paths = [file_of(instance, file) for file in files]
    if args.json:
        show({"ok": True, "file": paths[0], **({"files": paths} if len(paths) > 1 else {})})
    else:
        for path in paths:
            say(f"unlocked {path}")
    return 0

"""renew: go on holding a lock, or notice that one does not

usage: swarm-mcp renew FILE [--fence N] [--ttl SECONDS] [--agent ID] [--as WHO] [--json]

  --fence N      only the grant with this number: where the lock has lapsed or changed hands since, exit 1
  --ttl SECONDS  a lease of that length from now on
  --agent ID     what this subagent of the session holds

Anything a session does renews its locks; this is for scripts that have to know before they go on. Unlike `lock`,
it never takes what is not held any more: exit 1.

example: swarm-mcp renew src/schema.sql --fence 41 --ttl 600
"""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.actor import person
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

WORDS = 1


def run(args) -> int:
    """Renew the lock."""
    file = args.word(0, "the file: swarm-mcp renew FILE")
    fence = args.number("--fence") if args.given("--fence") else None
    ttl = args.seconds("--ttl") if args.given("--ttl") else None
    with Store() as store:
        try:
            lock = store.leases.renew_lock(person(store, args), file, args.value("--agent").strip(), fence, ttl)
        except Refused as refusal:
            return refused(args, "renew", refusal.answer)
        left = store.locks.rows.left(lock)
    lock = {**lock, "file": plain(lock["file"])}
    if args.json:
        show({"ok": True, **granted(lock), **({} if left is None else {"lapses_in": round(left, 1)})})
    else:
        say(f"renewed {lock['file']}" + ("" if left is None else f", for {left:.0f} s"))
    return 0

"""renew: go on holding a lock, or notice that one does not

Anything a session does renews its locks; this is for scripts that have to know before they go on. Unlike `lock`,
it never takes what is not held any more: exit 1.

example: swarm-mcp renew src/schema.sql --fence 41 --ttl 600
"""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, AGENT, FENCE, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (
    Usage(
        Word("FILE", "the file"), FENCE, Option("--ttl SECONDS", "a lease of that length from now on"), AGENT, *ACTING
    ),
)


def run(args: Arguments) -> int:
    """Renew the lock."""
    file = args.words[0]
    fence = args.number_if_given("--fence")
    ttl = args.seconds_if_given("--ttl")
    with Store() as store:
        try:
            lock = store.leases.renew_lock(acting_session(store, args), file, args.value("--agent").strip(), fence, ttl)
        except Refused as refusal:
            return refused(args, "renew", refusal.answer)
        left = store.locks.left(lock)
    lock = lock.replace(file=plain(lock.file))
    if args.json:
        show({"ok": True, **granted(lock), **({} if left is None else {"lapses_in": round(left, 1)})})
    else:
        say(f"renewed {lock.file}" + ("" if left is None else f", for {left:.0f} s"))
    return 0

"""transfer: hand a lock to another session

usage: swarm-mcp transfer FILE --to WHO [--note TEXT] [--fence N] [--agent ID] [--as WHO] [--json]

  --to WHO     an instance id, the unique beginning of one, or a unique part of a label
  --note TEXT  why; told to the new holder, and the lock's note from then on
  --fence N    only the grant with this number
  --agent ID   what this subagent of the session holds

At no moment is the file anybody else's: it goes past those who wait for it, who keep their places and are told.
The lock keeps its mode and lease and gets a new fence; the new holder is told with its next hook. Exit 1 where the
lock is not held (any more), or where something else the session holds would keep the new holder out.

example: swarm-mcp transfer src/schema.sql --to role:reviewer --note "your turn, migrations are in"
"""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import label
from swarm_mcp.actor import person, resolve
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.views import short

WORDS = 1


def run(args) -> int:
    """Hand it over."""
    file = args.word(0, "the file: swarm-mcp transfer FILE --to WHO")
    if not args.value("--to"):
        raise UsageError("missing the new holder: swarm-mcp transfer FILE --to WHO")
    fence = args.number("--fence") if args.given("--fence") else None
    with Store() as store:
        giver = person(store, args)
        taker = resolve(store, giver["scope"], args.value("--to"))
        try:
            lock = store.handovers.transfer(
                giver, file, taker["id"], args.value("--agent").strip(), fence, args.value("--note")
            )
        except Refused as refusal:
            return refused(args, "transfer", refusal.answer)
    lock = {**lock, "file": plain(lock["file"])}
    if args.json:
        show({"ok": True, **granted(lock), "from": giver["id"], "to": taker["id"]})
    else:
        say(f"transferred {lock['file']} to {label(taker['label'] or short(taker['id']))}")
    return 0

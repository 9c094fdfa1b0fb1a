"""transfer: hand a lock to another session

At no moment is the file anybody else's: it goes past those who wait for it, who keep their places and are told.
The lock keeps its mode and lease and gets a new fence; the new holder is told with its next hook. Exit 1 where the
lock is not held (any more), or where something else the session holds would keep the new holder out.

example: swarm-mcp transfer src/schema.sql --to role:reviewer --note "your turn, migrations are in"
"""

from __future__ import annotations

from swarm_hook_core.lookup import plain
from swarm_hook_core.untrusted_text import label
from swarm_mcp.acting_session import acting_session, session_named
from swarm_mcp.cli.arguments import ACTING, AGENT, FENCE, INSTANCES, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.domain.lock import granted
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (
    Usage(
        Word("FILE", "the file"),
        Option(
            "--to WHO",
            "the new holder: an instance id, the unique beginning of one, or a unique part of a label",
            required=True,
            source=INSTANCES,
        ),
        Option("--note TEXT", "why; told to the new holder, and the lock's note from then on"),
        FENCE,
        AGENT,
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Hand it over."""
    file = args.words[0]
    fence = args.number_if_given("--fence")
    with Store() as store:
        giver = acting_session(store, args)
        taker = session_named(store, giver.scope, args.value("--to"))
        try:
            lock = store.transfers.transfer(
                giver, file, taker.id, args.value("--agent").strip(), fence, args.value("--note")
            )
        except Refused as refusal:
            return refused(args, "transfer", refusal.answer)
    lock = lock.replace(file=plain(lock.file))
    if args.json:
        show({"ok": True, **granted(lock), "from": giver.id, "to": taker.id})
    else:
        say(f"transferred {lock.file} to {label(taker.label or short(taker.id))}")
    return 0

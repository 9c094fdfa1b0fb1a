"""request-lock: ask whoever holds a file for it

The holder gets a message that says who asks and why, which its next hook shows to its model; asking again before
it has been read says nothing more. You are told when the file is free. Exit 1 where nobody holds it, or only
sessions of another identity do.

example: swarm-mcp request-lock src/schema.sql --reason "one index is missing, two minutes"
"""

from __future__ import annotations

from swarm_hook_core.untrusted_text import label
from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (Usage(Word("FILE", "the file"), Option("--reason TEXT", "why; told to the holder"), *ACTING),)


def run(args: Arguments) -> int:
    """Ask."""
    file = args.words[0]
    with Store() as store:
        try:
            locks = store.transfers.request(acting_session(store, args), file, args.value("--reason"))
        except Refused as refusal:
            return refused(args, "request-lock", refusal.answer)
    if args.json:
        held = [{"file": lock.file, "holder": lock.instance_id, "label": lock.owner_label} for lock in locks]
        show({"ok": True, "asked": held})
    else:
        for lock in locks:
            say(f"asked {label(lock.owner_label or short(lock.instance_id))} for {lock.file}")
    return 0

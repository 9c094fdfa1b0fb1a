"""broadcast: write to every other session of this scope

The words are joined by blanks. Every other session that is registered now gets the message, bar those of
another identity.

example: swarm-mcp broadcast "main is frozen until the release is out"
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session
from swarm_mcp.cli.arguments import ACTING, Arguments, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

USAGES = (Usage(Word("WORDS", "the message", repeated=True), *ACTING),)


def run(args: Arguments) -> int:
    """Send one message to each."""
    with Store() as store:
        sender = acting_session(store, args)
        try:
            peers = store.messages.broadcast(sender, " ".join(args.words))
        except Refused as refusal:
            return refused(args, "broadcast", refusal.answer)
    if args.json:
        show({"ok": True, "sender": sender.id, "scope": sender.scope, "count": len(peers)})
    else:
        say(f"broadcast to {len(peers)} recipient(s)")
    return 0

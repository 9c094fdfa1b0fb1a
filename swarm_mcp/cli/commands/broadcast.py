"""broadcast: write to every other session of this scope

usage: swarm-mcp broadcast WORDS... [--as WHO] [--scope DIR] [--json]

The words are joined by blanks. Every other session that is registered now gets the message, bar those of
another identity.

example: swarm-mcp broadcast "main is frozen until the release is out"
"""

from __future__ import annotations

from swarm_mcp.actor import person
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store


def run(args) -> int:
    """Send one message to each."""
    args.word(0, "the message: swarm-mcp broadcast WORDS...")
    with Store() as store:
        sender = person(store, args)
        try:
            peers = store.messages.broadcast(sender, " ".join(args.words))
        except Refused as refusal:
            return refused(args, "broadcast", refusal.answer)
    if args.json:
        show({"ok": True, "sender": sender["id"], "scope": sender["scope"], "count": len(peers)})
    else:
        say(f"broadcast to {len(peers)} recipient(s)")
    return 0

"""send: write to another session

The words are joined by blanks. The message waits in the other's inbox until it polls; to wake it as well,
use prompt-peer. A session of another identity cannot be written to, unless SWARM_MCP_ALLOW_CROSS_IDENTITY=1.

example: swarm-mcp send --to role:reviewer "the importer is ready to be read"
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session, session_named
from swarm_mcp.cli.arguments import ACTING, INSTANCES, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.views import short

USAGES = (
    Usage(
        Word("WORDS", "the message", repeated=True),
        Option(
            "--to WHO",
            "the recipient: an instance id, the unique beginning of one, or a unique part of a label",
            required=True,
            source=INSTANCES,
        ),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Send one message."""
    with Store() as store:
        sender = acting_session(store, args)
        recipient = session_named(store, sender.scope, args.value("--to"))
        try:
            store.messages.send(sender, recipient.id, " ".join(args.words))
        except Refused as refusal:
            return refused(args, "send", refusal.answer)
    if args.json:
        show({"ok": True, "sender": sender.id, "recipient": recipient.id, "scope": sender.scope})
    else:
        say(f"sent {short(sender.id)} → {short(recipient.id)}")
    return 0

"""prompt-peer: write to another session and wake it

The message goes to the other's inbox. Where it has published a terminal pane and is not busy there, a line
is typed into the pane that tells it to poll. Exit 0 once the message is stored, woken or not.

example: swarm-mcp prompt-peer --to role:reviewer --message "please look at the importer" --task 1f0c9a52
"""

from __future__ import annotations

from swarm_mcp.acting_session import acting_session, session_named
from swarm_mcp.cli.arguments import ACTING, INSTANCES, TASKS, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import refused, say, show
from swarm_mcp.errors import Refused, UsageError
from swarm_mcp.store import Store
from swarm_mcp.views import short
from swarm_mcp.workspace.prompting import prompt

WAKING = (
    Option("--task ID", "mark the message with the task it is about", source=TASKS),
    Option("--no-nudge", "only leave the message"),
    Option("--force", "wake it also while it works, or waits for an answer in its terminal"),
    *ACTING,
)
TO = Option("--to WHO", "the session to write to", required=True, source=INSTANCES)
MESSAGE = Option("--message TEXT", "what to tell it", required=True)
WHO = Word("WHO", "the session to write to", source=INSTANCES)
TEXT = Word("TEXT", "the message", repeated=True)
USAGES = (
    Usage(TO, MESSAGE, *WAKING),
    Usage(WHO, TEXT, *WAKING),
    Usage(TEXT, TO, *WAKING, hidden=True),
    Usage(WHO, MESSAGE, *WAKING, hidden=True),
)


def run(args: Arguments) -> int:
    """Store the message, then try the pane."""
    words = list(args.words)
    who = args.value("--to") or words.pop(0)
    message = args.value("--message") or " ".join(words)
    if not message.strip():
        raise UsageError("missing the message: swarm-mcp prompt-peer --to WHO --message TEXT")
    nudge, force = not args.given("--no-nudge"), args.given("--force")
    with Store() as store:
        sender = acting_session(store, args)
        recipient = session_named(store, sender.scope, who)
        try:
            sent = prompt(store, sender, recipient.id, message, args.value("--task"), nudge, force)
        except Refused as refusal:
            return refused(args, "prompt-peer", refusal.answer)
    if args.json:
        show(sent)
    else:
        outcome = "woken" if sent["nudged"] else sent.get("nudge_skipped") or sent.get("nudge_error")
        say(f"sent {short(sender.id)} → {short(recipient.id)} ({outcome})")
    return 0

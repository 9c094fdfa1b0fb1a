"""Mail between sessions."""

from __future__ import annotations

from itertools import islice

from swarm_mcp.answers.size import cursor
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, DOING, INSTANCES, MSG, TASKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import answer, listing
from swarm_mcp.cli.words import AFTER, Reader, printed_page, say_page
from swarm_mcp.domain import Message, Page
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.panes import prompt
from swarm_mcp.sessions.acting import acting_session, session_named, viewer_identity
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of


@verb(
    Usage(
        Option("--to WHO", "only to this session", source=INSTANCES),
        Option("--from WHO", "only from this session", source=INSTANCES),
        Option("--limit N", "the newest N (default: 50; 0: no message, -1: all)"),
        AFTER,
        Option("--id N", "the message with this id alone, whole", source=()),
        ABSOLUTE,
        *ACTING,
    ),
    group=MSG,
)
def messages(args: Arguments) -> int:
    """messages: the messages between sessions of this scope

    Reading here does not mark a message as read. A * stands before unread messages. Messages of sessions with another
    identity are not shown. If there are more, the last line has their number, and the CURSOR for --after. A text that
    is too long is cut; --id shows it whole.

    example: swarm-mcp msg list --to reviewer --limit 10
    """
    scope, wanted = current_scope(args.value("--scope")), args.number("--id")
    with Store(read_only=True) as store:
        to, sender = (_id(store, scope, args.value(flag)) for flag in ("--to", "--from"))
        viewer = viewer_identity(store, args)
        whose, reader = (scope, to, sender, viewer), Reader(args, store, viewer)
        if args.given("--id"):
            found = Page(
                [row for _, row in islice(store.messages.walk(*whose, cursor(wanted + 1)), 1) if row.id == wanted]
            )
        else:
            found = printed_page(
                args, lambda after: store.messages.walk(*whose, after), lambda row: row,
                lambda: store.messages.count(*whose), default=50,
            )  # fmt: skip
        rows = [Message(row) for row in reversed(found.rows)]
        return say_page(args, Page(rows, found.total, found.next), lambda: _table(rows, reader))


def _id(store: Store, scope: str, reference: str) -> str:
    """Return the id of the session that `reference` names, or an empty text without a reference."""
    if not reference:
        return ""
    return str(session_named(store, scope, reference).id)


def _table(rows: list[Message], reader: Reader) -> None:
    cells, plain, details = [], [], []
    for row in rows:
        mark, recipient = "*", "all"
        if row.read:
            mark = " "
        if row.recipient:
            recipient = reader.called(row.recipient)
        sender, when = reader.called(row.sender), reader.when(row.created_at)
        text = [f"    {line}" for line in row.content.split("\n")]
        if "cut" in row:
            text.append(f"    ... ({row['cut']['content']} characters: --id {row.id} shows them)")
        cells.append((f"#{row.id}", mark.strip(), when, sender, recipient))
        plain += [f"{mark} #{row.id}  {when}  {sender} → {recipient}", *text]
        details.append(text)
    listing(("id", "new", "when", "from", "to"), cells, plain, empty="(no messages)", details=details)


@verb(
    Usage(
        Word("WORDS", "the message", repeated=True),
        Option(
            "--to WHO",
            "the recipient: the number in its name, the beginning of its id, or part of its label, if only"
            " one session has that",
            required=True,
            source=INSTANCES,
        ),
        *DOING,
    ),
    refuses=True,
    group=MSG,
)
def send(args: Arguments) -> int:
    """send: write to another session

    The message waits in the other session's inbox until it looks there; `swarm-mcp msg wake` wakes it as well. You
    cannot write to a session of another identity, unless SWARM_MCP_ALLOW_CROSS_IDENTITY=1.

    example: swarm-mcp msg send --to role:reviewer "the importer is ready to be read"
    """
    with Store() as store:
        sender = acting_session(store, args)
        recipient = session_named(store, sender.scope, args.value("--to"))
        store.messages.send(sender, recipient.id, " ".join(args.words))
    value = {"ok": True, "sender": sender.id, "recipient": recipient.id, "scope": sender.scope}
    return answer(args, value, f"sent {name_of(sender)} → {name_of(recipient)}")


@verb(
    Usage(Word("WORDS", "the message", repeated=True), *DOING),
    refuses=True,
    group=MSG,
)
def broadcast(args: Arguments) -> int:
    """broadcast: write to every other session of this scope

    Every other session that is registered now gets the message, except those of another identity.

    example: swarm-mcp msg all "main is frozen until the release is out"
    """
    with Store() as store:
        sender = acting_session(store, args)
        peers = store.messages.broadcast(sender, " ".join(args.words))
    value = {"ok": True, "sender": sender.id, "scope": sender.scope, "count": len(peers)}
    return answer(args, value, f"broadcast to {len(peers)} recipient(s)")


WAKING = (
    Option("--task ID", "mark the message with the task it is about", source=TASKS),
    Option("--no-nudge", "leave the message, and type nothing"),
    Option("--force", "wake it also while it works, or waits for an answer in its terminal"),
    *DOING,
)
TO = Option("--to WHO", "the session to write to", required=True, source=INSTANCES)
MESSAGE = Option("--message TEXT", "the message", required=True)
WHO = Word("WHO", "the session to write to", source=INSTANCES)
TEXT = Word("TEXT", "the message", repeated=True)


@verb(
    Usage(TO, MESSAGE, *WAKING),
    Usage(WHO, TEXT, *WAKING),
    Usage(TEXT, TO, *WAKING, hidden=True),
    Usage(WHO, MESSAGE, *WAKING, hidden=True),
    refuses=True,
    group=MSG,
)
def prompt_peer(args: Arguments) -> int:
    """prompt-peer: write to another session and wake it

    The message goes to the other session's inbox. If that session has published its terminal pane and is not busy, a
    line that asks it to look is typed into the pane. Exit 0 once the message is stored, woken or not.

    example: swarm-mcp msg wake --to role:reviewer --message "please look at the importer" --task 1f0c9a52
    """
    words = list(args.words)
    who = args.value("--to") or words.pop(0)
    message = args.value("--message") or " ".join(words)
    if not message.strip():
        raise UsageError("missing the message: swarm-mcp msg wake --to WHO --message TEXT")
    nudge, force = not args.given("--no-nudge"), args.given("--force")
    with Store() as store:
        sender = acting_session(store, args)
        recipient = session_named(store, sender.scope, who)
        sent = prompt(store, sender, recipient.id, message, args.value("--task"), nudge, force)
    outcome = sent.get("nudge_skipped") or sent.get("nudge_error")
    if sent["nudged"]:
        outcome = "woken"
    return answer(args, sent, f"sent {name_of(sender)} → {name_of(recipient)} ({outcome})")

"""Following the events of a scope."""

from __future__ import annotations

import signal
import sys
import time

from swarm_hook_core.json_text import dumps
from swarm_mcp.acting_session import viewer_identity
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, TOGETHER, Arguments, Option, Usage, verb
from swarm_mcp.cli.output import flush, for_people, say, say_row
from swarm_mcp.cli.reader import HIDDEN, Reader
from swarm_mcp.folders import current_scope
from swarm_mcp.overview.refusal_words import why_refused
from swarm_mcp.store import Store
from swarm_mcp.store.activity import FEED_AT_ONCE, Feed
from swarm_mcp.store.changes import Changes
from swarm_mcp.views import short

LONGEST = 200  # characters of a message or value in a line for people


READER_SECONDS = 1.0  # between checks that the reader of standard output is still there


STYLES = {
    "denied": "bad", "altered": "bad", "locked": "held", "released": "good", "joined": "good", "left": "faint",
    "gone": "bad", "tried": "bad", "lowered": "bad",
}  # fmt: skip


_LOCKS = {"context.lock_acquired": "locked", "context.lock_released": "released"}


_SESSIONS = {"registered": "joined", "deregistered": "left", "stale_reclaimed": "gone"}


@verb(
    Usage(
        Option("--timeout S", "end after S seconds (default: go on until interrupted)"),
        Option("--since ID", "begin after this event (0: with everything that is still known, about a day)"),
        ABSOLUTE,
        *ACTING,
    ),
    group=TOGETHER,
)
def watch(args: Arguments) -> int:
    """watch: print the events of this scope as they happen

    One line for each message, task, lock, shared value, and session that joins or leaves, with the local time of day
    (--absolute prints dates, UTC). With --json each line is an object: {"id", "at", "change", "type", "actor",
    "actor_label", "subject", "payload"}. No message is marked as read. Words of sessions with another identity are not
    shown, but their locks are.

    example: swarm-mcp watch --timeout 600 --json
    """
    scope = current_scope(args.value("--scope"))
    end = time.monotonic() + args.seconds("--timeout") if args.given("--timeout") else None
    with Changes() as changes:
        ending = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, lambda *_: changes.stop()) for number in ending}
        try:
            with Store(read_only=True) as store:
                since = args.number("--since") if args.given("--since") else None
                viewer = viewer_identity(store, args)
                feed = store.activity.feed(scope, viewer, since)
                if not args.json and for_people():
                    _say_header(scope, end is None)
                reader = None if args.json else Reader(args, store, viewer)
                _print_news(feed, reader)
                if not args.json and for_people():
                    say("waiting for something to happen ...")
                    flush()
                _follow(feed, changes, end, reader)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def _say_header(scope: str, for_ever: bool) -> None:
    """Print the scope, and the names of the columns."""
    say(f"watching {scope}{'; Ctrl-C ends it' if for_ever else ''}")
    say_row((("TIME    ", "heading"), (f"{'WHAT':<8}", "heading"), ("", "")))


def _follow(feed: Feed, changes: Changes, end: float | None, reader: Reader | None) -> None:
    while True:
        _print_news(feed, reader)
        while True:
            left = READER_SECONDS if end is None else min(READER_SECONDS, end - time.monotonic())
            if changes.wait(max(0.0, left)):
                break
            if changes.stopped or (end is not None and time.monotonic() >= end) or _nobody_reads():
                return


def _print_news(feed: Feed, reader: Reader | None) -> None:
    """Print new events: for `reader`, or as JSON without one."""
    while True:
        events = feed.read()
        for event in events:
            if "type" in event:
                _say(event, reader) if reader else say(dumps(event))
        flush()
        if len(events) < FEED_AT_ONCE:
            return


def _say(event: dict, reader: Reader) -> None:
    kind, text = _told(event, reader)
    say_row(((reader.clock(event["at"]), "faint"), (f"{kind:<8}", STYLES.get(kind, "name")), (text, "")))


def _told(event: dict, reader: Reader) -> tuple[str, str]:
    """An event in a word and a few more."""
    what, payload, subject = event["type"], event["payload"], event["subject"] or ""
    who = reader.known(event["actor_label"], event["actor"]) if event["actor"] else HIDDEN
    group, _, verb = what.partition(".")
    if what in _LOCKS:
        note = payload.get("content") or payload.get("reason")
        return _LOCKS[what], f"{reader.path(subject)} by {who}{f': {note}' if note else ''}"
    if what in ("context.lock_denied", "context.write_denied"):
        is_known = payload.get("holder_label") or payload.get("holder")
        holder = reader.known(payload.get("holder_label"), payload.get("holder") or "?") if is_known else HIDDEN
        lost = why_refused(payload, event["at"], holder)
        return "denied", f"{reader.path(subject)} to {who}{f': {lost}' if lost else f', held by {holder}'}"
    if what == "context.lock_requested":
        return "asked", f"{reader.called(payload.get('holder'))} for {reader.path(subject)}, by {who}"
    if what == "context.lock_breached":
        return (
            "altered",
            f"{reader.path(subject)} {payload.get('kind')} while {who} ran {_excerpt(payload.get('command') or '?')}",
        )
    if group == "context":
        return verb.removeprefix("lock_")[:8], f"{reader.path(subject)} by {who}"
    if group == "protection":
        deed = _excerpt(payload.get("deed") or subject)
        return (
            ("tried", f"{deed} by {who if event['actor'] else 'an agent'}")
            if verb == "attempted"
            else ("lowered", deed)
        )
    if group == "message":
        to = reader.called(subject) if subject else f"{payload.get('recipients', 'all')} sessions"
        return "message", f"{who} → {to}: {_excerpt(payload.get('content'))}"
    if group == "task":
        return "task", f"{short(subject)} {verb} by {who}: {_of_task(payload)}"
    if group == "instance":
        return _SESSIONS.get(verb, verb), reader.known(payload.get("label"), subject) if subject else HIDDEN
    if group == "kv":
        value = payload.get("value", payload.get("appended"))
        return "kv", f"{verb} {subject} by {who}{f': {_excerpt(value)}' if value is not None else ''}"
    count = f": {payload['count']}" if "count" in payload else ""
    return group[:8], f"{verb.replace('_', ' ')}{count}"


def _of_task(payload: dict) -> str:
    parts = [payload.get("title"), payload.get("status"), payload.get("summary"), payload.get("blocked_reason")]
    return ", ".join(_excerpt(part) for part in parts if part) or "-"


def _excerpt(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _nobody_reads() -> bool:
    """Return True if the other end of standard output, a pipe or a terminal, has gone."""
    import select

    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _handle, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return False  # no file behind it

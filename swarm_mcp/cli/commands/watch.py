"""Following the events of a scope."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from swarm_hook_core.json_text import dumps
from swarm_hook_core.process import start_detached
from swarm_hook_core.untrusted_text import cut
from swarm_mcp.answers.people import short
from swarm_mcp.answers.timeline import REFUSED, incident_of, keys_of, of_feed, sentence
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, SESSIONS, Arguments, Option, Usage, verb
from swarm_mcp.cli.output import flush, for_people, say, say_row
from swarm_mcp.cli.words import HIDDEN, Reader, clause, excerpt
from swarm_mcp.domain import WAITS
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store
from swarm_mcp.store.activity import FEED_AT_ONCE, Feed
from swarm_mcp.store.changes import Changes

Event = dict[str, Any]

LONGEST = 200  # characters of a message or value in a line for people
READER_SECONDS = 1.0  # between checks that the reader of standard output is still there
STYLES = {
    "refused": "bad", "notice": "busy", "locked": "held", "released": "good", "joined": "good", "left": "faint",
    "gone": "bad", "lowered": "bad",
}  # fmt: skip
_LOCKS = {"context.lock_acquired": "locked", "context.lock_released": "released"}
_SESSIONS = {"registered": "joined", "deregistered": "left", "stale_reclaimed": "gone"}


@verb(
    Usage(
        Option("--timeout S", "end after S seconds (default: go on until interrupted)"),
        Option("--notify", "show a notification when something is refused, or an agent waits for a person"),
        Option("--since ID", "begin after this event (0: with everything that is still known, about a day)"),
        ABSOLUTE,
        *ACTING,
    ),
    group=SESSIONS,
)
def watch(args: Arguments) -> int:
    """watch: print the events of this scope as they happen

    One line for each message, task, lock, shared value, and session that joins or leaves, with the local time of day
    (--absolute prints dates, UTC). With --json each line is an object: {"id", "at", "change", "type", "actor",
    "actor_label", "subject", "payload"}. No message is marked as read. Words of sessions with another identity are not
    shown, but their locks are. --notify uses `notify-send`, or `osascript` on a Mac; without these the terminal's own
    notification.

    example: swarm-mcp watch --timeout 600 --json
    """
    scope = current_scope(args.value("--scope"))
    end = None
    if args.given("--timeout"):
        end = time.monotonic() + args.seconds("--timeout")
    with Changes() as changes:
        ending = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, lambda *_: changes.stop()) for number in ending}
        try:
            with Store(read_only=True) as store:
                viewer = viewer_identity(store, args)
                feed = store.activity.feed(scope, viewer, args.number_if_given("--since"))
                for_eyes = not args.json and for_people()
                if for_eyes:
                    say(f"watching {scope}" + "; Ctrl-C ends it" * (end is None))
                    say_row((("TIME    ", "heading"), (f"{'WHAT':<8}", "heading"), ("", "")))
                reader = Reader(args, store, viewer)
                show = _Shown(reader, args.json)
                show.new(feed)
                show.notifies = args.given("--notify")
                if for_eyes:
                    say("waiting for something to happen ...")
                    flush()
                _follow(feed, changes, end, show)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def _follow(feed: Feed, changes: Changes, end: float | None, show: _Shown) -> None:
    while True:
        show.new(feed)
        while True:
            left = READER_SECONDS
            if end is not None:
                left = min(left, end - time.monotonic())
            if changes.wait(max(0.0, left)):
                break
            if changes.stopped or (end is not None and time.monotonic() >= end) or _reader_has_gone():
                return


class _Shown:
    """The events that are printed for `reader`; with `notifies` a notification for those that a person shall see."""

    def __init__(self, reader: Reader, as_json: bool):
        self.notifies = False
        self._reader, self._as_json = reader, as_json

    def new(self, feed: Feed) -> None:
        """Print the new events."""
        while True:
            events = feed.read()
            for event in events:
                if "type" in event:  # else a change without an event of its own
                    self._show(event)
            flush()
            if len(events) < FEED_AT_ONCE:
                return

    def _show(self, event: Event) -> None:
        happened = of_feed(event, self._reader.people)
        incident = happened and incident_of(happened)
        if incident:
            kind, words = incident.level, sentence(incident, self._reader.path)
        else:
            kind, words = _words(event, self._reader)
        if self._as_json:
            say(dumps({**event, **keys_of(incident)}))
        else:
            say_row(((self._reader.clock(event["at"]), "faint"), (f"{kind:<8}", STYLES.get(kind, "name")), (words, "")))
        waits = kind == "task" and str((event["payload"] or {}).get("blocked_reason") or "").startswith(WAITS)
        if self.notifies and (kind == REFUSED or waits):
            _notify(f"{kind} {words}")


def _notify(words: str) -> None:
    """Show a notification of the desktop, else of the terminal."""
    text = cut(words, LONGEST)
    sent = shutil.which("notify-send"), shutil.which("osascript")
    if sent[0] and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        argv = [sent[0], "--app-name=swarm", "swarm", text]
    elif sent[1]:
        script = 'on run argv\ndisplay notification (item 1 of argv) with title "swarm"\nend run'
        argv = [sent[1], "-e", script, text]
    else:
        if for_people():
            sys.stdout.write(f"\33]9;swarm: {text}\a")  # as iTerm2, WezTerm, Ghostty and kitty show it; others beep
        return
    with suppress(OSError):
        start_detached(argv)


def _words(event: Event, reader: Reader) -> tuple[str, str]:
    """Return the kind of an event in one word, and the event in a few more."""
    payload, subject = event["payload"], event["subject"] or ""
    who = HIDDEN
    if event["actor"]:
        who = reader.known(event["actor_label"], event["actor"])
    group, _, verb = event["type"].partition(".")
    if group == "context":
        return _of_lock(event, who, reader)
    if group == "protection":
        return "lowered", _excerpt(payload.get("deed") or subject)
    if group == "message":
        recipient = f"{payload.get('recipients', 'all')} sessions"
        if subject:
            recipient = reader.called(subject)
        return "message", f"{who} → {recipient}: {_excerpt(payload.get('content'))}"
    if group == "task":
        return "task", f"{short(subject)} {verb} by {who}: {_of_task(payload)}"
    if group == "instance" and not subject:
        return _SESSIONS.get(verb, verb), HIDDEN
    if group == "instance":
        return _SESSIONS.get(verb, verb), reader.known(payload.get("label"), subject)
    if group == "kv":
        value, line = payload.get("value", payload.get("appended")), f"{verb} {subject} by {who}"
        if value is not None:
            line += f": {_excerpt(value)}"
        return "kv", line
    line = verb.replace("_", " ")
    if "count" in payload:
        line += f": {payload['count']}"
    return group[:8], line


def _of_lock(event: Event, who: str, reader: Reader) -> tuple[str, str]:
    what, payload, file = event["type"], event["payload"], reader.path(event["subject"] or "")
    if what in _LOCKS:
        return _LOCKS[what], f"{file} by {who}" + clause(": {}", payload.get("content") or payload.get("reason"))
    if what == "context.lock_requested":
        return "asked", f"{reader.called(payload.get('holder'))} for {file}, by {who}"
    return what.removeprefix("context.").removeprefix("lock_")[:8], f"{file} by {who}"


def _of_task(payload: Event) -> str:
    parts = [payload.get("title"), payload.get("status"), payload.get("summary"), payload.get("blocked_reason")]
    return ", ".join(_excerpt(part) for part in parts if part) or "-"


def _excerpt(value: object) -> str:
    return excerpt(value, LONGEST)


def _reader_has_gone() -> bool:
    """Return True if the other end of standard output, a pipe or a terminal, has gone."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _handle, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return False  # no file behind it

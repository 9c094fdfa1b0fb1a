"""The log of a checkout (``checkout_log``), or the history of a path's locks."""

from __future__ import annotations

import time

from swarm_hook_core.naming import agent_name
from swarm_mcp.answers.incident_words import sentence
from swarm_mcp.answers.incidents import LEVELS, incident_of, keys_of
from swarm_mcp.answers.size import printed
from swarm_mcp.answers.timeline import happening
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, LOCKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.checkout_log import STYLES, say_checkout, since_when
from swarm_mcp.cli.output import say, say_row, show
from swarm_mcp.cli.pages import AFTER
from swarm_mcp.cli.reader import HIDDEN, Reader
from swarm_mcp.cli.words import clause
from swarm_mcp.domain.lock import AUTO
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.lock_history import history
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Event = dict[str, Any]

DEFAULT, MOST = 20, 1000


@verb(
    Usage(
        Word("PATH", "the path", optional=True),
        Option("--limit N", f"the newest N events, 1 to {MOST} ({DEFAULT})"),
        Option(
            "--since WHEN",
            "only events since then: a time of day (8:00), or an age (90m, 3h, 1d)",
            source=(),
        ),
        AFTER,
        ABSOLUTE,
        *ACTING,
    ),
    group=LOCKS,
)
def log(args: Arguments) -> int:
    """log: the events of this checkout, or the history of a path's locks

    Without PATH: a line of totals, then the events of this checkout one by one. Sessions that joined and left, locks
    granted, denied and released, tasks, and changed files that are not committed, each with its last change. It shows
    the newest N events (20), the newest last, and the number of earlier ones.

    With PATH: its locks and unlocks, lapses, transfers and thefts, denials with their reasons, and changes under a lock
    or restores: under any spelling of the path, through folders above it, patterns that cover it, and other work trees.

    Events are kept for about a day. Names and words of sessions with another identity are not shown.

    With --json and no PATH: {"scope", "since", "counts", "before", "events": [{"id", "at", "what", "file",
    "instance_id", "name", "other", "other_name", "waited", "note", "details"}]}; "other" is the second session of the
    event, such as the holder in a denial, and "is_cut" is there if more events happened than were counted.

    With --json and PATH: {"file", "events": [{"id", "at", "what", "rule", "file", "instance_id", "label", "details"}]}.
    The details of a denial hold the facts behind the decision: path, tool, cwd, session, denied_agent, the lock's id,
    fence, mode, agent and pattern, its holder, and "rule". If an uncommitted change of "holder" was the reason instead
    of a lock: "reason" (uncommitted, moment, sweep, stash), deed, command, changed_at, also and "said". "repeated"
    counts the same denial within the next minute, which has no event of its own. A refusal or a notice also has "level"
    (refused, notice), "kind" and "reason", the one in a word, the other in words. "next", if it is there, is the cursor
    that --after takes for earlier events.

    example: swarm-mcp log --since 8:00
    """
    limit = args.number("--limit", DEFAULT)
    if not 1 <= limit <= MOST:
        raise UsageError(f"--limit wants 1 to {MOST}, not {limit}")
    since = since_when(args.value("--since"), time.time())
    if not args.words and args.given("--after"):
        raise UsageError("--after goes on with the history of a PATH; here --limit shows more")
    if not args.words:
        return say_checkout(args, limit, since)
    return _log_of_path(args, args.words[0], limit, since)


def _log_of_path(args: Arguments, word: str, limit: int, since: int) -> int:
    with Store(read_only=True) as store:
        place = nobody_in(here(), current_scope(args.value("--scope")))
        if args.value("--as"):
            place = find_acting_session(store, args, reads=True)
        viewer = viewer_identity(store, args)
        found = history(store, place, word, viewer, limit, args.value("--after"), printed)
        found["events"] = [event for event in found["events"] if event["at"] >= since]
        reader = Reader(args, store, viewer)
        if args.json:
            for event in found["events"]:
                event.update(keys_of(incident_of(happening(event, reader.people))))
            show(found)
            return 0
        events, path = found["events"], found["file"]
        kinds = [LEVELS.get(event["what"], event["what"]) for event in events]
        lines = [(kind, reader.when(event["at"]), _line(event, path, reader)) for kind, event in zip(kinds, events)]
    if not lines:
        say(f"(nothing is known of {reader.path(found['file'])})")
    longest = max((len(at) for _what, at, _words in lines), default=0)
    for what, at, words in lines:
        say_row(((f"{at:<{longest}}", "faint"), (f"{what:<11}", STYLES.get(what, "name")), (words, "")))
    if found.get("next") and (args.given("--after") or len(found["events"]) < limit):
        say(f"there may be more before: --after {found['next']}")
    return 0


def _line(event: Event, path: str, reader: Reader) -> str:
    """Return an event in one line, without its time and its kind."""
    details = event["details"]
    incident = incident_of(happening(event, reader.people), event.get("repeated", 0))
    if incident is not None:
        # The sessions that would have waited in a circle; mostly empty
        names = [_name(one, reader) for one in details.get("circle") or ()]
        if not names:
            circle = ""
        else:
            circle = f" ({' waits for '.join([*names, names[0]])})"
        return sentence(incident, reader.path) + clause("; fence {}", details.get("fence")) + circle
    parts = _change(event, path, reader)
    if details.get("fence"):
        parts.append(f"fence {details['fence']}")
    note = details.get("content") or details.get("note") or details.get("why")
    return "; ".join(parts) + clause(": {}", note)


def _change(event: Event, path: str, reader: Reader) -> list[str]:
    """Return the parts of a change to a lock or its file: the session, the mode, the other session, the reason."""
    what, details, who = event["what"], event["details"], _name(event, reader)
    parts = [f"by {who}{_agent(details.get('agent'))}{_through(event, path, reader)}"]
    if details.get("mode") and (what == "acquired" or details["mode"] == AUTO):
        parts.append(f"mode {details['mode']}")
    for name, words in (("to", "to"), ("from", "from"), ("by", "by"), ("holder", "from")):
        if details.get(name):
            parts.append(f"{words} {reader.called(details[name])}")
    if details.get("reason") and details["reason"].replace("_", " ") != what:
        parts.append(details["reason"])
    return parts


def _name(one: Event, reader: Reader) -> str:
    if one.get("hidden"):
        return HIDDEN
    return reader.known(one.get("label"), one.get("instance_id") or "?")


def _agent(agent: str | None) -> str:
    if not agent:
        return ""
    return f", {agent_name(agent)}"


def _through(event: Event, path: str, reader: Reader) -> str:
    """Return the lock that covered the path, if it was on another one."""
    where = {"folder": "the folder ", "pattern": "the pattern ", "repository": "another work tree's "}
    if event["rule"] in where and event["file"] != path:
        return f" through {where[event['rule']]}{reader.path(event['file'])}"
    return ""

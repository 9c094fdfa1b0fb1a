"""The log of a checkout, or the history of a path's locks."""

from __future__ import annotations

import time
from typing import Any

from swarm_hook_core.naming import agent_name
from swarm_mcp.answers.people import short
from swarm_mcp.answers.size import page, printed
from swarm_mcp.answers.timeline import (
    ALTERED,
    ATTEMPTED,
    DENIED,
    LEVELS,
    LOWERED,
    NOTICE,
    NOTICED,
    REFUSED,
    TASK,
    Happening,
    happening,
    incident_of,
    keys_of,
    sentence,
)
from swarm_mcp.answers.work import CHANGED, checkout_history
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, LOCKS, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import say, say_row, show
from swarm_mcp.cli.words import AFTER, HIDDEN, Reader, clause, excerpt
from swarm_mcp.domain import AUTO, nobody_in
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.explaining import history
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
from swarm_mcp.store import Store

# The log of a checkout: a line of totals, then the events one by one.

DAY = 86400
MOST_EVENTS = 1000  # events of one answer
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": DAY}
LONGEST = 120  # characters of a note in a line
STYLES = {
    "acquired": "held", "stolen": "bad", "lapsed": "bad",
    "released": "good", "restored": "good", "transferred": "good", "joined": "good", "left": "faint", CHANGED: "busy",
    LOWERED: "bad", REFUSED: "bad", NOTICE: "busy",
}  # fmt: skip
# The totals of the first line in words, singular and plural. Other kinds of event are counted by their own name.
_COUNTED = {
    "joined": ("session joined", "sessions joined"), "left": ("left", "left"),
    "acquired": ("lock taken", "locks taken"),
    DENIED: ("refusal", "refusals"), CHANGED: ("file changed", "files changed"),
    TASK: ("change to a task", "changes to tasks"), ALTERED: ("altered under a lock", "altered under a lock"),
    NOTICED: ("notice", "notices"),
    ATTEMPTED: ("attempt at an action reserved for people", "attempts at actions reserved for people"),
    LOWERED: ("protection lowered", "times protection was lowered"),
}  # fmt: skip


def since_when(text: str, now: float) -> int:
    """The moment that ``--since`` means, 0 for all that is known: the last time it was that time of day, or a span."""
    words = text.strip().lower()
    if not words:
        return 0
    hours, colon, minutes = words.partition(":")
    if colon and hours.isdecimal() and minutes.isdecimal() and int(hours) < 24 and int(minutes) < 60:
        today = time.localtime(now)
        at = time.mktime((*today[:3], int(hours), int(minutes), 0, 0, 0, -1))
        if at > now:
            at = time.mktime((*today[:2], today.tm_mday - 1, int(hours), int(minutes), 0, 0, 0, -1))
        return int(at)
    number = words.rstrip("".join(UNITS))
    unit = words[len(number) :].strip()
    if number.strip().isdecimal() and len(number) < 10 and unit in UNITS:
        return int(now) - int(number) * UNITS[unit]
    raise UsageError(f"--since wants a time of day (8:00), or an age (90m, 3h, 1d), not {text[:40]!r}")


def say_checkout(args: Arguments, limit: int, since: int) -> int:
    """Print the newest `limit` events of this checkout since then; return the exit code."""
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        reader = Reader(args, store, viewer_identity(store, args))
        since = since or reader.now - DAY
        found = checkout_history(store, scope, reader.people, since, limit)
    lowered = user_settings.lowered(scope)
    if args.json:
        rows = [
            {**{name: value for name, value in one._asdict().items() if name != "scope"}, **keys_of(incident_of(one))}
            for one in found.happenings
        ]
        fits = page((("", row) for row in reversed(rows)), dict, lambda: 0, measure=printed).rows
        before = found.before + len(rows) - len(fits)
        answer: dict[str, Any] = {"scope": scope, "since": since, "counts": found.counts}
        if found.is_cut:
            answer["is_cut"] = True
        show({**answer, "before": before, "events": fits[::-1]})
        return 0
    if lowered:
        say(lowered)
    if not found.happenings:
        say(f"(nothing has happened in {scope} since {reader.when(since)})")
        return 0
    say(f"in {scope} since {reader.when(since)}: {_in_numbers(found.counts)}")
    if found.before:
        more = "more than " * found.is_cut
        say(f"{more}{found.before} before these: swarm-mcp log --limit {min(found.before + limit, MOST_EVENTS)}")
    told = [(LEVELS.get(one.what, one.what), reader.when(one.at), _told(one, reader)) for one in found.happenings]
    longest = max(len(at) for _what, at, _words in told)
    for what, at, words in told:
        say_row(((f"{at:<{longest}}", "faint"), (f"{what:<8}", STYLES.get(what, "name")), (words, "")))
    return 0


def _in_numbers(counts: dict[str, int]) -> str:
    """Return the totals in words, those of `_COUNTED` first and in its order."""
    known = [what for what in _COUNTED if what in counts]
    parts = [f"{counts[what]} {_COUNTED[what][counts[what] != 1]}" for what in known]
    return ", ".join([*parts, *(f"{number} {what}" for what, number in counts.items() if what not in _COUNTED)])


def _told(one: Happening, reader: Reader) -> str:
    """A happening in one line, without its moment and its kind."""
    details, path = one.details, reader.path(one.file)
    note = clause(": {}", excerpt(one.note, LONGEST))
    if one.what in ("joined", "left"):
        return one.name
    if one.what == TASK:
        return f"{short(details['task'])} {details['change']} by {one.name}{note}"
    incident = incident_of(one)
    if incident is not None:
        return sentence(incident, reader.path)
    if one.what == LOWERED:
        return f"by {one.name}{note}"
    if one.what == CHANGED:
        return f"{path} by {one.name}, not committed"
    agent = ""
    if details.get("agent"):
        agent = f"{agent_name(details['agent'])} of "
    words = f"{path} by {agent}{one.name}"
    if details.get("to"):
        words += clause(", to {}", one.other_name)
    else:
        words += clause(", from {}", one.other_name)
    if one.waited >= 1:
        words += f", after waiting {round(one.waited)} s"
    return words + note


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
    granted, denied and released, tasks, and files with uncommitted changes of sessions or a person, each with its last
    change. It shows the newest N events (20), the newest last, and the number of earlier ones.

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

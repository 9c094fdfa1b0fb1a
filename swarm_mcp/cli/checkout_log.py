"""The log of a checkout: a line of totals, then the events one by one."""

from __future__ import annotations

import time

from swarm_hook_core.naming import agent_name
from swarm_mcp.answers.checkout_history import CHANGED, checkout_history
from swarm_mcp.answers.incident_words import sentence
from swarm_mcp.answers.incidents import LEVELS, NOTICE, REFUSED, incident_of, keys_of
from swarm_mcp.answers.paging import page
from swarm_mcp.answers.size import printed
from swarm_mcp.answers.timeline import ALTERED, ATTEMPTED, DENIED, LOWERED, NOTICED, TASK
from swarm_mcp.answers.views import short
from swarm_mcp.cli.output import say, say_row, show
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import clause, excerpt
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.answers.timeline import Happening
    from swarm_mcp.cli.arguments import Arguments

DAY = 86400
MOST = 1000  # events of one answer
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
    if not found.happenings:
        say(f"(nothing has happened in {scope} since {reader.when(since)})")
        return 0
    say(f"in {scope} since {reader.when(since)}: {_in_numbers(found.counts)}")
    if found.before:
        more = "more than " * found.is_cut
        say(f"{more}{found.before} before these: swarm-mcp log --limit {min(found.before + limit, MOST)}")
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

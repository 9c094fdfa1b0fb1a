"""The timeline: edits, refusals, locks and sessions, as a picture and as text, up to now or around a moment."""

from __future__ import annotations

from swarm_mcp.answers.timeline import MOST, Happening, timeline
from swarm_mcp.view.overview.edit_events import Names, edit_events
from swarm_mcp.view.overview.lines import lines
from swarm_mcp.view.overview.now import FILES, Hold, now
from swarm_mcp.view.page.picture import MARKS, picture
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

HOUR, DAY = 3600, 86400
SPANS = ((300, "5 minutes"), (1800, "30 minutes"), (HOUR, "hour"), (6 * HOUR, "6 hours"), (DAY, "day"))
TEXTS = 150  # events that are told in words; the picture has more
CLOSE = 300  # seconds around a moment chosen in a longer span


def _make(look: Look) -> Page:
    length = look.asked.number("span", HOUR, 60, DAY)
    middle = look.asked.number("at", 0, 0, 2**40)
    if middle:
        until = min(look.now, middle + length // 2)
    else:
        until = look.now
    since = (middle or look.now - length // 2) - length // 2
    shown = timeline(look.store, look.scope, look.people, since, max(since, until))
    shown = shown._replace(happenings=_with_edits(look, shown.happenings, since, max(since, until)))
    is_live = until >= look.now
    if is_live:
        waiting = lines(look.store, look.scope, look.people).waiting
    else:
        waiting = []
    drawn = picture(shown, _held(look), waiting, look.now)
    return Page("timeline.html", "Timeline", {
        "shown": shown, "picture": drawn, "is_live": is_live, "middle": since + length // 2, "length": length,
        "spans": SPANS, "close": min(CLOSE, length), "marks": MARKS, "most": MOST,
        "told": shown.happenings[::-1][:TEXTS], "chosen": look.asked.number("event", 0, 0, 2**62),
    })  # fmt: skip


def _with_edits(look: Look, events: list[Happening], since: int, until: int) -> list[Happening]:
    """Return the events with the edits of the same time among them, oldest first."""
    names, found = Names(look.store, look.people), list(events)
    for scope in look.work:
        written = look.work_in(scope).written
        found += edit_events(names, scope, written, since, until + 1, events)
    return sorted(found, key=lambda one: one.at)


def _held(look: Look) -> list[tuple[str, str, Hold]]:
    """The newest locks that there are, each with its checkout and file."""
    scopes, limit = [look.scope], FILES
    if not look.scope:
        scopes, limit = look.store.instances.scopes(MOST_CHECKOUTS), FILES // 4
    return [
        (scope, file.path, hold)
        for scope in scopes
        for file in now(look.store, scope, look.people, limit=limit).files
        for hold in file.holds
    ]


TIMELINE = View("/timeline", "Timeline", _make, with_work=True)

"""The timeline as a drawing: a lane for each session, with its edits and refusals, and bars for its locks and waits.

This module computes positions and sizes; ``templates/timeline.html`` draws. Positions in time are in percent of the
width, positions across it in pixels: the drawing is as wide as its page, and its words keep their size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from swarm_mcp.answers.timeline import Happening, Timeline
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import Hold, Line
from swarm_mcp.view.overview.work import EDITED

MOST_LANES = 40
TOP, NAME, ROW, GAP = 28, 24, 20, 10  # pixels: above the lanes, a lane's name, a row in it, below it
MOST_ROWS = 4  # rows of bars in one lane; further bars overlap the last row
THINNEST = 0.3  # percent
APART = 0.7  # percent between two edits that are drawn as two
MARKS = {
    "denied": "refused",
    "deadlock": "refused, as it closed a circle",
    "lapsed": "lapsed",
    "stolen": "taken by force",
    "requested": "asked for",
    "altered": "changed all the same",
    "restored": "restored",
    "attempted": "tried an action for persons only",
    "noticed": "told, and went ahead",
}
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)  # seconds between ticks
_MOST_TICKS = 9


class Bar(NamedTuple):
    """A while in a lane: a file `held` (or ``shared``, ``auto``), or ``waited`` for. `at`: its beginning."""

    kind: str
    x: float
    width: float
    y: int
    at: int
    file: str
    seconds: float
    note: str


class Mark(NamedTuple):
    """A moment in a lane."""

    kind: str
    x: float
    y: int
    happening: Happening


class Edits(NamedTuple):
    """Edits in a lane that are close to each other: `times` writes of `files`, the last at Unix time `at`."""

    x: float
    width: float
    y: int
    at: int
    times: int
    files: list[str]


class Passage(NamedTuple):
    """A lock that went from one lane to another: handed over, or stolen."""

    kind: str
    x: float
    begin: int
    end: int
    happening: Happening


class Lane(NamedTuple):
    """A session, in the pixels between `y` and `y` + `height`."""

    instance_id: str
    name: str
    scope: str
    y: int
    height: int
    bars: list[Bar]
    marks: list[Mark]
    edits: list[Edits]


class Tick(NamedTuple):
    """A moment on the axis."""

    x: float
    text: str


class Picture(NamedTuple):
    """All of it; `more` sessions have no lane, as there are too many."""

    lanes: list[Lane]
    passages: list[Passage]
    ticks: list[Tick]
    height: int
    more: int


class _Span(NamedTuple):
    kind: str
    begin: float
    end: float
    file: str
    note: str


class _Session:
    """One session, while the picture is made."""

    def __init__(self, name: str, scope: str):
        self.name = name
        self.scope = scope
        self.spans: list[_Span] = []
        self.marks: list[Happening] = []
        self.edits: list[Happening] = []
        self.open: dict[tuple[str, str], _Span] = {}  # by agent and file: its present locks

    @property
    def weight(self) -> int:
        return len(self.spans) + len(self.marks) + len(self.edits)


def picture(shown: Timeline, holds: Iterable[tuple[str, str, Hold]], waiting: Iterable[Line], now: int) -> Picture:
    """The drawing of a timeline. `holds`: the locks that there are now, each with its scope and file; `waiting` too."""
    sessions: dict[str, _Session] = {}

    def session(instance_id: str, name: str, scope: str) -> _Session:
        return sessions.setdefault(instance_id, _Session(name, scope))

    for one in shown.happenings:
        # of a session that has gone the id may be unknown
        _note(session(one.instance_id or one.name, one.name, one.scope), one, shown.since)
    for found in sessions.values():
        found.spans += [span._replace(end=min(shown.until, now)) for span in found.open.values()]
    for scope, file, hold in holds:
        found = session(hold.instance_id, hold.name, scope)
        if hold.since is not None and hold.since <= shown.until and (hold.agent, file) not in found.open:
            end = min(shown.until, now)
            found.spans.append(_Span(_kind(hold.mode), max(hold.since, shown.since), end, file, hold.note))
    for line in waiting:
        if now - line.waited <= shown.until:
            begin = max(shown.since, now - line.waited)
            spans = [_Span("waited", begin, min(shown.until, now), file, "") for file in line.files or ("",)]
            session(line.instance_id, line.name, line.scope).spans.extend(spans)
    drawn = {one: found for one, found in sessions.items() if found.weight}
    chosen = sorted(drawn, key=lambda one: -drawn[one].weight)[:MOST_LANES]
    chosen.sort(key=lambda one: (drawn[one].scope, drawn[one].name, one))  # the same from one moment to the next
    return _drawn(shown, {one: drawn[one] for one in chosen}, len(drawn) - len(chosen))


def _note(session: _Session, one: Happening, since: int) -> None:
    """Add one event to its session."""
    if one.what == EDITED:
        session.edits.append(one)
        return
    key = (str(one.details.get("agent") or ""), one.file)
    is_end = bool(one.details.get("released"))
    if one.what in MARKS and (not is_end or one.what == "lapsed"):
        session.marks.append(one)
    if is_end:
        held = session.open.pop(key, _Span("held", since, one.at, one.file, ""))
        session.spans.append(held._replace(end=one.at))
    elif one.what in ("acquired", "renewed") or one.what.startswith("now "):
        if one.waited:
            session.spans.append(_Span("waited", max(since, one.at - one.waited), one.at, one.file, ""))
        was = session.open.pop(key, None)
        if was:
            begin = was.begin
        elif one.what == "acquired":
            begin = one.at
        else:
            begin = since
        session.open[key] = _Span(_kind(str(one.details.get("mode") or "")), begin, one.at, one.file, one.note)


def _kind(mode: str) -> str:
    if mode in ("shared", "auto"):
        return mode
    return "held"


def _drawn(shown: Timeline, sessions: dict[str, _Session], more: int) -> Picture:
    length = max(1, shown.until - shown.since)

    def x(moment: float) -> float:
        return round(100 * (max(shown.since, min(shown.until, moment)) - shown.since) / length, 2)

    lanes: list[Lane] = []
    y = TOP
    for instance_id, found in sessions.items():
        ends: list[float] = []
        bars = []
        for span in sorted(found.spans, key=lambda one: (one.begin, one.end)):
            row = next((row for row, end in enumerate(ends) if end <= span.begin), len(ends))
            row = min(row, MOST_ROWS - 1)
            if row == len(ends):
                ends.append(span.end)
            ends[row] = max(ends[row], span.end)
            left = min(x(span.begin), 100 - THINNEST)
            width = max(THINNEST, round(x(span.end) - left, 2))
            seconds = span.end - span.begin
            bars.append(
                Bar(span.kind, left, width, y + NAME + (row + 1) * ROW, int(span.begin), span.file, seconds, span.note)
            )
        height = NAME + (1 + len(ends)) * ROW + GAP
        marks = [Mark(one.what, x(one.at), y + NAME + ROW // 2, one) for one in found.marks]
        lanes.append(
            Lane(instance_id, found.name, found.scope, y, height, bars, marks, _edits(found.edits, x, y + NAME))
        )
        y += height
    middles = {lane.instance_id: lane.y + NAME + ROW // 2 for lane in lanes}
    passages = []
    for one in shown.happenings:
        is_given = one.what == "acquired" and isinstance(one.details.get("from"), str)
        is_taken = one.what == "stolen" and isinstance(one.details.get("holder"), str)
        if (is_given or is_taken) and one.other in middles and one.instance_id in middles:
            if is_given:
                kind = "given"
            else:
                kind = "stolen"
            passages.append(Passage(kind, x(one.at), middles[one.other], middles[one.instance_id], one))
    return Picture(lanes, passages, _ticks(shown.since, shown.until, x), y, more)


def _edits(events: list[Happening], x: Callable[[float], float], y: int) -> list[Edits]:
    """Return the edits of a lane, those together that would be drawn as one."""
    found: list[Edits] = []
    for one in sorted(events, key=lambda one: one.at):
        left, right, times = x(one.details["first"]), x(one.at), one.details["times"]
        if found and left - found[-1].x - found[-1].width < APART:
            last = found.pop()
            left, times, files = last.x, times + last.times, [*last.files, one.file]
        else:
            files = [one.file]
        left = min(left, 100 - THINNEST)
        width = max(THINNEST, round(right - left, 2))
        found.append(Edits(left, width, y, one.at, times, list(dict.fromkeys(files))))
    return found


def _ticks(since: int, until: int, x: Callable[[float], float]) -> list[Tick]:
    length = until - since
    step = next((one for one in _STEPS if length / one <= _MOST_TICKS), 86400)
    if step < 60:
        form = "%H:%M:%S"
    elif step < 86400:
        form = "%H:%M"
    else:
        form = "%m-%d"
    offset = time.localtime(since).tm_gmtoff
    first = -(-(since + offset) // step) * step - offset  # whole hours of this place, not of Greenwich
    return [Tick(x(at), time.strftime(form, time.localtime(at))) for at in range(first, until + 1, step)]


# A colour for each session of a checkout, the same on every page.

Session = tuple[str, str]

COLOURS = 8  # `.c0` to `.c7` in the stylesheet
PERSON = "person"  # the class of lines that no session has written
SESSIONS = 100


def colours(store: Store, scope: str, others: Iterable[Session] = ()) -> dict[Session, str]:
    """Return the class of each session: live ones in the order of their registration, then `others`."""
    live = [(row.runtime or "", row.session_id or "") for _, row in islice(store.instances.walk(scope), SESSIONS)]
    return {**numbered([*live, *others]), ("", ""): PERSON}


def numbered(sessions: Iterable[Session]) -> dict[Session, str]:
    """Return ``{session: class}``. Further sessions have the first colours again."""
    return {session: f"c{at % COLOURS}" for at, session in enumerate(dict.fromkeys(sessions))}

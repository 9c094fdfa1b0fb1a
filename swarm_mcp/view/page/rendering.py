"""Templates, the words and addresses in them, and the drawing of the timeline.

A template treats every value as a session's text unless it is marked as safe: characters that hide or reverse text are
escaped first, then those of HTML.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, quote_from_bytes

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from swarm_hook_core.naming import UNNAMED
from swarm_hook_core.untrusted_text import cut, cut_text, safe
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening, Timeline, around_name, incident_of
from swarm_mcp.domain import ENDED, SYSTEM
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import EDITED, NOTHING, Hold, Line, Work, near

LONGEST = 4000  # characters of one text of a session
NO_TIME = "at an unknown time"


def environment() -> Environment:
    """The templates of the page."""
    made = Environment(
        loader=PackageLoader("swarm_mcp.view.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        span=duration,
        lost=_lost,
        ago=_ago,
        clock=_clock,
        stamp=_stamp,
        day_time=_day_time,
        last=_last,
        near=near,
        short=lambda text, longest=120: cut(str(text), longest),
        long=lambda text: cut_text(str(text), LONGEST),
        dollars=_dollars,
        thousands="{:,}".format,
        status=lambda text: safe(str(text)).replace("_", " "),
    )
    made.globals.update(address=address, ended=ENDED, system=SYSTEM, unnamed=UNNAMED)
    return made


def address(path: str, /, **parameters: object) -> str:
    """An address of ours: `parameters` that are empty are left out. Names of files may be in no encoding at all."""
    given = [f"{name}={_quoted(str(value))}" for name, value in parameters.items() if value not in ("", None)]
    return quote(path) + ("?" + "&".join(given) if given else "")


@lru_cache(8192)
def _quoted(text: str) -> str:
    return quote_from_bytes(os.fsencode(text), "")


def _shown(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        if value is None:
            return ""
        return value
    return safe(value)


def _lost(event: Happening) -> tuple[str, str] | None:
    """Return the reason of a refusal or notice: the words before and after the other session's name, "" without one."""
    incident = incident_of(event)
    if incident is None:
        return None
    before, after = around_name(incident, lambda path: near(path, event.scope))
    if after is None:
        return before, ""
    return before, after or " "  # a blank: the name is the last word


def _ago(moment: object, now: float) -> str:
    if not isinstance(moment, (int, float)):
        return NO_TIME
    seconds = now - moment
    if seconds < 2:
        return "just now"
    return f"{duration(seconds)} ago"


def _clock(moment: object) -> str:
    return _local(moment, "%H:%M:%S")


def _stamp(moment: object) -> str:
    return _local(moment, "%Y-%m-%dT%H:%M:%S%z")


def _day_time(moment: object) -> str:
    return _local(moment, "%Y-%m-%d %H:%M:%S")


def _local(moment: object, form: str) -> str:
    """Return a moment as local time. Another program may have stored a value that is no time: the result says so."""
    if not isinstance(moment, (int, float)):
        return NO_TIME
    try:
        return time.strftime(form, time.localtime(moment))
    except (ValueError, OverflowError, OSError):  # another program's value
        return NO_TIME


def _last(path: str) -> str:
    """Return the last part of a path, its name among people; of a pattern such as ``src/**`` the part before it too."""
    folder, _, name = path.rstrip("/").rpartition("/")
    if "*" in name and folder:
        return f"{_last(folder)}/{name}"
    return name or path


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "not known"
    if amount < 1:
        return f"${amount:.4f}"
    return f"${amount:.2f}"


# The request for a page, the parts of a page, and the addresses of pages.

MOST_CHECKOUTS = 20  # checkouts that one page shows whole


class Asked(NamedTuple):
    """A request: `path` below the page's own, its checkout, and its further parameters."""

    path: str
    scope: str
    given: dict[str, str]

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the parameter `name`."""
        return self.given.get(name, otherwise)

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """Return the parameter as a number within bounds; `otherwise` if it is missing."""
        text = self.given.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            return max(least, min(most, int(text)))
        return otherwise


class Look(NamedTuple):
    """One look at the store. `work`: the known uncommitted work by checkout, None for a checkout still being read."""

    store: Store
    people: People
    asked: Asked
    work: dict[str, Work | None]
    now: int

    @property
    def scope(self) -> str:
        """The checkout that is asked for; empty for all of them."""
        return self.asked.scope

    def work_in(self, scope: str) -> Work:
        """Return the known uncommitted work in a checkout, perhaps none yet."""
        return self.work.get(scope) or NOTHING


class Page(NamedTuple):
    """The result of a view: its template, the template's values, and the title.

    `state`, for a page made of files, differs once they have grown.
    """

    template: str
    title: str
    shown: dict[str, Any]
    state: Callable[[], object] | None = None


class View(NamedTuple):
    """A kind of page: its address, its name in the navigation (may be empty), and its function.

    `with_work`: the page shows uncommitted work.
    """

    path: str
    name: str
    make: Callable[[Look], Page]
    with_work: bool = False


# The timeline as a drawing: a lane for each session, with its edits and refusals, and bars for its locks and waits.
#
# Positions and sizes are computed here; ``templates/timeline.html`` draws. Positions in time are in percent of the
# width, positions across it in pixels: the drawing is as wide as its page, and its words keep their size.


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

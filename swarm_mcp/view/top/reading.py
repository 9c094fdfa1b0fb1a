"""A picture of the store: a bounded part of it, read through ``overview`` in one go."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core.untrusted_text import cut, quoted, token
from swarm_hook_core.wording import duration
from swarm_mcp import domain as states
from swarm_mcp.answers.people import Machines, People, machines_of
from swarm_mcp.answers.size import clipped, width
from swarm_mcp.answers.timeline import NOTICE, Incident, incidents, why
from swarm_mcp.answers.work import Edit, Marks, MessageRow, journal_marks, unread
from swarm_mcp.changes.uncommitted import uncommitted_files
from swarm_mcp.domain import ENDED, Run, Session, Task, onlooker
from swarm_mcp.folders import here
from swarm_mcp.runtimes import user_settings
from swarm_mcp.sessions.acting import find_acting_session, onlooker_identity, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import COUNTED, FileNow, Hold, Line, Now, SessionNow, checkouts, now
from swarm_mcp.view.top.picture import Column, Held, Picture, Row, Table, Wish

ROWS = 100  # of a table
SEARCHED = 2000  # locks that are looked through for words
SCOPES = 20
DAY_SECONDS = 86400
# The order of tasks; ended ones are counted elsewhere.
AT_WORK = (states.IN_PROGRESS, states.CLAIMED, states.BLOCKED, states.APPROVAL_REQUIRED, states.OPEN)
ENDED_RUNS = 10
EDIT_SECONDS = 20.0  # Seconds after which uncommitted changes are read anew without a newer edit: a commit ends them.


class Reader:
    """Reads pictures for one viewer, in the scope where it stands. One thread at a time."""

    def __init__(self, scope: str, args: Any):
        self._scope, self._args = scope, args
        self._places = Places(here())
        self._store: Store | None = None
        self._known: dict[str, _Edits] = {}

    def read(self, wish: Wish) -> Picture:
        """Read the wanted rows. Raises SwarmError if the store cannot be read."""
        if self._store is None:
            self._store = Store(read_only=True)
        store = self._store
        store.refresh()
        me = self._me(store)
        own_id, at = me.id if me else "", store.now()
        people = People(store, token(me.label or "", "identity") if me else onlooker_identity(store), own_id)
        if wish.everywhere:
            found = [one.scope for one in checkouts(store, SCOPES)]
        else:
            found = [self._scope]
        parts = [_Part(store, scope, people, self._edits(store, scope, people), bool(wish.words)) for scope in found]
        listed = (
            [row for part in parts for row in sessions(part.now, part.tasks, part.edited, self._places, own_id)],
            [row for part in parts for row in locks(part.now, self._places, own_id)],
            [row for part in parts for row in _incident_table(part.incidents, at, self._places)],
            [row for part in parts for row in work(part.tasks, part.runs, people.called, at)],
            [row for part in parts for row in uncommitted(part.scope, part.edited, at, self._places)],
            [row for part in parts for row in _unread_table(part.scope, part.unread, at)],
        )
        counts = (
            sum(part.now.session_count for part in parts),
            sum(part.lock_count for part in parts),
            len(listed[2]),
            len(listed[3]) + sum(part.task_count - len(part.tasks) for part in parts),
            len(listed[4]),
            sum(part.unread_count for part in parts),
        )
        shown = tuple(_table(*one, wish.words) for one in zip(ALL, listed, counts))
        if wish.everywhere:
            where = f"all checkouts of this machine ({len(found)})"
        else:
            where = self._places.whole(self._scope)
        news = user_settings.lowered(self._scope), machines(machines_of(store, self._scope))
        return Picture(where, shown, self._scope, "; ".join(filter(None, news)))

    def _edits(self, store: Store, scope: str, people: People) -> list[Edit]:
        """Return the uncommitted changes in a scope, a person's too: read anew once a journal has grown, or now and
        then.
        """
        grown, now = journal_marks(scope), time.monotonic()
        known = self._known.get(scope)
        if known is None or known.journals != grown or now - known.at > EDIT_SECONDS:
            known = self._known[scope] = _Edits(grown, now, uncommitted_files(store, scope, people))
        return known.edits

    def _me(self, store: Store) -> Session | None:
        if self._args.value("--as"):
            return find_acting_session(store, self._args, reads=True)
        return surrounding_session(store)


class _Edits(NamedTuple):
    """The uncommitted changes, as read when the journals had these marks."""

    journals: Marks
    at: float
    edits: list[Edit]


class _Part:
    """The rows of one scope."""

    def __init__(self, store: Store, scope: str, people: People, edited: list[Edit], searches: bool):
        viewer = onlooker(people.viewer, scope)
        self.scope, self.edited = scope, edited
        self.now: Now = now(store, scope, people, limit=SEARCHED if searches else ROWS)
        self.lock_count: int = store.locks.counts(scope)["live"]
        self.incidents: list[Incident] = incidents(store, scope, people, store.now() - DAY_SECONDS, ROWS)
        self.unread = unread(store, scope, people, ROWS)
        self.unread_count: int = store.messages.counts(scope, store.now(), people.viewer)["unread"]
        self.tasks: list[Task] = []
        for status in AT_WORK:
            walk = store.tasks.walk(viewer, status)
            self.tasks += [task for _, task in islice(walk, ROWS - len(self.tasks))]
        counts = store.tasks.counts(viewer)
        self.task_count = sum(counts[status] for status in AT_WORK)
        live = store.runs.live(scope)[:ROWS]
        ended = [run for _, run in islice(store.runs.walk(scope, ENDED), ENDED_RUNS)]
        self.runs: list[Run] = [run for run in live + ended if people.may_know(_label(store, run))]
        for run in self.runs:
            people.learn_worker(run)


def _label(store: Store, run: Run) -> str | None:
    session = store.instances.get(run.instance_id)
    if session:
        return session.label
    return None


def _table(table: Table, rows: list[Row], count: int, words: str) -> Table:
    """`table` with the first of `rows`, those with all `words` where there are any. It has `count` in all."""
    wanted = words.casefold().split()
    if wanted:
        looked_at = len([row for row in rows if not row.is_below])
        rows = [row for row in rows if _has(row, wanted)]
        table = table._replace(empty="nothing with these words", searched=looked_at if looked_at < count else 0)
        count = len([row for row in rows if not row.is_below])
    return table._replace(rows=tuple(rows[:ROWS]), number=count)


def _has(row: Row, wanted: list[str]) -> bool:
    text = " ".join(row.cells).casefold()
    return all(word in text for word in wanted)


# The terminal's fitness for a full screen, and for colours.


def obstacle() -> str:
    """Return the obstacle to a full screen here, in a few words; empty without one."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output"), (sys.__stderr__, "error")):
        if stream is None or not stream.isatty():
            return f"standard {name} is no terminal"
    term = os.environ.get("TERM", "")
    if not term or term == "dumb" or _capability("cup") is False:
        return f"the terminal (TERM={term}) cannot place its cursor"
    return ""


def has_colours() -> bool:
    """Return True if colours are wanted and available."""
    return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0" and _capability("setaf") is not False


def _capability(name: str) -> bool | None:
    """Return a capability of this kind of terminal from terminfo; None if unknown."""
    try:
        import curses

        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else -1)
        return curses.tigetstr(name) is not None
    except Exception:  # no such module on this system, or no such terminal in its tables
        return None


# The tables of the screen, made from ``overview``. Every text in them is one line, harmless to a terminal.


LONGEST = 400  # characters of a cell
NUMBER = 9  # characters of a session's name: the digits, and the mark before them

SESSIONS = Table(
    "Sessions",
    (
        Column("session", 34, "name", tail=NUMBER), Column("state", 8, "state"), Column("seen", 7, "faint"),
        Column("holds", 40, "held", keep_end=True), Column("waits for", 40, "busy", keep_end=True), Column("doing", 80),
    ),
    empty="no session is here: one joins when its client starts, a terminal with its first swarm-mcp lock",
)  # fmt: skip
LOCKS = Table(
    "Locks",
    (
        Column("file", 60, keep_end=True), Column("held by", 34, "name", tail=NUMBER), Column("since", 7, "faint"),
        Column("note", 120),
    ),
    empty="nothing is locked",
)  # fmt: skip
REFUSED = Table(
    "Refused",
    (
        Column("file", 60, keep_end=True), Column("who", 34, "name", tail=NUMBER), Column("ago", 7, "faint"),
        Column("why", 200),
    ),
    empty="no write has been refused in the last day",
)  # fmt: skip
WORK = Table(
    "Work",
    (
        Column("task", 70), Column("state", 17, "state"), Column("who", 34, "name", tail=NUMBER), Column("cost", 9),
        Column("for", 7, "faint"), Column("progress", 120),
    ),
    empty="no tasks, no workers: swarm-mcp worker dispatch starts one",
)  # fmt: skip
UNCOMMITTED = Table(
    "Uncommitted",
    (
        Column("file", 60, keep_end=True), Column("changed by", 34, "name", tail=NUMBER), Column("ago", 7, "faint"),
        Column("with", 40),
    ),
    empty="no change waits for a commit",
)  # fmt: skip
UNREAD = Table(
    "Unread",
    (
        Column("to", 34, "name", tail=NUMBER), Column("from", 34, "name", tail=NUMBER), Column("ago", 7, "faint"),
        Column("message", 200),
    ),
    empty="every message has been read",
)  # fmt: skip
ALL = (SESSIONS, LOCKS, REFUSED, WORK, UNCOMMITTED, UNREAD)


class Places:
    """The names of files on this screen: relative to the folder `here`, else to the user's home."""

    def __init__(self, here: str):
        self._here = here.rstrip(os.sep) + os.sep
        self._home = os.path.expanduser("~").rstrip(os.sep) + os.sep

    def shown(self, path: str) -> str:
        """The name of absolute `path` for people."""
        if path.startswith(self._here):
            return path[len(self._here) :]
        return self.whole(path)

    def whole(self, path: str) -> str:
        """The whole name of absolute `path`, from the user's home where it is there."""
        if path.startswith(self._home):
            return f"~{os.sep}{path[len(self._home) :]}"
        return path


def machines(found: Machines | None) -> str:
    """Return one line about the machines that share the checkout, empty without one. Silent machines come first."""
    if found is None:
        return ""
    others = sorted((one for one in found.machines if not one.is_own), key=lambda one: not one.is_offline)
    told = [f"{one.name} {one.state}" for one in others]
    return cut(f"{found.kind} {found.repository} {found.freshness}; {', '.join(told) or 'no other machine'}", LONGEST)


def sessions(now: Now, tasks: list[Task], edited: list[Edit], places: Places, own_id: str) -> list[Row]:
    """Return one row for each session: this one first, then waiting ones, working ones, and holders of locks.

    A session's work is its task, else its last uncommitted edit in `edited`.
    """
    first_held: dict[str, str] = {}
    for file in now.files:
        for hold in file.holds:
            first_held.setdefault(hold.instance_id, file.path)
    waits = {line.instance_id: line for line in reversed(now.lines.waiting)}
    at_work = {task.assignee: task.title for task in reversed(tasks) if task.assignee}
    changed: dict[str, list[Edit]] = {}
    for edit in edited:  # the newest first
        changed.setdefault(edit.instance_id, []).append(edit)

    def order(one: SessionNow) -> tuple[Any, ...]:
        return one.id != own_id, not one.waiting, one.state != "working", not one.held, one.name

    rows = []
    for one in sorted(now.sessions, key=order):
        line, doing = waits.get(one.id), at_work.get(one.id) or _changed(changed.get(one.id, []), places)
        if not doing and not one.is_guarded and one.id != own_id:
            doing = "no hooks of ours guard it"
        cells = (
            one.name, "waits" if one.waiting else one.state, "" if one.silent_for is None else duration(one.silent_for),
            _some(first_held.get(one.id, ""), one.held, places), _wanted(line, places), doing,
        )  # fmt: skip
        if one.id == own_id:
            style = "own"
        else:
            style = ""
        rows.append(Row(one.id, _safe(cells), style, session=one.name, scope=one.scope))
    return rows


def locks(now: Now, places: Places, own_id: str) -> list[Row]:
    """One row for each lock, and below it one for each place in the line for its file."""
    rows = []
    for file in now.files:
        rows += [_held(now.scope, file, hold, now.at, places, own_id) for hold in file.holds]
        rows += [_waits(file, line, place, own_id, places) for place, line in enumerate(file.waits, 1)]
    return rows


def _incident_table(found: list[Incident], at: int, places: Places) -> list[Row]:
    """Return one row for each refusal and notice, the newest first."""
    rows = []
    for one in found:
        words = why(one, places.shown)
        if one.tool:
            words = f"{one.tool}: {words}"
        if one.level == NOTICE:
            words = f"told, {words}"
        if one.repeated:
            words += f", and {one.repeated} more"
        cells = places.shown(one.file), one.name, duration(at - one.at), words
        rows.append(Row(str(one.id), _safe(cells), "faint" * (one.level == NOTICE), file=one.file, scope=one.scope))
    return rows


def work(tasks: list[Task], runs: list[Run], called: Callable[[str], str], at: int) -> list[Row]:
    """Return one row for each task, with its newest worker, and for each worker without one. `called` returns a
    session's name.
    """
    newest = {run.task_id: run for run in reversed(runs) if run.task_id}
    rows = []
    for task in tasks:
        run = newest.get(task.id)
        if run:
            who = called(run.instance_id)
        elif task.assignee:
            who = called(task.assignee)
        else:
            who = ""
        progress = task.blocked_reason or task.progress_summary or ""
        cells = task.title, task.status, who, _cost(run), duration(at - task.updated_at), progress
        rows.append(Row(task.id, _safe(cells), task=task.id, run=run.id if run else "", scope=task.scope))
    listed = {task.id for task in tasks}
    for run in runs:
        if run.task_id in listed and newest[run.task_id] is run:
            continue
        took = (run.ended_at or at) - run.started_at
        name = " ".join(filter(None, (run.harness, run.model)))
        category = (run.result or {}).get("error_category")
        if category:
            outcome = str(category)
        else:
            outcome = ""
        cells = f"worker {name}", _state(run), called(run.instance_id), _cost(run), duration(took), outcome
        rows.append(Row(run.id, _safe(cells), "faint" if run.state == ENDED else "", run=run.id, scope=run.scope))
    return rows


def uncommitted(scope: str, edited: list[Edit], at: int, places: Places) -> list[Row]:
    """Return one row for each file with a change that is not committed, and for each session that made one."""
    return [
        Row(
            f"{one.instance_id} {one.path}", _safe((places.shown(one.path), one.name, duration(at - one.at), one.tool)),
            file=one.path, scope=scope,
        )
        for one in edited
    ]  # fmt: skip


def _unread_table(scope: str, messages: list[MessageRow], at: int) -> list[Row]:
    """Return one row for each message that was not read, the newest first."""
    rows = []
    for one in messages:
        cells = one.recipient, one.sender, duration(at - one.message.created_at), one.text
        rows.append(Row(str(one.message.id), _safe(cells), task=one.task_id, scope=scope))
    return rows


def _held(scope: str, file: FileNow, hold: Hold, at: int, places: Places, own_id: str) -> Row:
    said = [hold.mode if hold.mode != "exclusive" else ""]
    said.append(f"agent {hold.agent}" if hold.agent else "")
    said.append(f"lapses in {duration(hold.lapses_in)}" if hold.lapses_in is not None else "")
    said.append(quoted(hold.note) if hold.note.strip() else "")
    if hold.since is None:
        age = ""
    else:
        age = duration(at - hold.since)
    cells = places.shown(file.path), hold.name, age, "; ".join(filter(None, said))
    own = hold.instance_id == own_id
    if own:
        held = Held(hold.instance_id, hold.agent)
    else:
        held = None
    return Row(hold.lock_id, _safe(cells), "own" if own else "", file=file.path, held=held, scope=scope)


def _waits(file: FileNow, line: Line, place: int, own_id: str, places: Places) -> Row:
    said = ["wants to read" if line.mode == "shared" else ""]
    said.append(f"gives up in {duration(line.gives_up_in)}" if line.gives_up_in is not None else "")
    said.append("shows no life" if line.silent else "")
    others = len(line.files) - 1
    said.append(f"with {others} more" if others > 0 else "")
    if file.holds:
        name = ""
    else:
        name = f" for {places.shown(file.path)}"
    cells = f"  {place}. in line{name}", line.name, duration(line.waited), "; ".join(filter(None, said))
    if line.instance_id == own_id:
        style = "own"
    else:
        style = ""
    return Row(f"{line.ticket} {file.path}", _safe(cells), style, file=file.path, scope=line.scope, is_below=True)


def _changed(edited: list[Edit], places: Places) -> str:
    if not edited:
        return ""
    return f"changed {places.shown(edited[0].path)}" + (f" +{len(edited) - 1}" if len(edited) > 1 else "")


def _some(first: str, count: int, places: Places) -> str:
    """Return the words for a session's locks: the `first` known file, and their number, exact up to COUNTED."""
    if not count or not first:
        if count > 1:
            return f"{count:,} files"
        if count:
            return "1 file"
        return ""
    if count >= COUNTED:
        more = f"{count - 1:,}+"
    else:
        more = f"{count - 1:,}"
    return places.shown(first) + (f" +{more}" if count > 1 else "")


def _wanted(line: Line | None, places: Places) -> str:
    if line is None:
        return ""
    if line.files:
        return places.shown(line.files[0])
    return "a file"


def _cost(run: Run | None) -> str:
    if run is None or run.cost_usd is None:
        return ""
    return f"${run.cost_usd:.4f}"


def _state(run: Run) -> str:
    if run.state != ENDED:
        if run.control:
            return f"{run.state}, {run.control}"
        return run.state
    if (run.result or {}).get("is_error"):
        return "failed"
    return "done"


def _safe(cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(cut(text, LONGEST) for text in cells)


# Columns side by side in the width there is.
#
# The first column tells rows apart: it is cut last. The others give way to it, the widest first, and are left out from
# the right where even that is not enough.

GAP = 1
NARROWEST = 6  # cells of a column before another column is left out
FIRST_LEAST = 34  # cells of the first column, before all others


def widths(table: Table, room: int) -> list[int]:
    """Return the width of each column of `table` in `room` cells; columns that have no room are missing at the end."""
    wanted = []
    for at in range(len(table.columns)):
        column = table.columns[at]
        named = width(table.title if at == 0 else column.heading)
        wanted.append(max(named, min(column.most, max((width(row.cells[at]) for row in table.rows), default=0))))
    for count in range(len(wanted), 1, -1):
        first, others = min(wanted[0], max(FIRST_LEAST, room // 3)), wanted[1:count]
        left = room - GAP * len(others)
        while first + sum(others) > left and max(others) > NARROWEST:
            others[others.index(max(others))] -= 1
        spare = left - first - sum(others)
        if spare >= 0:
            more = min(spare, wanted[0] - first)
            others[-1] += spare - more
            return [first + more, *others]
    return [room]


def line(row: Row, columns: tuple[Column, ...], sizes: list[int]) -> list[tuple[str, Column]]:
    """The cells of a row, cut and filled to the widths in `sizes`."""
    parts = []
    for text, column, size in zip(row.cells, columns, sizes):
        if column.tail:
            end = text[-column.tail :]
        else:
            end = ""
        if not end or width(text) <= size or size < 2 * width(end):
            shown = clipped(text, size, column.keep_end)
        else:
            shown = clipped(text, size - width(end)) + end
        parts.append((shown + " " * (size - width(shown)), column))
    return parts


def heading(table: Table, sizes: list[int]) -> str:
    """Return the line above the rows: the table's title over the first column, then the other headings."""
    names = [table.title, *(column.heading for column in table.columns[1:])]
    cells = []
    for text, size in zip(names, sizes):
        shown = clipped(text, size)
        cells.append(shown + " " * (size - width(shown)))
    return (" " * GAP).join(cells)


# The distribution of a screen's lines among panes.

LEAST = 3  # lines that a pane gets before another gets more: its heading and two rows


def shared(needs: list[int], lines: int) -> list[int]:
    """Return the lines of each pane: a small need is met whole, large ones share equally.

    Spare lines go to the last pane.
    """
    given = [min(LEAST, need, lines // len(needs)) for need in needs]
    left = lines - sum(given)
    while left > 0:
        wanting = [at for at, need in enumerate(needs) if need > given[at]]
        if not wanting:
            break
        least = min(wanting, key=lambda at: given[at])
        given[least] += 1
        left -= 1
    given[-1] += max(0, left)
    return given

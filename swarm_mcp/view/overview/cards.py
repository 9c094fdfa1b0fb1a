"""One card per session: its work, its files and locks, and the reasons why it needs a person."""

from __future__ import annotations

import os
import shlex
from itertools import islice
from typing import Any, NamedTuple

from swarm_hook_core import greetings
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup import plain
from swarm_hook_core.naming import UNNAMED
from swarm_hook_core.wording import duration
from swarm_mcp import domain as states
from swarm_mcp.agents.harness import record
from swarm_mcp.agents.harness.narration import to_transcript
from swarm_mcp.agents.harness.record import event_of
from swarm_mcp.answers.people import People, short
from swarm_mcp.answers.timeline import Happening, timeline
from swarm_mcp.answers.work import Edit, Marks, MessageRow, TaskRow, file_marks, message_row, messages, task_row
from swarm_mcp.changes.owners import A_PERSON, PERSONS
from swarm_mcp.domain import REMOTE, SYSTEM, Denial, Message, Run, Session, Task, onlooker
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import (
    COUNTED,
    FileNow,
    Hold,
    Line,
    Names,
    Now,
    SessionNow,
    Share,
    Work,
    files_of,
    lines,
    near,
)

HOUR = 3600
OFTEN = 3  # refusals in an hour after which a session is stuck
READ = 200  # newest messages, and tasks of each state, of a checkout that are looked through
QUOTED = 60  # characters of a message
STUCK, REFUSED, UNREAD, UNCOMMITTED, GONE = "stuck", "refused", "unread", "uncommitted", "gone"
ORDER = (STUCK, REFUSED, UNREAD, UNCOMMITTED, GONE)  # the most urgent first


class PageDeed(NamedTuple):
    """A command that the page offers (``page.acting``), with the session and the file that it is about."""

    words: str
    kind: str
    session: str = ""
    path: str = ""


class Reason(NamedTuple):
    """A reason why a session needs a person (one of `ORDER`), in words, and the command to run."""

    kind: str
    words: str
    command: str
    deed: PageDeed | None = None


class Doing(NamedTuple):
    """The present work of a session: a task (`task_id`), or the words of its prompt or of its newest lock."""

    words: str
    task_id: str


class File(NamedTuple):
    """An uncommitted file of a session. `share` is None if git has no answer yet, or for another machine."""

    path: str
    share: Share | None


class Card(NamedTuple):
    """One session. `session` is its key among `Work.shares`; `refused` its last refusal within the hour, or None.

    `locks`: its locks among those shown, each with the path. `commands`: further commands for a person.
    """

    row: SessionNow
    session: tuple[str, str]
    doing: Doing | None
    reasons: list[Reason]
    files: list[File]
    locks: list[tuple[str, Hold]]
    waits: list[Line]
    refused: Happening | None
    refusals: int
    commands: list[str]


def cards(store: Store, shown: Now, people: People, found: Work, refused: list[Happening]) -> list[Card]:
    """Return a card for each session of a checkout, those that need a person first.

    `refused`: the refusals of the last `HOUR`, the last one first.
    Sessions that have gone, and a person, have a card as long as uncommitted work of theirs is there.
    """
    facts = _Facts(store, shown, people, found, refused)
    made = [facts.card(row) for row in shown.sessions]
    live = {card.session for card in made}
    made += [facts.gone(session) for session in found.shares if any(session) and session not in live]
    if any(not one.instance_id for one in found.edits):
        made.append(facts.person())
    made.sort(key=lambda card: min((ORDER.index(one.kind) for one in card.reasons), default=len(ORDER)))
    return made


class _Facts:
    """The facts of a checkout that its cards share, each read once."""

    def __init__(self, store: Store, shown: Now, people: People, found: Work, refused: list[Happening]):
        self._scope, self._people, self._work, self._names = shown.scope, people, found, Names(store, people)
        self._by_id = {row.id: row for row in shown.sessions}
        self._lines = shown.lines.waiting
        self._locks: dict[str, list[tuple[str, Hold]]] = {}
        for file in shown.files:
            for hold in file.holds:
                self._locks.setdefault(hold.instance_id, []).append((file.path, hold))
        self._refused: dict[str, list[Happening]] = {}
        for one in refused:
            self._refused.setdefault(one.instance_id, []).append(one)
        # The events leave out repeats within a minute. A session in a hurry is counted by its storm.
        self._storms: dict[str, list[Denial]] = {}
        for denial in store.storms.known(shown.scope, READ, OFTEN):
            self._storms.setdefault(denial.instance_id, []).append(denial)
        self._unread: dict[str, list[Message]] = {}
        for _, message in islice(store.messages.walk(shown.scope, viewer=people.viewer), READ):
            if not message.read and message.recipient and message.sender != SYSTEM:
                self._unread.setdefault(message.recipient, []).append(message)
        self._prompts = greetings.kept()
        self._tasks: dict[str, Task] = {}
        viewer = onlooker(people.viewer, shown.scope)
        for state in (states.IN_PROGRESS, states.CLAIMED):
            for _, task in islice(store.tasks.walk(viewer, state), READ):
                self._tasks.setdefault(task.assignee or "", task)

    def card(self, row: SessionNow) -> Card:
        session = (row.runtime, row.client_id)
        locks, refused = self._locks.get(row.id, []), self._refused.get(row.id, [])
        waits = [line for line in self._lines if line.instance_id == row.id]
        files = self._files(row.id, session)
        # ``{file: number of refusals}`` of a session within the hour
        counts: dict[str, int] = {}
        for one in refused:
            counts[one.file] = counts.get(one.file, 0) + 1
        for storm in self._storms.get(row.id, ()):
            counts[plain(storm.file)] = max(storm.times or 0, counts.get(plain(storm.file), 0))
        reasons = [*self._stuck(waits), *self._often_refused(counts)]
        if not row.is_guarded:  # a hook tells its session of messages
            reasons += self._unread_by(row)
        commands = []
        if files and row.runtime != REMOTE:
            look = f"swarm-mcp diff --session {short(row.id)}"
            if row.state == "idle":
                reasons.append(Reason(UNCOMMITTED, f"finished its turn; {_files(len(files))} not committed", look))
            else:
                commands.append(look)
        last = refused[0] if refused else None
        return Card(
            row, session, self._doing(row, locks), reasons, files, locks, waits, last, sum(counts.values()), commands
        )

    def gone(self, session: tuple[str, str]) -> Card:
        """Return the card of a session that has gone, and left uncommitted work."""
        (_id, name), number = self._names.of(session), session[1][:8]
        files = [File(one.path, one) for one in self._work.shares[session]]
        row = SessionNow("", self._scope, name, session[0], GONE, "", None, True, 0, 0, len(files), session[1])
        look = f"swarm-mcp diff --session {shlex.quote(number)}"
        reason = Reason(GONE, f"has gone; {_files(len(files))} not committed", look)
        undo = f"swarm-mcp undo --session {shlex.quote(number)} --dry-run"
        return Card(row, session, None, [reason], files, [], [], None, 0, [undo])

    def person(self) -> Card:
        """Return the card of a person with uncommitted work."""
        files = self._files("", PERSONS)
        row = SessionNow("", self._scope, A_PERSON, "person", "", "", None, True, 0, 0, len(files))
        return Card(row, PERSONS, None, [], files, [], [], None, 0, ["swarm-mcp diff --person"])

    def _files(self, instance_id: str, session: tuple[str, str]) -> list[File]:
        shares = {one.path: one for one in self._work.shares.get(session, ())}
        paths = dict.fromkeys(one.path for one in self._work.edits if one.instance_id == instance_id)
        return [File(path, shares.get(path)) for path in paths]

    def _doing(self, row: SessionNow, locks: list[tuple[str, Hold]]) -> Doing | None:
        task = self._tasks.get(row.id)
        if task:
            return Doing(task.title, task.id)
        if row.name != UNNAMED and greetings.name_in(row.runtime, row.client_id) in self._prompts:
            return Doing(greetings.first_words(row.runtime, row.client_id), "")
        note = next((hold.note for _, hold in locks if hold.note), "")
        if note:
            return Doing(note, "")
        return None

    def _stuck(self, waits: list[Line]) -> list[Reason]:
        """Return a reason for each wait for a lock of an idle session."""
        found = []
        for line in waits:
            for one in line.obstacles:
                holder = self._by_id.get(one.instance_id)
                if one.lock_id and holder and holder.state == "idle":
                    file = near(one.file, self._scope) or "a file"
                    words = f"waits for {file}, {duration(line.waited)} so far: {holder.name} holds it and is idle"
                    command = f"swarm-mcp unlock {word(file)} --as {short(holder.id)}"
                    found.append(Reason(STUCK, words, command, PageDeed("release it", "unlock", holder.id, one.file)))
        return found

    def _often_refused(self, counts: dict[str, int]) -> list[Reason]:
        times = sum(counts.values())
        if times < OFTEN:
            return []
        file = near(max(counts, key=lambda one: counts[one]), self._scope)
        if not file:
            return [Reason(REFUSED, f"was refused {times} times within the hour", "swarm-mcp log")]
        words = f"was refused {times} times within the hour, most often {file}"
        return [Reason(REFUSED, words, f"swarm-mcp why {word(file)}")]

    def _unread_by(self, row: SessionNow) -> list[Reason]:
        unread = self._unread.get(row.id, [])
        if not unread:
            return []
        first = message_row(unread[-1], self._people)
        text = " ".join(first.text.split())
        if len(text) > QUOTED:
            text = f"{text[: QUOTED - 1]}…"
        count = f"{len(unread)} messages" if len(unread) > 1 else "a message"
        words = f"has not read {count}; {first.sender} wrote “{text}”"
        return [Reason(UNREAD, words, f"swarm-mcp msg wake {short(row.id)} 'Read your messages'")]


def _files(count: int) -> str:
    if count == 1:
        return "1 file is"
    return f"{count} files are"


def word(file: str) -> str:
    """Return a file name as one word of a shell."""
    return shlex.quote(f"./{file}" if file.startswith("-") else file)


# One session whole: its place, locks, waits, tasks, messages and events.

FILES, TASKS, MESSAGES, HAPPENINGS = 100, 20, 10, 50  # that are shown


class SessionWhole(NamedTuple):
    """A session called `name`. `row` is None for a departed session, `run` for one that is no running worker.

    `files`: its locked, awaited and changed files; `lock_count` counts its locks up to `COUNTED`. `tasks` are assigned
    to it, `asked` were requested by it; `told` and `said` are messages to and from it; `happened` are its events,
    newest first.
    """

    id: str
    scope: str
    name: str
    row: Session | None
    run: Run | None
    files: list[FileNow]
    lock_count: int
    waits: list[Line]
    tasks: list[TaskRow]
    asked: list[TaskRow]
    told: list[MessageRow]
    said: list[MessageRow]
    happened: list[Happening]


def session_whole(
    store: Store, instance_id: str, scope: str, people: People, since: int, edited: list[Edit]
) -> SessionWhole:
    """Return all about a session; about a departed one, its events in `scope` since then.

    `edited` is the result of ``edits.edits`` in its scope. Raises UnknownInstance for an unknown id.
    """
    row = store.instances.with_evidence(instance_id)
    if row:
        scope = row.scope
    happened = [
        one for one in timeline(store, scope, people, since, store.now()).happenings[::-1]
        if instance_id in (one.instance_id, one.other)
    ][:HAPPENINGS]  # fmt: skip
    if row is None and not happened:
        raise UnknownInstance("that session is unknown (events are kept for about a day)")
    # the events of a departed session still have its name
    name = people.name(row) if row else people.called(instance_id)
    waits = [line for line in lines(store, scope, people).waiting if line.instance_id == instance_id]
    held = store.locks.recent_of([instance_id], people.viewer, FILES, ())
    lock_count = store.locks.counts_of([instance_id], COUNTED)[instance_id]
    changed = [one for one in edited if one.instance_id == instance_id]
    viewer = onlooker(people.viewer, scope)
    told = messages(store, scope, people, limit=MESSAGES, to=instance_id)
    said = messages(store, scope, people, limit=MESSAGES, sender=instance_id)

    def tasks(assignee: str = "", requester: str = "") -> list[TaskRow]:
        found = store.tasks.walk(viewer, assignee=assignee, requester=requester)
        return [task_row(task, people) for _, task in islice(found, TASKS)]

    return SessionWhole(
        instance_id, scope, name, row, store.runs.of_instance(instance_id),
        files_of(held, waits, changed, people, FILES), lock_count, waits,
        tasks(assignee=instance_id), tasks(requester=instance_id), told.rows, said.rows, happened,
    )  # fmt: skip


# The end of a worker's record. Only its last part is read, however long it is.

LAST_BYTES = 512 * 1024
MOST = 200  # entries


class Transcript(NamedTuple):
    """The last entries, as ``harness.narration`` has them, oldest first; `is_cut` where there were more before."""

    entries: list[dict[str, Any]]
    is_cut: bool


def last_entries(run: Run, limit: int = MOST) -> Transcript:
    """Return the end of a run's transcript; empty if the record is missing or unreadable."""
    entries: list[dict[str, Any]] = []
    if run.record:
        files = record.files_of(run.record)
    else:
        files = []
    left = LAST_BYTES
    for path in reversed(files):
        try:
            lines, is_whole = _last_lines(path, left)
        except OSError:  # no record yet
            continue
        entries[:0] = [entry for line in lines for entry in _entries(line)]
        left -= sum(map(len, lines))
        if len(entries) > limit or not is_whole or left <= 0:
            return Transcript(entries[-limit:], True)
    return Transcript(entries, False)


def record_marks(run: Run) -> Marks:
    """The marks of the files of a run's record: they differ once there is more in it."""
    return file_marks(record.files_of(run.record) if run.record else ())


def _last_lines(path: str, most: int) -> tuple[list[bytes], bool]:
    """Return the whole lines in the last `most` bytes of a file, and True if that is all of it."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - most)
        file.seek(begin)
        lines = file.read(most).split(b"\n")
    return lines[1 if begin else 0 :], begin == 0


def _entries(line: bytes) -> list[dict[str, Any]]:
    try:
        if line:
            found = loads(line.decode("utf-8", "replace"))
        else:
            found = None
    except (ValueError, RecursionError):  # a torn line
        return []
    if isinstance(found, dict):
        event = event_of(found)
    else:
        event = None
    if event:
        return to_transcript(event)
    return []

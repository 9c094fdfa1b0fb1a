"""Everything noted in a place: journals, versions, inputs; and the calls that may have written a file, by these.

Each is read once. A question about one file reads them as well. One about many files makes `Notes`, and hands them on
to each `History`: so it costs as much for each file, however many there are. Later entries and versions are not seen,
but for `Notes.rounds`.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from swarm_hook_core.paths import keys_for, real_paths
from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    NO_FILE,
    OWN_NS,
    UNDO,
    append,
    escaped,
    first_line,
    journal,
    journal_name,
    kept_dir,
    keys_of,
    names_in,
    place_of,
    seen,
    state_of,
    transcript,
    version_name,
    version_path,
)
from swarm_hook_core.traces import entry as entry_line
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.others import is_in
from swarm_hook_core.traces.transcript import Logs
from swarm_hook_core.traces.unread import Reading, UnreadCommands, looks_only
from swarm_hook_core.traces.versions import is_of, keep, keep_missing, keep_text
from swarm_hook_core.traces.versions.replay import Input, Inputs
from swarm_hook_core.traces.versions.stored import (
    ENDED,
    Version,
    ended_at,
    found_at,
    journal_files,
    journals_of,
    kept_by,
)
from swarm_hook_core.watching.records import Snapshot, full_resolved

_ENDING = {b"over", b"is", *seen.CALLS}  # kinds of entries that tell the end of an earlier call
_MANY = ("kept", "ran", "runs", "clears")  # kinds of entries that are no file's own
MOMENTS = 3  # looks at a file, while sessions go on to note something


class Ends:
    """The entries of a journal that tell the ends of earlier calls, sorted: each of thousands of calls asks."""

    def __init__(self) -> None:
        self._all: dict[bytes, list[int]] = {}  # agent -> times of entries of all kinds
        self._over: dict[bytes, list[int]] = {}  # agent -> times of the kind ``over``
        self._calls: dict[bytes, list[int]] = {}  # agent -> times of calls
        self._turns: dict[bytes, list[int]] = {}  # agent -> ends of turns
        self._noted: set[int] = set()  # ends that the hook after a call has noted

    def add(self, words: list[bytes]) -> None:
        """Add an entry by the four words of its head, if it tells an end."""
        if words[1] not in _ENDING:
            return
        at_ns = int(words[0])
        self._all.setdefault(words[2], []).append(at_ns)
        if words[1] == b"over":
            self._over.setdefault(words[2], []).append(at_ns)
            if words[3] != b"-":
                self._noted.add(at_ns)
            else:
                self._turns.setdefault(words[2], []).append(at_ns)
        elif words[1] != b"is":
            self._calls.setdefault(words[2], []).append(at_ns)

    def sort(self) -> None:
        """Sort the times, after the last `add`."""
        for by_agent in (self._all, self._over, self._calls, self._turns):
            for times in by_agent.values():
                times.sort()

    def of(self, entry: Entry) -> float:
        """Return the end of the call of `entry`, infinity if unknown.

        A later call of the same agent begins after it, unless the two may have run side by side.
        """
        agent = (entry.agent or "-").encode()
        later = _first_after(self._all.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._over.get(agent, []), entry.at_ns))

    def next_of(self, entry: Entry) -> float:
        """Return the time of the next call of the agent of `entry`, or of the turn's end; infinity if it is to come."""
        agent = (entry.agent or "-").encode()
        later = _first_after(self._calls.get(agent, []), entry.at_ns + seen.APART_NS)
        return min(later, _first_after(self._turns.get(agent, []), entry.at_ns))

    def is_noted(self, end_ns: float) -> bool:
        """Return True if the hook after a call has noted this end."""
        return end_ns in self._noted


class JournalNotes:
    """The entries `data` of the journal `name` in `place`, by file; and the inputs beside the versions.

    owner  ``(runtime, session id)``
    ends   the ends of its calls
    """

    def __init__(self, place: str, name: str, data: bytes):
        if not data.endswith(b"\n"):
            data += b"\n"  # the last line may be torn
        self.name = name
        self.data = data
        self.owner = journal.owner_of(data)
        self.ends = Ends()
        # Places of lines: the lines themselves would take several times the room of a long journal.
        self._of_file: dict[bytes, array[int]] = {}
        self._of_kind = {kind: array("q") for kind in _MANY}
        self._parsed: dict[str, list[Entry]] = {}  # results of `of_kind`
        self._last: tuple[str, list[Entry]] = ("", [])  # the file asked about last, and its entries
        self.inputs = Inputs(place, name)
        self._reading = Reading(None, real_paths())
        self._commands = UnreadCommands(data, self._reading, most_files=None)
        of_kind, begin = {kind.encode(): places for kind, places in self._of_kind.items()}, 0
        for raw in data.split(b"\n"):
            head, _, rest = raw.partition(b"\0")
            words = head.split(b" ")
            if len(words) == 4 and words[0].isdigit():  # else torn
                self.ends.add(words)
                if words[1] in of_kind:
                    of_kind[words[1]].append(begin)
                self._of_file.setdefault(rest.partition(b"\0")[0], array("q")).append(begin)
            begin += len(raw) + 1
        self.ends.sort()

    @cached_property
    def logs(self) -> Logs:
        """The logs of the client. They tell the end of an interrupted call, after which no hook runs."""
        return transcript.logs_of(self.name, self.owner[1])

    def of_file(self, path: str, kinds: Collection[str]) -> Iterator[Entry]:
        """Return the entries of these kinds about the path with this key, the newest first."""
        if self._last[0] != path:  # the questions about one file come together
            self._last = path, self._at(self._of_file.get(escaped(path), ()))
        return (entry for entry in self._last[1] if entry.kind in kinds)

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the entries of one of the kinds ``kept``, ``ran``, ``runs``, ``clears``, the newest first."""
        if kind not in self._parsed:
            self._parsed[kind] = self._at(self._of_kind[kind])
        return self._parsed[kind]

    def _at(self, places: Sequence[int]) -> list[Entry]:
        lines = (self.data[place : self.data.index(b"\n", place)] for place in reversed(places))
        return list(journal.entries(lines))

    def commands_that_wrote(self, path: str) -> list[Entry]:
        """Return the unparsed commands that wrote the file at `path`. Parsing has a time of its own for each file."""
        if not self._of_kind["ran"]:
            return []
        self._reading.begin_anew()
        return self._commands.that_wrote(keys_for(path, "/", self._reading.real))


class _Names(Sequence[str]):
    """The names of files, sorted: many thousands, in one piece."""

    def __init__(self, names: Iterable[str]):
        found = sorted(names)
        self._places, self._text = array("q", accumulate(map(len, found), initial=0)), "".join(found)

    def __len__(self) -> int:
        return len(self._places) - 1

    def __getitem__(self, at: Any) -> Any:
        return self._text[self._places[at] : self._places[at + 1]]


class PlaceNotes:
    """Everything noted in one `place`.

    journals  ``{name: JournalNotes}``
    ended     ``{name: time}`` of the ends of sessions
    """

    def __init__(self, place: str):
        self.place = place
        # A new journal changes the folder. Looks at folders with many versions would cost each file its own.
        paths = [place, *(path for _name, path in journal_files(place))]
        self._states = {path: state_of(path) for path in paths}
        self.journals = {name: JournalNotes(place, name, data) for name, data in journals_of(place).items()}
        self.ended = ended_at(place)
        self._kept_before = {
            (name, entry.at_ns) for name, noted in self.journals.items() for entry in noted.of_kind("kept")
        }
        self._base = base = kept_dir(place)
        self._names = {name: _Names(names_in(os.path.join(base, name))) for name in names_in(base)}  # of versions
        self._kept: dict[str, tuple[list[int], list[tuple[str, Version]]]] = {}

    @cached_property
    def commands(self) -> list[Act]:
        """The commands with unknown files of all journals."""
        found = [
            _act(noted, entry, ())
            for noted in self.journals.values()
            for entry in (*noted.of_kind("ran"), *noted.of_kind("runs"))
            if not looks_only(b"\0" + entry.text.encode("utf-8", "surrogatepass"))
        ]
        _end_with_sessions(found, self.ended)
        return found

    def is_current(self) -> bool:
        """Return True if nothing was noted here since then."""
        return all(state_of(path) == state for path, state in self._states.items())

    def owner_by(self, name: str) -> tuple[str, str]:
        """Return ``(runtime, session id)`` of the session with this journal; its id may be abridged there."""
        if name in self.journals and self.journals[name].owner[1]:
            return self.journals[name].owner
        runtime, _, session_id = name.partition(".")
        return runtime, session_id

    def has_kept(self, name: str, at_ns: int) -> bool:
        """Return True if the session's own files were kept before its command of this time (``keeping``)."""
        return (name, at_ns) in self._kept_before

    def versions(self, path: str) -> list[Version]:
        """Return the versions of the file as ``stored.versions_of``, also half and missing copies, the oldest first."""
        found, first = [], version_name(path)
        for name, names in self._names.items():
            for at in range(bisect_left(names, first), len(names)):
                if not names[at].startswith(first):
                    break
                if is_of(names[at], first):
                    found.append(found_at(f"{self._base}/{name}/{names[at]}"))
        return sorted((one for one in found if one is not None and not one.is_lost), key=lambda one: one.at_ns)

    def kept_between(self, name: str, since_ns: int, until_ns: int) -> list[tuple[str, Version]]:
        """Return ``[(path, version)]`` of the versions that a session has kept between the two times."""
        if name not in self._kept:
            found = sorted(kept_by(self.place, name), key=lambda one: one[1].at_ns)
            self._kept[name] = [version.at_ns for _path, version in found], found
        times, found = self._kept[name]
        return found[bisect_left(times, since_ns) : bisect_right(times, until_ns)]


class Notes:
    """The notes of all places that one question meets."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}  # folder -> its place
        self._places: dict[str, PlaceNotes] = {}

    def of(self, folder: str) -> PlaceNotes:
        """Return the notes of the place of files in `folder`. Raises OSError."""
        if folder not in self._folders:
            self._folders[folder] = place_of(folder)
        place = self._folders[folder]
        if place not in self._places:
            self._places[place] = PlaceNotes(place)
        return self._places[place]

    def rounds(self, folder: str) -> Iterator[None]:
        """Yield once for each look at a file in `folder` and at the notes of it, until both are of one moment.

        A write is noted before it is made. So a look is over if nothing was noted since the notes were read; else they
        are read anew. The last of `MOMENTS` looks is taken as it is. Raises OSError.
        """
        for _moment in range(MOMENTS):
            place = self.of(folder)
            yield
            if place.is_current():
                return
            self._places.pop(place.place, None)


def _first_after(times: list[int], at_ns: int) -> float:
    """Return the first of the sorted `times` after `at_ns`, infinity without any."""
    index = bisect_right(times, at_ns)
    return times[index] if index < len(times) else float("inf")


# ------------------------------------------------------------------------------------------------ calls

SHELL = frozenset({"Bash", "Monitor", "shell", "local_shell", "exec_command", "PowerShell"})


class Author(NamedTuple):
    """A session, or one of its agents, with the call that may have made a step. Without a session: a person, or a
    program that no session is known to have started.

    at_ns  time of the call's check; the last one if several calls made the step
    """

    runtime: str = ""
    session_id: str = ""
    agent: str = ""
    tool: str = ""
    at_ns: int = 0

    @property
    def is_person(self) -> bool:
        return not self.session_id

    @property
    def session(self) -> tuple[str, str]:
        """``(runtime, session id)``, empty for a person."""
        return (self.runtime, self.session_id)


PERSON = Author()


class Act:
    """A call that may have written the file.

    end_ns   end of the call, infinity if unknown
    late_ns  a change of the file until this time is certainly the call's; 0 for a call without an entry: its hook was
             killed, or the journal was cut
    is_once  True for a write tool: it writes once
    is_over  True once that write has been seen
    has_state  True if the file's state before it is noted
    is_ended  True if the hook after the call has noted its end
    input  of a write tool, if it was kept
    size  of the file before the call, -1 if unknown
    is_doubtful  True if the call has written a whole text over a content of another size than is known: it may have
             taken over another's lines
    next_ns  of a call that names the file: time of the same agent's next call, or of the turn's end; else 0
    is_made  True if its write was made, as far as that is known
    is_long  True for a command that went on in the background, or without a known end: a change after `late_ns` may be
             its own
    """

    __slots__ = (
        "author", "at_ns", "end_ns", "late_ns", "is_once", "is_over", "has_state", "is_ended", "input", "size",
        "is_doubtful", "next_ns", "is_made", "is_long",
    )  # fmt: skip

    def __init__(
        self, author: Author, end_ns: float, late_ns: float, is_once: bool, has_state: bool = False,
        is_ended: bool = False,
    ):  # fmt: skip
        self.author = author
        self.at_ns = author.at_ns
        self.end_ns = end_ns
        self.late_ns = late_ns
        self.is_once = is_once
        self.is_over = False
        self.has_state = has_state
        self.is_ended = is_ended
        self.input: Input | None = None
        self.size = -1
        self.is_doubtful = False
        self.next_ns: float = 0
        self.is_made = True
        self.is_long = False

    def may_write_at(self, at_ns: float) -> bool:
        """Return True if the call may have written at this time of change."""
        return self.at_ns - journal.SLACK_NS <= at_ns <= self.end_ns

    def has_certainly_written_at(self, at_ns: int) -> bool:
        """Return True if a change of the file at this time is certainly the call's, if no other call ran then."""
        return self.at_ns - journal.SLACK_NS <= at_ns <= self.late_ns + journal.SLACK_NS


def acts_on(path: str, notes: PlaceNotes, versions: list[Version]) -> list[Act]:
    """Return the calls that name the file at `path`, or are known to have written it, in order of time.

    `notes`: those of its place; `versions`: its own.
    """
    found, known = [], set()
    for name, noted in notes.journals.items():
        looks = [one.at_ns for one in versions if one.journal == name and one.is_after]
        states = {entry.at_ns for entry in noted.of_file(path, ("before",))}
        known |= {(name, at_ns) for at_ns in states}
        for entry in _entries_about(path, noted):
            given = noted.inputs.at(entry.at_ns) if entry.kind == "wrote" else None
            act = _act(noted, entry, looks, bool(given))
            act.has_state = act.has_state or entry.at_ns in states
            if entry.kind == "wrote":
                act.input = given
                if entry.text != NO_FILE:
                    act.size = number_in(entry.text.rpartition(" ")[2])
                act.next_ns = noted.ends.next_of(entry)
                act.is_made = act.input is None  # else a step tells
            found.append(act)
            known.add((name, entry.at_ns))
    for one in versions:
        if not one.is_look and (one.journal, one.at_ns) not in known:  # its entry was never written, or is gone
            author = Author(*notes.owner_by(one.journal), at_ns=one.at_ns)
            found.append(Act(author, float("inf"), 0, is_once=False))
    _end_with_sessions(found, notes.ended)
    return sorted(found, key=lambda act: act.at_ns)


def _entries_about(path: str, noted: JournalNotes) -> list[Entry]:
    """Return the entries of a journal about calls that may have written the file."""
    found, is_answered = [], False
    for entry in noted.of_file(path, ("wrote", "will", "wont")):
        if entry.kind == "wrote" or (entry.kind == "will" and not is_answered):  # its hook was killed
            found.append(entry)
        is_answered = entry.kind != "will"
    keys = keys_of(path)
    found += [entry for entry in noted.of_kind("clears") if is_in(keys, entry.key)]
    return found + noted.commands_that_wrote(path)


def _end_with_sessions(acts: list[Act], ended: dict[str, int]) -> None:
    """Let the calls end no later than their sessions. `ended`: ``{name of the journal: time}``."""
    for act in acts:
        ended_ns = ended.get(journal_name(*act.author.session), 0)
        if ended_ns > act.at_ns:
            act.end_ns, act.late_ns = min(act.end_ns, ended_ns), min(act.late_ns, ended_ns)
            act.next_ns = min(act.next_ns, ended_ns)


def _act(noted: JournalNotes, entry: Entry, looks: Collection[int], is_known: bool = False) -> Act:
    """Return the Act of an entry.

    looks     times of the session's looks at the file at the end of a call
    is_known  True if the call's input tells the content after it: the client's log is not asked for its end
    """
    ends = noted.ends
    author = Author(*noted.owner, entry.agent, entry.tool, entry.at_ns)
    look_ns: float = min((at for at in looks if at > entry.at_ns), default=float("inf"))
    end_ns = min(ends.of(entry), look_ns)
    is_once = entry.kind in ("wrote", "will") and entry.tool not in SHELL
    is_ended = end_ns < float("inf") and (end_ns == look_ns or ends.is_noted(end_ns))
    if not is_ended and not is_known:
        told_ns = noted.logs.of(entry.agent).end_of(entry.at_ns)
        if told_ns:
            end_ns, is_ended = min(end_ns, told_ns), True
    late_ns = end_ns
    if not is_ended:  # the next call tells only that this one is over by then
        late_ns = min(end_ns, entry.at_ns + OWN_NS)
    act = Act(author, end_ns, late_ns, is_once, entry.kind in ("wrote", "will"), is_ended)
    if entry.tool in SHELL:
        act.end_ns = max(end_ns, noted.logs.of(entry.agent).end_apart(entry.at_ns))
        act.is_long = act.end_ns > late_ns and (act.end_ns > end_ns or not is_ended)
    return act


def joined(authors: Iterable[Author]) -> tuple[Author, ...]:
    """Return one Author for each session and agent, of its last call."""
    found: dict[tuple[str, ...], Author] = {}
    for author in authors:
        key = (*author.session, author.agent)
        if key not in found or found[key].at_ns < author.at_ns:
            found[key] = author
    return tuple(found.values())


def authors_of(acts: Iterable[Act]) -> tuple[Author, ...]:
    return joined(act.author for act in acts)


def number_in(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 0


# Writes that are certainly a person's: saves that an editor reports (`swarm-mcp lsp`), and undos.
#
# They are noted beside the versions of sessions, in a journal and a folder of their own:
#
# <state>/kept/<place>/person.undo/%journal      entries of the kind ``is``
# <state>/kept/<place>/person.undo/<path>...     the content before and after
#
# Two entries tell a save: of the tool `SAVING`, with the content as the editor last read it, and of the tool `SAVED`.
# The step between the two is the person's, also if a session's command ran at that time.

PERSONS = "person.undo"  # the journal's name; undos came first
OWNER = ("person", "")  # of that journal
SAVING, SAVED = "swarm:saving", "swarm:saved"  # the tools of entries about a save


class Content(NamedTuple):
    """The content of a file at the time `at_ns`, with its state then."""

    at_ns: int
    state: Snapshot
    data: bytes


def note_save(path: str, before: Content | None, after: Content) -> None:
    """Note that a person has saved the file at `path`, links resolved. Raises OSError.

    before  the content that the editor last read, None if it is unknown
    """
    place = place_of(os.path.dirname(path))
    lines = []
    for content, mark, tool in ((before, LOOK, SAVING), (after, AFTER, SAVED)):
        if content is None:
            continue
        target = f"{version_path(place, PERSONS, path)}{mark}{content.at_ns}"
        if content.state.exists:
            keep_text(content.data, target, content.at_ns, content.state.mode)
        else:
            keep_missing(target, content.at_ns)
        lines += [entry_line(content.at_ns, "is", "", tool, key, str(content.state)) for key in keys_of(path)]
    append(journal_path(place), lines, lambda: first_line(*OWNER, os.path.dirname(path)))


def note_undo(path: str, mark: str, at_ns: int, by: tuple[str, str]) -> None:
    """Keep the present content of the file at `path` as a version, and note it. Raises OSError.

    A file has it right before an undo (`mark`: ``LOOK``) or right after it (``AFTER``), or before and after its restore
    (`swarm-mcp restore`). `by`: the session that does that, a person without one.
    """
    place = place_of(os.path.dirname(path))
    name, owner, file = PERSONS, OWNER, journal_path(place)
    if by[1]:
        name, owner = journal_name(*by), by
        file = os.path.join(place, name)
    keep(path, f"{version_path(place, name, path)}{mark}{at_ns}", at_ns)
    lines = []
    if by[1] and mark == LOOK:  # others learn of the session's write by this entry
        lines += [entry_line(at_ns, "wrote", "", UNDO, key, state_of(path)) for key in keys_of(path)]
    lines += [entry_line(at_ns, "is", "", UNDO, key, str(full_resolved(path))) for key in keys_of(path)]
    append(file, lines, lambda: first_line(*owner, os.path.dirname(path)))


def withdraw_undo(path: str, at_ns: int, by: tuple[str, str]) -> None:
    """Take back the note of an undo at this time: others take it for a write to come. Raises OSError."""
    if by[1] and at_ns:
        file = os.path.join(place_of(os.path.dirname(path)), journal_name(*by))
        lines = [entry_line(at_ns, "wont", "", UNDO, key, "wrote") for key in keys_of(path)]
        append(file, lines, lambda: first_line(*by, os.path.dirname(path)))


def journal_path(place: str) -> str:
    """Return the path of the journal of persons in `place`. It need not exist."""
    return os.path.join(kept_dir(place), PERSONS, ENDED)


class Saves:
    """The saves of persons in `place`, read once."""

    def __init__(self, place: str):
        try:
            self._data = journal.read(journal_path(place))
        except OSError:
            self._data = b""  # a person has saved nothing here

    def of(self, path: str) -> set[int]:
        """Return the times of change (ns) that the file at `path`, links resolved, got by saves."""
        states = [one.text.split(" ") for one in journal.newest_first(self._data, path, ("is",)) if one.tool == SAVED]
        return {int(words[3]) for words in states if len(words) > 3 and words[3].isdigit()}


def has_sessions(path: str) -> bool:
    """Return True if a session has been at work in the repository of the file at `path`: a save is noted only then."""
    place = place_of(os.path.dirname(path))
    return os.path.isdir(place) or os.path.isdir(kept_dir(place))

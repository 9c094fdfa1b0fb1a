"""The calls that may have written one file, as the journals of all sessions tell them (`Acts`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import NamedTuple

from swarm_hook_core.traces import (
    AFTER,
    LOOK,
    NO_FILE,
    OWN_NS,
    UNDO,
    append,
    first_line,
    journal,
    journal_name,
    kept_dir,
    keys_of,
    place_of,
    state_of,
    version_path,
)
from swarm_hook_core.traces import entry as entry_line
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.others import is_in
from swarm_hook_core.traces.unread import looks_only
from swarm_hook_core.traces.versions import keep, keep_missing, keep_text
from swarm_hook_core.traces.versions.notes import JournalNotes, PlaceNotes
from swarm_hook_core.traces.versions.replay import Input
from swarm_hook_core.traces.versions.stored import Version
from swarm_hook_core.watching.records import Snapshot, full_resolved

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


class Acts:
    """The calls that may have written the file at `path`, from the `notes` of its place.

    known     those whose files are known, in order of time
    commands  commands with unknown files
    """

    def __init__(self, path: str, notes: PlaceNotes, versions: list[Version]):
        self._path = path
        self._keys = keys_of(path)
        self._notes = notes
        if notes.commands is None:
            # The commands with unknown files of all journals
            found = []
            for noted in notes.journals.values():
                for entry in (*noted.of_kind("ran"), *noted.of_kind("runs")):
                    if not looks_only(b"\0" + entry.text.encode("utf-8", "surrogatepass")):
                        found.append(_act(noted, entry, ()))
            _end_with_sessions(found, notes.ended)
            notes.commands = found
        self.commands = notes.commands
        self.known = sorted(self._found(versions), key=lambda act: act.at_ns)

    def _found(self, versions: list[Version]) -> list[Act]:
        found, known = [], set()
        for name, noted in self._notes.journals.items():
            looks = [one.at_ns for one in versions if one.journal == name and one.is_after]
            states = {entry.at_ns for entry in noted.of_file(self._path, ("before",))}
            known |= {(name, at_ns) for at_ns in states}
            for entry in self._entries(noted):
                given = noted.inputs.at(entry.at_ns) if entry.kind == "wrote" else None
                act = _act(noted, entry, looks, bool(given))
                act.has_state = act.has_state or entry.at_ns in states
                if entry.kind == "wrote":
                    act.input = given
                    state = entry.text
                    if state == NO_FILE:
                        act.size = -1
                    else:
                        act.size = number_in(state.rpartition(" ")[2])
                    act.next_ns = noted.ends.next_of(entry)
                    act.is_made = act.input is None  # else a step tells
                found.append(act)
                known.add((name, entry.at_ns))
        for one in versions:
            if not one.is_look and (one.journal, one.at_ns) not in known:  # its entry was never written, or is gone
                author = Author(*self._notes.owner_by(one.journal), at_ns=one.at_ns)
                found.append(Act(author, float("inf"), 0, is_once=False))
        _end_with_sessions(found, self._notes.ended)
        return found

    def _entries(self, noted: JournalNotes) -> list[Entry]:
        """Return the entries of a journal about calls that may have written the file."""
        found, is_answered = [], False
        for entry in noted.of_file(self._path, ("wrote", "will", "wont")):
            if entry.kind == "wrote" or (entry.kind == "will" and not is_answered):  # its hook was killed
                found.append(entry)
            is_answered = entry.kind != "will"
        found += [entry for entry in noted.of_kind("clears") if is_in(self._keys, entry.key)]
        return found + noted.commands_that_wrote(self._path)


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
        told_ns = noted.logs.end_of(entry.agent, entry.at_ns)
        if told_ns:
            end_ns, is_ended = min(end_ns, told_ns), True
    late_ns = end_ns
    if not is_ended:  # the next call tells only that this one is over by then
        late_ns = min(end_ns, entry.at_ns + OWN_NS)
    act = Act(author, end_ns, late_ns, is_once, entry.kind in ("wrote", "will"), is_ended)
    if entry.tool in SHELL:
        act.end_ns = max(end_ns, noted.logs.end_apart(entry.agent, entry.at_ns))
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
JOURNAL = "%journal"  # its file in the folder of its versions
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
    return os.path.join(kept_dir(place), PERSONS, JOURNAL)


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

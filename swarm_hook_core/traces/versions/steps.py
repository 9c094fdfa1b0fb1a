"""The steps of a file: from one version to the next, each with all authors that may have made it.

A call *may have made* a step if it was let pass before the step's end and was not over before its beginning. A call of
a write tool writes once: after a step that only it can have made, it is over. A person may have made a step too if no
such call explains the file's time of change at the step's end; and with it any session that ran a command then, if the
command's files are not known. The same holds if a command has not noted the file's state as it began: its own change
hides any change between the call before it and itself.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.traces import NO_FILE, OWN_NS, journal, journal_name, keys_of, place_of, seen
from swarm_hook_core.traces.others import is_in
from swarm_hook_core.traces.versions.stored import ended_at, journals_of, writes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from swarm_hook_core.traces.journal import Entry
    from swarm_hook_core.traces.versions.stored import Version

UNDO = "swarm:undo"  # the tool of an undo, which looks at the file right before and right after it
PERSONS = "person.undo"  # the journal of undos that a person has asked for
SHELL = frozenset({"Bash", "Monitor", "shell", "local_shell", "exec_command", "PowerShell"})


class Author:
    """A session, or one of its agents, with the call that may have made a step. Without a session: a person, or a
    program that no session is known to have started.

    at_ns  time of the call's check; the last one if several calls made the step
    """

    __slots__ = ("runtime", "session_id", "agent", "tool", "at_ns")

    def __init__(self, runtime: str = "", session_id: str = "", agent: str = "", tool: str = "", at_ns: int = 0):
        self.runtime = runtime
        self.session_id = session_id
        self.agent = agent
        self.tool = tool
        self.at_ns = at_ns

    @property
    def is_person(self) -> bool:
        return not self.session_id

    @property
    def session(self) -> tuple[str, str]:
        """``(runtime, session id)``, empty for a person."""
        return (self.runtime, self.session_id)

    def __repr__(self) -> str:
        return f"Author({self.runtime} {self.session_id} {self.agent} {self.tool} {self.at_ns})"


PERSON = Author()


class Moment:
    """The file's content at one time: a Version, or the present content.

    changed_ns  the file's time of change then; 0 for a missing file, None if it is unknown
    mode        permissions, without the owner's right to write
    tool        of the call that kept it, "" if unknown; `is_look`, `is_after` as in Version
    """

    __slots__ = ("at_ns", "exists", "changed_ns", "journal", "mode", "tool", "is_look", "is_after", "_version", "_data")

    def __init__(self, at_ns: int, changed_ns: int | None, exists: bool, version: Version | None, data: bytes = b""):
        self.at_ns = at_ns
        self.changed_ns = changed_ns
        self.exists = exists
        self.journal, self.mode, self.tool, self.is_look, self.is_after = "", 0, "", False, False
        if version is not None:
            self.journal, self.mode = version.journal, version.mode
            self.is_look, self.is_after = version.is_look, version.is_after
        self._version = version
        self._data = data

    def content(self) -> bytes:
        """Return the content, empty for a missing file. Raises OSError if the version is gone."""
        if self._version is None:
            return self._data
        return self._version.content()


class Step:
    """The way from one Moment to the next one. `authors`: all that may have made it, never empty."""

    __slots__ = ("before", "after", "authors")

    def __init__(self, before: Moment, after: Moment, authors: tuple[Author, ...]):
        self.before = before
        self.after = after
        self.authors = authors

    @property
    def is_undo(self) -> bool:
        """Return True if the step is an undo (``swarm-mcp undo``)."""
        return _is_undo(self.before, self.after)


class Act:
    """A call that may have written the file.

    end_ns   end of the call, infinity if unknown
    late_ns  a change of the file until this time is certainly the call's; 0 for a call without an entry: its hook was
             killed, or the journal was cut
    is_once  True for a write tool: it writes once
    is_over  True once that write has been seen
    has_state  True if its entry notes the file's state before it
    """

    __slots__ = ("author", "at_ns", "end_ns", "late_ns", "is_once", "is_over", "has_state")

    def __init__(self, author: Author, end_ns: float, late_ns: float, is_once: bool, has_state: bool = False):
        self.author = author
        self.at_ns = author.at_ns
        self.end_ns = end_ns
        self.late_ns = late_ns
        self.is_once = is_once
        self.is_over = False
        self.has_state = has_state


class History:
    """All that is known of the writes of the file at absolute `path`, links resolved.

    `data`: its present content; `present`: its state, None if it is missing. `until_ns`: only what was before that
    time, of a file that was moved away then.
    """

    def __init__(self, path: str, data: bytes, present: os.stat_result | None, until_ns: int = 0):
        self.path = path
        self.keys = keys_of(path)
        place = place_of(os.path.dirname(path))
        self._journals = journals_of(place)
        self._ended = ended_at(place)
        versions = [one for one in writes_of(place, path) if not until_ns or one.at_ns <= until_ns]
        self._commands: list[Act] = []  # commands with unknown files
        self.acts = sorted(self._acts(versions), key=lambda act: act.at_ns)
        self.moments = [self._moment(one) for one in versions if one.is_whole]
        if not until_ns:
            now = Moment(time.time_ns(), 0, present is not None, None, data)
            if present is not None:
                now.changed_ns, now.mode = present.st_ctime_ns, present.st_mode & 0o177 | 0o400
            self.moments.append(now)

    def steps(self) -> list[Step]:
        """Return the steps from the first Moment on, in order."""
        pairs = zip(self.moments, self.moments[1:])
        return [Step(before, after, self._authors(before, after)) for before, after in pairs]

    def earlier(self) -> tuple[Author, ...]:
        """Return all that may have changed the file between the last commit and the first Moment."""
        first = self.moments[0].at_ns
        acts = [act for act in self.acts if act.at_ns < first]
        return (*_authors_of([*acts, *self._commands_at([self.moments[0].changed_ns or 0])]), PERSON)

    def writers(self) -> tuple[Author, ...]:
        """Return all sessions with a call that may have written the file, the last one first."""
        return _authors_of(self.acts)[::-1]

    # ------------------------------------------------------------------------------------------- authors

    def _authors(self, before: Moment, after: Moment) -> tuple[Author, ...]:
        if _is_undo(before, after):
            owner = ("", "")
            if before.journal != PERSONS:
                owner = _owner_by(before.journal, self._journals)
            return (Author(*owner, tool=UNDO, at_ns=before.at_ns),)
        acts = [act for act in self.acts if act.at_ns < after.at_ns and act.end_ns > before.at_ns and not act.is_over]
        if len(acts) == 1:
            acts[0].is_over = acts[0].is_once and (after.changed_ns or 0) >= acts[0].at_ns
        others = self._unexplained(before, after, acts)
        if others is None or others or not acts:
            return (*_authors_of([*acts, *self._commands_at(others or ())]), PERSON)
        return _authors_of(acts)

    def _commands_at(self, changes: Collection[int]) -> list[Act]:
        """Return the commands with unknown files, if they ran at one of these times of change."""
        slack = journal.SLACK_NS
        return [
            act
            for act in self._commands
            if any(act.at_ns - slack <= change <= act.late_ns + slack for change in changes)
        ]

    def _unexplained(self, before: Moment, after: Moment, acts: list[Act]) -> list[int] | None:
        """Return the times of changes between the two that are not certainly by one of these calls.

        None if such a time is not known.
        """
        if after.changed_ns is None or not all(act.late_ns for act in acts) or _hides_changes(before, acts):
            return None
        changes = [*self._changes_between(before, after), after.changed_ns]
        if not after.exists:
            changes[-1] = after.at_ns  # a removal leaves no time
        return [
            change
            for change in changes
            if change != before.changed_ns
            and not any(act.at_ns - journal.SLACK_NS <= change <= act.late_ns + journal.SLACK_NS for act in acts)
        ]

    def _changes_between(self, before: Moment, after: Moment) -> list[int]:
        """Return the times of change noted by calls between two Moments that have kept no version."""
        entries = [
            entry
            for data in self._journals.values()
            for entry in journal.newest_first(data, self.path, ("wrote", "will"))
        ]
        return [
            _number(entry.text.partition(" ")[0])
            for entry in entries
            if before.at_ns < entry.at_ns < after.at_ns and entry.text != NO_FILE
        ]

    # ------------------------------------------------------------------------------------------- what is known

    def _acts(self, versions: list[Version]) -> list[Act]:
        found, known = [], set()
        for name, data in self._journals.items():
            owner, ends = journal.owner_of(data), _Ends(data)
            looks = [one.at_ns for one in versions if one.journal == name and one.is_after]
            for entry in self._entries(data):
                found.append(_act(owner, entry, ends, looks))
                known.add((name, entry.at_ns))
            for entry in (*journal.newest_of(data, "ran"), *journal.newest_of(data, "runs")):
                self._commands.append(_act(owner, entry, ends, ()))
        for one in versions:
            if not one.is_look and (one.journal, one.at_ns) not in known:  # its entry was never written, or is gone
                author = Author(*_owner_by(one.journal, self._journals), at_ns=one.at_ns)
                found.append(Act(author, float("inf"), 0, is_once=False))
        for act in (*found, *self._commands):
            ended_ns = self._ended.get(journal_name(*act.author.session), 0)
            if ended_ns > act.at_ns:
                act.end_ns, act.late_ns = min(act.end_ns, ended_ns), min(act.late_ns, ended_ns)
        return found

    def _entries(self, data: bytes) -> list[Entry]:
        """Return the entries of a journal about calls that may have written the file."""
        found, is_answered = [], False
        for entry in journal.newest_first(data, self.path, ("wrote", "will", "wont")):
            if entry.kind == "wrote" or (entry.kind == "will" and not is_answered):  # its hook was killed
                found.append(entry)
            is_answered = entry.kind != "will"
        if b" clears " in data:
            found += [entry for entry in journal.newest_of(data, "clears") if is_in(self.keys, entry.key)]
        if b" ran " in data:
            from swarm_hook_core.paths import keys_for, real_paths
            from swarm_hook_core.traces.unread import Reading, UnreadCommands

            real = real_paths()
            found += UnreadCommands(data, Reading(None, real)).that_wrote(keys_for(self.path, "/", real))
        return found

    def _moment(self, version: Version) -> Moment:
        found = Moment(version.at_ns, None, version.exists, version)
        entries = journal.newest_first(self._journals.get(version.journal, b""), self.path, ("wrote", "is"))
        entry = next((one for one in entries if one.at_ns == version.at_ns), None)
        if entry is not None:
            found.tool = entry.tool
            if version.exists:
                found.changed_ns = _number(entry.text.split(" ")[0 if entry.kind == "wrote" else 3])
        return found


class _Ends:
    """The entries of a journal that tell the ends of earlier calls, parsed once."""

    def __init__(self, data: bytes):
        self._found: list[tuple[int, bytes, bytes]] = []  # time, kind, agent
        for raw in data.split(b"\n"):
            words = raw.partition(b"\0")[0].split(b" ")
            if len(words) == 4 and words[0].isdigit() and words[1] in (b"over", b"is", *seen.CALLS):
                self._found.append((int(words[0]), words[1], words[2]))

    def of(self, entry: Entry) -> float:
        """Return the end of the call of `entry`, infinity if unknown.

        A later call of the same agent begins after it, unless the two may have run side by side.
        """
        agent, later = (entry.agent or "-").encode(), entry.at_ns + seen.APART_NS
        ends = (
            at
            for at, kind, who in self._found
            if who == agent and (at > later or (kind == b"over" and at > entry.at_ns))
        )
        return min(ends, default=float("inf"))

    def is_noted(self, end_ns: float) -> bool:
        """Return True if the hook after a call has noted this end."""
        return any(at == end_ns and kind == b"over" for at, kind, _who in self._found)


def _act(owner: tuple[str, str], entry: Entry, ends: _Ends, looks: Collection[int]) -> Act:
    """Return the Act of an entry. `looks`: times of the session's looks at the file at the end of a call."""
    author = Author(*owner, entry.agent, entry.tool, entry.at_ns)
    look_ns: float = min((at for at in looks if at > entry.at_ns), default=float("inf"))
    end_ns = min(ends.of(entry), look_ns)
    is_once = entry.kind in ("wrote", "will") and entry.tool not in SHELL
    late_ns = end_ns
    is_exact = end_ns < float("inf") and (end_ns == look_ns or (not is_once and ends.is_noted(end_ns)))
    if not is_exact:  # the next call tells only that this one is over by then
        late_ns = min(end_ns, entry.at_ns + OWN_NS)
    return Act(author, end_ns, late_ns, is_once, entry.kind in ("wrote", "will"))


def _hides_changes(before: Moment, acts: Iterable[Act]) -> bool:
    """Return True if one of these calls may hide a change that was made between `before` and itself."""
    return any(act.at_ns > before.at_ns and not act.has_state for act in acts)


def _authors_of(acts: Iterable[Act]) -> tuple[Author, ...]:
    """Return one Author for each session and agent, of its last call."""
    return tuple({(act.author.session, act.author.agent): act.author for act in acts}.values())


def _is_undo(before: Moment, after: Moment) -> bool:
    return before.tool == after.tool == UNDO and before.journal == after.journal and after.is_after and before.is_look


def _owner_by(name: str, journals: dict[str, bytes]) -> tuple[str, str]:
    """Return ``(runtime, session id)`` of the session with the journal of this `name`; its id may be abridged there."""
    owner = journal.owner_of(journals.get(name, b""))
    if owner[1]:
        return owner
    runtime, _, session_id = name.partition(".")
    return runtime, session_id


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 0

"""The author of a file's uncommitted content: a person, or the session that makes the call.

The file's last change (ctime) is compared with the calls in the session's journal. A change during one of them is the
session's: its own write, a build's, or that of a hook of its client. Any other change is a person's, or of a session
that has ended: also one in the pause before the next call, and one that an editor has reported as a save. A file that
the session has written may hold older lines of a person: those of the version before its first write (``versions``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from swarm_hook_core.persons.losses import Loss
from swarm_hook_core.state import hook_starter
from swarm_hook_core.traces import FEW, escaped, journal, plain_word, seen
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.told_ends import marked_ns
from swarm_hook_core.traces.unread import looks_only
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.by_persons import Saves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.transcript_ends import Logs
    from swarm_hook_core.traces.versions.stored import Version

PERSON, BUILT, OWN = "person", "built", "own"
SECOND_NS = 10**9
SECONDS = 2.0  # for the contents of many files in the last commit
# Kinds of events: a call that may write any file, or the file that it names, or that only looks; its end; a turn's end.
ANY, NAMED, LOOKS, ENDED, TURN = "any", "named", "looks", "ended", "turn"
MOST_SEARCHED = 1 << 26  # bytes that are looked through for the parts of lines
_CALLS = ("ran", "runs", "wrote", "will", "clears")  # kinds of entries that begin a call
_ENDS = ("over", "wont", "spares")  # that end one; the last two say that it was denied


class Author:
    """The author of a file's uncommitted content.

    who    PERSON; OWN: certainly the session; BUILT: made while a command of the session ran
    lines  numbers of the person's lines, if only some lines are a person's; else empty
    """

    __slots__ = ("who", "lines")

    def __init__(self, who: str, lines: list[int] | None = None):
        self.who = who
        self.lines = lines or []


class Authors:
    """Finds authors for one call. `meetings`: those of its Trail."""

    def __init__(self, meetings: Meetings):
        self._meetings = meetings
        self._trail = meetings.trail
        self._of_peers: set[str] = set()  # files with uncommitted changes of other sessions that live
        self._calls: dict[str, _Calls] = {}  # by place
        self._changes: dict[str, dict[int, str]] = {}  # path -> result of `_changes_of`
        self._saves: dict[str, Saves] = {}  # by place
        self._written: dict[str, dict[bytes, bytes]] = {}  # place -> newest write of each file
        self._logs: Logs | None = None  # of the session and its agents
        # contents in the last commit of a call's many files, None for a file without lines
        self._committed: dict[str, bytes | None] = {}

    def of_each(self, losses: list[Loss]) -> list[tuple[Loss, Author]]:
        """Return the losses, each with the Author of its file's content."""
        self._of_peers = self._meetings.changed_by_others([loss.path for loss in losses])
        self._prepare([loss.path for loss in losses])
        return [(loss, self._of(loss)) for loss in losses]

    def _prepare(self, paths: list[str]) -> None:
        """Read once what `_of` needs for each of these files. For a few files it would cost more than it saves."""
        paths = [path for path in paths if self.has_written(path)]
        if len(paths) <= FEW:
            return
        from swarm_hook_core.git_objects import committed_contents
        from swarm_hook_core.traces.versions.notes import Notes

        self._trail.notes = self._trail.notes or Notes()
        self._committed.update(dict.fromkeys(paths))
        self._committed.update(committed_contents(paths, SECONDS, LIMIT_BYTES))

    def _of(self, loss: Loss) -> Author:
        """Return the Author of the content of the file in `loss`."""
        path = loss.path
        if path in self._of_peers:
            return Author(OWN)  # of another session that lives: the rule about those decides
        try:
            changed_ns = os.lstat(path).st_ctime_ns
        except OSError:
            return Author(OWN)  # gone: nothing can be lost
        if not self._is_by_call(path, changed_ns):
            if self._is_laid_out(path, changed_ns):
                return Author(OWN)
            return Author(PERSON)
        if not self.has_written(path):
            return Author(BUILT)
        lines = self._lines_of_person(path)
        return Author(PERSON if lines else OWN, lines)

    def is_own(self, path: str) -> bool:
        """Return True if journals and versions prove that all of the file is the session's own; git is not asked."""
        try:
            changed_ns = os.lstat(path).st_ctime_ns
            if not self.has_written(path) or not self._is_by_call(path, changed_ns):
                return False
            return not self._texts_of_others(path)
        except OSError:
            return False  # gone, or unreadable: git tells

    def _lines_of_person(self, path: str) -> list[int]:
        """Return the numbers of the lines in a file of the session that a person wrote, as far as versions tell.

        They may be a person's (``versions.lines``), and their words are in a version that no call of the session had
        left.
        """
        from swarm_hook_core.traces.versions.lines import NoLines, lines_of

        try:
            texts = self._texts_of_others(path)
            if not texts:
                return []
            committed = self._committed.get(path)
            if committed is None and path in self._committed:
                return []  # as for NoLines
            lines = lines_of(path, committed, self._trail.notes)
        except (NoLines, OSError):
            return []  # binary, large, or git does not answer: the last writer counts
        return [
            number
            for number, line in enumerate(lines, 1)
            if any(one.is_person for one in line.authors) and line.text.rstrip() in texts
        ]

    def _texts_of_others(self, path: str) -> set[bytes]:
        """Return the lines of the file with the words of a line in a version that no call of the session had left.

        A formatter may have broken that line. Raises OSError.
        """
        from swarm_hook_core.traces.versions.layout import words_of

        trail = self._meetings.trail
        words: set[bytes] = set()
        for version in self._versions_of(path):
            if version.journal == trail.own_name and version.exists and not self._was_own(path, version.at_ns):
                words.update(map(words_of, version.content().split(b"\n")))
        if not any(words):
            return set()
        with open(path, "rb") as file:
            lines = {line: words_of(line) for line in _lines_in(file.read())}
        text = b"\n".join(words)
        if len(text) * len(lines) > MOST_SEARCHED:
            text = b""  # only whole lines are found
        return {line for line, own in lines.items() if own and (own in words or own in text)}

    def _is_laid_out(self, path: str, changed_ns: int) -> bool:
        """Return True if the change at that time came right after a write of the session, and has brought no words.

        Then all changes of the file that are not committed are sessions' (``versions.lines``).
        """
        if not self.has_written(path) or self._is_save(path, changed_ns):
            return False
        from swarm_hook_core.traces.shared_files import SECONDS
        from swarm_hook_core.traces.versions.lines import NoLines, changes_of
        from swarm_hook_core.traces.versions.notes import Ends

        own = self._meetings.journals.own(os.path.dirname(path))
        last = next((one for one in journal.newest_first(own, path, ("wrote",)) if one.at_ns <= changed_ns), None)
        if last is None or Ends.in_journal(own).next_of(last) < changed_ns:
            return False
        try:
            changes = changes_of(path, SECONDS, self._trail.notes)
        except (NoLines, OSError):
            return False  # binary, large, or git does not answer
        return not any(author.is_person for change in changes for author in change.authors)

    def _versions_of(self, path: str) -> list[Version]:
        if self._trail.notes is not None:
            return [one for one in self._trail.notes.of(os.path.dirname(path)).versions(path) if one.is_whole]
        from swarm_hook_core.traces.versions.stored import versions_of

        return versions_of(self._meetings.trail.place_of(os.path.dirname(path)), path)

    def _was_own(self, path: str, at_ns: int) -> bool:
        """Return True if a call of the session had made the content of the version with its entry at `at_ns`."""
        changed = self._changes_of(path).get(at_ns, "")  # empty: an old entry, dropped by now
        return changed.isdigit() and self._is_by_call(path, int(changed))

    def _changes_of(self, path: str) -> dict[int, str]:
        """Return ``{time of an entry: time of the file's change noted there}`` of the session's entries on the file.

        They are parsed once: a file may have thousands, and as many versions.
        """
        if path not in self._changes:
            own = self._meetings.journals.own(os.path.dirname(path))
            found: dict[int, str] = {}
            for entry in journal.newest_first(own, path, ("wrote", "before", "is")):
                words = entry.text.split(" ")
                place = 3 if entry.kind == "is" and len(words) > 3 else 0  # a Snapshot, or a ``state_of``
                found.setdefault(entry.at_ns, words[place])
            self._changes[path] = found
        return self._changes[path]

    def _is_by_call(self, path: str, changed_ns: int) -> bool:
        """Return True if a call of the session may have made the change, and no editor has reported it as a save."""
        return self._is_during_call(path, changed_ns) and not self._is_save(path, changed_ns)

    def _is_save(self, path: str, changed_ns: int) -> bool:
        """Return True if an editor has reported the change of the file at that time as a save."""
        place = self._trail.place_of(os.path.dirname(path))
        if place not in self._saves:
            self._saves[place] = Saves(place)
        return changed_ns in self._saves[place].of(path)

    def _is_during_call(self, path: str, changed_ns: int) -> bool:
        """Return True if a call of the session may have made the change of the file at `changed_ns`."""
        places = dict.fromkeys((os.path.dirname(path), self._meetings.trail.call.folder))
        return any(self._calls_in(folder).cover(path, changed_ns) for folder in places)

    def ran_in_second(self, folder: str, second: int) -> bool:
        """Return True if a call of the session that its journal for absolute `folder` has ran in that Unix second."""
        return self._calls_in(folder).cover("", second * SECOND_NS, (second + 1) * SECOND_NS - 1)

    def _calls_in(self, folder: str) -> _Calls:
        trail = self._meetings.trail
        place = trail.place_of(folder)
        if place not in self._calls:
            data, agent = self._meetings.journals.of_session(place), plain_word(trail.call.agent)
            ended_ns = marked_ns(trail.call.session_id, agent, hook_starter(trail.config.runtime_name))
            self._calls[place] = _Calls(data, trail.config.write_tools, self._end_of, agent, ended_ns)
        return self._calls[place]

    def _end_of(self, agent: str, at_ns: int, changed_ns: int) -> int:
        """Return the end of the agent's call that was let pass at `at_ns`, by the client's log; 0 if unknown.

        `changed_ns`: the time in question.
        """
        config, call = self._meetings.trail.config, self._meetings.trail.call
        if not call.transcript or not config.transcript:
            return 0
        if self._logs is None:
            from swarm_hook_core.traces.transcript_ends import Logs

            self._logs = Logs(config.transcript, call.transcript, call.session_id)
        return self._logs.end_of(agent.strip("-"), at_ns, changed_ns)

    def has_written(self, path: str) -> bool:
        """Return True if the session's journal notes a write of the file."""
        place = self._meetings.trail.place_of(os.path.dirname(path))
        if place not in self._written:
            own = self._meetings.journals.own(os.path.dirname(path))
            self._written[place] = journal.newest_lines(own, ("wrote",))
        return escaped(path) in self._written[place]


class _Event:
    """A call of an agent that begins, or the end of its calls.

    from_ns  time from which on files may show it: their times lag behind our clock, but not behind an end
    at_ns    time of its entry
    kind     ANY, NAMED, LOOKS, ENDED or TURN
    key      the file that a NAMED call writes, as the journal spells it
    """

    __slots__ = ("from_ns", "at_ns", "kind", "key")

    def __init__(self, from_ns: int, at_ns: int, kind: str, key: bytes = b""):
        self.from_ns = from_ns
        self.at_ns = at_ns
        self.kind = kind
        self.key = key

    def may_write(self, key: bytes) -> bool:
        return self.kind == ANY or (self.kind == NAMED and self.key == key)


class _Calls:
    """The calls of a session in one place, by its journal. Read once; each question is a search by time.

    A call ends as its client tells: in its log (`ends_of`), or by the hook after it (``over``); else with the same
    agent's next call. A write tool without a known end counts for the files that it names, any other call for all.

    agent, ended_ns  the agent that calls, and the end of its last call if only the mark of a hook tells it yet, else 0
    """

    def __init__(
        self, data: bytes, write_tools: Collection[str], ends_of: Callable[[str, int, int], int], agent: str,
        ended_ns: int,
    ):  # fmt: skip
        self._ends_of = ends_of
        self._events: dict[str, list[_Event]] = {}  # agent -> its events, in order of time
        self._times: dict[str, list[int]] = {}  # the times of these
        for who, event in _events_in(data, write_tools):
            self._events.setdefault(who, []).append(event)
        if ended_ns and agent in self._events:
            self._events[agent].append(_Event(ended_ns, ended_ns, ENDED))
        for who, events in self._events.items():
            events.sort(key=lambda one: one.from_ns)
            self._times[who] = [one.from_ns for one in events]

    def cover(self, path: str, first_ns: int, last_ns: int = 0) -> bool:
        """Return True if a call may have changed the file at `path` at some time from `first_ns` to `last_ns`."""
        from bisect import bisect_right

        key = escaped(path)
        for agent, events in self._events.items():
            times = self._times[agent]
            begun = events[bisect_right(times, first_ns) : bisect_right(times, last_ns)]
            if any(one.may_write(key) for one in begun) or self._is_open(agent, key, first_ns):
                return True
        return False

    def _is_open(self, agent: str, key: bytes, at_ns: int) -> bool:
        """Return True if a call of the agent was open at that time, and may write the file."""
        from bisect import bisect_right

        events, last = self._events[agent], bisect_right(self._times[agent], at_ns) - 1
        begun = last
        while begun >= 0 and events[begun].kind in (ENDED, TURN):
            begun -= 1
        if begun < 0 or events[begun].kind == LOOKS:
            return False
        call, had_ended = events[begun], begun < last
        ends_later = not had_ended and any(one.kind == ENDED for one in events[last + 1 : last + 2])
        if ends_later and call.kind == ANY:
            return True  # the client's log is not asked
        ended_ns = self._ends_of(agent, call.at_ns, at_ns)
        if ended_ns:
            return at_ns <= ended_ns
        if had_ended or ends_later:
            return ends_later
        return any(one.may_write(key) for one in events[: begun + 1] if call.at_ns - one.at_ns < seen.APART_NS)


def _lines_in(data: bytes) -> Iterator[bytes]:
    return (line.rstrip() for line in data.split(b"\n"))


def _events_in(data: bytes, write_tools: Collection[str]) -> Iterator[tuple[str, _Event]]:
    """Yield ``(agent, event)`` of the calls in a journal, and of their ends."""
    last_ns = 0
    for raw in data.split(b"\n"):
        head, _, rest = raw.partition(b"\0")
        words = head.decode("ascii", "replace").split(" ")
        if len(words) != 4 or not words[0].isdigit():
            continue  # torn
        at_ns, kind, agent, tool = int(words[0]), *words[1:]
        if kind in _ENDS:
            last_ns = at_ns
            is_turn = kind == "over" and tool == "-"
            yield agent, _Event(at_ns, at_ns, TURN if is_turn else ENDED)
        elif kind in _CALLS:
            last_ns = max(at_ns - journal.SLACK_NS, last_ns)
            if tool in write_tools:
                yield agent, _Event(last_ns, at_ns, NAMED, rest.partition(b"\0")[0])
            elif kind == "ran" and looks_only(raw):
                yield agent, _Event(last_ns, at_ns, LOOKS)
            else:
                yield agent, _Event(last_ns, at_ns, ANY)

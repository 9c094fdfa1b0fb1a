"""The author of a file's uncommitted content: a person, or the session that makes the call.

The file's last change (ctime) is compared with the calls in the session's journal. A change during one of them is the
session's: its own write, or a build's. Any other change is a person's, or of a session that has ended; also one that an
editor has reported as a save. A file that the session has written may hold older lines of a person: those of the
version before its first write (``versions``).
"""

from __future__ import annotations

import os

from swarm_hook_core.traces import escaped, journal
from swarm_hook_core.traces.unread import looks_only
from swarm_hook_core.traces.versions.by_persons import saves_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm_hook_core.persons.losses import Loss
    from swarm_hook_core.traces.meetings import Meetings

PERSON, BUILT, OWN = "person", "built", "own"
AFTER_NS = 2 * 10**9  # after a call's end: a formatter that the client runs, or a process that ends late
MOST_SEARCHED = 1 << 26  # bytes that are looked through for the parts of lines
_CALLS = ("ran", "runs", "wrote", "will", "clears")  # kinds of entries that begin a call


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
        self._calls: dict[str, _Calls] = {}  # by place
        self._changes: dict[str, dict[int, str]] = {}  # path -> result of `_changes_of`
        self._saved: dict[str, set[int]] = {}  # path -> times of change by saves of a person
        self._written: dict[str, dict[bytes, bytes]] = {}  # place -> newest write of each file

    def of(self, loss: Loss) -> Author:
        """Return the Author of the content of the file in `loss`."""
        path = loss.path
        if self._meetings.newest_write(loss.spelled, path) is not None:
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
            lines = lines_of(path)
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
        from swarm_hook_core.traces.versions.stored import versions_of

        trail = self._meetings.trail
        words: set[bytes] = set()
        for version in versions_of(trail.place_of(os.path.dirname(path)), path):
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
        if not self.has_written(path) or changed_ns in self._saves(path):
            return False
        from swarm_hook_core.traces.shared_files import SECONDS
        from swarm_hook_core.traces.versions.acts import Ends
        from swarm_hook_core.traces.versions.lines import NoLines, changes_of

        own = self._meetings.journals.own(os.path.dirname(path))
        last = next((one for one in journal.newest_first(own, path, ("wrote",)) if one.at_ns <= changed_ns), None)
        if last is None or Ends(own).next_of(last) < changed_ns:
            return False
        try:
            changes = changes_of(path, SECONDS)
        except (NoLines, OSError):
            return False  # binary, large, or git does not answer
        return not any(author.is_person for change in changes for author in change.authors)

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
        return self._is_during_call(path, changed_ns) and changed_ns not in self._saves(path)

    def _saves(self, path: str) -> set[int]:
        if path not in self._saved:
            self._saved[path] = saves_of(self._meetings.trail.place_of(os.path.dirname(path)), path)
        return self._saved[path]

    def _is_during_call(self, path: str, changed_ns: int) -> bool:
        """Return True if a call of the session may have made the change of the file at `changed_ns`."""
        places = dict.fromkeys((os.path.dirname(path), self._meetings.trail.call.folder))
        return any(self.is_during_call(folder, changed_ns) for folder in places)

    def is_during_call(self, folder: str, changed_ns: int) -> bool:
        """Return True if a call of the session that its journal for absolute `folder` has may have made the change."""
        place = self._meetings.trail.place_of(folder)
        if place not in self._calls:
            self._calls[place] = _Calls(self._meetings.journals.of_session(place))
        return self._calls[place].cover(changed_ns)

    def has_written(self, path: str) -> bool:
        """Return True if the session's journal notes a write of the file."""
        place = self._meetings.trail.place_of(os.path.dirname(path))
        if place not in self._written:
            own = self._meetings.journals.own(os.path.dirname(path))
            self._written[place] = journal.newest_lines(own, ("wrote",))
        return escaped(path) in self._written[place]


class _Calls:
    """The calls of a session in one place, by its journal. Read once; each question is a search by time."""

    def __init__(self, data: bytes):
        self._times: list[int] = []
        self._until: list[float] = []  # a change from the time at the same index on is a call's until then
        last: dict[str, tuple[int, bool]] = {}  # agent -> its last entry
        before: dict[str, bool] = {}  # agent -> its entry before that
        for at_ns, agent, may_write in _calls_in(data):
            if agent in last:
                before[agent] = last[agent][1]
            last[agent] = (at_ns, may_write)
            ends = [begun + AFTER_NS for one, (begun, _may) in last.items() if before.get(one)]
            self._times.append(at_ns)
            self._until.append(float("inf") if any(may for _at, may in last.values()) else max(ends, default=0))

    def cover(self, changed_ns: int) -> bool:
        """Return True if a call may have made a change at that time."""
        from bisect import bisect_right

        index = bisect_right(self._times, changed_ns) - 1
        return index >= 0 and changed_ns <= self._until[index]


def _lines_in(data: bytes) -> Iterator[bytes]:
    return (line.rstrip() for line in data.split(b"\n"))


def _calls_in(data: bytes) -> list[tuple[int, str, bool]]:
    """Return ``(time, agent, may write from then on)`` of the calls in a journal and of their ends, in order of time.

    A call that only looks ends the one before it.
    """
    found: list[tuple[int, str, bool]] = []
    for raw in data.split(b"\n"):
        words = raw.partition(b"\0")[0].split(b" ")
        if len(words) != 4 or not words[0].isdigit():
            continue  # torn
        kind = words[1].decode("ascii", "replace")
        if kind in _CALLS:
            # The kernel's file times lag behind our clock, but not behind an end: that is the time of a file.
            begun = max([int(words[0]) - journal.SLACK_NS, *(one[0] for one in found[-1:])])
            found.append((begun, words[2].decode("ascii", "replace"), kind != "ran" or not looks_only(raw)))
        elif kind == "over":
            found.append((int(words[0]), words[2].decode("ascii", "replace"), False))
    return sorted(found, key=lambda one: one[0])

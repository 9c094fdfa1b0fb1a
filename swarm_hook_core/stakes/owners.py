"""The uncommitted content that a call's own words lose, in files that it names and whole folders; and its author.

The author is a person, or the session that makes the call: by the file's uncommitted lines (``versions.lines``). What
no session at work has written is a person's.

A file may have no lines, or no versions. Then the time of its last change (ctime) is compared with the calls in the
session's journal: a change during one of them is the session's, or a build's. Any other change is a person's: also one
in the pause before the next call, and one that an editor has reported as a save. So it is for a line that may be the
session's or a person's.
"""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import NamedTuple

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.paths import keys_for
from swarm_hook_core.repository import top_around
from swarm_hook_core.shell.model import Effects, Tree
from swarm_hook_core.shell.programs.git.named_files import submodules
from swarm_hook_core.state import hook_starter
from swarm_hook_core.traces import escaped, journal, plain_word, seen
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.transcript import Logs, marked_ns
from swarm_hook_core.traces.unread import looks_only
from swarm_hook_core.traces.versions.layout import words_of
from swarm_hook_core.traces.versions.notes import Saves
from swarm_hook_core.traces.versions.stored import Version, versions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.versions.lines import Change

Row = tuple[str, str, str, str, str, str]  # as of ``Repository.rows_against``

MOST_TREES = 50  # folders of one call
MOST_INSIDE = 300  # entries of a folder outside of any repository that are searched for repositories
PERSON, BUILT, OWN = "person", "built", "own"
SECOND_NS = 10**9
# For git's answers about a call's files, and for their contents: such commands are rare, and slow themselves.
SECONDS = 2.0
SECONDS_TO_SHOW = 0.5  # for those of the files that a message names
MOST_SHOWN = 20  # files of one message
# Kinds of events: a call that may write any file; a write tool's or a command's write of a named file; a command whose
# text tells what it writes; a call that only looks; a call's end; a turn's end.
ANY, NAMED, WROTE, RAN, LOOKS, ENDED, TURN = "any", "named", "wrote", "ran", "looks", "ended", "turn"
_OF_COMMANDS = (WROTE, RAN, LOOKS)
MOST_SEARCHED = 1 << 26  # bytes that are looked through for the parts of one file's lines
_CALLS = ("ran", "runs", "wrote", "will", "clears")  # kinds of entries that begin a call
_ENDS = ("over", "wont", "spares")  # that end one; the last two say that it was denied


class Stake:
    """One file with uncommitted content that a call loses, or takes along.

    path       absolute, links resolved but for a link that goes itself
    how        the call's effect on it (`EDIT`, ...)
    by         the part of the command that does it; "" for a tool
    words      git's words, for a git command; else empty
    is_certain False if the call may leave the file alone
    is_new     True if git does not know the file
    spelled    the path as the call names it
    trace      the newest uncommitted change in it of another session; None without any
    author     the author of the rest; None until it is looked up (`Authors`)
    """

    __slots__ = ("path", "how", "by", "words", "is_certain", "is_new", "spelled", "trace", "author")

    def __init__(
        self, path: str, how: str, by: str, is_new: bool, words: list[str] | None = None, is_certain: bool = True,
        spelled: str = "",
    ):  # fmt: skip
        self.path = path
        self.how = how
        self.by = by
        self.is_new = is_new
        self.words = words or []
        self.is_certain = is_certain
        self.spelled = spelled or path
        self.trace: Trace | None = None
        self.author: Author | None = None

    @property
    def is_replaced(self) -> bool:
        """True if the call replaces the whole file, by itself."""
        return self.how == REPLACE and not self.words

    @property
    def is_persons(self) -> bool:
        """True if a part of it is a person's, as far as its author was looked up."""
        return self.author is not None and self.author.is_person


class Changed:
    """The uncommitted files of folders, asked of git once for the same folders."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SECONDS
        self._listed: dict[tuple[object, ...], dict[str, bool]] = {}
        self._rows: dict[str, tuple[str, Row]] = {}  # path of a tracked file -> its work tree and git's row

    def left(self) -> float:
        """Return the seconds left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    def listed_below(self, top: str, *folders: str, with_new: bool = True) -> dict[str, bool]:
        """Return ``{path: True if git does not know the file}`` at and below `folders`, of files that may be changed.

        Their contents are not compared (`certain`). `top`: the work tree. `with_new`: also untracked files. Raises
        NoAnswer.
        """
        found = self._listed.get((True, top, *folders))
        if found is not None:
            return found
        asked = (with_new, top, *folders)
        if asked not in self._listed:
            inside = [os.path.relpath(folder, top) for folder in folders]
            rows, new = _dirty(top, [name * (name != ".") for name in inside], self.left(), with_new)
            start = top.rstrip("/") + "/"
            for row in rows:
                self._rows.setdefault(start + row[0], (top, row))
            names = {**dict.fromkeys((row[0] for row in rows), False), **dict.fromkeys(new, True)}
            self._listed[asked] = {start + name: is_new for name, is_new in names.items()}
        return self._listed[asked]

    def certain(self, paths: Iterable[str]) -> list[str]:
        """Return those of the listed `paths` that are there, with other contents than in the last commit.

        Raises NoAnswer.
        """
        paths = [path for path in paths if size_of(path) >= 0]
        by_top: dict[str, list[Row]] = {}
        for path in paths:
            if path in self._rows:
                top, row = self._rows[path]
                by_top.setdefault(top, []).append(row)
        same: set[str] = set()
        for top, rows in by_top.items():
            changed = Repository(top, self.left()).by_content(rows)
            same.update(os.path.join(top, name) for name in {row[0] for row in rows}.difference(changed))
        return [path for path in paths if path not in same]

    def below(self, top: str, folder: str) -> dict[str, bool]:
        """Return the same as `listed_below`, of files that are certainly changed. Raises NoAnswer."""
        listed = self.listed_below(top, folder)
        return {path: listed[path] for path in self.certain(listed)}


class Files:
    """The Stakes of one call by its own words.

    found    the Stake of each file, by its path
    free     Stakes of named files that the session has read, that git ignores, or that no repository has: not
             protected, but worth keeping

    Git is not asked about a named file if `is_own(stake)`: nothing is lost, or `was_read(stake)`.
    """

    def __init__(
        self, trail: Trail, effects: Effects | None, changed: Changed, is_own: Callable[[Stake], bool],
        was_read: Callable[[Stake], bool],
    ):  # fmt: skip
        self.found: dict[str, Stake] = {}
        self.free: list[Stake] = []
        self._changed = changed
        self._named(trail, effects, is_own, was_read)
        for tree in effects.trees[:MOST_TREES] if effects is not None else ():
            if tree.how != EDIT:
                self._tree(tree)

    def _named(
        self, trail: Trail, effects: Effects | None, is_own: Callable[[Stake], bool], was_read: Callable[[Stake], bool]
    ) -> None:
        by_top: dict[str, list[Stake]] = {}
        for path, resolved, how, by in trail.targets_of(effects):
            is_moved = how == REMOVE and by.partition(" ")[0] == "mv"  # the content exists at another place
            if how == EDIT or is_moved or size_of(resolved) <= 0:
                continue
            stake = Stake(resolved, how, by, False, spelled=path)
            top = top_around(resolved)
            if top and is_own(stake):
                continue
            if not top or was_read(stake):
                self.free.append(stake)
            else:
                by_top.setdefault(top, []).append(stake)
        for top, stakes in by_top.items():
            names = {os.path.relpath(one.path, top): one for one in stakes}
            try:
                changed, new, ignored = _states_of(top, list(names), self._changed.left())
            except NoAnswer:
                continue  # the call goes ahead: nothing says that the file has changes
            for name, stake in names.items():
                stake.is_new = name in new
                if name in changed or name in new:
                    self.found.setdefault(stake.path, stake)
                elif name in ignored:
                    self.free.append(stake)

    def _tree(self, tree: Tree) -> None:
        folder, name = os.path.split(os.path.normpath(tree.root))
        root = os.path.join(os.path.realpath(folder), name)  # a link goes itself
        if not os.path.lexists(root):
            return
        for top, below in _repositories(root):
            try:
                found = self._changed.below(top, below)
            except NoAnswer:
                continue  # as with named files
            for path, is_new in found.items():
                admits = tree.admits(path)
                if admits is not False and size_of(path):
                    stake = Stake(path, tree.how, tree.by, is_new, is_certain=admits is True)
                    self.found.setdefault(path, stake)


def top_of(path: str) -> str:
    """Return the top of the work tree that absolute `path`, a file or a folder, lies in or is; or ""."""
    if os.path.isdir(path) and not os.path.islink(path):
        path = os.path.join(path, "x")
    return top_around(path)


def _dirty(top: str, inside: list[str], seconds: float, with_new: bool) -> tuple[list[Row], list[str]]:
    """Return ``(rows of files that may be changed, names of untracked ones)`` at and below `inside`, relative to `top`.

    Raises NoAnswer.
    """
    repository, new = Repository(top, seconds), list[str]()
    try:
        if with_new:
            new = repository.new(inside)
        try:
            return repository.rows_against("HEAD", inside), new
        except Refused:  # no commit yet
            return [(path, "", "", "A", "", "") for path in repository.tracked(inside)], new
    except Refused:
        return [], []  # not a work tree that git accepts: nothing is known to be uncommitted


def _states_of(top: str, names: Collection[str], seconds: float) -> tuple[set[str], set[str], set[str]]:
    """Return ``(changed, untracked, ignored)`` of the files with these `names`, relative to `top`. Raises NoAnswer."""
    repository = Repository(top, seconds)
    try:
        tracked = set(repository.tracked(names))
        others = set(names) - tracked
        new = set(repository.new(others))
    except Refused:
        return set(), set(), set()  # not a work tree that git accepts: nothing is known to be uncommitted
    try:
        changed = set(repository.against("HEAD", names))
    except Refused:
        changed = tracked  # no commit yet
    return changed, new, others - new - changed


def size_of(path: str) -> int:
    """Return the size of a file or link, -1 if there is none."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return -1  # missing, or a path that cannot exist
    if found.st_mode & 0o170000 not in (0o120000, 0o100000):
        return -1
    return found.st_size


def _repositories(root: str) -> list[tuple[str, str]]:
    """Return ``[(top, folder)]`` of the work trees that `root` lies in, or that lie in it."""
    top = top_of(root)
    if top:
        inner = submodules(top, top, [])
        return [(top, root), *((one, one) for one in inner if one.startswith(root.rstrip("/") + "/"))]
    found = []
    try:
        names = os.listdir(root)[:MOST_INSIDE]
    except OSError:
        names = []  # unreadable: its files are not known
    for name in names:
        inside = os.path.join(root, name)
        if os.path.lexists(os.path.join(inside, ".git")):
            found.append((inside, inside))
    return found


# ------------------------------------------------------------------------------------------------ owners


class Author:
    """The author of a file's uncommitted content.

    who      PERSON; OWN: certainly the session; BUILT: made while a command of the session ran
    lines    numbers of the person's lines; None if the file has no lines, or if they were not looked up
    removed  number of lines that the person has removed
    is_part  True if other changes of the file are the session's
    """

    __slots__ = ("who", "lines", "removed", "is_part")

    def __init__(self, who: str, lines: list[int] | None = None, removed: int = 0, is_part: bool = False):
        self.who = who
        self.lines = lines
        self.removed = removed
        self.is_part = is_part

    @property
    def is_person(self) -> bool:
        return self.who == PERSON


class Authors:
    """Finds authors for one call. `meetings`: those of its Trail."""

    def __init__(self, meetings: Meetings):
        self._meetings = meetings
        self._trail = meetings.trail
        self._calls: dict[str, _Calls] = {}  # by place
        self._saves: dict[str, Saves] = {}  # by place
        self._written: dict[str, dict[bytes, bytes]] = {}  # place -> newest write of each file

    def find_sessions(self, stakes: Iterable[Stake], are_changed: bool = False) -> None:
        """Find other sessions' uncommitted changes in the files of these Stakes (`trace`).

        `are_changed`: git has said that the files have uncommitted changes.
        """
        by_path = {one.path: one for one in stakes}
        for trace in self._meetings.changes_by_others(by_path, are_changed):
            by_path[trace.path].trace = trace

    def find(self, stakes: list[Stake], seconds: float = SECONDS) -> None:
        """Find the `author` of the rest of each file, after `find_sessions`.

        `seconds`: for the contents in the last commit.
        """
        unknown = [one for one in stakes if one.author is None]
        self._trail.changes.prepare([one.path for one in unknown if self._has_lines(one)], seconds)
        for one in unknown:
            one.author = self._of(one, seconds)

    def _of(self, stake: Stake, seconds: float) -> Author:
        """Return the Author of the content of the file beside other sessions' changes."""
        path, is_shared = stake.path, stake.trace is not None
        if is_shared and stake.words:
            return Author(OWN)  # a git command is denied for these in any case
        try:
            is_by_call = self._is_by_call(path, os.lstat(path).st_ctime_ns)
            changes = self._has_lines(stake) and self._trail.changes.of(path, seconds)
            if changes:
                return self._by_lines(path, changes, is_by_call, is_shared)
        except OSError:
            return Author(OWN)  # gone: nothing can be lost
        if is_shared:
            return Author(OWN)
        if is_by_call:
            return Author(BUILT)
        return Author(PERSON)

    def show_lines(self, theirs: list[Stake]) -> None:
        """Find the person's lines in the first files whose author was found by time, as far as git answers."""
        authors = [(one.path, one.author) for one in theirs[:MOST_SHOWN] if one.author is not None]
        unknown = [(path, author) for path, author in authors if author.lines is None]
        self._trail.changes.prepare([path for path, _author in unknown], SECONDS_TO_SHOW)
        for path, author in unknown:
            changes = self._trail.changes.of(path, SECONDS_TO_SHOW)
            if changes is not None:
                author.lines = [at for one in changes for at in range(one.new + 1, one.new + len(one.added) + 1)]
                author.removed = sum(len(one.removed) for one in changes)

    def is_own(self, path: str) -> bool:
        """Return True if nothing in the file is older than the session's calls. Git is not asked."""
        try:
            if not self.has_written(path) or not self._is_by_call(path, os.lstat(path).st_ctime_ns):
                return False
            place = self._trail.place_of(os.path.dirname(path))
            older = self._older(path, versions_of(place, path, self._trail.own_name))
            if not older.lines:
                return True
            with open(path, "rb") as file:
                return not any(older.shows(line) for line in file.read().split(b"\n"))
        except OSError:
            return False  # gone, or unreadable: git tells

    def _by_lines(self, path: str, changes: list[Change], is_by_call: bool, is_shared: bool) -> Author:
        """Return the Author by the uncommitted `changes` of the file. Raises OSError.

        is_by_call  True if a call of the session may have made the last change of the file. Then a doubtful line is a
                    person's only if it is older
        is_shared   True if another session that lives has written the file. Then a doubtful line is a session's
        """
        older = self._older(path, self._versions_of(path))
        others = self._meetings.journals.of_others(self._trail.place_of(os.path.dirname(path)))
        peers = {journal.owner_of(theirs.data) for theirs in others if theirs.writer is not None}
        lines, removed, own, doubtful = [], 0, 0, 0
        is_whole = _is_whole(path, changes)
        for change in changes:
            added = [{author.session for author in line.authors} for line in change.added]
            is_written_anew = bool(added) and all(sessions == {self._session} for sessions in added)
            for number, line in enumerate((*change.added, *change.removed), change.new + 1):
                sessions = {author.session for author in line.authors}
                is_added = number <= change.new + len(change.added)
                is_mine = sessions == {self._session}
                if is_written_anew and not is_added:
                    is_mine = is_whole or self._session in sessions
                if is_mine or (is_shared and not sessions.isdisjoint(peers)):
                    own += 1
                    continue
                is_older = not is_by_call or older.shows(line.text, is_added)
                if not is_older or (is_shared and self._session in sessions):
                    doubtful += 1
                elif is_added:
                    lines.append(number)
                else:
                    removed += 1
        if lines or removed:
            return Author(PERSON, lines, removed, is_part=bool(own or doubtful))
        if doubtful:
            return Author(BUILT)
        return Author(OWN)

    def _versions_of(self, path: str) -> list[Version]:
        return [one for one in self._trail.changes.notes.of(os.path.dirname(path)).versions(path) if one.is_whole]

    def _older(self, path: str, versions: list[Version]) -> _Older:
        """Return the words of those versions of the file that no call of the session had left. Raises OSError."""
        own = self._meetings.journals.own(os.path.dirname(path))
        changes: dict[int, str] = {}  # time of an entry -> time of the file's change noted there
        for entry in journal.newest_first(own, path, ("wrote", "before", "is")):
            words = entry.text.split(" ")
            place = 3 if entry.kind == "is" and len(words) > 3 else 0  # a Snapshot, or a ``state_of``
            changes.setdefault(entry.at_ns, words[place])
        contents = []
        for one in versions:
            changed = changes.get(one.at_ns, "")  # empty: an old entry, dropped by now
            is_own = changed.isdigit() and self._is_by_call(path, int(changed))
            if one.journal == self._trail.own_name and one.exists and not is_own:
                contents.append(one.content())
        return _Older(contents)

    @property
    def _session(self) -> tuple[str, str]:
        return (self._trail.config.runtime_name, self._trail.call.session_id)

    def _has_lines(self, stake: Stake) -> bool:
        """Return True if lines tell the author: a session has kept a version, and the command is not denied anyway."""
        if os.path.islink(stake.path) or (stake.words and stake.trace is not None):
            return False
        return bool(self._versions_of(stake.path))

    def _is_by_call(self, path: str, changed_ns: int) -> bool:
        """Return True if a call of the session may have made the change, and no editor has reported it as a save."""
        folders = dict.fromkeys((os.path.dirname(path), self._trail.call.folder))
        if not any(self._calls_in(folder).cover(path, changed_ns) for folder in folders):
            return False
        place = self._trail.place_of(os.path.dirname(path))
        if place not in self._saves:
            self._saves[place] = Saves(place)
        return changed_ns not in self._saves[place].of(path)

    def ran_in_second(self, folder: str, second: int) -> bool:
        """Return True if a call of the session that its journal for absolute `folder` has ran in that Unix second."""
        return self._calls_in(folder).cover("", second * SECOND_NS, (second + 1) * SECOND_NS - 1)

    def _calls_in(self, folder: str) -> _Calls:
        trail, place = self._trail, self._trail.place_of(folder)
        if place not in self._calls:
            data, agent = self._meetings.journals.of_session(place), plain_word(trail.call.agent)
            ended_ns = marked_ns(trail.call.session_id, agent, hook_starter(trail.config.runtime_name))
            self._calls[place] = _Calls(data, trail.config.write_tools, self._end_of, self._written_by, agent, ended_ns)
        return self._calls[place]

    def _written_by(self, raw: bytes) -> Collection[str] | None:
        """Return the keys of the files that a command writes; None if it may write others, or cannot be read in time.

        `raw`: its entry.
        """
        entry = next(journal.entries([raw]), None)
        if entry is None:
            return None
        reading = self._meetings.reading
        effects = reading.effects_of(entry)
        if effects is None or effects.guesses or effects.runs or effects.git or effects.trees:
            return None
        return {key for one in effects.writes for key in keys_for(one.path, one.folder, reading.real)}

    @cached_property
    def _logs(self) -> Logs:
        """The logs of the session and its agents."""
        call = self._trail.call
        return Logs(self._trail.config.transcript, call.transcript, call.session_id)

    def _end_of(self, agent: str, at_ns: int, changed_ns: int) -> int:
        """Return the end of the agent's call that was let pass at `at_ns`, by the client's log; 0 if unknown.

        `changed_ns`: the time in question.
        """
        if not self._logs.path:
            return 0
        return self._logs.of(agent.strip("-")).end_of(at_ns, changed_ns)

    def has_written(self, path: str) -> bool:
        """Return True if the session's journal notes a write of the file."""
        place = self._trail.place_of(os.path.dirname(path))
        if place not in self._written:
            own = self._meetings.journals.own(os.path.dirname(path))
            self._written[place] = journal.newest_lines(own, ("wrote",))
        return escaped(path) in self._written[place]


def _is_whole(path: str, changes: list[Change]) -> bool:
    """Return True if the file has no line of the commit any more, in any layout.

    Whoever wrote it like that has made the removals of others its own.
    """
    if len(changes) != 1 or changes[0].new or not changes[0].added:
        return False
    added, removed = ({words_of(line.text) for line in lines} for lines in (changes[0].added, changes[0].removed))
    if not added.isdisjoint(removed):
        return False
    with open(path, "rb") as file:
        return file.read().rstrip(b"\n").count(b"\n") < len(changes[0].added)


class _Older:
    """The words in earlier contents of a file. A formatter may have broken their lines.

    lines  the words of each line
    """

    def __init__(self, contents: list[bytes]):
        found = [set(map(words_of, content.split(b"\n"))) for content in contents]
        self.lines = set().union(*found) - {b""}
        self._text = b"\n".join(self.lines)
        self._newest = found[-1] if found else None
        self._searched = 0

    def shows(self, text: bytes, is_added: bool = True) -> bool:
        """Return True if this line was there; if not `is_added`, True if this committed line was missing."""
        words = words_of(text)
        if not is_added:
            return self._newest is not None and words not in self._newest
        if words in self.lines or not words:
            return bool(words)
        self._searched += len(self._text)
        return self._searched <= MOST_SEARCHED and words in self._text


class _Event(NamedTuple):
    """A call of an agent that begins, or the end of its calls.

    from_ns  time from which on files may show it: their times lag behind our clock, but not behind an end
    at_ns    time of its entry
    kind     see `ANY`
    about    of NAMED and WROTE the file, as the journal spells it; of RAN the entry
    """

    from_ns: int
    at_ns: int
    kind: str
    about: bytes = b""


class _Calls:
    """The calls of a session in one place, by its journal. Read once; each question is a search by time.

    A call ends as its client tells: in its log (`ends_of`), or by the hook after it (``over``); else with the same
    agent's next call. A write tool without a known end counts for the files that it names, and so does a command that
    can be read (`written_by`); any other call counts for all files.

    agent, ended_ns  the agent that calls, and the end of its last call if only the mark of a hook tells it yet, else 0
    """

    def __init__(
        self, data: bytes, write_tools: Collection[str], ends_of: Callable[[str, int, int], int],
        written_by: Callable[[bytes], Collection[str] | None], agent: str, ended_ns: int,
    ):  # fmt: skip
        self._ends_of = ends_of
        self._written_by = written_by
        self._written: dict[bytes, Collection[str] | None] = {}  # entry of a command -> the files that it writes
        found = journal.made_of(data, "events", _Events, lambda events, added: events.add(added, write_tools))
        self._events = found.of  # agent -> its events, in order of time
        if ended_ns and agent in found.of:
            events = [*found.of[agent]]
            events.insert(_place(events, ended_ns), _Event(ended_ns, ended_ns, ENDED))
            self._events = {**found.of, agent: events}

    def cover(self, path: str, first_ns: int, last_ns: int = 0) -> bool:
        """Return True if a call may have changed the file at `path` at some time from `first_ns` to `last_ns`."""
        for agent, events in self._events.items():
            begun = events[_place(events, first_ns) : _place(events, last_ns)]
            if any(self._may_write(one, path) for one in begun) or self._is_open(agent, path, first_ns):
                return True
        return False

    def _may_write(self, event: _Event, path: str) -> bool:
        if event.kind == RAN:
            if event.about not in self._written:
                self._written[event.about] = self._written_by(event.about)
            written = self._written[event.about]
            return written is None or path in written
        return event.kind == ANY or (event.kind in (NAMED, WROTE) and event.about == escaped(path))

    def _is_open(self, agent: str, path: str, at_ns: int) -> bool:
        """Return True if a call of the agent was open at that time, and may write the file."""
        events = self._events[agent]
        begun = _place(events, at_ns) - 1
        while begun >= 0 and events[begun].kind in (ENDED, TURN):
            begun -= 1
        if begun < 0 or events[begun].kind == LOOKS:
            return False
        call, after = events[begun], events[begun + 1 : begun + 2]
        # The call that `begun` is the number of, and those before it that may run beside it
        first = begun
        while first and events[first - 1].kind not in (ENDED, TURN):
            if events[begun].at_ns - events[first - 1].at_ns >= seen.APART_NS:
                break
            first -= 1
        calls = events[first : begun + 1]
        may_write = any(self._may_write(one, path) for one in calls)
        # The client's hooks may change other files between the end of a command and its result.
        is_after = bool(after) and after[0].kind == ENDED and at_ns > after[0].at_ns
        if not may_write and not is_after and all(one.kind in _OF_COMMANDS for one in calls):
            return False
        if call.kind in (ANY, *_OF_COMMANDS) and after and after[0].kind == ENDED and at_ns <= after[0].at_ns:
            return True  # the client's log is not asked
        ended_ns = self._ends_of(agent, call.at_ns, at_ns)
        if ended_ns:
            return at_ns <= ended_ns
        if after and after[0].kind in (ENDED, TURN):
            return at_ns <= after[0].at_ns and after[0].kind == ENDED
        return may_write


def _place(events: list[_Event], at_ns: int) -> int:
    """Return the place of the first event after that time."""
    return bisect_right(events, _Event(at_ns, sys.maxsize, ""))  # a `key` is unknown to Python 3.9


class _Events:
    """The events of each agent (`of`), in order of time, as far as a journal was read; `last_ns`: time of the last."""

    def __init__(self) -> None:
        self.of: dict[str, list[_Event]] = {}
        self.last_ns = 0

    def add(self, data: bytes, write_tools: Collection[str]) -> None:
        """Add the calls in the entries `data`, and their ends."""
        for head, raw in journal.heads(data):
            at_ns, (kind, agent, tool) = int(head[0]), (word.decode("ascii", "replace") for word in head[1:])
            if kind in _ENDS:
                self.last_ns = at_ns
                is_turn = kind == "over" and tool == "-"
                self.insert(agent, _Event(at_ns, at_ns, TURN if is_turn else ENDED))
            elif kind in _CALLS:
                self.last_ns = max(at_ns - journal.SLACK_NS, self.last_ns)
                about = raw.partition(b"\0")[2].partition(b"\0")[0]
                if tool in write_tools:
                    found = NAMED, about
                elif kind == "ran" and looks_only(raw):
                    found = LOOKS, b""
                elif kind == "ran":
                    found = RAN, raw
                elif kind in ("wrote", "will"):
                    found = WROTE, about
                else:
                    found = ANY, b""
                self.insert(agent, _Event(self.last_ns, at_ns, *found))

    def insert(self, agent: str, event: _Event) -> None:
        """Add an event in its place, mostly the last one."""
        events = self.of.setdefault(agent, [])
        if events and events[-1].from_ns > event.from_ns:
            events.insert(_place(events, event.from_ns), event)
        else:
            events.append(event)

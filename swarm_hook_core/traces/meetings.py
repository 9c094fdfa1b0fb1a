"""The uncommitted changes of other sessions, looked up for one call.

A trace of another session is *fresh* if all of this holds: its session lives; the file has changed since the entry was
made (``others``); git does not report the change as committed or undone (``file_changes``); it is younger than a day. A
fresh trace is *unseen* if this session has neither read nor written the file since (``seen``). A *pending* write was
let pass or is being checked, but has not reached the disk; a look at the file does not end it. Unparsed commands of
others are parsed here (``unread``). A command that shows a file whole is a look at it; a session is told of others'
changes as a turn begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from swarm_hook_core.clock import Budget
from swarm_hook_core.lookup import LockReader
from swarm_hook_core.paths import git_root, keys_for, real_paths
from swarm_hook_core.traces import NO_FILE, endings, escaped, journal, keys_of, place_of, seen, state_of
from swarm_hook_core.traces.elsewhere import places_with
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.others import Journals, OthersJournal, Trace
from swarm_hook_core.traces.trail import Target, Trail
from swarm_hook_core.traces.unread import Reading
from swarm_hook_core.untrusted_text import NOTE, named, token
from swarm_hook_core.watching.records import read as read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Read
    from swarm_hook_core.traces.file_changes import Committed
    from swarm_hook_core.traces.transcript import Transcript

Found = TypeVar("Found")
Writes = list[tuple[Entry, OthersJournal]]

MOST_CHANGED = 50  # changed files below one folder that are searched for in unparsed commands
MOST_BELOW = 300  # newest traces below one folder
WAIT_SECONDS = 2.0  # longest wait for another session's call, from its check on
PAUSE = 0.004
LONG_PAUSE = 0.03  # seconds between two looks where no event tells the end


class Meetings:
    """The traces of others for `trail`, the Trail of one call.

    `reader`: the store's LockReader; `budget`: processor time of the call's check, or None.
    """

    def __init__(self, trail: Trail, reader: LockReader, now: float, budget: Budget | None = None):
        self.trail = trail
        self._now = now
        self._real = real_paths()
        if trail.reading is None:
            trail.reading = Reading(budget, self._real)
        self.reading = trail.reading  # all Meetings of a Trail share it
        self.journals = Journals(trail, reader, now, self.reading)
        self._transcript: Transcript | None = None
        self._writes_on: dict[str, tuple[list[str], Writes]] = {}  # path -> its keys and writes; mostly asked twice

    @cached_property
    def _git(self) -> Committed:
        from swarm_hook_core.traces.file_changes import Committed

        return Committed(self.trail)

    # ------------------------------------------------------------------------------------------- one file

    def unseen(self, path: str, resolved: str, once: bool = False) -> Trace | None:
        """Return the fresh Trace on absolute `path` that this session has not seen, or None. `resolved`: without links.

        A pending write counts as unseen. `once`: unless the session was told of it; nothing is denied, or waited for.
        """
        fresh = self._newest_on(path, resolved, only_unseen=True, once=once)
        if fresh is None or fresh.is_pending:
            return fresh
        if self._git.left_of([fresh]) and not self.was_shown(path, resolved, waits=not once):
            return fresh
        return None

    def newest_write(self, path: str, resolved: str) -> Trace | None:
        """Return the newest Trace of another living session on that file, seen or unseen; git is not asked."""
        return self._newest_on(path, resolved, only_unseen=False)

    def changes_by_others(self, paths: Iterable[str], are_changed: bool = False) -> list[Trace]:
        """Return the newest Trace of others' uncommitted changes in each of these files, links resolved.

        `are_changed`: git has said that the files have uncommitted changes.
        """
        found: list[Trace] = []
        for path in paths:
            keys, writes = self._writes_of(path, path, is_real=True)
            if writes:
                found += _newest_of_each(path, keys, writes)
        if not are_changed:
            found = self._git.left_of(found)
        newest: dict[str, Trace] = {}
        for trace in sorted(self._git.without_committed_since(found), key=lambda trace: -trace.at_ns):
            newest.setdefault(trace.path, trace)
        return list(newest.values())

    def is_named(self, path: str) -> bool:
        """Return True if another session's journal has a write of the file at `path`, links resolved, by that name."""
        others = self.journals.of_others(self.trail.place_of(os.path.dirname(path)))
        return any(theirs.names(path) for theirs in others)

    def went_on_with(self, trace: Trace) -> bool:
        """Return True if this session has written the file of `trace` since: it knows the change."""
        last = journal.newest(self.journals.own(os.path.dirname(trace.path)), trace.path, ("wrote",))
        return last is not None and last.at_ns > trace.at_ns

    def is_theirs(self, trace: Trace) -> bool:
        """Return True if the uncommitted change in the file of `trace` is its writer's, and not this session's own."""
        own = self.journals.own(os.path.dirname(trace.path))
        return not seen.is_own(own, trace.path, keys_of(trace.path), trace.at_ns) and bool(self._git.left_of([trace]))

    def times_denied(self, path: str, call_id: str) -> int:
        """Return the number of calls of this session denied for the file lately, since its last look at it."""
        from swarm_hook_core.denial import STORM_SECONDS

        own = self.journals.own(os.path.dirname(path))
        return seen.times_denied(own, path, call_id, int((self._now - STORM_SECONDS) * 1e9))

    def on_other_machines(self, resolved: str) -> list[Trace]:
        """Return the unpushed Traces of the file at `resolved` from other machines, the newest first."""
        others = self.journals.of_others(self.trail.place_of(os.path.dirname(resolved)))
        found = [trace for theirs in others if (trace := theirs.far_on(keys_of(resolved)))]
        return sorted(found, key=lambda trace: -trace.at_ns)

    def note_own_files(self, folder: str) -> None:
        """Collect in the trail the states that the session's last writes have left, if not noted before."""
        own = self.journals.own(folder)
        seen.note_what_was_left(own, self.trail)
        if seen.has_open_command(own, self.trail.call.agent):
            self.trail.note_at(folder, "over")
        endings.note_commits_over(own, self.trail, self._now)

    def look_only_for(self, files: Iterable[Target]) -> None:
        """Leave out journals without a word of these files, as most are."""
        names = {os.path.basename(one) for path, resolved, *_how in files for one in (path, resolved)}
        if all(name.isascii() and name == name.strip() for name in names):  # others have more spellings in keys
            self.trail.names = frozenset(escaped(one) for name in names for one in (name, name.casefold()))

    def _newest_on(
        self, path: str, resolved: str, only_unseen: bool, once: bool = False, until_ns: int = 0
    ) -> Trace | None:
        keys, writes = self._writes_of(path, resolved)
        if until_ns:
            writes = [one for one in writes if one[0].at_ns <= until_ns]
        own = None
        if writes and only_unseen:
            own = self.journals.own(os.path.dirname(resolved))
        return _newest_of(resolved, keys, writes, own, or_pending=only_unseen, once=once)

    def _writes_of(self, path: str, resolved: str, is_real: bool = False) -> tuple[list[str], Writes]:
        """Return ``(keys of the file, others' newest writes of it)``. `is_real`: the path has no links to follow."""
        if path not in self._writes_on:
            if is_real:
                keys = keys_of(resolved)
            elif os.path.islink(resolved):
                keys = [resolved]
            else:
                keys = keys_for(path, "/", self._real)
            others = self.journals.of_others(self.trail.place_of(os.path.dirname(resolved)))
            self._writes_on[path] = keys, [(entry, theirs) for theirs in others for entry in theirs.writes_on(keys)]
        return self._writes_on[path]

    # ------------------------------------------------------------------------------- calls that run just now

    def wait_for_write(self, path: str, resolved: str, own_at_ns: int, once: bool = True) -> Trace | None:
        """Wait until the pending write of the file is made or given up; return ``unseen(path, resolved, once)``.

        A call that is still being checked and was noted after this one (`own_at_ns`) is not waited for: it waits for
        this one. The wait is short, as the other call may wait for a person.
        """

        def find() -> Trace | None:
            trace = self.unseen(path, resolved, once)
            if trace is not None and trace.is_checked and trace.at_ns > own_at_ns:
                earlier = self._newest_on(path, resolved, only_unseen=True, once=once, until_ns=own_at_ns)
                if earlier is not None and earlier.is_pending:
                    return earlier
            return trace

        def is_decided(trace: Trace | None) -> bool:
            if trace is None or not trace.is_pending:
                return True
            is_late = time.time_ns() - trace.at_ns > WAIT_SECONDS * 10**9
            return is_late or (trace.is_checked and trace.at_ns > own_at_ns)

        return self._wait(self.trail.place_of(os.path.dirname(resolved)), find, is_decided, PAUSE, resolved)

    def clearing(self, resolved: str, own_at_ns: int, waits: bool) -> tuple[Trace, str, str] | None:
        """Return ``(Trace, deed, place)`` of another session's call that removes or resets the folder of `resolved`.

        `waits`: wait until that call is over, unless it was noted after this one (`own_at_ns`): then it meets this
        call. The Trace names the file. None if there is no such call.
        """
        place, keys = self.trail.place_of(os.path.dirname(resolved)), keys_of(resolved)
        if self.journals.is_quiet(place):
            return None

        def find() -> tuple[Trace, str, str] | None:
            since_ns = time.time_ns() - int(WAIT_SECONDS * 10**9)
            for theirs in self.journals.of_others(place):
                entry, deed, cleared = theirs.clearing_of(keys, since_ns) or (None, "", "")
                if entry is not None and (trace := theirs.trace(resolved, entry, is_pending=True)) is not None:
                    return trace, deed, cleared
            return None

        def is_decided(found: tuple[Trace, str, str] | None) -> bool:
            return found is None or not waits or found[0].at_ns > own_at_ns

        return self._wait(place, find, is_decided, every_round=True)  # no entry tells that the folder is gone

    def commit_with_hooks(self, resolved: str, waits: bool) -> tuple[Trace, str] | None:
        """Return ``(Trace, name)`` of another session's commit with a hook `name` that puts changes aside, or None.

        `waits`: wait until it is over, two seconds at most. The Trace names the file.
        """
        place = self.trail.place_of(os.path.dirname(resolved))
        if self.journals.is_quiet(place):
            return None

        def find() -> tuple[Trace, str] | None:
            for theirs in self.journals.of_others(place):
                for entry in endings.commits_around(resolved, theirs.rare, self._now):
                    if (trace := theirs.trace(resolved, entry)) is not None:
                        return trace, entry.text
            return None

        return self._wait(place, find, lambda found: found is None or not waits)

    def _wait(
        self, place: str, find: Callable[[], Found], is_decided: Callable[[Found], bool],
        pause: float = LONG_PAUSE, file: str = "", every_round: bool = False,
    ) -> Found:  # fmt: skip
        """Call `find` until `is_decided(result)`, for at most `WAIT_SECONDS`; return the last result.

        After a new entry in `place`, or a change of `file`, the journals are read again. Only then `find` is called
        again, unless `every_round`.
        """
        end, found = time.monotonic() + WAIT_SECONDS, find()
        stamps: list[str] | None = None
        while not is_decided(found) and time.monotonic() < end:
            time.sleep(pause)
            last, stamps = stamps, self.journals.stamps(place, file)
            if stamps != last:
                self.journals.forget(place)
                self._writes_on.clear()
            elif not every_round:
                continue
            found = find()
        return found

    # ------------------------------------------------------------------------------------------- a folder

    def unseen_below(self, root: str, admits: Callable[[str], bool | None]) -> list[Trace]:
        """Return the fresh unseen Traces at and below absolute `root`, for paths that `admits(path)` accepts."""
        root = self._real(root)
        places = places_with(self.trail, root)
        coming = [trace for trace in self._pending_in(places, root) if admits(trace.path)]
        met = {trace.path for trace in coming}
        changed = []
        # In a missing folder only files to come can be lost.
        for path, writes in self._below(root, places) if os.path.lexists(root) else ():
            if path not in met and admits(path):
                trace = _newest_of(path, [path], writes, self.journals.own(os.path.dirname(path)))
                if trace is not None:
                    changed.append(trace)
        left = self._git.left_of(changed)
        return coming + [trace for trace in left if not self.was_shown(trace.path, trace.path)]

    def pending_below(self, root: str) -> list[Trace]:
        """Return the Traces of pending writes at and below `root`, in one repository."""
        return self._pending_in([self.trail.place_of(root)], root)

    def _pending_in(self, places: Iterable[str], root: str) -> list[Trace]:
        found: dict[str, Trace] = {}
        busy = [place for place in places if not self.journals.is_quiet(place)]
        for theirs in [theirs for place in busy for theirs in self.journals.of_others(place)]:
            for path, entry in theirs.pending_below(root):
                own = self.journals.own(os.path.dirname(path))
                trace = _newest_of(path, [path], [(entry, theirs)], own, or_pending=True)
                if trace is not None and trace.is_pending:
                    found.setdefault(path, trace)
        return list(found.values())

    def fresh_below(self, root: str) -> list[Trace]:
        """Return the fresh Trace of each file at and below absolute `root`, seen or unseen, the newest first."""
        found: dict[str, Trace] = {}
        for trace in self.fresh_of_each_below(root):
            last = found.setdefault(trace.path, trace)
            if last.at_ns < trace.at_ns:
                found[trace.path] = trace
        return list(found.values())

    def fresh_of_each_below(self, root: str) -> list[Trace]:
        """Return the fresh Traces below `root`: one for each session that has changed a file."""
        return self._git.without_committed_since(self._git.left_of(self._of_each_below(root)))

    def unpushed_of_each_below(self, root: str) -> list[Trace]:
        """Return one Trace for each session and file with unpushed changes below `root`, without ignored files."""
        return self._git.unpushed_of(self._of_each_below(root))

    def _of_each_below(self, root: str) -> list[Trace]:
        root = self._real(root)
        return [
            trace
            for path, writes in self._below(root, {self.trail.place_of(root): [root]}, changed_first=True)
            for trace in _newest_of_each(path, [path], writes)
        ]

    def untold_below(self, root: str, most: int) -> tuple[list[Trace], list[str]]:
        """Return the newest fresh Traces below `root` that this session has not seen nor been told of, at most `most`.

        The second value: the paths among them that git reports as committed.
        """
        root = self._real(root)
        own = self.journals.own(root)
        newest: dict[str, Writes] = {}
        for theirs in self.journals.of_others(self.trail.place_of(root)):
            if theirs.kin:
                continue  # agents report to the session themselves
            for path, entry in theirs.lately_below(root, most):
                newest.setdefault(path, []).append((entry, theirs))
        found: list[Trace] = []
        for path, writes in sorted(newest.items(), key=_last_written):
            trace = _newest_of(path, [path], writes, own)
            if trace is not None and seen.is_untold(own, path, trace.at_ns):
                found.append(trace)
                if len(found) == most:
                    break
        left = self._git.left_of(found)
        return left, [trace.path for trace in found if trace not in left]

    def on_other_machines_below(self, root: str) -> list[Trace]:
        """Return the unpushed Traces from other machines at and below absolute `root`."""
        root = self._real(root)
        others = self.journals.of_others(self.trail.place_of(root))
        return [trace for theirs in others for trace in theirs.far_below(root)]

    def _below(
        self, root: str, places: Mapping[str, list[str]], changed_first: bool = False
    ) -> list[tuple[str, Writes]]:
        """Return ``[(path, writes)]`` for paths at and below `root`, with each session's newest entry.

        `places`: place -> its folders at and below `root`. `changed_first`: among very many, put those first that git
        reports as changed.
        """
        found: dict[str, Writes] = {}
        journals = [(theirs, places[place]) for place in places for theirs in self.journals.of_others(place)]
        for theirs, folders in journals:
            written = [(entry.key, entry) for entry in theirs.writes_below(root)]
            for folder in folders if theirs.commands.are_any else ():
                changed = self._git.changed_below(folder)
                if changed is None:
                    written += theirs.commands_lately_below(folder)
                for path in (changed or ())[:MOST_CHANGED]:
                    written += [(path, entry) for entry in theirs.commands.that_wrote([path])]
            for path, entry in written:
                found.setdefault(path, []).append((entry, theirs))
        some = sorted(found.items(), key=_last_written)
        if changed_first and len(some) > MOST_BELOW:
            chosen = set(self._git.changed_below(root) or ())
            some.sort(key=lambda one: one[0] not in chosen)
        return some[:MOST_BELOW]

    # ------------------------------------------------------------------------------------------- git, transcript

    def shows_changes(self, path: str, since: str) -> bool:
        """Return True if ``git diff <since>`` of the file shows changes that this session has not seen, and all."""
        return self.unseen(path, path) is not None and self._git.shows_all(path, since == "HEAD")

    def was_shown(self, path: str, resolved: str, waits: bool = True) -> bool:
        """Return True if the client's transcript shows that the model has seen the file as it is now.

        `waits`: as of ``Transcript.has_shown``.
        """
        config, call = self.trail.config, self.trail.call
        if not call.transcript or not config.transcript:
            return False
        if self._transcript is None:
            from swarm_hook_core.traces.transcript import Transcript

            self._transcript = Transcript(config, call)
        return self._transcript.has_shown(path, resolved, waits)


def _newest_of(
    path: str, keys: list[str], writes: Writes, own: bytes | None = None, or_pending: bool = False, once: bool = False
) -> Trace | None:
    """Return the newest fresh Trace of the file at `path` among `writes` (pairs of entry and OthersJournal), or None.

    `keys`: keys of the path. `own`: the session's own journal: traces that it has seen are skipped; None keeps them.
    `or_pending`: pending writes count. `once`: except those that the session was told of.
    """

    def explains(entry: Entry, changed_ns: int) -> bool:
        for one, its in writes:
            if one is not entry and seen.may_come_from(one, entry, changed_ns, partial(its.ended_ns, one)):
                return True
        return own is not None and seen.may_have_changed(own, keys, entry, changed_ns)

    def others(entry: Entry, changed_ns: int) -> bool:
        if explains(entry, 0):
            return True
        return changed_ns > 0 and explains(entry, changed_ns) and not _is_as_left(path, entry, theirs.name)

    for newest, theirs in sorted(writes, key=lambda pair: -pair[0].at_ns):
        was_told = once and own is not None and seen.has_met(own, keys, newest)
        if or_pending and not was_told and theirs.is_pending(path, newest, others):
            trace = theirs.trace(path, newest, is_pending=True)
            if trace is not None:
                return trace
        entry = theirs.made(path, newest)
        if entry is None:
            continue
        if own is not None and seen.has_seen(own, path, keys, entry, lambda: theirs.ended_ns(entry)):  # noqa: B023
            continue
        trace = theirs.trace(path, entry)
        if trace is not None:
            return trace
    return None


def _is_as_left(path: str, entry: Entry, name: str) -> bool:
    """Return True if the file at `path` has the content that the call of `entry` leads to, by its input.

    `name`: of the journal. False for a command: its input tells no content.
    """
    from swarm_hook_core.traces.versions.replay import Inputs, contents_after
    from swarm_hook_core.traces.versions.stored import versions_of

    place = place_of(os.path.dirname(path))
    given = Inputs(place, name).at(entry.at_ns)
    if given is None:
        return False
    found = versions_of(place, path, name)
    before = next((one for one in found if one.at_ns == entry.at_ns and one.exists), None)
    if before is None:
        return False
    try:
        return read_file(path, LONGEST)[1] in contents_after(given, path, before.content(), lambda _path: None)
    except (OSError, ValueError):
        return False  # pruned just now, or too large


def _newest_of_each(path: str, keys: list[str], writes: Writes) -> list[Trace]:
    """Return the newest fresh Trace of the file at `path` by each session with one of these `writes`."""
    journals = dict.fromkeys(theirs for _entry, theirs in writes)
    found = (_newest_of(path, keys, [one for one in writes if one[1] is theirs]) for theirs in journals)
    return [trace for trace in found if trace is not None]


def _last_written(written: tuple[str, Writes]) -> int:
    """Return the sort key of a path with its writes: the newest first."""
    return -max(entry.at_ns for entry, _theirs in written[1])


# Looks by shell commands: files that a command has shown whole, or as a complete diff.
#
# Showing a part of a file, or searching in it, is no look. Parts shown by several commands together are one if they
# leave no gap.

LONGEST = 4 * 1024 * 1024  # bytes of a file: the lines of a larger one are not counted
MOST_PARTS = 40  # parts of one file that are combined
MOST_COMMANDS = 40  # newest unparsed commands that name a file


def note_looks(trail: Trail, meetings: Meetings, reads: list[Read], written: Collection[str]) -> None:
    """Add to `trail` the files that these Reads have shown to the session, except those in `written`.

    `meetings`: the Meetings of the call.
    """
    parts: dict[str, list[tuple[int, int]]] = {}  # path -> [(first, last)] lines shown by this call
    for read in reads:
        file, link = (trail.resolved(read.folder, read.path, of_link=of_link) for of_link in (False, True))
        for path in dict.fromkeys(filter(None, (file, link))):
            if path in written:
                continue  # read before or after the write: unknown
            if read.since:
                if meetings.shows_changes(path, read.since):
                    trail.note("saw", path)
            elif not read.spans:
                trail.note("saw", path)
            else:
                _note_part(trail, meetings, path, read.spans, parts.setdefault(path, []))


def _note_part(trail: Trail, meetings: Meetings, path: str, spans: Sequence[Any], parts: list[tuple[int, int]]) -> None:
    """Note that some lines of the file at `path` were shown; as a look at the file if they are all of it.

    `parts`: the parts shown before by the same call; this adds to them.
    """
    from swarm_hook_core.shell.spans import are_whole, joined_lines

    state = state_of(path)
    lines, size = measured(path)
    if lines is None or size is None:
        return
    if are_whole(spans, lines, size):
        trail.note("saw", path, state)
        return
    if len(spans) != 1 or spans[0][0] == "bytes":
        return
    first, last = spans[0][1:] if spans[0][0] == "lines" else (lines - spans[0][1] + 1, None)
    parts.append((max(first, 1), lines if last is None else last))
    trail.note("part", path, f"{state} {parts[-1][0]} {parts[-1][1]}")
    # ``[(first, last)]`` of lines shown while the file was in this `state`
    own = meetings.journals.own(os.path.dirname(path))
    earlier: list[tuple[int, int]] = []
    for entry in journal.newest_first(own, path, ("part",)):
        words = entry.text.rsplit(" ", 2)
        if words[0] != state or len(words) != 3 or len(earlier) == MOST_PARTS:
            break
        earlier.append((int(words[1]), int(words[2])))
    if any(are_whole([("lines", *one)], lines, size) for one in joined_lines([*earlier, *parts])):
        trail.note("saw", path, state)


def measured(path: str) -> tuple[int, int] | tuple[None, None]:
    """Return ``(lines, bytes)`` of a plain file, ``(None, None)`` for a large file or any other."""
    try:
        data = read_file(path, LONGEST)[1]
    except (OSError, ValueError):
        return None, None  # gone, too large, or not a plain file
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data)), len(data)


def has_read(meetings: Meetings, path: str, resolved: str, waits: bool) -> bool:
    """Return True if the session has seen the whole file as it is now. `resolved`: the path without links.

    `waits`: as of ``Transcript.has_shown``.
    """
    own, state = meetings.journals.own(os.path.dirname(resolved)), state_of(resolved)
    for key in keys_of(resolved):
        look = journal.newest(own, key, ("saw",))
        if look is not None and look.text == state:
            return True
    return _shown_by_command(meetings, own, path, resolved, state) or meetings.was_shown(path, resolved, waits)


def _shown_by_command(meetings: Meetings, own: bytes, path: str, resolved: str, state: str) -> bool:
    """Return True if an unparsed command of the session has shown the whole file since its last change."""
    if state == NO_FILE:
        return False
    changed_ns = int(state.partition(" ")[0])
    name = os.path.basename(path).encode("utf-8", "surrogatepass")
    lines = [raw for raw in own.split(b"\n") if b" ran " in raw.partition(b"\0")[0] and name in raw]
    for entry in journal.entries(list(reversed(lines))[:MOST_COMMANDS]):
        if entry.at_ns < changed_ns:
            return False
        effects = meetings.reading.effects_of(entry)
        if effects is None:
            return False  # no time is left
        for read in effects.reads:
            is_it = os.path.realpath(os.path.join(read.folder, read.path)) == resolved
            if is_it and not read.since and (not read.spans or _are_all(read.spans, resolved)):
                return True
    return False


def _are_all(spans: Sequence[Any], path: str) -> bool:
    """Return True if these parts of the file at `path` are all of it."""
    from swarm_hook_core.shell.spans import are_whole

    lines, size = measured(path)
    return lines is not None and size is not None and are_whole(spans, lines, size)


# News for a session, at its start and at the beginning of each turn: files that others have changed and not committed.
#
# At most five lines, and each change once: the session's own journal has what it was told. This only reads, asks git
# about a few files, and never keeps a turn from beginning.

MOST = 50  # files, the newest
FILES = 8  # files named in one line
LINES = 5
NEWS_SECONDS = 0.1  # of processor time, for parsing others' commands


class News:
    """Others' changes around the session of `trail`, as `words` for its model; empty if there are no changes."""

    def __init__(self, trail: Trail, reader: LockReader, now: float):
        self.words = ""
        self._trail = trail
        self._paths: list[str] = []
        root = git_root(trail.call.folder)
        session = reader.session(trail.config.runtime_name, trail.call.session_id)
        if session is None:
            return  # an unknown session has no journal to note this in
        found, committed = Meetings(trail, reader, now, Budget(NEWS_SECONDS)).untold_below(root, MOST)
        if found:
            self._say(found, os.path.realpath(root), token(session.label, "identity"), now)
        self._paths += committed  # committed meanwhile: no need to mention them later

    def told(self) -> None:
        """Note that the session was told, so that it is not repeated. Raises OSError."""
        for path in self._paths:
            self._trail.note("told", path)
        if self._paths:
            self._trail.leave()

    def _say(self, found: list[Trace], root: str, identity: str, now: float) -> None:
        """Put the Traces `found`, the newest first, into words: one line per session, with its files."""
        from swarm_hook_core.wording import and_more, changed_by, holder

        by_whom: dict[str, list[Trace]] = {}
        for trace in found:
            by_whom.setdefault(holder(trace.held, identity)[0], []).append(trace)
        groups = list(by_whom.values())
        if len(groups) < LINES:
            shown = groups
        else:
            shown = groups[: LINES - 2]
        lines = [
            "swarm: changed by others and not committed. Read such a file again before you change it, keep theirs:"
        ]
        for group in shown:
            some = group[:FILES]
            names = ", ".join(named(os.path.relpath(trace.path, root), NOTE) for trace in some)
            lines.append(f"- {names}{and_more(len(group) - len(some))}: by {changed_by(some[0].held, identity, now)}")
            self._paths += [trace.path for trace in some]
        left = groups[len(shown) :]
        if left:
            lines.append(f"- and {sum(map(len, left))} files of {len(left)} more sessions")
        self.words = "\n".join(lines)

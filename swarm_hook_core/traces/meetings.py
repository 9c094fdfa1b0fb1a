"""The uncommitted changes of other sessions, looked up for one call.

A trace of another session is *fresh* if all of this holds: its session lives; the file has changed since the entry was
made (``others``); git does not report the change as committed or undone (``committed``); it is younger than a day. A
fresh trace is *unseen* if this session has neither read nor written the file since (``seen``). A *pending* write was
let pass or is being checked, but has not reached the disk; a look at the file does not end it. Unparsed commands of
others are parsed here (``unread``).
"""

import os
import time

from swarm_hook_core.paths import keys_for, real_paths
from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import journal, keys_of, others_in, seen, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.transcript import Transcript

MOST_CHANGED = 50  # changed files below one folder that are searched for in unparsed commands
MOST_BELOW = 300  # newest traces below one folder
WAIT_SECONDS = 2.0  # longest wait for another session's write, from its check on
PAUSE = 0.004
LONG_PAUSE = 0.03  # seconds between two looks where no event tells the end


class Meetings:
    """The traces of others for `trail`, the Trail of one call.

    `reader`: the store's LockReader; `budget`: processor time of the call's check, or None.
    """

    def __init__(self, trail, reader, now: float, budget=None):
        self.trail = trail
        self._reader = reader
        self._now = now
        self._real = real_paths()
        self._budget = budget
        self._reading: object = None  # This one and the next are made when needed: few calls meet another's trace.
        self._committed: object = None
        self._writes_on: dict = {}  # path -> its keys, [(entry, its OthersJournal)]; a replaced file is asked for twice
        self._own: dict = {}  # place -> the session's own entries
        self._others: dict = {}  # place -> [OthersJournal]
        self._transcript: Transcript | None = None
        self._quiet: dict = {}  # place -> True if no write there can be pending

    def reading(self):
        """Return the Reading that parses others' commands for this call."""
        if self._reading is None:
            from swarm_hook_core.traces.unread import Reading

            self._reading = Reading(self._budget, self._real)
        return self._reading

    @property
    def _git(self):
        if self._committed is None:
            from swarm_hook_core.traces.committed import Committed

            self._committed = Committed()
        return self._committed

    def unseen(self, path: str, resolved: str, once: bool = False):
        """Return the fresh Trace on absolute `path` that this session has not seen, or None. `resolved`: without links.

        A pending write counts as unseen. `once`: unless the session was told of it.
        """
        fresh = self._newest_on(path, resolved, only_unseen=True, once=once)
        if fresh is None or fresh.is_pending:
            return fresh
        return fresh if self._git.left_of([fresh]) and not self._was_shown(path, resolved) else None

    def _was_shown(self, path: str, resolved: str) -> bool:
        """Return True if the client's transcript shows that the model has seen the file as it is now."""
        config, call = self.trail.config, self.trail.call
        if not call.transcript or not config.transcript:
            return False
        if self._transcript is None:
            from swarm_hook_core.traces.transcript import Transcript

            self._transcript = Transcript(config, call)
        return self._transcript.has_shown(path, resolved)

    def once_made(self, trace, own_at_ns: int, path: str, resolved: str):
        """Wait until the pending write of `trace` is made or given up; return the result of ``unseen(path, resolved,
        True)``.

        Return at once if the other call is still being checked and was noted after this one (`own_at_ns`): it waits for
        this call. The wait is short, as the other call may wait for a person.
        """
        end = time.monotonic() + WAIT_SECONDS
        place = self.trail.place_of(os.path.dirname(resolved))
        stamps: object = None
        while trace is not None and trace.is_pending and time.monotonic() < end:
            if time.time_ns() - trace.at_ns > WAIT_SECONDS * 10**9 or (trace.is_checked and trace.at_ns > own_at_ns):
                return trace
            time.sleep(PAUSE)
            last, stamps = stamps, self._stamps(place, resolved)
            if stamps != last:
                self._writes_on.pop(path, None)
                self._others.pop(place, None)
                trace = self.unseen(path, resolved, True)
        return trace

    def clearing(self, resolved: str, own_at_ns: int, waits: bool):
        """Return ``(Trace, deed, place)`` of another session's call that removes or resets the folder of `resolved`, or
        None.

        `waits`: wait until that call is over, unless it was noted after this one (`own_at_ns`): then it meets this
        call. The Trace names the file.
        """
        place = self.trail.place_of(os.path.dirname(resolved))
        if self._is_quiet(place):
            return None
        keys, stamps = keys_of(resolved), None
        while True:
            since_ns = time.time_ns() - int(WAIT_SECONDS * 10**9)
            for theirs in self._others_in(place):
                entry, deed, cleared = theirs.clearing_of(keys, since_ns) or (None, "", "")
                trace = theirs.trace(resolved, entry, is_pending=True) if entry is not None else None
                if trace is not None:
                    break
            else:
                return None
            if not waits or trace.at_ns > own_at_ns:
                return trace, deed, cleared
            time.sleep(LONG_PAUSE)
            last, stamps = stamps, self._stamps(place)
            if stamps != last:
                self._others.pop(place, None)

    def standing(self, path: str, resolved: str):
        """Return the newest Trace of another living session on that file, seen or unseen; git is not asked."""
        return self._newest_on(path, resolved, only_unseen=False)

    def is_theirs(self, trace) -> bool:
        """Return True if the uncommitted change in the file of `trace` is its writer's, and not this session's own."""
        own = self.own_entries(os.path.dirname(trace.path))
        return not seen.is_own(own, trace.path, keys_of(trace.path), trace.at_ns) and bool(self._git.left_of([trace]))

    def times_denied(self, path: str, call_id: str) -> int:
        """Return the number of calls of this session denied for the file lately, since its last look at it."""
        from swarm_hook_core.storms import SECONDS

        own = self.own_entries(os.path.dirname(path))
        return seen.times_denied(own, path, call_id, int((self._now - SECONDS) * 1e9))

    def aside(self, resolved: str, waits: bool):
        """Return ``(Trace, name)`` of another session's commit during which the hook `name` puts changes aside, or
        None.

        `waits`: wait until it is over, two seconds at most. The Trace names the file.
        """
        from swarm_hook_core.traces import asides

        place = self.trail.place_of(os.path.dirname(resolved))
        if not any(_age(path, self._now) < asides.LONGEST_SECONDS for path in others_in(place, self.trail.own_name)):
            return None
        end, stamps = time.monotonic() + WAIT_SECONDS, None
        while True:
            found = [
                (trace, entry.text)
                for theirs in self._others_in(place)
                for entry in asides.open_in(theirs.data, self._now)
                if _is_in_tree(resolved, entry) and (trace := theirs.trace(resolved, entry)) is not None
            ]
            if not found:
                return None
            if not waits or time.monotonic() > end:
                return found[0]
            time.sleep(LONG_PAUSE)
            last, stamps = stamps, self._stamps(place)
            if stamps != last:
                self._others.pop(place, None)

    def on_other_machines(self, resolved: str) -> list:
        """Return the unpushed Traces of the file at `resolved` from other machines, the newest first."""
        others = self._others_in(self.trail.place_of(os.path.dirname(resolved)))
        found = [trace for theirs in others if (trace := theirs.far_on(keys_of(resolved)))]
        return sorted(found, key=lambda trace: -trace.at_ns)

    def on_other_machines_below(self, root: str) -> list:
        """Return the unpushed Traces from other machines at and below absolute `root`."""
        root = self._real(root)
        return [one for theirs in self._others_in(self.trail.place_of(root)) for one in theirs.far_below(root)]

    def unseen_below(self, root: str, admits) -> list:
        """Return the fresh unseen Traces at and below absolute `root`, for paths that `admits(path)` accepts."""
        root = self._real(root)
        places = self.trail.places_with(root)
        coming = [trace for trace in self._pending_in(places, root) if admits(trace.path)]
        met = {trace.path for trace in coming}
        changed = []
        for path, writes in self._below(root, places):
            if path not in met and admits(path):
                trace = _newest_of(path, [path], writes, self.own_entries(os.path.dirname(path)))
                if trace is not None:
                    changed.append(trace)
        left = self._git.left_of(changed) if changed else []
        return coming + [trace for trace in left if not self._was_shown(trace.path, trace.path)]

    def pending_below(self, root: str) -> list:
        """Return the Traces of pending writes at and below `root`, in one repository."""
        return self._pending_in([self.trail.place_of(root)], root)

    def _pending_in(self, places, root: str) -> list:
        found: dict = {}
        for theirs in [theirs for place in places if not self._is_quiet(place) for theirs in self._others_in(place)]:
            for path, entry in theirs.pending_below(root):
                own = self.own_entries(os.path.dirname(path))
                trace = _newest_of(path, [path], [(entry, theirs)], own, or_pending=True)
                if trace is not None and trace.is_pending:
                    found.setdefault(path, trace)
        return list(found.values())

    def fresh_below(self, root: str) -> list:
        """Return the fresh Traces at and below absolute `root`, seen and unseen, the newest first."""
        root = self._real(root)
        below = self._below(root, {self.trail.place_of(root): [root]}, changed_first=True)
        found = [trace for path, writes in below if (trace := _newest_of(path, [path], writes))]
        return self._git.without_committed_since(self._git.left_of(found)) if found else []

    def fresh_of_each_below(self, root: str) -> list:
        """Return the same as `fresh_below`, with one Trace for each session that has changed a file."""
        found = self._made_by_each_below(root)
        return self._git.without_committed_since(self._git.left_of(found)) if found else []

    def unpushed_of_each_below(self, root: str) -> list:
        """Return one Trace for each session and file at and below `root` with unpushed changes. Ignored files are left
        out.
        """
        found = self._made_by_each_below(root)
        return self._git.unpushed_of(found) if found else []

    def _made_by_each_below(self, root: str) -> list:
        root = self._real(root)
        below = self._below(root, {self.trail.place_of(root): [root]}, changed_first=True)
        found = []
        for path, writes in below:
            for journal_of in dict.fromkeys(theirs for _entry, theirs in writes):
                trace = _newest_of(path, [path], [one for one in writes if one[1] is journal_of])
                if trace is not None:
                    found.append(trace)
        return found

    def untold_below(self, root: str, most: int) -> tuple:
        """Return the newest fresh Traces below `root` that this session has not seen nor been told of, at most `most`.

        The second value: the paths among them that git reports as committed.
        """
        root = self._real(root)
        own = self.own_entries(root)
        newest: dict = {}
        for theirs in self._others_in(self.trail.place_of(root)):
            for path, entry in theirs.lately_below(root, most):
                newest.setdefault(path, []).append((entry, theirs))
        found: list = []
        for path, writes in sorted(newest.items(), key=_last_written):
            trace = _newest_of(path, [path], writes, own)
            if trace is not None and seen.is_untold(own, path, trace):
                found.append(trace)
                if len(found) == most:
                    break
        left = self._git.left_of(found) if found else []
        return left, [trace.path for trace in found if trace not in left]

    def own_below(self, root: str) -> list:
        """Return this session's own uncommitted paths below absolute `root`, the newest first."""
        paths = [entry.key for entry in journal.entries_below(self.own_entries(root), root, ("wrote",))[:MOST_BELOW]]
        return self._git.left_of_paths(paths)

    def own_entries(self, folder: str) -> bytes:
        """Return the session's own journal in the place of absolute `folder`."""
        place = self.trail.place_of(folder)
        if place not in self._own:
            own = self._entries_of(os.path.join(place, self.trail.own_name))
            self._own[place] = journal.as_seen_in(self.trail.top_of(place), own)
        return self._own[place]

    def living_others(self, folder: str) -> list:
        """Return the OthersJournal of each other living session in the folder's place."""
        return [theirs for theirs in self._others_in(self.trail.place_of(folder)) if theirs.writer is not None]

    def note_own_files(self, folder: str) -> None:
        """Collect in the trail the states that the session's last writes have left, if not noted before."""
        own = self.own_entries(folder)
        seen.note_what_was_left(own, self.trail)
        if seen.has_open_command(own, self.trail.call.agent):
            self.trail.note_at(folder, "over")
        if b" aside " in own:
            from swarm_hook_core.traces import asides

            asides.note_end(own, self.trail, self._now)

    def _newest_on(self, path: str, resolved: str, only_unseen: bool, once: bool = False):
        folder = os.path.dirname(resolved)
        if path not in self._writes_on:
            keys = [resolved] if os.path.islink(resolved) else keys_for(path, "/", self._real)
            others = self._others_in(self.trail.place_of(folder))
            self._writes_on[path] = keys, [(entry, theirs) for theirs in others for entry in theirs.writes_on(keys)]
        keys, found = self._writes_on[path]
        own = self.own_entries(folder) if found and only_unseen else None
        return _newest_of(resolved, keys, found, own, or_pending=only_unseen, once=once)

    def _below(self, root: str, places, changed_first: bool = False) -> list:
        """Return ``[(path, [(entry, its OthersJournal)])]`` for paths at and below `root`, with each session's newest
        entry.

        `places`: place -> its folders at and below `root`. `changed_first`: among very many, put those first that git
        reports as changed.
        """
        found: dict = {}
        for theirs, folders in [(theirs, places[place]) for place in places for theirs in self._others_in(place)]:
            written = [(entry.key, entry) for entry in theirs.writes_below(root)]
            for folder in folders if theirs.has_commands else ():
                changed = self._git.changed_below(folder)
                if changed is None:
                    written += theirs.commands_lately_below(folder)
                for path in (changed or ())[:MOST_CHANGED]:
                    written += [(path, entry) for entry in theirs.commands_that_wrote([path])]
            for path, entry in written:
                found.setdefault(path, []).append((entry, theirs))
        some = sorted(found.items(), key=_last_written)
        if changed_first and len(some) > MOST_BELOW:
            chosen = set(self._git.changed_below(root) or ())
            some.sort(key=lambda one: one[0] not in chosen)
        return some[:MOST_BELOW]

    def _stamps(self, place: str, file: str = "") -> list:
        """Return a list that changes when another session adds an entry in `place`, or changes `file`."""
        return [state_of(path) for path in (*others_in(place, self.trail.own_name), *([file] if file else ()))]

    def _is_quiet(self, place: str) -> bool:
        """Return True if no other session has added an entry in `place` lately: no write there is pending."""
        if place not in self._quiet:
            from swarm_hook_core.traces.others import OVERDUE_SECONDS

            others = others_in(place, self.trail.own_name)
            self._quiet[place] = not any(_age(path, self._now) < OVERDUE_SECONDS for path in others)
        return self._quiet[place]

    def _others_in(self, place: str) -> list:
        """Return the OthersJournal of each other session in `place`."""
        if place not in self._others:
            from swarm_hook_core.traces.others import OthersJournal

            top = self.trail.top_of(place)
            self._others[place] = [
                OthersJournal(
                    journal.as_seen_in(top, data), self.reading, self._reader, self._now, os.path.basename(path)
                )
                for path in others_in(place, self.trail.own_name)
                if (data := self._entries_of(path))
            ]
        return self._others[place]

    def _entries_of(self, path: str) -> bytes:
        """Return the journal at `path`, b"" for a folder, link or pipe there: one bad file must not hide the others.

        Raises NotChecked, see ``Trail.pass_over``.
        """
        try:
            return journal.read(path)
        except NotOrdinary as error:
            self.trail.pass_over(error)
            return b""


def _age(path: str, now: float) -> float:
    """Return the seconds since the file at `path` was changed, infinity for a missing file."""
    try:
        return now - os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _is_in_tree(path: str, entry) -> bool:
    """Return True if the file at `path` is in the work tree whose top folder is the entry's key."""
    if not path.startswith(entry.key + "/"):
        return False
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path), is_real=True)
    return tree is not None and tree.top == entry.key


def _newest_of(path: str, keys, writes, own=None, or_pending: bool = False, once: bool = False):
    """Return the newest fresh Trace of the file at `path` among `writes` (pairs of entry and OthersJournal), or None.

    `keys`: keys of the path. `own`: the session's own journal: traces that it has seen are skipped; None keeps them.
    `or_pending`: pending writes count. `once`: except those that the session was told of.
    """

    def alike(entry) -> bool:
        for one, theirs in writes:
            is_alike = one is not entry and one.kind == "wrote" and one.text == entry.text
            if is_alike and not 0 < theirs.ended_ns(one) < entry.at_ns:
                return True
        return own is not None and seen.wrote_alike(own, keys, entry)

    for newest, theirs in sorted(writes, key=lambda pair: -pair[0].at_ns):
        if or_pending and theirs.is_pending(path, newest, alike) and not (once and seen.has_met(own, keys, newest)):
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


def _last_written(one) -> int:
    """Return the sort key of a path with its writes: the newest first."""
    return -max(entry.at_ns for entry, _theirs in one[1])

"""What others have written and not committed, where a call meets it.

Another session's trace on a file is *fresh* while it means something: its writer lives, the file has changed since it
was noted (``others``), git does not say that it is committed or undone (``committed``), and it is younger than a day.
It is *unseen* by a session that has neither read nor written the file since (``seen``). A write that is *pending*,
still to come, is met whatever was read before it. Commands that nobody had read when they ran leave traces that whoever
meets them reads (``unread``).
"""

import os
import time

from swarm_hook_core.paths import keys_for, real_paths
from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import journal, keys_of, others_in, seen, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.transcript import Transcript

MOST_CHANGED = 50  # files below one folder of which is asked whether commands that nobody read wrote them
MOST_BELOW = 300  # traces below one folder that are looked at, the newest
WAIT_SECONDS = 2.0  # for so long, from its check on, an edit waits for another's write to be made
PAUSE = 0.004
LONG_PAUSE = 0.03  # where nothing tells when it is over


class Meetings:
    """The traces of others beside those of `trail`, the Trail of a call.

    `reader`: the store's LockReader; `budget`: of the check of the call, where it has one.
    """

    def __init__(self, trail, reader, now: float, budget=None):
        self.trail = trail
        self._reader = reader
        self._now = now
        self._real = real_paths()
        self._budget = budget
        self._reading: object = None  # these two until they are needed: few calls meet anything
        self._committed: object = None
        self._writes_on: dict = {}  # path -> its keys, [(entry, its OthersJournal)]; what is replaced asks twice
        self._own: dict = {}  # place -> entries of the session itself
        self._others: dict = {}  # place -> [OthersJournal]
        self._transcript: Transcript | None = None
        self._quiet: dict = {}  # place -> whether nobody is at work there just now

    def reading(self):
        """The Reading by which this call reads commands that nobody has read."""
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
        """The fresh Trace on absolute `path`, `resolved` without links, that this session has not seen, or None.

        One that is still to come is unseen; `once`: unless the session was told of that.
        """
        fresh = self._newest_on(path, resolved, only_unseen=True, once=once)
        if fresh is None or fresh.is_pending:
            return fresh
        return fresh if self._git.left_of([fresh]) and not self._was_shown(path, resolved) else None

    def _was_shown(self, path: str, resolved: str) -> bool:
        """Return True if the client's own transcript says that the model has seen that file as it is now."""
        config, call = self.trail.config, self.trail.call
        if not call.transcript or not config.transcript:
            return False
        if self._transcript is None:
            from swarm_hook_core.traces.transcript import Transcript

            self._transcript = Transcript(config, call)
        return self._transcript.has_shown(path, resolved)

    def once_made(self, trace, own_at_ns: int, path: str, resolved: str):
        """What ``unseen(path, resolved, True)`` says once the write of `trace`, which it has said, is made or given up.

        That of a call which is checked still and was noted after this one, at `own_at_ns`, is not waited for: it waits
        for this one. Nobody waits for long: a person may be asked.
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
        """``(Trace, deed, place)`` of another's call that clears what the file at `resolved` is in, or None.

        Whoever `waits` does so until it has, but for one that was noted after this call, at `own_at_ns`: it meets this
        one. The Trace is of the file.
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
        """The Trace of another living session's write of that file, lately, seen or not; git is not asked."""
        return self._newest_on(path, resolved, only_unseen=False)

    def is_theirs(self, trace) -> bool:
        """Whether what is not committed in the file of `trace` is its writer's, seen or not, and not this session's."""
        own = self.own_entries(os.path.dirname(trace.path))
        return not seen.is_own(own, trace.path, keys_of(trace.path), trace.at_ns) and bool(self._git.left_of([trace]))

    def times_denied(self, path: str, call_id: str) -> int:
        """How many calls of this session were denied for the file at `path` lately, with no look at it in between."""
        from swarm_hook_core.storms import SECONDS

        own = self.own_entries(os.path.dirname(path))
        return seen.times_denied(own, path, call_id, int((self._now - SECONDS) * 1e9))

    def aside(self, resolved: str, waits: bool):
        """``(Trace, name)`` of another's call during which `name` puts changes aside where the file is, or None.

        Whoever `waits` does so until it is over, two seconds at most. The Trace is of the file.
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
        """The Traces of writes, on other machines, of the file at `resolved` that are not pushed, the newest first."""
        others = self._others_in(self.trail.place_of(os.path.dirname(resolved)))
        found = [trace for theirs in others if (trace := theirs.far_on(keys_of(resolved)))]
        return sorted(found, key=lambda trace: -trace.at_ns)

    def on_other_machines_below(self, root: str) -> list:
        """All of them at and below absolute `root`."""
        root = self._real(root)
        return [one for theirs in self._others_in(self.trail.place_of(root)) for one in theirs.far_below(root)]

    def unseen_below(self, root: str, admits) -> list:
        """The fresh unseen Traces at and below absolute `root` of which `admits(path)` is true."""
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
        """The Traces of others' writes at and below `root`, of one repository, that are still to come."""
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
        """The fresh Traces at and below absolute `root`, seen or not, the newest first."""
        root = self._real(root)
        below = self._below(root, {self.trail.place_of(root): [root]}, changed_first=True)
        found = [trace for path, writes in below if (trace := _newest_of(path, [path], writes))]
        return self._git.without_committed_since(self._git.left_of(found)) if found else []

    def fresh_of_each_below(self, root: str) -> list:
        """As `fresh_below`, but where several sessions have changed a file, the Trace of each of them."""
        found = self._made_by_each_below(root)
        return self._git.without_committed_since(self._git.left_of(found)) if found else []

    def unpushed_of_each_below(self, root: str) -> list:
        """The Traces of each session at and below absolute `root` that are not pushed; of no ignored files."""
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
        """The newest fresh Traces below absolute `root` that this session has neither seen nor been told of.

        And the paths of those among them (`most` in all) that git says are committed.
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
        """The paths below absolute `root` that this session has written itself and not committed, the newest first."""
        paths = [entry.key for entry in journal.entries_below(self.own_entries(root), root, ("wrote",))[:MOST_BELOW]]
        return self._git.left_of_paths(paths)

    def own_entries(self, folder: str) -> bytes:
        """The session's own journal in the place of absolute `folder`."""
        place = self.trail.place_of(folder)
        if place not in self._own:
            own = self._entries_of(os.path.join(place, self.trail.own_name))
            self._own[place] = journal.as_seen_in(self.trail.top_of(place), own)
        return self._own[place]

    def living_others(self, folder: str) -> list:
        """The OthersJournal of each other living session that has one in that place."""
        return [theirs for theirs in self._others_in(self.trail.place_of(folder)) if theirs.writer is not None]

    def note_own_files(self, folder: str) -> None:
        """Note in the trail what the session's own last writes have left, where that was not noted yet."""
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
        """``(path, [(entry, its OthersJournal)])`` of the paths at and below `root`: the newest of each session.

        `places`: place -> the folders in it that are at and below `root`. Of very many, with
        `changed_first` those on the paths that git says are changed stand first.
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
        """What is another once somebody else has noted something in `place`, or has changed `file`."""
        return [state_of(path) for path in (*others_in(place, self.trail.own_name), *([file] if file else ()))]

    def _is_quiet(self, place: str) -> bool:
        """Whether nobody else has noted anything in `place` for so long that none of it is still to come."""
        if place not in self._quiet:
            from swarm_hook_core.traces.others import OVERDUE_SECONDS

            others = others_in(place, self.trail.own_name)
            self._quiet[place] = not any(_age(path, self._now) < OVERDUE_SECONDS for path in others)
        return self._quiet[place]

    def _others_in(self, place: str) -> list:
        """The OthersJournal of each other session in `place`."""
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
        """Return the journal at `path`. What is no file there is as if it were not: it must not hide the others.

        Raises NotChecked, as ``Trail.pass_over`` does.
        """
        try:
            return journal.read(path)
        except NotOrdinary as error:
            self.trail.pass_over(error)
            return b""


def _age(path: str, now: float) -> float:
    """How many seconds ago the file at `path` was changed; more than any number where it is gone."""
    try:
        return now - os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _is_in_tree(path: str, entry) -> bool:
    """Whether the file at `path` belongs to the work tree with the top that the `entry` is about."""
    if not path.startswith(entry.key + "/"):
        return False
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path), is_real=True)
    return tree is not None and tree.top == entry.key


def _newest_of(path: str, keys, writes, own=None, or_pending: bool = False, once: bool = False):
    """The newest fresh Trace of `writes`, (entry, the OthersJournal it stands in), of the file at `path`, or None.

    `own`: entries of a session that has not seen it, None for seen or not; `keys`: those of the path. `or_pending`: it
    may be one whose write is still to come; with `once` none that the session was told of.
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
    """Of a path with its `writes`: what sorts the newest to the front."""
    return -max(entry.at_ns for entry, _theirs in one[1])

"""What others have written and not committed, where a call meets it.

Another session's trace on a file is *fresh* while it means something: its writer lives, the file has changed since it
was noted, git does not say that it is committed or undone, and it is younger than a day. It is *unseen* by a session
that has neither read nor written the file since, nor was told.

What a session saw is known by its own journal. Two more things are looked at on the disk. The write of a trace comes
later than its note, after a person was asked, say: so a file that has changed since a session saw it is unseen, even
where the trace is older. Unless that was the session's own write: what it left is noted at its next call (``is``).
"""

import os

from swarm_hook_core.lookup import Held
from swarm_hook_core.paths import keys_for, real_paths
from swarm_hook_core.traces import escaped, journal, others_in

SLACK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
GIT_SECONDS = 0.5  # for all questions of a call
MOST_COMMANDS = 3  # of one session that are read to see whether they wrote a file
MOST_CHANGED = 50  # files below one folder of which is asked whether such commands wrote them
MOST_RAN = 30  # of one session that are read for the files that they wrote
MOST_BELOW = 300  # traces below one folder that are looked at, the newest
FEW_FILES = 16  # that are searched for one by one; for more, a journal's keys are listed once
OWN_TAIL = 8192  # bytes at the end of the own journal in which writes are still to be looked at
KNOWN = ("wrote", "saw")


class Trace:
    """A fresh trace: `held` says whose, since when and what for, as wording takes it; `path` is the file's."""

    __slots__ = ("path", "held", "at_ns", "tool")

    def __init__(self, path, held, at_ns, tool):
        self.path = path
        self.held = held
        self.at_ns = at_ns
        self.tool = tool


class Meetings:
    """The traces of others beside those of `trail`, the Trail of a call. `reader`: the store's LockReader."""

    def __init__(self, trail, reader, now: float):
        self.trail = trail
        self.reader = reader
        self.now = now
        self._data: dict = {}  # place -> (own entries, [entries of each other session])
        self._writers: dict = {}  # (runtime, session id) -> (instance, label) or None
        self._purposes: dict = {}  # instance -> what it works on
        self._asked = 0  # files so far
        self._named: dict = {}  # entries -> the keys in them
        self._ran: dict = {}  # entries -> those of commands that nobody had read
        self._written: dict = {}  # entry of a command -> the keys of the files that it wrote
        self._changed: dict = {}  # folder -> what git says is not committed below it
        self._committed: dict = {}  # path -> whether git says that there is nothing in it to lose
        self._real = real_paths()

    def unseen(self, path: str, resolved: str):
        """The fresh Trace on absolute `path`, `resolved` without links, that this session has not seen, or None."""
        fresh = self._newest_on(path, resolved, only_unseen=True)
        return fresh if fresh is not None and not self._is_committed(fresh.path) else None

    def stands(self, path: str, resolved: str) -> bool:
        """Whether another living session has written that file lately, seen or not; git is not asked."""
        return self._newest_on(path, resolved, only_unseen=False) is not None

    def unseen_below(self, root: str, admits) -> list:
        """The fresh unseen Traces at and below absolute `root` of which `admits(path)` is true."""
        found = []
        for path, entry, data in self._below(root):
            if admits(path):
                trace = self._trace(path, entry, data)
                if trace is not None and self._is_unseen(path, [path], entry):
                    found.append(trace)
        self._ask_git([trace.path for trace in found])
        return [trace for trace in found if not self._is_committed(trace.path)]

    def fresh_below(self, root: str) -> list:
        """The fresh Traces at and below absolute `root`, seen or not, the newest first."""
        below = self._below(root, self._changed_below)
        found = [trace for path, entry, data in below if (trace := self._trace(path, entry, data))]
        self._ask_git([trace.path for trace in found])
        return _without_committed_since([trace for trace in found if not self._is_committed(trace.path)])

    def untold_below(self, root: str, most: int) -> tuple:
        """The newest fresh Traces below absolute `root` that this session has neither seen nor been told of.

        And the paths of those among them (`most` in all) that git says are committed.
        """
        root = self._real(root)
        own, others = self._at(root)
        newest: dict = {}
        for data in others:
            for path, entry in self._lately(data, root, most):
                if path not in newest or newest[path][0].at_ns < entry.at_ns:
                    newest[path] = (entry, data)
        found: list = []
        for path, (entry, data) in sorted(newest.items(), key=lambda one: -one[1][0].at_ns):
            told = journal.newest(own, path, ("told",))
            if (told is None or told.at_ns < entry.at_ns) and self._is_unseen(path, [path], entry):
                trace = self._trace(path, entry, data)
                if trace is not None:
                    found.append(trace)
                    if len(found) == most:
                        break
        self._ask_git([trace.path for trace in found])
        committed = [trace.path for trace in found if self._is_committed(trace.path)]
        return [trace for trace in found if trace.path not in committed], committed

    def own_below(self, root: str) -> list:
        """The paths below absolute `root` that this session has written itself and not committed, the newest first."""
        own, _others = self._at(root)
        paths = [entry.key for entry in journal.entries_below(own, root, ("wrote",))[:MOST_BELOW]]
        self._ask_git(paths)
        return [path for path in paths if not self._is_committed(path)]

    def own_entries(self, folder: str) -> bytes:
        """The session's own journal in the place of absolute `folder`."""
        return self._at(folder)[0]

    def others_entries(self, folder: str) -> list:
        """``(instance id, label, entries)`` of each other living session with a journal in that place."""
        found = []
        for data in self._at(folder)[1]:
            writer = self._writer(data)
            if writer is not None:
                found.append((*writer, data))
        return found

    def note_own_files(self, folder: str) -> None:
        """Note in the trail what the session's own last writes have left, where that was not noted yet."""
        from swarm_hook_core.watching.snapshot import full

        own = self._at(folder)[0]
        noted = set()
        for raw in reversed(own[-OWN_TAIL:].split(b"\n")):
            if b" wrote " not in raw and b" is " not in raw:
                continue
            try:
                entry = journal.Entry(raw)
            except ValueError:
                continue  # torn, or cut off
            if entry.key in noted:
                continue
            noted.add(entry.key)
            if entry.kind == "wrote" and entry.key.startswith("/"):
                self.trail.note("is", entry.key, str(full(entry.key)))

    # ------------------------------------------------------------------------------------------------ one file

    def _newest_on(self, path: str, resolved: str, only_unseen: bool):
        keys = keys_for(path, "/", self._real)
        found = []
        self._asked += 1
        for data in self._at(os.path.dirname(resolved))[1]:
            named = [key for key in keys if self._may_name(data, key)]
            entries = [entry for key in named if (entry := journal.newest(data, key, ("wrote",)))]
            entries += self._ran_over(data, keys)
            found += [(entry, data) for entry in entries]
        for entry, data in sorted(found, key=lambda pair: -pair[0].at_ns):
            if only_unseen and not self._is_unseen(resolved, keys, entry):
                continue
            trace = self._trace(resolved, entry, data)
            if trace is not None:
                return trace
        return None

    def _may_name(self, data: bytes, key: str) -> bool:
        """Whether there may be an entry about this key in `data`; of the many files of one call most have none."""
        if self._asked <= FEW_FILES:
            return True
        if data not in self._named:
            self._named[data] = journal.keys_in(data)
        return escaped(key) in self._named[data]

    def _trace(self, path: str, entry, data: bytes):
        """The Trace of `entry` in another's `data`, None where it is not fresh; git is asked later, of few."""
        if entry.at_ns / 1e9 < self.now - journal.DAY_SECONDS:
            return None
        try:
            there = os.lstat(path)
        except OSError:
            return None  # nothing is there that could be lost
        if there.st_ctime_ns < entry.at_ns - SLACK_NS:
            return None  # it was let pass, but never made
        writer = self._writer(data)
        if writer is None:
            return None
        instance_id, label = writer
        if instance_id not in self._purposes:
            self._purposes[instance_id] = self.reader.purpose_of(instance_id)
        held = Held(
            path, instance_id, label, self._purposes[instance_id], int(entry.at_ns / 1e9), agent=entry.agent,
        )  # fmt: skip
        return Trace(path, held, entry.at_ns, entry.tool)

    def _is_unseen(self, path: str, keys, entry) -> bool:
        own = self._at(os.path.dirname(path))[0]
        known = [found for key in keys if (found := journal.newest(own, key, KNOWN))]
        if not known:
            return True
        last = max(known, key=lambda found: found.at_ns)
        if entry.at_ns > last.at_ns:
            return True
        try:
            changed_ns = os.lstat(path).st_ctime_ns
        except OSError:
            return False
        return changed_ns > last.at_ns - SLACK_NS and not self._is_own(own, path, keys, last)

    def _is_own(self, own: bytes, path: str, keys, last) -> bool:
        """Whether the file is as this session's own write has left it. `last`: its newest entry of KNOWN."""
        left = [found for key in keys if (found := journal.newest(own, key, ("is",)))]
        newest = max(left, key=lambda found: found.at_ns, default=None)
        if newest is None or (last.kind == "wrote" and newest.at_ns < last.at_ns):
            return last.kind == "wrote"  # what it left has not been looked at: nobody else is known to have written
        from swarm_hook_core.watching.snapshot import difference, parse

        return not difference(parse(newest.text), path)[0]

    def _ran_over(self, data: bytes, keys) -> list:
        """Entries for those commands in `data` that nobody had read and that wrote the file with one of these keys."""
        if data not in self._ran:
            self._ran[data] = [raw for raw in data.split(b"\n") if b" ran " in raw] if b" ran " in data else []
        if not self._ran[data]:
            return []
        from swarm_hook_core.shell import effects_of

        found: list = []
        names = {os.path.basename(key).encode("utf-8", "surrogatepass") for key in keys}
        lines = [raw for raw in self._ran[data] if any(name in raw for name in names)]
        for raw in lines[: -MOST_COMMANDS - 1 : -1]:
            try:
                entry = journal.Entry(raw)
            except ValueError:
                continue
            if entry.kind != "ran":
                continue
            if raw not in self._written:
                effects = effects_of(entry.text, entry.key)
                written = [key for write in effects.writes for key in keys_for(write.path, write.folder, self._real)]
                self._written[raw] = set(written)
            if not self._written[raw].isdisjoint(keys):
                found.append(entry)
        return found

    # --------------------------------------------------------------------------------------------- many files

    def _lately(self, data: bytes, root: str, most: int):
        """``(path, entry)`` of the newest writes at and below `root` in `data`, by commands that nobody read too."""
        for entry in journal.newest_below(data, root, ("wrote",), most):
            if entry.key.startswith("/"):
                yield entry.key, entry
        if b" ran " not in data:
            return
        from swarm_hook_core.shell import effects_of

        for entry in journal.newest_below(data, root, ("ran",), MOST_RAN):
            for write in effects_of(entry.text, entry.key).writes:
                path = self._real(os.path.join(write.folder, write.path))
                if (path + "/").startswith(root.rstrip("/") + "/"):
                    yield path, entry

    def _below(self, root: str, first=None) -> list:
        """``(path, entry, entries it stands in)`` of the newest trace on each path at and below `root`.

        Of very many, those on the paths that ``first(root)`` gives stand first.
        """
        found: dict = {}
        root = self._real(root)
        for data in self._at(root)[1]:
            entries = journal.entries_below(data, root, ("wrote",))
            own = journal.newest(data, root, ("wrote",))
            for entry in [own, *entries] if own else entries:
                if entry.key.startswith("/") and (entry.key not in found or found[entry.key][1].at_ns < entry.at_ns):
                    found[entry.key] = (entry.key, entry, data)
            for path in self._changed_below(root)[:MOST_CHANGED] if b" ran " in data else ():
                for entry in self._ran_over(data, [path]):
                    if path not in found or found[path][1].at_ns < entry.at_ns:
                        found[path] = (path, entry, data)
        some = sorted(found.values(), key=lambda one: -one[1].at_ns)
        if first is not None and len(some) > MOST_BELOW:
            chosen = set(first(root))
            some.sort(key=lambda one: one[0] not in chosen)
        return some[:MOST_BELOW]

    def _changed_below(self, root: str) -> list:
        """The paths at and below `root` that git says are not committed, if in time; not the ignored ones."""
        if root not in self._changed:
            self._changed[root] = []
            top = _top_of(os.path.join(root, "x"))
            if top:
                from swarm_hook_core.shell.programs.git.uncommitted import changed_in

                self._changed[root] = changed_in(top, root, GIT_SECONDS)
        return self._changed[root]

    # ---------------------------------------------------------------------------------------- who, where, git

    def _at(self, folder: str) -> tuple:
        """``(own entries, [entries of each other])`` in the place of `folder`."""
        place = self.trail.place_of(folder)
        if place not in self._data:
            others = [data for path in others_in(place, self.trail.own_name) if (data := journal.read(path))]
            self._data[place] = (journal.read(os.path.join(place, self.trail.own_name)), others)
        return self._data[place]

    def _writer(self, data: bytes):
        """``(instance id, label)`` of the living session whose journal holds `data`, None where it has gone."""
        owner = journal.owner_of(data)
        if owner not in self._writers:
            self._writers[owner] = None
            found = self.reader.holder(*owner)
            if found is not None:
                from swarm_hook_core.liveness import departed
                from swarm_hook_core.process import host_id

                instance_id, label, evidence = found
                if not departed(evidence, self.now, host_id()):
                    self._writers[owner] = (instance_id, label)
        return self._writers[owner]

    def _is_committed(self, path: str) -> bool:
        self._ask_git([path])
        return self._committed[path]

    def _ask_git(self, paths) -> None:
        """Learn which of `paths` git has as they are; what it cannot say counts as not committed."""
        asked: dict = {}
        for path in paths:
            if path not in self._committed:
                self._committed[path] = False
                asked.setdefault(_top_of(path), []).append(path)
        for top, some in asked.items():
            if top:
                for path in _committed_of(top, some):
                    self._committed[path] = True


def _top_of(path: str) -> str:
    """The work tree that the file at absolute `path` is in, empty where it is in none."""
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path))
    return tree.top if tree is not None else ""


def _without_committed_since(traces) -> list:
    """Those of `traces` whose files have not been committed since: if they have, what is not committed came later."""
    from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

    tops: dict = {}
    for trace in traces:
        tops.setdefault(_top_of(trace.path), []).append(trace)
    committed: set = set()
    for top, some in tops.items():
        if not top:
            continue
        inside = {os.path.relpath(trace.path, top): trace for trace in some}
        oldest = min(trace.at_ns for trace in some) // 10**9
        try:
            authored = Repository(top, GIT_SECONDS).authored(list(inside), oldest)
        except (NoAnswer, Refused):
            continue  # or there is no commit yet
        # In the same second nobody knows which came first.
        committed.update(
            inside[name].path for name, at in authored.items() if name in inside and at > inside[name].at_ns // 10**9
        )
    return [trace for trace in traces if trace.path not in committed]


def _committed_of(top: str, paths) -> list:
    """Those of `paths`, in work tree `top`, that are as the last commit has them. Those ignored are in none."""
    from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

    repository = Repository(top, GIT_SECONDS)
    inside = {os.path.relpath(path, top): path for path in paths}
    try:
        changed = set(repository.against("HEAD", list(inside)))
        tracked = set(repository.tracked(list(inside)))
    except (NoAnswer, Refused):
        return []
    return [path for name, path in inside.items() if name in tracked and name not in changed]

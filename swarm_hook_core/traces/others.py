"""The journals that one call reads: its session's own, and those of other sessions in the same place.

``meetings`` asks them. An OthersJournal also knows what the store says about its session.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator

from swarm_hook_core.lookup import SOME_AGENT, Held, LockReader
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.process import departed, host_id
from swarm_hook_core.state import NotOrdinary, is_at, lock_alone, open_in_private, read_all, read_private, write_all
from swarm_hook_core.traces import (
    AGENTS,
    NO_FILE,
    OWN_NS,
    escaped,
    first_line,
    journal,
    line,
    others_in,
    seen,
    state_of,
)
from swarm_hook_core.traces import entry as new_entry
from swarm_hook_core.traces.journal import Entry
from swarm_hook_core.traces.unread import Reading, UnreadCommands

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

# The main thread and the agents of one session: for each, the entries of the others are a peer's.
#
# <place>/<runtime>.<session>.agents    agents that run in the place: entries ``begins`` and ``ends``
#
# All of them write one journal, and each entry names its agent. A reader splits it by these rules:
#
# - An agent knows its own entries, and those from before it began, except of agents that still run. Others are a
# peer's. - The main thread knows its own entries and those of agents that have ended. The entries of running ones are a
# peer's.
#
# The file exists only while an agent runs: a session without agents reads nothing. An agent whose end was not reported
# counts as ended ten minutes after its last entry.

SILENT_NS = 600 * 10**9  # an agent without an entry for so long counts as ended
LARGEST = 256 * 1024  # bytes of the file
MAIN = b"-"  # the main thread, in entries
_TRIES = 10


class Siblings:
    """The owners of entries in a session's journal, as seen by one of them.

    `agent`: the reader, as entries name it; `began_ns`: its beginning, 0 for the main thread; `running`: agents with
    the time of their beginning.
    """

    def __init__(self, agent: bytes, began_ns: int, running: dict[bytes, int]):
        self._agent = agent
        self._began_ns = began_ns
        self._running = running

    def split(self, data: bytes, now_ns: int) -> tuple[bytes, list[tuple[str, bytes]]]:
        """Return the entries of the journal `data` that count as the reader's own, and those of each other owner.

        These are ``(words for the owner, its entries)``. Each part begins with the first line.
        """
        first, entries = b"", []
        last = dict(self._running)  # running agent -> time of its last entry
        for words, raw in journal.heads(data):
            if words[1] == b"session":
                first = first or raw
                continue
            at_ns, agent = int(words[0]), words[2]
            entries.append((at_ns, agent, raw))
            if agent in last:
                last[agent] = max(at_ns, last[agent])
        running = {agent for agent, at_ns in last.items() if now_ns - at_ns <= SILENT_NS}
        known: list[bytes] = []
        theirs: dict[bytes, list[bytes]] = {}
        for at_ns, agent, raw in entries:
            if agent == self._agent or (agent not in running and (not self._began_ns or at_ns < self._began_ns)):
                known.append(raw)
            else:
                theirs.setdefault(agent, []).append(raw)
        parts = [(self._words(agent), b"\n".join([first, *lines, b""])) for agent, lines in theirs.items()]
        return b"\n".join([first, *known, b""]), parts

    def _words(self, agent: bytes) -> str:
        if agent == MAIN:
            return "the main thread of this session"

        start = ""
        if not self._began_ns:
            start = "your "
        from swarm_hook_core.naming import agent_name

        return f"{start}{agent_name(agent.decode('ascii', 'replace'))} of this session"


def around(trail: Trail, place: str) -> Siblings | None:
    """Return the Siblings around the call of `trail` in `place`, or None if there are no agents.

    The first call of an agent in a place notes its beginning there. Raises OSError.
    """
    agent = trail.call.agent
    if agent == SOME_AGENT:
        return None
    path = os.path.join(place, trail.own_name + AGENTS)
    if not agent:
        running = _running(_read(path))
        if running:
            return Siblings(MAIN, 0, running)
        return None
    running, own = begin(trail, place), _word_of(trail)
    return Siblings(own, running[own], running)


def begin(trail: Trail, place: str) -> dict[bytes, int]:
    """Note that the agent of the call of `trail` runs in `place`, if not noted before; return all that run there.

    They are named as in entries, each with the time (ns) of its beginning. Raises OSError.
    """
    path, agent = os.path.join(place, trail.own_name + AGENTS), _word_of(trail)
    running = _running(_read(path))
    if agent in running:
        return running
    at_ns = time.time_ns()
    if not trail.is_asked:
        first = first_line(trail.config.runtime_name, trail.call.session_id, trail.top_of(place))
        _append(path, line("begins", "/", trail.call, at_ns=at_ns), first)
    return {**running, agent: at_ns}


def end(place: str, name: str, agent: str) -> None:
    """Note that the `agent` of the session with the journal `name` has ended. Remove the file after the last one."""
    path = os.path.join(place, name + AGENTS)
    if os.path.lexists(path):
        _append(path, new_entry(time.time_ns(), "ends", agent, "", "/"), b"")


def _word_of(trail: Trail) -> bytes:
    """Return the agent of the call as entries name it."""
    return line("begins", "/", trail.call).split(b" ", 3)[2]


def _running(data: bytes) -> dict[bytes, int]:
    """Return ``{agent: its beginning}`` of the agents that have begun and not ended, by the file's entries `data`."""
    found: dict[bytes, int] = {}
    for words, _raw in journal.heads(data):
        if words[1] == b"begins":
            found.setdefault(words[2], int(words[0]))
        elif words[1] == b"ends":
            found.pop(words[2], None)
    return found


def _read(path: str) -> bytes:
    try:
        return read_private(path, LARGEST)
    except FileNotFoundError:
        return b""  # no agent runs


def _append(path: str, data: bytes, first: bytes) -> None:
    """Add `data` to the file at `path`; remove it if no agent runs then. `first`: the first line of a new file.

    A lock keeps an agent that begins from writing into a file that another process removes. Raises OSError.
    """
    for _ in range(_TRIES):
        handle = open_in_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            lock_alone(handle)
            if not is_at(path, handle):
                continue  # removed meanwhile
            if not os.fstat(handle).st_size:
                data = first + data
            write_all(handle, data)
            os.lseek(handle, 0, os.SEEK_SET)
            if not _running(read_all(handle, LARGEST)):
                os.remove(path)
            return
        finally:
            os.close(handle)
    raise OSError(f"{path} was removed all the time")


PENDING_SECONDS = 5  # longest check of a call; a hook that was killed adds no further entry
OVERDUE_SECONDS = 120  # longest time from a check to the write, if no entry tells the end of the call
FEW_FILES = 16  # files searched for one by one; for more, the journal's writes are listed once
WRITES = ("wrote", "will", "wont")  # kinds of entries about the writing of a file


class Trace:
    """A fresh trace on the file at `path`. `held`: its session, time and purpose, as ``wording`` takes them.

    `is_pending`: the write may not have reached the disk, so git does not know it. `is_checked`: the call is still
    being checked. `journal`: the file name of the journal.
    """

    __slots__ = ("path", "held", "at_ns", "tool", "is_pending", "is_checked", "journal")

    def __init__(
        self, path: str, held: Held, at_ns: int, tool: str, is_pending: bool = False, is_checked: bool = False,
        journal: str = "",
    ):  # fmt: skip
        self.path = path
        self.held = held
        self.at_ns = at_ns
        self.tool = tool
        self.is_pending = is_pending
        self.is_checked = is_checked
        self.journal = journal


class OthersJournal:
    """Another session's journal with the entries `data`, for one call.

    `commands`: those that were not parsed; `rare`: `data`, or nothing (``journal.rare``); `reader`: the store's
    LockReader; `name`: the journal's file name.
    `kin`: words for the owner if it is the main thread, or an agent, of the session that makes the call.
    """

    __slots__ = ("data", "rare", "name", "commands", "_reader", "_now", "_asked", "_lines",
                 "_writer", "_purpose", "_clearings", "kin")  # fmt: skip

    def __init__(self, data: bytes, reading: Reading, reader: LockReader, now: float, name: str = "",
                 kin: str = ""):  # fmt: skip
        self.data = data
        self.kin = kin
        self.name = name
        self.rare = journal.rare(data)
        self.commands = UnreadCommands(self.rare, reading)
        self._reader = reader
        self._now = now
        self._asked = 0  # files so far
        self._lines: dict[bytes, bytes] | None = None  # each key's newest write, once they were listed
        self._writer: tuple[str, str] | tuple[()] | None = ()  # (): not asked yet
        self._purpose: str | None = None
        self._clearings: list[tuple[Entry, str, str]] | None = None  # result of `_cleared_since`

    def writes_on(self, keys: Collection[str]) -> list[Entry]:
        """Return the newest writes of one file with these `keys`, including those by unparsed commands."""
        self._asked += 1
        if self._asked <= FEW_FILES:
            names = {escaped(os.path.basename(key)) for key in keys}
            named = keys if any(name in self.data for name in names) else ()  # most journals do not name the file
            entries = [entry for key in named for entry in self._writes_of(key)]
        else:
            lines = [(key, line) for key in keys if (line := self._newest_lines().get(escaped(key)))]
            entries = [entry for key, line in lines for entry in self._writes_at(key, line)]
        return entries + self.commands.that_wrote(keys)

    def names(self, path: str) -> bool:
        """Return True if an entry is about a write of the file at `path`, by that very name."""
        return escaped(path) in self._newest_lines()

    def _newest_lines(self) -> dict[bytes, bytes]:
        if self._lines is None:
            self._lines = journal.newest_lines(self.data, WRITES)
        return self._lines

    def _writes_at(self, key: str, line: bytes) -> list[Entry]:
        """Return the same as `_writes_of`, where `line` holds the newest entry about the path."""
        newest = next(journal.entries([line]), None)
        if newest is not None and newest.kind == "wrote":
            return [newest]
        return self._writes_of(key)  # torn, or of another kind

    def _writes_of(self, key: str) -> list[Entry]:
        """Return the newest write of the path with this key, and the one that is being checked."""
        newest = journal.newest(self.data, key, WRITES)
        if newest is None or newest.kind == "wrote":
            if newest:
                return [newest]
            return []
        before = journal.newest(self.data, key, ("wrote",))
        return [entry for entry in (newest, before) if entry and entry.kind != "wont"]

    def writes_below(self, root: str) -> list[Entry]:
        """Return each path's newest write at and below absolute `root`, without those by unparsed commands."""
        entries = journal.entries_below(self.data, root, ("wrote",), with_folder=True)
        return [entry for entry in entries if entry.key.startswith("/")]

    def lately_below(self, root: str, most: int) -> Iterator[tuple[str, Entry]]:
        """Yield ``(path, entry)`` of the newest writes at and below `root`, including those by unparsed commands."""
        for entry in journal.newest_below(self.data, root, ("wrote",), most):
            if entry.key.startswith("/"):
                yield entry.key, entry
        yield from self.commands.lately_below(root)

    def commands_lately_below(self, root: str) -> list[tuple[str, Entry]]:
        """Return ``[(path, entry)]`` of files below `root` that unparsed commands of the last day wrote."""
        return list(self.commands.written_below(root, int((self._now - journal.DAY_SECONDS) * 1e9)))

    def pending_below(self, root: str) -> list[tuple[str, Entry]]:
        """Return ``[(path, entry)]`` of pending writes at and below absolute `root`."""
        entries = journal.entries_below(self.data, root, WRITES, with_folder=True)
        pending = [(entry.key, entry) for entry in entries if entry.kind != "wont" and entry.key.startswith("/")]
        pending += self.commands.written_below(root, int((self._now - PENDING_SECONDS) * 1e9))
        return [(path, entry) for path, entry in pending if self.is_pending(path, entry)]

    def clearing_of(self, keys: Collection[str], since_ns: int) -> tuple[Entry, str, str] | None:
        """Return ``(entry, deed, place)`` of a call after `since_ns` that clears the folder of a file, or None.

        `keys`: those of the file. None also if the folder is gone already: then the call is over.
        """
        if self._clearings is None:
            self._clearings = self._cleared_since(since_ns)  # once for all files of the call
        for entry, deed, place in self._clearings:
            if entry.at_ns >= since_ns and is_in(keys, place) and os.path.lexists(place.removeprefix(NO_CASE)):
                return entry, deed, place.removeprefix(NO_CASE)
        return None

    def _cleared_since(self, since_ns: int) -> list[tuple[Entry, str, str]]:
        found = []
        for entry in journal.newest_of(self.rare, "clears"):
            if entry.at_ns < since_ns:
                break
            last = journal.newest(self.rare, entry.key, ("clears", "spares"))
            if last is not None and last.kind == "clears":
                found.append((last, last.text, last.key))
        return found + self.commands.cleared_since(since_ns)

    def made(self, path: str, newest: Entry) -> Entry | None:
        """Return the last entry, up to `newest`, with a write that was really made, or None.

        A write that was let pass may have failed, or a person may have refused it: then the file's state is unchanged.
        """
        state = state_of(path)
        if state == NO_FILE:
            return None  # a missing file: nothing can be lost
        if newest.kind == "will":
            return None
        if newest.kind != "wrote":  # an unparsed command, noted without the files' states
            if _is_since(state, newest):
                return newest
            return None
        if newest.text != state:
            return newest
        earlier = journal.newest_first(self.data, newest.key, ("wrote",))
        return next((entry for entry in earlier if entry.text != state), None)

    def far_on(self, keys: list[str]) -> Trace | None:
        """Return the Trace of a write of the file with these keys on another machine, or None."""
        if not journal.has_kind(self.rare, b"far"):
            return None
        found = [entry for key in keys if (entry := journal.newest(self.rare, key, ("far",)))]
        if found:
            return self.trace(keys[0], found[0])
        return None

    def far_below(self, root: str) -> list[Trace]:
        """Return the Traces of writes on other machines at and below absolute `root`."""
        if not journal.has_kind(self.rare, b"far"):
            return []
        entries = journal.entries_below(self.rare, root, ("far",))
        return [trace for entry in entries if entry.key.startswith("/") and (trace := self.trace(entry.key, entry))]

    def is_pending(self, path: str, newest: Entry, others: Callable[[Entry, int], bool] | None = None) -> bool:
        """Return True if `newest`, a write of the file at `path`, is being checked, or was let pass but not made yet.

        `others(newest, changed_ns)`: True if the file's change since may be another write's (`seen.may_come_from`).
        """
        age = self._now - newest.at_ns / 1e9
        if age >= (PENDING_SECONDS if newest.kind == "will" else OVERDUE_SECONDS):
            return False
        if newest.kind == "will":
            return True  # other changes of the file do not end the check
        state = state_of(path)
        if newest.kind == "ran":
            is_made = state != NO_FILE and _is_since(state, newest)
        elif others is None or newest.text == state:
            is_made = newest.text != state
        else:
            is_made = not others(newest, self._doubtful_ns(newest, state))
        return not is_made and not self.ended_ns(newest)

    def _doubtful_ns(self, newest: Entry, state: str) -> int:
        """Return the time of the change that led to `state`, if it may come from an earlier call and not from `newest`.

        Else 0: it came since the present check began; or `newest` is so old that it counts as made.
        """
        now_ns = int(self._now * 1e9)
        if state == NO_FILE or newest.at_ns < now_ns - OWN_NS:
            return 0
        changed_ns = int(state.partition(" ")[0])
        if changed_ns < now_ns:
            return changed_ns
        return 0

    def ended_ns(self, entry: Entry) -> int:
        """Return the end of the entry's call, by the journal or by the client (``transcript``); 0 if unknown."""
        found = seen.ended_ns(self.data, entry)
        if found:
            return found
        from swarm_hook_core.traces import transcript

        return transcript.end_of(self.name, self.data, entry)

    def trace(self, path: str, entry: Entry, is_pending: bool = False) -> Trace | None:
        """Return the Trace of `entry`, a write of the file at `path`.

        None if it is older than a day, or its session is gone. Git is asked later.
        """
        if entry.at_ns / 1e9 < self._now - journal.DAY_SECONDS:
            return None
        writer = self.writer
        if writer is None:
            return None
        instance_id, label = writer
        if self.kin:
            self._purpose = ""  # the session knows its own purpose
        if self._purpose is None:
            self._purpose = self._reader.purpose_of(instance_id)

        held = Held(path, instance_id, label, self._purpose, int(entry.at_ns / 1e9), agent=entry.agent)
        held.kin = self.kin
        return Trace(path, held, entry.at_ns, entry.tool, is_pending, entry.kind == "will", self.name)

    @property
    def writer(self) -> tuple[str, str] | None:
        """``(instance id, label)`` of the journal's session, None if that has ended."""
        if self._writer == ():
            self._writer = self._living()
        return self._writer or None

    def _living(self) -> tuple[str, str] | None:
        found = self._reader.holder(*journal.owner_of(self.data))
        if found is None:
            return None

        instance_id, label, evidence = found
        if departed(evidence, self._now, host_id()):
            return None
        return (instance_id, label)


class Journals:
    """The journals around the call of `trail`, each read once until `forget`.

    `reader`: the store's LockReader; `reading`: parses commands.
    """

    def __init__(self, trail: Trail, reader: LockReader, now: float, reading: Reading):
        self._trail = trail
        self._reader = reader
        self._now = now
        self._reading = reading
        self._own: dict[str, bytes] = {}  # place -> the session's own entries
        self._others: dict[str, list[OthersJournal]] = {}  # place -> the other sessions' journals
        self._quiet: dict[str, bool] = {}  # place -> True if no write there can be pending
        self._siblings: dict[str, Siblings | None] = {}  # place -> the agents of the session there

    def own(self, folder: str) -> bytes:
        """Return the session's own journal in the place of absolute `folder`."""
        place = self._trail.place_of(folder)
        if place not in self._own:
            siblings, own = self._siblings_in(place), self.of_session(place)
            if siblings is not None:
                own = siblings.split(own, int(self._now * 1e9))[0]
            self._own[place] = own
        return self._own[place]

    def of_session(self, place: str) -> bytes:
        """Return the journal of the session and all its agents in `place`, without a checker's notes of this call."""
        own = self._entries_of(os.path.join(place, self._trail.own_name), journal.read_own)
        own = self._trail.before_a_try(own)
        return journal.as_seen_in(self._trail.top_of(place), own)

    def _siblings_in(self, place: str) -> Siblings | None:
        if place not in self._siblings:
            trail, found = self._trail, None
            if trail.call.agent or os.path.lexists(os.path.join(place, trail.own_name + AGENTS)):
                found = around(trail, place)
            self._siblings[place] = found
        return self._siblings[place]

    def of_others(self, place: str) -> list[OthersJournal]:
        """Return the journal of each other session in `place`, and of each other owner in the call's own session."""
        if place not in self._others:
            top = self._trail.top_of(place)
            self._others[place] = [
                OthersJournal(
                    journal.as_seen_in(top, data), self._reading, self._reader, self._now, os.path.basename(path)
                )
                for path in others_in(place, self._trail.own_name)
                if not path.endswith(AGENTS) and self._may_concern(path) and (data := self._entries_of(path))
            ]
            siblings = self._siblings_in(place)
            if siblings is not None:
                self._others[place] += [
                    OthersJournal(data, self._reading, self._reader, self._now, self._trail.own_name, words)
                    for words, data in siblings.split(self.of_session(place), int(self._now * 1e9))[1]
                ]
        return self._others[place]

    def forget(self, place: str) -> None:
        """Have the other sessions' journals in `place` read again."""
        self._others.pop(place, None)

    def stamps(self, place: str, file: str = "") -> list[str]:
        """Return a list that changes when another session adds an entry in `place`, or changes `file`."""
        files = others_in(place, self._trail.own_name)
        if self._siblings_in(place) is not None:
            files.append(os.path.join(place, self._trail.own_name))
        if file:
            files.append(file)
        return [state_of(path) for path in files]

    def is_quiet(self, place: str) -> bool:
        """Return True if no other session has added an entry in `place` lately: no call there goes on.

        Sessions without a word of the call's files do not count. False beside agents: their entries stand among the
        session's own.
        """
        if place not in self._quiet:
            since = self._now - max(OVERDUE_SECONDS, journal.ASIDE_SECONDS)
            if self._trail.names:
                others = [os.path.join(place, one.name) for one in self.of_others(place)]
            else:
                others = others_in(place, self._trail.own_name)
            is_old = not any(journal.changed_at(path) > since for path in others)
            self._quiet[place] = is_old and self._siblings_in(place) is None
        return self._quiet[place]

    def _may_concern(self, path: str) -> bool:
        """Return False if the journal at `path` has no word of the files that the call is about.

        Only a checker knows that without reading the whole journal.
        """
        names = self._trail.names
        try:
            return not names or not journal.is_kept or journal.may_concern(path, names)
        except NotOrdinary:
            return True  # reading it tells

    def _entries_of(self, path: str, read: Callable[[str], bytes] = journal.read) -> bytes:
        """Return the journal at `path`, b"" for a folder, link or pipe there: one bad file must not hide the others.

        Raises NotChecked, see ``Trail.pass_over``.
        """
        try:
            return read(path)
        except NotOrdinary as error:
            self._trail.pass_over(error)
            return b""


def is_in(keys: Collection[str], place: str) -> bool:
    """Return True if the file with these keys is at or in the place with this key."""
    start = place.rstrip("/") + "/"
    return any((key + "/").startswith(start) for key in keys)


def _is_since(state: str, entry: Entry) -> bool:
    """Return True if a file in that `state` was changed after `entry` was noted."""
    return int(state.partition(" ")[0]) >= entry.at_ns - journal.SLACK_NS

"""Level ``turn``: a file that a session has begun to write is its own until its turn ends.

A rule over the journals. A call at this level notes ``takes`` for each of its files, and looks at the others' journals
only then (`TurnFiles.take`). If another session has one of the files, the call is denied, and takes its notes back. A
session whose write of the file was let pass in this turn (``wrote``) goes on without a look. A file is free again:

- after the end of the turn (``over`` without a tool),
- after an unlock, a hand-over or a theft (``gives``),
- ten minutes after the last write of the turn,
- when its session has gone.

Of two that take a file at one moment, each has noted that before it looks, so at least one sees the other. Calls take
files one at a time (`_OneAtATime`), so the earlier one sees nothing and has the file. Where that order is lost, since a
process was stopped in there, both may be denied; they cannot both be let pass. No clocks are compared.

Requests for locks look at the journals too, after the lock is committed as well (``swarm_mcp.store.lock_finder``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from typing import Any

from swarm_hook_core import process
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import AUTO, Held, LockReader
from swarm_hook_core.paths import key_of
from swarm_hook_core.process import departed, host_id
from swarm_hook_core.state import (
    TURN_SECONDS,
    NotOrdinary,
    has_turn_files,
    lock_alone,
    turn_mark,
)
from swarm_hook_core.traces import (
    append,
    entry,
    first_line,
    journal,
    names_in,
    opened,
    others_in,
    plain_word,
    traces_dir,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

NOTE = "editing it in this turn"
MOST_FILES = 100  # of one call
_HELD_NS = TURN_SECONDS * 10**9
_SURELY_NS = _HELD_NS - 10 * 10**9  # from this age on others may be about to take the file
_KINDS = (b" takes ", b" wrote ", b" gives ", b" over ")


class TurnFile:
    """A file that a session has, or had, for a turn.

    - key, file    its key and its absolute path
    - runtime, session_id, agent    the client's session, and its sub-agent (empty for the session itself)
    - tool         the tool of the first write
    - at, written  times of the first and the last write (ns)
    - is_sure      True if a write of it was let pass: else the hook may have been killed before it withdrew its note
    - ended, end   time (ns) and kind of the entry that ends it; 0 and empty without one
    - journal      the path of the journal
    """

    __slots__ = ("key", "file", "runtime", "session_id", "agent", "tool", "at", "written", "is_sure", "ended", "end",
                 "journal")  # fmt: skip

    def __init__(self, runtime: str, session_id: str, taken: journal.Entry, path: str):
        self.runtime = runtime
        self.session_id = session_id
        self.key = taken.key
        self.file = taken.text or taken.key
        self.agent = taken.agent
        self.tool = taken.tool
        self.at = self.written = taken.at_ns
        self.is_sure = False
        self.ended, self.end = 0, ""
        self.journal = path

    def is_of(self, runtime: str, session_id: str, agent: str = "") -> bool:
        """Return True if this agent may write the file: agents may write their session's files."""
        return (self.runtime, self.session_id) == (runtime, session_id) and self.agent in ("", _noted(agent))

    def is_over(self, now_ns: int) -> bool:
        """Return True if the file is its session's no longer, as far as the journal tells."""
        return bool(self.ended) or abs(now_ns - self.written) > _HELD_NS


class TurnFiles:
    """The files that others have for their turns, and those that `call` takes for its own.

    `runtime`: the client's name; `reader`: the store's LockReader.
    """

    def __init__(self, runtime: str, call: ToolCall, reader: LockReader, now_ns: int):
        self.runtime = runtime
        self.call = call
        self.reader = reader
        self.now_ns = now_ns
        self._trail: Trail | None = None
        self._noted: dict[str, list[bytes]] = {}  # place -> entries that take this call's own ones back
        self._taken: set[str] = set()  # keys of the files that `take` was asked for
        self._met: list[TurnFile] = []  # those of others that are in its way
        self._others: list[TurnFile] | None = None  # read once, and before the store
        self._holders: dict[tuple[str, str], tuple[str, str, Any] | None] = {}

    def take(self, trail: Trail, paths: Iterable[str]) -> None:
        """Take the files at these absolute `paths`, links resolved, for the session's turn. Raises OSError.

        If another session has one of them, none is taken; `on` reports it even if that turn ends meanwhile. Folders are
        not taken: to create or remove one is no work on all files in it.
        """
        process.demand_waiting()
        files = {path: key_of(path) for path in list(paths)[:MOST_FILES] if not os.path.isdir(path)}
        if not files:
            return
        places = {path: trail.place_of(os.path.dirname(path)) for path in files}
        with _OneAtATime():
            found = [
                one
                for path in {os.path.join(place, trail.own_name) for place in places.values()}
                for one in _in_journal(path)
            ]
            now_ns, whose = time.time_ns(), (self.runtime, self.call.session_id, self.call.agent)
            own = {one.key: one for one in found if not one.is_over(now_ns) and one.is_of(*whose)}
            at_ns = time.time_ns()
            lines: dict[str, list[bytes]] = {}
            for path, key in files.items():
                agent = own[key].agent if key in own else self.call.agent
                text = "" if key == path else path
                taken = entry(at_ns, "takes", agent, self.call.tool, key, text)
                lines.setdefault(places[path], []).append(taken)
                withdrawn = entry(at_ns, "wont", agent, self.call.tool, key, "wrote")
                self._noted.setdefault(places[path], []).append(withdrawn)
            self._append(trail, lines)
            self._others = self._found()
            self._taken = set(files.values())
            sure = {key for key, one in own.items() if one.is_sure and at_ns - one.written < _SURELY_NS}
            new = self._taken - sure
            for one in self._others:
                if one.key in new and self._is_void(one):
                    give(one)  # if its session is resumed, it does not have the file still
                elif one.key in new:
                    self._met.append(one)
            if self._met:
                self.take_back()

    def take_back(self) -> None:
        """Withdraw the notes of `take`, since the call is denied. Raises OSError."""
        noted, self._noted = self._noted, {}
        if self._trail is not None:
            self._append(self._trail, noted)

    def _append(self, trail: Trail, lines: dict[str, list[bytes]]) -> None:
        """Append entries to the session's journals, by their places."""
        self._trail = trail
        for place, some in lines.items():
            trail.append(place, some)
            _touch(os.path.join(place, trail.own_name), time.time_ns())

    def any(self) -> bool:
        """Return True if another session has any file for its turn; those of departed sessions count."""
        return bool(self._met or self._all())  # one that was met counts, though its turn may have ended since

    def on(self, keys: Collection[str]) -> list[Held]:
        """Return a Held for each file of others with one of these keys, if the call has not taken that itself."""
        others = [one for one in self._all() if one.key not in self._taken]
        return self._as_locks(one for one in (*self._met, *others) if one.key in keys)

    def under(self, folders: Iterable[str]) -> list[Held]:
        """Return a Held for each file of others below the folders with these keys."""
        starts = tuple(folder.rstrip("/") + "/" for folder in folders)
        return self._as_locks(one for one in self._all() if one.key.startswith(starts))

    def _all(self) -> list[TurnFile]:
        if self._others is None:
            self._others = self._found()
        return self._others

    def _found(self) -> list[TurnFile]:
        return of_others(self.runtime, self.call, time.time_ns())

    def _as_locks(self, found: Iterable[TurnFile]) -> list[Held]:
        unique = {(one.key, one.journal, one.agent): one for one in found}
        return [held for one in unique.values() if (held := held_of(one, self._holder(one)))]

    def _holder(self, one: TurnFile) -> tuple[str, str, Any] | None:
        who = one.runtime, one.session_id
        if who not in self._holders:
            self._holders[who] = self.reader.holder(*who)
        return self._holders[who]

    def _is_void(self, one: TurnFile) -> bool:
        """Return True if the file's session has departed, or was never in the store."""
        found = self._holder(one)
        return found is None or departed(found[2], self.now_ns / 10**9, host_id())


def of_others(runtime: str, call: ToolCall, now_ns: int) -> list[TurnFile]:
    """Return the files that keep the agent of `call` out, also those of departed sessions."""
    whose = runtime, call.session_id, call.agent
    return [one for one in lasting(now_ns) if not one.is_of(*whose)]


def lasting(now_ns: int) -> list[TurnFile]:
    """Return all files that sessions have for their turns, by the journals alone."""
    if not has_turn_files():
        return []
    return [one for one in noted_since(now_ns - _HELD_NS) if not one.is_over(now_ns)]


def noted_since(since_ns: int) -> list[TurnFile]:
    """Return what journals with an entry after `since_ns` tell, also of turns that are over."""
    places = [os.path.join(traces_dir(), name) for name in names_in(traces_dir())]
    paths = [path for place in places for path in others_in(place, "")]
    return [one for path in paths if journal.changed_at(path) >= since_ns / 10**9 for one in _in_journal(path)]


def end(runtime: str, session_id: str, agent: str | None = None, over_ns: int = 0) -> None:
    """Note the end of the turn of a session's `agent` (None: of all) where it has files still. Raises OSError.

    `over_ns`: the time of that end; a file that was written later belongs to the next turn.
    """
    now_ns = time.time_ns()
    ends = {
        (one.journal, one.agent): one
        for one in lasting(now_ns)
        if (one.runtime, one.session_id) == (runtime, session_id)
        and (agent is None or one.agent == _noted(agent))
        and (not over_ns or one.written <= over_ns)
    }
    for one in ends.values():
        _note(one, entry(over_ns or now_ns, "over", one.agent, "", "/"))


def give(one: TurnFile) -> None:
    """Note that a session has a file for its turn no longer. Raises OSError."""
    _note(one, entry(time.time_ns(), "gives", one.agent, "", one.key))


def _note(one: TurnFile, line: bytes) -> None:
    top = journal.folder_of(one.journal)
    append(one.journal, [line], lambda: first_line(one.runtime, one.session_id, top))
    _touch(one.journal, time.time_ns())


def held_of(one: TurnFile, holder: tuple[str, str, Any] | None) -> Held | None:
    """Return the file as a lock. None if `holder`, the result of ``LockReader.holder``, is None."""
    if holder is None:
        return None
    instance_id, label, evidence = holder
    lease = (TURN_SECONDS, None, None, one.written / 10**9 + TURN_SECONDS)
    return Held(
        one.file, instance_id, label, NOTE, one.at / 10**9, names=(one.key,), agent=one.agent, mode=AUTO,
        lease=lease, evidence=evidence, path_key=one.key,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- the journals


def _in_journal(path: str) -> list[TurnFile]:
    """Return the files that the journal at `path` tells of, the earlier ones first."""
    try:
        data = journal.read(path)
    except NotOrdinary:
        return []  # the rule about uncommitted work records it
    if not journal.has_kind(data, b"takes"):
        return []
    runtime, session_id = journal.owner_of(data)
    found: list[TurnFile] = []
    last: dict[str, TurnFile] = {}  # key -> the file, as long as it lasts
    lines = (raw for raw in data.split(b"\n") if any(kind in raw for kind in _KINDS))
    for noted in journal.entries(lines):
        one = last.get(noted.key)
        if noted.kind == "wrote":
            if one is not None and one.agent == noted.agent:
                one.is_sure = True
            continue
        if noted.kind == "takes":
            if one is None or one.agent != noted.agent or noted.at_ns - one.written > _HELD_NS:
                one = last[noted.key] = TurnFile(runtime, session_id, noted, path)
                found.append(one)
            one.written = max(one.written, noted.at_ns)
            continue
        over = [one] if noted.kind == "gives" and one is not None else []
        if noted.kind == "over" and noted.tool == "-":
            over = [one for one in last.values() if one.agent == noted.agent and one.written <= noted.at_ns]
        for one in over:
            one.ended, one.end = noted.at_ns, noted.kind
            del last[one.key]
    return found


def _noted(agent: str) -> str:
    """Return the agent as an Entry of it names it; empty for the session itself."""
    return plain_word(agent) if agent else ""


def _touch(path: str, at_ns: int) -> None:
    """Set the time of a file by our clock: that of its file system may differ."""
    os.utime(path, ns=(at_ns, at_ns))


class _OneAtATime:
    """Only one call takes files, as long as none is stopped in here.

    The lock is on a file whose time tells readers that files are taken (``state.has_turn_files``).
    """

    def __enter__(self) -> None:
        path = turn_mark()
        self._handle = opened(path)
        try:
            lock_alone(self._handle)
        except OSError:
            pass  # held by a process that was stopped: the order of notes and looks protects the file all the same
        _touch(path, time.time_ns())

    def __exit__(self, *_exception: object) -> None:
        os.close(self._handle)

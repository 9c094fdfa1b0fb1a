"""The first look at the journals of others: most calls beside other sessions meet no change of theirs.

Such a call names its files, or none, and no other journal has a word of them, nor a command to be read. It leaves the
entries that ``verdict`` would leave, in the same order, without the modules that compare changes. ``verdict`` goes on
where this look finds anything.

A checker keeps an index of each journal's names from call to call (`is_kept`). A journal mostly grows: its index is
read on from the last whole entry, if that is still in its place and the older part is unchanged. Else the index is made
anew. A hook that is a process of its own searches the entries themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable

from swarm_hook_core.state import NotOrdinary, open_private, read_all
from swarm_hook_core.traces import AGENTS, IGNORES_CASE, escaped, journal, others_in, seen, state_of
from swarm_hook_core.traces.trail import Trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Effects

FEW = 16  # files of a call
# Kinds of entries that may concern a file without naming it: commands, folders, commits with hooks; other machines.
OF_MANY = (b" ran ", b" clears ", b" aside ", b" far ")
MOST_KEPT = 1000  # indexes

is_kept = False  # a checker sets it
_indexes: dict[str, _Index] = {}  # path of a journal -> its index


def is_settled(trail: Trail, effects: Effects | None) -> bool:
    """Collect the entries of a call that meets nothing, and return True; else leave them to ``verdict``.

    `effects`: effects of a shell or MCP call, or None. After False the trail has `noted_ns` if the call's intended
    writes were noted already. Raises ValueError for unreadable input.
    """
    targets = trail.targets_of(effects)
    if not _is_simple(trail, effects) or not _are_plain(trail, targets):
        return False
    folder, paths = trail.call.folder, list(dict.fromkeys(target[1] for target in targets))
    place = trail.place_of(folder)
    try:
        own = journal.as_seen_in(trail.top_of(place), journal.read(os.path.join(place, trail.own_name)))
    except NotOrdinary:
        return False  # verdict records it
    if b" aside " in own:
        return False
    note_own(trail, own, folder)
    trail.noted_ns = time.time_ns()
    note_intended(trail, paths, trail.noted_ns)
    trail.leave_or_record()
    if any(_are_named(trail, path) for path in paths):
        return False
    trail.wrote(paths, is_beside_others=True)
    trail.note_unnamed(effects)
    return True


def note_own(trail: Trail, own: bytes, folder: str) -> None:
    """Collect the states that the session's last writes have left, and the end of its last command.

    `own`: the session's journal in the place of absolute `folder`.
    """
    seen.note_what_was_left(own, trail)
    if seen.has_open_command(own, trail.call.agent):
        trail.note_at(folder, "over")


def note_intended(trail: Trail, paths: Iterable[str], at_ns: int) -> None:
    """Collect the intended writes of the files at resolved `paths`, before others' traces are looked at.

    So, of two calls checked at the same moment, at least one sees the other's pending write.
    """
    for path in paths:
        trail.note("will", path, at_ns=at_ns)


def _is_simple(trail: Trail, effects: Effects | None) -> bool:
    """Return True if nothing but the call's files can meet a change of others."""
    if effects is not None and (effects.trees or effects.git or effects.reads):
        return False
    # Agents of one session meet each other in its journal; a HEAD that has moved is told.
    return not trail.is_asked and not trail.call.agent and not trail.is_head_moved()


def _are_plain(trail: Trail, targets: list[tuple[str, str, str, str]]) -> bool:
    """Return True if the files have one spelling and one key each, and their session has no agents at work."""
    if len(targets) > FEW:
        return False
    places = {trail.place_of(os.path.dirname(target[1])) for target in targets} | {trail.place_of(trail.call.folder)}
    if any(os.path.lexists(os.path.join(place, trail.own_name + AGENTS)) for place in places):
        return False
    return all(
        path == resolved and path.isascii() and path == path.strip() and not IGNORES_CASE
        for path, resolved, _how, _by in targets
    )


def _are_named(trail: Trail, path: str) -> bool:
    """Return True if another journal in the file's place names it, or has an entry about many files."""
    place = trail.place_of(os.path.dirname(path))
    name = os.path.basename(path)
    names = (escaped(name), escaped(name.casefold()))
    try:
        return any(may_concern(other, names) for other in others_in(place, trail.own_name))
    except NotOrdinary:
        return True  # verdict records it


# ------------------------------------------------------------------------------------------------ names in journals


def may_concern(path: str, names: Collection[bytes]) -> bool:
    """Return True if the journal at `path` has an entry about a file with one of these names, or about many files.

    names   escaped names of files, without folders

    Raises NotOrdinary, and OSError.
    """
    if not is_kept:
        data = journal.read(path)
        return any(mark in data for mark in (*OF_MANY, *names))
    states = (state_of(path), state_of(path + ".1"))
    index = _indexes.get(path)
    if index is None or (index.states != states and not index.has_read_on(path, states)):
        if len(_indexes) >= MOST_KEPT:
            _indexes.clear()
        index = _indexes[path] = _Index(path, states)
    return index.is_about_many or not index.names.isdisjoint(names)


class _Index:
    """The names in the journal at `path`. Its parts had these `states` before it was read."""

    __slots__ = ("states", "names", "is_about_many", "_at", "_last")

    def __init__(self, path: str, states: tuple[str, str]):
        self.states = states
        self.names: set[bytes] = set()
        self.is_about_many = False
        newer, older = journal.parts(path)
        self._at, self._last = 0, b""  # place of the last whole entry in the newer part, and that entry
        self._end_with(newer)
        self._add(journal.joined(newer, older))

    def has_read_on(self, path: str, states: tuple[str, str]) -> bool:
        """Add the entries since the last look, and return True; False if the journal is not the same one, grown."""
        if states[1] != self.states[1] or not self._last:
            return False
        try:
            handle = open_private(path, os.O_RDONLY)
        except OSError:
            return False  # removed just now, or no file: read anew, it is told
        try:
            os.lseek(handle, self._at, os.SEEK_SET)
            data = read_all(handle, journal.LARGEST)
        finally:
            os.close(handle)
        added = data[len(self._last) :]
        if not data.startswith(self._last) or journal.WITHDRAWN in added:
            return False
        self._add(added)
        self._end_with(data)
        self.states = states
        return True

    def _end_with(self, data: bytes) -> None:
        """Note the last whole entry of `data`, which begin at the place noted last. No other entry has its time."""
        whole = data[: data.rfind(b"\n") + 1].rstrip(b"\n")
        begin = whole.rfind(b"\n") + 1
        if whole:
            self._at, self._last = self._at + begin, whole[begin:] + b"\n"

    def _add(self, data: bytes) -> None:
        self.is_about_many = self.is_about_many or any(mark in data for mark in OF_MANY)
        for line in data.split(b"\n"):
            key = line.partition(b"\0")[2].partition(b"\0")[0]
            self.names.add(key.rpartition(b"/")[2])

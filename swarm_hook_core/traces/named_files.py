"""The files that a journal names: an index of its entries.

A checker keeps the indexes from call to call (`journal.is_kept`). A journal mostly grows: its index is read on from
the last whole entry, if that is still in its place and the older part is unchanged. Else the index is made anew.
A hook that is a process of its own searches the entries themselves.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from swarm_hook_core.state import open_private, read_all
from swarm_hook_core.traces import journal, state_of

# Kinds of entries that may concern a file without naming it: commands, folders, commits with hooks; other machines.
OF_MANY = (b" ran ", b" clears ", b" aside ", b" far ")
MOST_KEPT = 1000  # indexes

_indexes: dict[str, _Index] = {}  # path of a journal -> its index


def may_concern(path: str, names: Collection[bytes]) -> bool:
    """Return True if the journal at `path` has an entry about a file with one of these names, or about many files.

    names   escaped names of files, without folders

    Raises NotOrdinary, and OSError.
    """
    if not journal.is_kept:
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

"""Shell commands that nobody had read when they ran, since their session was alone (``ran``): what they wrote.

Whoever meets them later reads those that may be about its files, in the time that the check of its own call has left.
"""

import os
import time

from swarm_hook_core.paths import keys_for
from swarm_hook_core.traces import journal

MOST_COMMANDS = 3  # of one session that are read to see whether they wrote a file
MOST_LATELY = 30  # of one session that are read for the files that they wrote


class Reading:
    """Reading commands of others for one call, in the time of its `budget`; None: a Budget begins with the first."""

    def __init__(self, budget, real):
        self._budget = budget
        self._until = None  # there is some time for it, whatever the call itself took
        self.real = real

    def effects_of(self, entry):
        """The Effects of the command of an Entry; None where there is no time left."""
        from swarm_hook_core.shell import effects_of, walk  # noqa: F401 - loading it is not held against the command

        if self._budget is None:
            from swarm_hook_core.budget import Budget

            self._budget = Budget()
        if self._until is None:
            self._until = self._budget.part()
        elif time.thread_time() > max(self._until, self._budget.end):
            return None
        return effects_of(entry.text, entry.key, budget=self._budget)

    def written_by(self, entry) -> list:
        """``(folder, path as spelled)`` of the files that this command certainly wrote."""
        effects = self.effects_of(entry)
        return [(write.folder, write.path) for write in effects.writes] if effects is not None else []


class UnreadCommands:
    """Those in the journal with the entries `data`."""

    __slots__ = ("_reading", "_data", "_lines", "_keys")

    def __init__(self, data: bytes, reading: Reading):
        self._reading = reading
        self._data = data if b" ran " in data else b""
        self._lines = None  # their entries as they stand there, once somebody asked
        self._keys: dict = {}  # such an entry -> the keys of the files that the command wrote

    def __bool__(self) -> bool:
        return bool(self._data)

    def that_wrote(self, keys) -> list:
        """The entries of the newest commands that wrote the file with one of these keys."""
        if not self._data:
            return []
        if self._lines is None:
            self._lines = [raw for raw in self._data.split(b"\n") if b" ran " in raw]
        names = {os.path.basename(key).encode("utf-8", "surrogatepass") for key in keys}
        lines = [raw for raw in self._lines if any(name in raw for name in names)]
        found = []
        for raw in lines[: -MOST_COMMANDS - 1 : -1]:
            try:
                entry = journal.Entry(raw)
            except ValueError:
                continue  # torn
            if entry.kind == "ran" and not self._keys_of(raw, entry).isdisjoint(keys):
                found.append(entry)
        return found

    def lately_below(self, root: str):
        """``(path, entry)`` of the files at and below `root` that the newest commands run there wrote."""
        for entry in journal.newest_below(self._data, root, ("ran",), MOST_LATELY) if self._data else ():
            for folder, spelled in self._reading.written_by(entry):
                path = self._reading.real(os.path.join(folder, spelled))
                if (path + "/").startswith(root.rstrip("/") + "/"):
                    yield path, entry

    def _keys_of(self, raw: bytes, entry) -> set:
        if raw not in self._keys:
            reading = self._reading
            self._keys[raw] = {
                key for folder, path in reading.written_by(entry) for key in keys_for(path, folder, reading.real)
            }
        return self._keys[raw]

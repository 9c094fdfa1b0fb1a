"""The inputs of a session's write tools, kept beside its versions: they tell the content after each call.

File: ``<state>/kept/<place>/<journal>/%inputs``, and its older part with ``.1``. One line per call, in bytes:

    <time> <time> <tool>\\0<folder>\\0<input as JSON>\\n

The times are those of the call's first and last entry ``wrote`` in the journal. `folder` is that of relative paths. An
input over 256 KiB is not kept. ``Trail`` writes the file, at the check of each call.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from swarm_hook_core.json_text import loads
from swarm_hook_core.state import read_private
from swarm_hook_core.traces import INPUTS, LIMIT_INPUTS, LONGEST_INPUT, kept_dir
from swarm_hook_core.traces.journal import unescaped

MOST_BYTES = LIMIT_INPUTS + 2 * LONGEST_INPUT  # of one part


class Input:
    """The input of one call: the `tool`, the `folder` of relative paths, and the value that the tool was `given`.

    first_ns, last_ns  times of the call's entries
    """

    __slots__ = ("tool", "folder", "given", "first_ns", "last_ns")

    def __init__(self, tool: str, folder: str, given: object, first_ns: int = 0, last_ns: int = 0):
        self.first_ns = first_ns
        self.last_ns = last_ns
        self.tool = tool
        self.folder = folder
        self.given = given


class Inputs:
    """The inputs that the session with the journal `name` in `place` has kept. Each is parsed when it is asked for."""

    def __init__(self, place: str, name: str):
        self._path = os.path.join(kept_dir(place), name, INPUTS)
        self._is_read = False  # most files have no entries of most sessions
        self._lines: list[tuple[int, int, bytes]] = []  # first and last time, the line; sorted
        self._longest_ns = 0

    def _read(self) -> None:
        path, self._is_read = self._path, True
        for part in (path + ".1", path):
            try:
                data = read_private(part, MOST_BYTES)
            except OSError:
                continue  # nothing kept, or pruned
            for line in data.split(b"\n"):
                words = line.partition(b"\0")[0].split(b" ")
                if len(words) == 3 and words[0].isdigit() and words[1].isdigit():
                    self._lines.append((int(words[0]), int(words[1]), line))
        self._lines.sort()
        self._longest_ns = max((last_ns - first_ns for first_ns, last_ns, _line in self._lines), default=0)

    def at(self, at_ns: int) -> Input | None:
        """Return the Input of the call with an entry at this time; None if it was not kept, or is torn."""
        if not self._is_read:
            self._read()
        start = bisect_right(self._lines, (at_ns - self._longest_ns - 1,))
        for first_ns, last_ns, line in self._lines[start:]:
            if first_ns > at_ns:
                break
            if at_ns <= last_ns:
                try:
                    head, folder, text = line.split(b"\0", 2)
                    given = loads(text.decode("ascii"))
                except (ValueError, RecursionError):
                    return None  # torn, as after a full disk; or nested too deeply
                return Input(
                    head.split(b" ")[2].decode("ascii", "replace"), unescaped(folder), given, first_ns, last_ns
                )
        return None

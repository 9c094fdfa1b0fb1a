"""The uncommitted changes of the files of one call, with the owners of each line: looked up once for each file.

Refusals of all rules and their advice answer from these. The answer to a call waits for them, and a client lets a call
go ahead that is not answered within 5 seconds (Claude Code, Codex). So words name only what is found in `Patience`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from swarm_hook_core.git_repository import committed_contents
from swarm_hook_core.traces import journal_name
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Change, Fold, Line, NoLines
from swarm_hook_core.traces.versions.notes import Notes

MOST = 20  # files of a message with their lines looked up
SECONDS = 0.5  # for the lines of all files that a message names; the first file has them in any case


class FileChanges:
    """The changes of files since the last commit. `notes`: the journals and versions around them."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._committed: dict[str, bytes | None] = {}  # contents in the last commit
        self._found: dict[str, list[Change] | None] = {}

    def prepare(self, paths: Iterable[str], seconds: float) -> None:
        """Ask git at once about these files, before `of` needs it."""
        new = [path for path in paths if path not in self._committed]
        if new:
            self._committed.update(dict.fromkeys(new))
            self._committed.update(committed_contents(new, seconds, LIMIT_BYTES))

    def of(self, path: str, seconds: float) -> list[Change] | None:
        """Return the changes of the file at `path`, links resolved.

        None for a file without lines, for one that git changes on its way, or if git does not answer in `seconds`.
        """
        if path not in self._found:
            self.prepare([path], seconds)
            self._found[path] = self._changes_of(path)
        return self._found[path]

    def lines_of(self, path: str, seconds: float) -> list[Line] | None:
        """Return the removed and added lines; None as of `of`."""
        changes = self.of(path, seconds)
        if changes is None:
            return None
        return [line for change in changes for line in (*change.removed, *change.added)]

    def _changes_of(self, path: str) -> list[Change] | None:
        committed = self._committed[path]
        if committed is None:
            return None
        try:
            return Fold(path, committed, notes=self.notes).changes()
        except (NoLines, OSError):
            return None  # binary, large, a link, gone, or unreadable


class Patience:
    """The time for the lines that the words of one call need. It begins with the first file."""

    def __init__(self, changes: FileChanges):
        self.changes = changes
        self._end = 0.0

    def left(self) -> float:
        """Return the seconds that are left, 0 without any."""
        now = time.monotonic()
        self._end = self._end or now + SECONDS
        return max(0.0, self._end - now)

    def prepare(self, paths: Iterable[str]) -> None:
        """Ask git once about these files, before their lines are needed."""
        paths = list(paths)[: 2 * MOST]
        seconds = self.left()
        if len(paths) > 1 and seconds:
            self.changes.prepare(paths, seconds)

    def lines_of(self, path: str) -> list[Line] | None:
        """Return the changed lines of the file; None for a file without lines, and without time."""
        seconds = self.left()
        if not seconds:
            return None
        return self.changes.lines_of(path, seconds)

    def has_part(self, path: str, name: str, is_sure: bool = False) -> bool | None:
        """Return True if the session with the journal `name` may have written an uncommitted line of the file.

        `is_sure`: only if it alone may have written that line. None if nothing tells: a file without such
        lines, or no time left.
        """
        lines = self.lines_of(path)
        if not lines:
            return None
        return any(is_by(line, name, is_sure) for line in lines)


def is_by(line: Line, name: str, is_sure: bool = False) -> bool:
    """Return True if the session with the journal `name` may have written the line; `is_sure`: it alone."""
    names = [journal_name(*author.session) for author in line.authors]
    return names == [name] or (name in names and not is_sure)

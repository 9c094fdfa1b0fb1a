"""The uncommitted changes of the files of one call, with the owners of each line: looked up once for each file.

Refusals of all rules, their advice, and the rule about a person's work answer from these.
"""

from __future__ import annotations

from collections.abc import Iterable

from swarm_hook_core.git_objects import committed_contents
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Change, Fold, Line, NoLines
from swarm_hook_core.traces.versions.notes import Notes


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

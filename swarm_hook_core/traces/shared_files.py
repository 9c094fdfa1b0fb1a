"""The uncommitted lines of a file by session, for the words of a denial and for a commit of a shared file.

The answer to a call waits for them, and a client lets a call go ahead that is not answered within 5 seconds (Claude
Code, Codex). So only the files whose turn comes in time are looked up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from swarm_hook_core.git_objects import committed_contents
from swarm_hook_core.traces import journal_name
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Line, NoLines, changes_of
from swarm_hook_core.traces.versions.notes import Notes

MOST = 20  # files with their lines looked up
SECONDS = 0.5  # for the lines of all files of a call; the first file has them in any case


class Patience:
    """The time for the lines of all files of the call of `trail`. It begins with the first file."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self._end = 0.0
        self._committed: dict[str, bytes | None] = {}  # path -> its content in the last commit; None: it has no lines

    def left(self) -> float:
        """Return the seconds that are left, 0 without any."""
        now = time.monotonic()
        self._end = self._end or now + SECONDS
        return max(0.0, self._end - now)

    def ask(self, paths: Iterable[str]) -> None:
        """Ask git once for the committed contents of these files. For a single one it would cost more than it saves."""
        paths = [path for path in paths if path not in self._committed][:MOST]
        seconds = self.left()
        if len(paths) > 1 and seconds:
            found = committed_contents(paths, seconds, LIMIT_BYTES)
            self._committed.update((path, found.get(path)) for path in paths)

    def lines_of(self, path: str, seconds: float) -> list[Line] | None:
        """Return the added and removed lines; None for a file without lines, or if git does not answer."""
        trail, committed = self.trail, self._committed.get(path)
        if committed is None and path in self._committed:
            return None
        trail.notes = trail.notes or Notes()
        try:
            changes = changes_of(path, seconds, trail.notes, committed)
            return [line for change in changes for line in (*change.removed, *change.added)]
        except (NoLines, OSError):
            return None  # nothing tells whose they are


class SharedFiles:
    """Those of `paths` with uncommitted changes of the session with the journal `name`, beside others'.

    files      their paths; a file without lines counts as shared, and one without time to look it up
    is_unsure  True if some of their lines may be this session's or another's, and nothing tells which in time
    """

    __slots__ = ("files", "is_unsure")

    def __init__(self, paths: Iterable[str], name: str, patience: Patience):
        self.files: list[str] = []
        self.is_unsure = False
        paths = list(paths)[:MOST]
        patience.ask(paths)
        for path in paths:
            seconds = patience.left()
            if not seconds:
                self.files.append(path)
                self.is_unsure = True
                continue
            lines = patience.lines_of(path, seconds)
            if lines is None or any(_is_by(line, name) for line in lines):
                self.files.append(path)
                self.is_unsure = self.is_unsure or any(_may_be_by(line, name) for line in lines or ())


def has_lines_of(path: str, name: str, patience: Patience) -> bool:
    """Return True if the file has uncommitted lines by the session alone with the journal of this `name`.

    True also without time to look them up.
    """
    seconds = patience.left()
    return not seconds or any(_is_by(line, name) for line in patience.lines_of(path, seconds) or ())


def may_hold_lines_of(path: str, name: str, patience: Patience) -> bool | None:
    """Return True if the file has uncommitted lines that the session with this journal may have written.

    True also without time to look them up; None for a file without lines. Lines with a person among their possible
    authors do not count: they are protected as the person's.
    """
    seconds = patience.left()
    if not seconds:
        return True
    lines = patience.lines_of(path, seconds)
    if lines is None:
        return None
    of_sessions = (line for line in lines if not any(author.is_person for author in line.authors))
    return any(_is_by(line, name) or _may_be_by(line, name) for line in of_sessions)


def _is_by(line: Line, name: str) -> bool:
    return line.author is not None and journal_name(*line.author.session) == name


def _may_be_by(line: Line, name: str) -> bool:
    return line.author is None and any(journal_name(*author.session) == name for author in line.authors)

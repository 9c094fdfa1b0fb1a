"""The uncommitted lines of a file by session, for the words of a denial and for a commit of a shared file.

The answer to a call waits for them, and a client lets a call go ahead that is not answered within 5 seconds (Claude
Code, Codex). So only the files whose turn comes in time are looked up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from swarm_hook_core.lookup import Held
from swarm_hook_core.traces import journal, journal_name
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.traces.versions.acts import PERSON
from swarm_hook_core.traces.versions.lines import Line
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings

MOST = 20  # files with their lines looked up
MOST_NAMED = 3  # files of a message with all their owners
SECONDS = 0.5  # for the lines of all files of a call; the first file has them in any case


class Patience:
    """The time for the lines of all files of the call of `trail`. It begins with the first file."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self._end = 0.0

    def left(self) -> float:
        """Return the seconds that are left, 0 without any."""
        now = time.monotonic()
        self._end = self._end or now + SECONDS
        return max(0.0, self._end - now)

    def prepare(self, paths: Iterable[str]) -> None:
        """Ask git once about these files, before their lines are needed."""
        paths = list(paths)[:MOST]
        seconds = self.left()
        if len(paths) > 1 and seconds:
            self.trail.changes.prepare(paths, seconds)


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
        patience.prepare(paths)
        for path in paths:
            seconds = patience.left()
            if not seconds:
                self.files.append(path)
                self.is_unsure = True
                continue
            lines = patience.trail.changes.lines_of(path, seconds)
            if lines is None or any(_is_by(line, name) for line in lines):
                self.files.append(path)
                self.is_unsure = self.is_unsure or any(_may_be_by(line, name) for line in lines or ())


def has_lines_of(path: str, name: str, patience: Patience) -> bool:
    """Return True if the file has uncommitted lines by the session alone with the journal of this `name`.

    True also without time to look them up.
    """
    seconds = patience.left()
    return not seconds or any(_is_by(line, name) for line in patience.trail.changes.lines_of(path, seconds) or ())


def may_hold_lines_of(path: str, name: str, patience: Patience) -> bool | None:
    """Return True if the file has uncommitted lines that the session with this journal may have written.

    True also without time to look them up; None for a file without lines. Lines with a person among their possible
    authors do not count: they are protected as the person's.
    """
    seconds = patience.left()
    if not seconds:
        return True
    lines = patience.trail.changes.lines_of(path, seconds)
    if lines is None:
        return None
    of_sessions = (line for line in lines if not any(author.is_person for author in line.authors))
    return any(_takes_part_in(line, name) for line in of_sessions)


def takes_part(trace: Trace, patience: Patience) -> bool:
    """Return True if the session of `trace` may have written an uncommitted line of its file, or if nothing tells."""
    seconds = patience.left()
    lines = seconds and patience.trail.changes.lines_of(trace.path, seconds)
    return not lines or any(_takes_part_in(line, trace.journal) for line in lines)


def also_in(
    traces: Sequence[Trace], meetings: Meetings, patience: Patience, identity: str, names_persons: bool = True
) -> str:
    """Return the sentence about further owners of uncommitted lines in the files of `traces`; mostly empty.

    A Trace names the last writer of its file, and `blame` all of them: so a message does.
    """
    parts, traces = [], traces[:MOST_NAMED]
    patience.prepare(trace.path for trace in traces)
    for trace in traces:
        seconds = patience.left()
        lines = seconds and patience.trail.changes.lines_of(trace.path, seconds)
        certain = {line.author.session for line in lines or () if line.author is not None}
        others = meetings.journals.of_others(meetings.trail.place_of(os.path.dirname(trace.path)))
        owners = []
        for theirs in others:
            if theirs.name != trace.journal and not theirs.kin and journal.owner_of(theirs.data) in certain:
                owners += [holder(Held(trace.path, *writer), identity)[0] for writer in [theirs.writer] if writer]
        if names_persons and PERSON.session in certain:
            owners.append("a person")
        if owners:
            parts.append(f"{named(trace.path)} has lines of {' and of '.join(owners)}, too.")
    return " ".join(parts)


def _is_by(line: Line, name: str) -> bool:
    return line.author is not None and journal_name(*line.author.session) == name


def _takes_part_in(line: Line, name: str) -> bool:
    return _is_by(line, name) or _may_be_by(line, name)


def _may_be_by(line: Line, name: str) -> bool:
    return line.author is None and any(journal_name(*author.session) == name for author in line.authors)

"""News for a session, at its start and at the beginning of each turn: files that others have changed and not committed.

At most five lines, and each change once: the session's own journal has what it was told. This only reads, asks git
about a few files, and never keeps a turn from beginning.
"""

from __future__ import annotations

import os

from swarm_hook_core.clock import Budget
from swarm_hook_core.lookup import LockReader
from swarm_hook_core.paths import git_root
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.untrusted_text import NOTE, named, token
from swarm_hook_core.wording import and_more, changed_by, holder

MOST = 50  # files, the newest
FILES = 8  # files named in one line
LINES = 5
SECONDS = 0.1  # of processor time, for parsing others' commands


class News:
    """Others' changes around the session of `trail`, as `words` for its model; empty if there are no changes."""

    def __init__(self, trail: Trail, reader: LockReader, now: float):
        self.words = ""
        self._trail = trail
        self._paths: list[str] = []
        root = git_root(trail.call.folder)
        session = reader.session(trail.config.runtime_name, trail.call.session_id)
        if session is None:
            return  # an unknown session has no journal to note this in
        found, committed = Meetings(trail, reader, now, Budget(SECONDS)).untold_below(root, MOST)
        if found:
            self._say(found, os.path.realpath(root), token(session.label, "identity"), now)
        self._paths += committed  # committed meanwhile: no need to mention them later

    def told(self) -> None:
        """Note that the session was told, so that it is not repeated. Raises OSError."""
        for path in self._paths:
            self._trail.note("told", path)
        if self._paths:
            self._trail.leave()

    def _say(self, found: list[Trace], root: str, identity: str, now: float) -> None:
        """Put the Traces `found`, the newest first, into words: one line per session, with its files."""
        by_whom: dict[str, list[Trace]] = {}
        for trace in found:
            by_whom.setdefault(holder(trace.held, identity)[0], []).append(trace)
        groups = list(by_whom.values())
        if len(groups) < LINES:
            shown = groups
        else:
            shown = groups[: LINES - 2]
        lines = [
            "swarm: changed by others and not committed. Read such a file again before you change it, keep theirs:"
        ]
        for group in shown:
            some = group[:FILES]
            names = ", ".join(named(os.path.relpath(trace.path, root), NOTE) for trace in some)
            lines.append(f"- {names}{and_more(len(group) - len(some))}: by {changed_by(some[0].held, identity, now)}")
            self._paths += [trace.path for trace in some]
        left = groups[len(shown) :]
        if left:
            lines.append(f"- and {sum(map(len, left))} files of {len(left)} more sessions")
        self.words = "\n".join(lines)

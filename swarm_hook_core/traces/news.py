"""What a session is told, when it starts and at each turn's beginning, of what others have changed and not committed.

At most five lines, and nothing twice: what it has been told stands in its own journal. It reads, asks git about some
files at most, and never keeps a turn from beginning.
"""

import os

from swarm_hook_core.budget import Budget
from swarm_hook_core.labels import token
from swarm_hook_core.paths import git_root

MOST = 50  # files that are looked at, the newest
FILES = 8  # that one line names
LINES = 5
SECONDS = 0.1  # of processor time, for commands of others that nobody has read


class News:
    """The changes of others around the session of `trail`, in `words` for its model, which may be none.

    `told` notes that it has read them.
    """

    def __init__(self, trail, driver, now: float):
        self.words = ""
        self._trail = trail
        self._paths: list = []
        self._find(trail, driver, now)

    def told(self) -> None:
        """Note that, so that it is not said again. Raises OSError."""
        for path in self._paths:
            self._trail.note("told", path)
        if self._paths:
            self._trail.leave()

    def _find(self, trail, driver, now: float) -> None:
        from swarm_hook_core.lookup.sqlite import StoreReader
        from swarm_hook_core.state import local_store
        from swarm_hook_core.traces.meetings import Meetings

        root, reader = git_root(trail.call.folder), StoreReader(local_store(), driver)
        session = reader.session(trail.config.runtime_name, trail.call.session_id)
        if session is None:
            return  # whoever is not known leaves no traces, so that it could not be noted either
        found, committed = Meetings(trail, reader, now, Budget(SECONDS)).untold_below(root, MOST)
        if found:
            self._say(found, os.path.realpath(root), token(session.label, "identity"), now)
        self._paths += committed  # there is nothing to be said of these any more

    def _say(self, found: list, root: str, identity: str, now: float) -> None:
        """Put the Traces `found`, the newest first, into words: a line for each session, its files by their names."""
        from swarm_hook_core.traces.wording import changed_by
        from swarm_hook_core.untrusted_text import NOTE, named
        from swarm_hook_core.wording import holder

        by_whom: dict = {}
        for trace in found:
            by_whom.setdefault(holder(trace.held, identity)[0], []).append(trace)
        groups = list(by_whom.values())
        shown = groups if len(groups) < LINES else groups[: LINES - 2]
        lines = [
            "swarm: changed by others and not committed. Read such a file again before you change it, keep theirs:"
        ]
        for group in shown:
            some = group[:FILES]
            names = ", ".join(named(os.path.relpath(trace.path, root), NOTE) for trace in some)
            more = f" and {len(group) - len(some)} more" if len(group) > len(some) else ""
            lines.append(f"- {names}{more}: by {changed_by(some[0], identity, now)}")
            self._paths += [trace.path for trace in some]
        left = groups[len(shown) :]
        if left:
            lines.append(f"- and {sum(map(len, left))} files of {len(left)} more sessions")
        self.words = "\n".join(lines)

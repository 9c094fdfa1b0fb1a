"""Questions to git: is a file committed, or unchanged since the last commit?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import top_around
from swarm_hook_core.shell.programs.git.uncommitted import changed_in
from swarm_hook_core.traces.file_changes import Patience, is_by
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail

SECONDS = 0.5  # for each question
MOST_QUESTIONS = 3  # Slow questions per call: a client waits for the check.


class Committed:
    """Git's answers for one call, the one of `trail`; each path and each folder is asked about once."""

    def __init__(self, trail: Trail) -> None:
        self.left = SECONDS * MOST_QUESTIONS
        self._trail = trail
        self._patience: Patience | None = None
        self._paths: dict[str, bool] = {}  # path -> True if it is as committed
        self._changed: dict[
            str, list[str] | None
        ] = {}  # folder -> uncommitted paths below it, None if git was too slow

    def left_of(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces on files with uncommitted changes, as far as git can say."""
        self._ask([trace.path for trace in traces])
        return [trace for trace in traces if not self._paths[trace.path]]

    def changed_below(self, root: str) -> list[str] | None:
        """Return the uncommitted paths at and below `root`, without ignored ones; empty if `root` is missing.

        Returns None if git was too slow.
        """
        if root not in self._changed:
            self._changed[root] = []
            top = top_around(os.path.join(root, "x"))
            if top and os.path.lexists(root):
                with _Asking(self) as seconds:
                    self._changed[root] = changed_in(top, root, seconds)
        return self._changed[root]

    def without_committed_since(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces without a later commit of their files, or with changes beside that commit.

        A commit may hold some of a file's lines (``swarm-mcp commit``, ``git commit -p``), or changes that were staged
        before.
        """
        commits = self._last_commits_of(traces)
        left = []
        for trace in traces:
            committed_at = commits.get(trace.path, 0)
            # Within one second the order is unknown.
            if committed_at <= trace.at_ns // 10**9 or self._is_left(trace, committed_at):
                left.append(trace)
        return left

    def _is_left(self, trace: Trace, committed_at: int) -> bool:
        """Return True if the file may still have uncommitted changes of the trace's session.

        committed_at  Unix seconds of the last commit of the file, a later one than the trace
        """
        if not trace.journal or trace.held.kin:
            return False  # on another machine, or an agent of the same session
        self._patience = self._patience or Patience(self._trail.changes)
        lines = self._patience.lines_of(trace.path)
        if lines is not None:  # those that may be a person's are protected as the person's
            return any(is_by(line, trace.journal) for line in lines if not any(one.is_person for one in line.authors))
        return _changed_at(trace.path) < committed_at  # its content is older than the commit, and not in it

    def _last_commits_of(self, traces: list[Trace]) -> dict[str, int]:
        """Return ``{path: Unix seconds}`` of the last commit of each file since the oldest trace."""
        found: dict[str, int] = {}
        for top, some in _by_top(traces).items():
            if not top:
                continue
            inside = {os.path.relpath(trace.path, top): trace.path for trace in some}
            oldest = min(trace.at_ns for trace in some) // 10**9
            try:
                with _Asking(self) as seconds:
                    authored = Repository(top, seconds).authored(list(inside), oldest)
            except (NoAnswer, Refused):
                continue  # git did not answer, or there is no commit yet
            found.update((inside[name], at) for name, at in authored.items() if name in inside)
        return found

    def unpushed_of(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces with changes that are uncommitted, or in commits that no remote has.

        Ignored files are left out.
        """
        open_ = {id(trace) for trace in self.without_committed_since(self.left_of(traces))}
        found: list[Trace] = []
        for top, some in _by_top(traces).items():
            if not top:
                continue
            repository, oldest = Repository(top, SECONDS), min(trace.at_ns for trace in some) // 10**9
            names = {id(trace): os.path.relpath(trace.path, top) for trace in some}
            paths = list(dict.fromkeys(names.values()))
            try:
                known = {*repository.tracked(paths), *repository.untracked(paths)}
                ahead = set()
                if any(id(trace) not in open_ for trace in some):
                    ahead = set(repository.unpushed(paths, oldest))
            except (NoAnswer, Refused):
                continue  # other machines are told only of certain changes
            found += [one for one in some if names[id(one)] in known and (id(one) in open_ or names[id(one)] in ahead)]
        return found

    def _ask(self, paths: Iterable[str]) -> None:
        """Ask git about `paths`: are they as committed? Without an answer they count as uncommitted."""
        asked: dict[str, list[str]] = {}
        tops: dict[str, str] = {}  # folder -> its work tree
        changed = {path for some in self._changed.values() for path in some or ()}
        for path in paths:
            if path not in self._paths:
                self._paths[path] = False
                if path not in changed:
                    folder = os.path.dirname(path)
                    if folder not in tops:
                        tops[folder] = top_around(path)
                    asked.setdefault(tops[folder], []).append(path)
        for top, some in asked.items():
            if top:
                with _Asking(self) as seconds:
                    self._paths.update(dict.fromkeys(_as_committed(top, some, seconds), True))


class _Asking:
    """The seconds for one question to git, as a ``with``; the time used is deducted from `Committed.left`."""

    def __init__(self, committed: Committed):
        self._committed = committed
        self._began = 0.0

    def __enter__(self) -> float:
        self._began = time.monotonic()
        return max(0.0, min(SECONDS, self._committed.left))

    def __exit__(self, *_failed: object) -> None:
        self._committed.left -= time.monotonic() - self._began


def _changed_at(path: str) -> float:
    """Return the time of the file's last change in Unix seconds, infinity for a missing file."""
    try:
        return os.lstat(path).st_ctime
    except OSError:
        return float("inf")  # removed


def _by_top(traces: list[Trace]) -> dict[str, list[Trace]]:
    """Return ``{work tree: its traces}``; a folder is looked up once."""
    tops: dict[str, str] = {}
    found: dict[str, list[Trace]] = {}
    for trace in traces:
        folder = os.path.dirname(trace.path)
        if folder not in tops:
            tops[folder] = top_around(trace.path)
        found.setdefault(tops[folder], []).append(trace)
    return found


def _as_committed(top: str, paths: list[str], seconds: float) -> list[str]:
    """Return those of `paths`, in work tree `top`, that are tracked and as in the last commit."""
    repository = Repository(top, seconds)
    inside = {os.path.relpath(path, top): path for path in paths}
    try:
        changed = set(repository.against("HEAD", list(inside)))
        same = set(repository.tracked([name for name in inside if name not in changed]))
    except (NoAnswer, Refused):
        return []  # no answer, or no commit yet: counts as uncommitted
    return [path for name, path in inside.items() if name in same]

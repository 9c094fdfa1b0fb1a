"""Questions to git: is a file committed, or unchanged since the last commit?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.others import Trace

SECONDS = 0.5  # for each question
MOST_QUESTIONS = 3  # Slow questions per call: a client waits for the check.


class Committed:
    """Git's answers for one call; each path and each folder is asked about once."""

    def __init__(self) -> None:
        self.left = SECONDS * MOST_QUESTIONS
        self._paths: dict[str, bool] = {}  # path -> True if it is as committed
        self._changed: dict[
            str, list[str] | None
        ] = {}  # folder -> uncommitted paths below it, None if git was too slow

    def left_of(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces on files with uncommitted changes, as far as git can say."""
        self._ask([trace.path for trace in traces])
        return [trace for trace in traces if not self._paths[trace.path]]

    def left_of_paths(self, paths: list[str]) -> list[str]:
        """Return those of `paths` that have uncommitted changes, as far as git can say."""
        self._ask(paths)
        return [path for path in paths if not self._paths[path]]

    def changed_below(self, root: str) -> list[str] | None:
        """Return the uncommitted paths at and below `root`, without ignored ones; none where `root` is missing.

        Returns None if git was too slow.
        """
        if root not in self._changed:
            self._changed[root] = []
            top = _top_of(os.path.join(root, "x"))
            if top and os.path.lexists(root):
                from swarm_hook_core.shell.programs.git.uncommitted import changed_in

                with _Asking(self) as seconds:
                    self._changed[root] = changed_in(top, root, seconds)
        return self._changed[root]

    def without_committed_since(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces without a later commit of their files.

        A later commit contains the trace's change, so the present uncommitted change came after it.
        """
        tops: dict[str, list[Trace]] = {}
        for trace in traces:
            tops.setdefault(_top_of(trace.path), []).append(trace)
        committed: set[str] = set()
        for top, some in tops.items():
            if not top:
                continue
            inside = {os.path.relpath(trace.path, top): trace for trace in some}
            oldest = min(trace.at_ns for trace in some) // 10**9
            try:
                with _Asking(self) as seconds:
                    authored = Repository(top, seconds).authored(list(inside), oldest)
            except (NoAnswer, Refused):
                continue  # git did not answer, or there is no commit yet
            # Within one second the order is unknown.
            committed.update(
                inside[name].path
                for name, at in authored.items()
                if name in inside and at > inside[name].at_ns // 10**9
            )
        return [trace for trace in traces if trace.path not in committed]

    def unpushed_of(self, traces: list[Trace]) -> list[Trace]:
        """Return the traces with changes that are uncommitted, or in commits that no remote has.

        Ignored files are left out.
        """
        open_ = {id(trace) for trace in self.without_committed_since(self.left_of(traces))}
        found: list[Trace] = []
        tops: dict[str, list[Trace]] = {}
        for trace in traces:
            tops.setdefault(_top_of(trace.path), []).append(trace)
        for top, some in tops.items():
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
                        tops[folder] = _top_of(path)
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


def _top_of(path: str) -> str:
    """Return the work tree around the file at absolute `path`, or ""."""
    tree = tree_over(os.path.dirname(path))
    top: str = tree.top if tree is not None else ""
    return top


def _as_committed(top: str, paths: list[str], seconds: float) -> list[str]:
    """Return those of `paths`, in work tree `top`, that are tracked and as in the last commit."""
    repository = Repository(top, seconds)
    inside = {os.path.relpath(path, top): path for path in paths}
    try:
        changed = set(repository.against("HEAD", list(inside)))
        tracked = set(repository.tracked(list(inside)))
    except (NoAnswer, Refused):
        return []  # no answer, or no commit yet: counts as uncommitted
    return [path for name, path in inside.items() if name in tracked and name not in changed]

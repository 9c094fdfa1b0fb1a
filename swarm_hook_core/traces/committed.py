"""What git says of files that sessions have written: which of them are committed, or as they were before."""

import os
import time

SECONDS = 0.5  # for each question
MOST_QUESTIONS = 3  # for which git may take that long, in all of a call: a client waits for the check


class Committed:
    """What git has said so far, for one call: it is asked about each path, and each folder, once."""

    def __init__(self):
        self.left = SECONDS * MOST_QUESTIONS
        self._paths: dict = {}  # path -> whether git has it as it is
        self._changed: dict = {}  # folder -> what is not committed below it

    def left_of(self, traces) -> list:
        """Those of `traces` in whose files there is something to lose: git says nothing else of them."""
        self._ask([trace.path for trace in traces])
        return [trace for trace in traces if not self._paths[trace.path]]

    def left_of_paths(self, paths) -> list:
        """The same of `paths`."""
        self._ask(paths)
        return [path for path in paths if not self._paths[path]]

    def changed_below(self, root: str):
        """The paths at and below `root` that git says are not committed, not the ignored ones; None: not in time."""
        if root not in self._changed:
            self._changed[root] = []
            top = _top_of(os.path.join(root, "x"))
            if top:
                from swarm_hook_core.shell.programs.git.uncommitted import changed_in

                with _Asking(self) as seconds:
                    self._changed[root] = changed_in(top, root, seconds)
        return self._changed[root]

    def without_committed_since(self, traces) -> list:
        """Those of `traces` whose files have not been committed since.

        If they have, what is not committed now came later.
        """
        from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

        tops: dict = {}
        for trace in traces:
            tops.setdefault(_top_of(trace.path), []).append(trace)
        committed: set = set()
        for top, some in tops.items():
            if not top:
                continue
            inside = {os.path.relpath(trace.path, top): trace for trace in some}
            oldest = min(trace.at_ns for trace in some) // 10**9
            try:
                with _Asking(self) as seconds:
                    authored = Repository(top, seconds).authored(list(inside), oldest)
            except (NoAnswer, Refused):
                continue  # or there is no commit yet
            # In the same second nobody knows which came first.
            committed.update(
                inside[name].path
                for name, at in authored.items()
                if name in inside and at > inside[name].at_ns // 10**9
            )
        return [trace for trace in traces if trace.path not in committed]

    def unpushed_of(self, traces) -> list:
        """Those of `traces` whose changes are not committed, or in commits that no remote has; not of ignored files."""
        from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

        open_ = {id(trace) for trace in self.without_committed_since(self.left_of(traces))}
        found: list = []
        tops: dict = {}
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
                continue  # said to others is only what is certain
            found += [one for one in some if names[id(one)] in known and (id(one) in open_ or names[id(one)] in ahead)]
        return found

    def _ask(self, paths) -> None:
        """Learn which of `paths` git has as they are; what it cannot say counts as not committed."""
        asked: dict = {}
        for path in paths:
            if path not in self._paths:
                self._paths[path] = False
                asked.setdefault(_top_of(path), []).append(path)
        for top, some in asked.items():
            if top:
                with _Asking(self) as seconds:
                    self._paths.update(dict.fromkeys(_as_committed(top, some, seconds), True))


class _Asking:
    """The seconds that git may take for one question, in a ``with``; what it took is taken off what is left."""

    def __init__(self, committed: Committed):
        self._committed = committed
        self._began = 0.0

    def __enter__(self) -> float:
        self._began = time.monotonic()
        return max(0.0, min(SECONDS, self._committed.left))

    def __exit__(self, *_failed) -> None:
        self._committed.left -= time.monotonic() - self._began


def _top_of(path: str) -> str:
    """The work tree that the file at absolute `path` is in, empty where it is in none."""
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path))
    return tree.top if tree is not None else ""


def _as_committed(top: str, paths, seconds: float) -> list:
    """Those of `paths`, in work tree `top`, that are as the last commit has them. Those ignored are in none."""
    from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository

    repository = Repository(top, seconds)
    inside = {os.path.relpath(path, top): path for path in paths}
    try:
        changed = set(repository.against("HEAD", list(inside)))
        tracked = set(repository.tracked(list(inside)))
    except (NoAnswer, Refused):
        return []
    return [path for name, path in inside.items() if name in tracked and name not in changed]

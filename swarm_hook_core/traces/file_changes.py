"""The uncommitted changes of the files of one call: by git's answers, and with the owners of each line.

Each file, and each folder, is asked about once. Refusals of all rules and their advice answer from these. The answer to
a call waits for them, and a client lets a call go ahead that is not answered within 5 seconds (Claude Code, Codex). So
words name only what is found in `Patience`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository, committed_contents
from swarm_hook_core.repository import top_around
from swarm_hook_core.shell.programs.git.uncommitted import changed_in
from swarm_hook_core.traces import journal_name
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Change, Fold, Line, NoLines
from swarm_hook_core.traces.versions.notes import Notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.others import Trace
    from swarm_hook_core.traces.trail import Trail

Found = TypeVar("Found")

MOST = 20  # files of a message with their lines looked up
LINES_SECONDS = 0.5  # for the lines of all files that a message names; the first file has them in any case
SECONDS = 0.5  # for each question to git: is a file committed, or unchanged since the last commit?
MOST_QUESTIONS = 3  # slow ones of one call: a client waits for the check


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
        self._end = self._end or now + LINES_SECONDS
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
        changes = self.changes.of(path, seconds) if seconds else None
        if changes is None:
            return None
        return [line for change in changes for line in (*change.removed, *change.added)]

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


# ------------------------------------------------------------------------------------------------ committed


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
        for top, some in _by_top(traces, lambda trace: trace.path).items():
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
        for top, some in _by_top(traces, lambda trace: trace.path).items():
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

    def shows_all(self, path: str, is_since_head: bool) -> bool:
        """Return True if ``git diff`` of the file shows all its changes: if some are staged, it must name HEAD."""
        top = top_around(path)
        if not top:
            return False
        name, repository = os.path.relpath(path, top), Repository(top, SECONDS)
        try:
            return name in repository.tracked([name]) and (is_since_head or name not in repository.staged([name]))
        except (NoAnswer, Refused):
            return False  # no answer: it does not count as a look

    def _ask(self, paths: Iterable[str]) -> None:
        """Ask git about `paths`: are they as committed? Without an answer they count as uncommitted."""
        new = [path for path in dict.fromkeys(paths) if path not in self._paths]
        self._paths.update(dict.fromkeys(new, False))
        changed = {path for some in self._changed.values() for path in some or ()}
        for top, asked in _by_top([path for path in new if path not in changed], str).items():
            with _Asking(self) as seconds:
                self._paths.update(dict.fromkeys(_as_committed(top, asked, seconds), True))


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


def _by_top(some: list[Found], path_of: Callable[[Found], str]) -> dict[str, list[Found]]:
    """Return ``{work tree: those of some in it}``, by their paths. A folder is looked up once."""
    tops: dict[str, str] = {}
    found: dict[str, list[Found]] = {}
    for one in some:
        folder = os.path.dirname(path_of(one))
        if folder not in tops:
            tops[folder] = top_around(path_of(one))
        found.setdefault(tops[folder], []).append(one)
    found.pop("", None)  # outside of any
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

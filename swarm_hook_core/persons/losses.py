"""The files with uncommitted content that a call would lose, by the call's own words and by git's answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection

from swarm_hook_core import EDIT, REMOVE
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.model import Effects, GitCall, Tree
from swarm_hook_core.shell.programs.git.table import asks, only_reads
from swarm_hook_core.traces.trail import Trail

SECONDS = 2.0  # for all of git's answers about one call; commands of this kind are rare, and slow themselves
MOST_CALLS = 50  # git commands of one call
MOST_TREES = 50  # folders of one call
MOST_INSIDE = 300  # entries of a folder outside of any repository that are searched for repositories
_KEEPS = ("commit", "push", "add", "stage", "apply", "update-index")  # git verbs that leave the content in place
_TAKES = ("commit", "add", "stage")


class Loss:
    """One file with uncommitted content that goes.

    path       absolute, links resolved but for a link that goes itself
    how        the call's effect on it (`EDIT`, ...)
    by         the part of the command that does it; "" for a tool
    words      git's words, for a git command; else empty
    is_certain False if the call may leave the file alone
    is_new     True if git does not know the file
    spelled    the path as the call names it
    """

    __slots__ = ("path", "how", "by", "words", "is_certain", "is_new", "spelled")

    def __init__(
        self, path: str, how: str, by: str, is_new: bool, words: list[str] | None = None, is_certain: bool = True,
        spelled: str = "",
    ):  # fmt: skip
        self.path = path
        self.how = how
        self.by = by
        self.is_new = is_new
        self.words = words or []
        self.is_certain = is_certain
        self.spelled = spelled or path


class Losses:
    """The Losses of one call.

    found    the Loss of each file, by its path
    free     Losses of named files that the session has read, that git ignores, or that no repository has: not
             protected, but worth keeping
    taken    the Loss of each file with changes that a git command stages or commits, by its path; nothing is lost
    late     ``[(GitCall, words)]`` of commands that clearly discard changes, while git did not answer

    Git is not asked about a named file if `is_own(loss)`: nothing is lost, or `was_read(loss)`.
    """

    def __init__(
        self, trail: Trail, effects: Effects | None, is_own: Callable[[Loss], bool], was_read: Callable[[Loss], bool]
    ):
        self.found: dict[str, Loss] = {}
        self.free: list[Loss] = []
        self.taken: dict[str, Loss] = {}
        self.late: list[tuple[GitCall, list[str]]] = []
        self._end = time.monotonic() + SECONDS
        self._dirty: dict[str, tuple[list[str], set[str]]] = {}  # top and folder -> changed paths, untracked paths
        self._commits = effects is not None and any(one.words[0] == "commit" for one in effects.git)
        self._staged: set[str] = set()
        self._committed: set[str] = set()
        self._named(trail, effects, is_own, was_read)
        if effects is not None:
            for tree in effects.trees[:MOST_TREES]:
                if tree.how != EDIT:
                    self._tree(tree)
            for git_call in effects.git[:MOST_CALLS]:
                self._git(git_call)

    def left(self) -> float:
        """Return the seconds left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    # ------------------------------------------------------------------------------------------- named files

    def _named(
        self, trail: Trail, effects: Effects | None, is_own: Callable[[Loss], bool], was_read: Callable[[Loss], bool]
    ) -> None:
        by_top: dict[str, list[Loss]] = {}
        for path, resolved, how, by in trail.targets_of(effects):
            is_moved = how == REMOVE and by.partition(" ")[0] == "mv"  # the content exists at another place
            if how == EDIT or is_moved or not _has_content(resolved):
                continue
            loss = Loss(resolved, how, by, False, spelled=path)
            top = top_of(resolved)
            if top and is_own(loss):
                continue
            if not top or was_read(loss):
                self.free.append(loss)
            else:
                by_top.setdefault(top, []).append(loss)
        for top, losses in by_top.items():
            names = {os.path.relpath(one.path, top): one for one in losses}
            try:
                changed, new, ignored = _states_of(top, list(names), self.left())
            except NoAnswer:
                continue  # the call goes ahead: nothing says that the file has changes
            for name, loss in names.items():
                loss.is_new = name in new
                if name in changed or name in new:
                    self.found.setdefault(loss.path, loss)
                elif name in ignored:
                    self.free.append(loss)

    # ------------------------------------------------------------------------------------------- folders

    def _tree(self, tree: Tree) -> None:
        folder, name = os.path.split(os.path.normpath(tree.root))
        root = os.path.join(os.path.realpath(folder), name)  # a link goes itself
        if not os.path.lexists(root):
            return
        for top, below in _repositories(root):
            try:
                paths, new = self._below(top, below)
            except NoAnswer:
                continue  # as with named files
            for path in paths:
                admits = tree.admits(path)
                if admits is not False:
                    loss = Loss(path, tree.how, tree.by, path in new, is_certain=admits is True)
                    self.found.setdefault(path, loss)

    def _below(self, top: str, folder: str) -> tuple[list[str], set[str]]:
        """Return ``(dirty paths, those that git does not know)`` at and below `folder`. Raises NoAnswer."""
        key = f"{top}\0{folder}"
        if key not in self._dirty:
            inside = os.path.relpath(folder, top)
            if inside == ".":
                inside = ""
            changed, new = _dirty(top, [inside], self.left())
            paths = [os.path.join(top, name) for name in [*changed, *new]]
            self._dirty[key] = (
                [path for path in dict.fromkeys(paths) if _has_content(path)],
                {os.path.join(top, name) for name in new},
            )
        return self._dirty[key]

    # ------------------------------------------------------------------------------------------- git

    def _git(self, git_call: GitCall) -> None:
        from swarm_hook_core.shell.programs.git import touched_files

        words = touched_files.without_aliases(git_call, self.left())
        if not words or only_reads(words):
            return
        if not (asks(words) or words[0] in ("worktree", "submodule")):
            return
        try:
            lost, taken, new = self._swept(git_call)
        except NoAnswer:
            from swarm_hook_core.shell.programs.git import by_words

            if by_words.losing(git_call, words) is not None and not git_call.in_doubt:
                self.late.append((git_call, words))
            return
        if words[0] in _TAKES:
            is_choice = words[0] != "commit" and not self._commits
            for path in taken:
                if path not in self._staged and not (is_choice and _is_named(git_call, words, path)):
                    loss = Loss(path, EDIT, git_call.by, path in new, words, not git_call.in_doubt)
                    self.taken.setdefault(path, loss)
        if words[0] in ("add", "stage"):
            self._staged.update(taken)
        elif words[0] == "commit":
            self._committed.update(taken, self._staged)
        if words[0] in _KEEPS:
            return
        for path in lost:
            if path not in self._committed:
                loss = Loss(path, REMOVE, git_call.by, path in new, words, not git_call.in_doubt)
                self.found.setdefault(path, loss)

    def _swept(self, git_call: GitCall) -> tuple[list[str], list[str], set[str]]:
        """Return ``(paths that lose changes, paths taken along, paths unknown to git)``. Raises NoAnswer."""
        from swarm_hook_core.shell.programs.git import uncommitted

        paths: dict[str, None] = {}
        unknown: set[str] = set()
        for root in uncommitted.roots(git_call):
            top = top_around(root)
            if top:
                some, new = self._below(top, root)
                paths.update(dict.fromkeys(some))
                unknown |= new
        if not paths:
            return [], [], unknown
        lost, taken = uncommitted.swept(git_call, list(paths), self.left())
        return lost, taken, unknown


def top_of(path: str) -> str:
    """Return the top of the work tree around the file at absolute `path`, or ""."""
    from swarm_hook_core.repository import tree_over

    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return ""
    return tree.top


def top_around(path: str) -> str:
    """Return the top of the work tree that absolute `path`, a file or a folder, lies in or is; or ""."""
    if os.path.isdir(path) and not os.path.islink(path):
        path = os.path.join(path, "x")
    return top_of(path)


def _dirty(top: str, names: Collection[str], seconds: float) -> tuple[list[str], set[str]]:
    """Return ``(changed, untracked)`` names at and below `names`, relative to `top`. Raises NoAnswer."""
    repository = Repository(top, seconds)
    try:
        new = set(repository.untracked(names))
    except Refused:
        return [], set()  # not a work tree that git accepts: nothing is known to be uncommitted
    try:
        return repository.against("HEAD", names), new
    except Refused:
        return repository.tracked(names), new  # no commit yet


def _states_of(top: str, names: Collection[str], seconds: float) -> tuple[set[str], set[str], set[str]]:
    """Return ``(changed, untracked, ignored)`` of the files with these `names`, relative to `top`. Raises NoAnswer."""
    repository = Repository(top, seconds)
    try:
        tracked = set(repository.tracked(names))
        others = set(names) - tracked
        new = set(repository.untracked(others))
    except Refused:
        return set(), set(), set()  # not a work tree that git accepts: nothing is known to be uncommitted
    try:
        changed = set(repository.against("HEAD", names))
    except Refused:
        changed = tracked  # no commit yet
    return changed, new, others - new - changed


def _has_content(path: str) -> bool:
    """Return True for a file or link that exists, with something in it."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False  # missing, or a path that cannot exist
    kind = found.st_mode & 0o170000
    return kind == 0o120000 or (kind == 0o100000 and found.st_size > 0)


def _repositories(root: str) -> list[tuple[str, str]]:
    """Return ``[(top, folder)]`` of the work trees that `root` lies in, or that lie in it."""
    from swarm_hook_core.shell.programs.git.removed_trees import submodules

    top = top_around(root)
    if top:
        inner = submodules(top, top, [])
        return [(top, root), *((one, one) for one in inner if one.startswith(root.rstrip("/") + "/"))]
    found = []
    try:
        names = os.listdir(root)[:MOST_INSIDE]
    except OSError:
        names = []  # unreadable: its files are not known
    for name in names:
        inside = os.path.join(root, name)
        if os.path.lexists(os.path.join(inside, ".git")):
            found.append((inside, inside))
    return found


def _is_named(git_call: GitCall, words: list[str], path: str) -> bool:
    """Return True if ``git add`` names this very file: the session has chosen it."""
    return any(os.path.realpath(os.path.join(git_call.folder, word)) == path for word in words[1:] if word[:1] != "-")

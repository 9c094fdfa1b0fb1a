"""The files with uncommitted content that a call's own words lose: files that it names, and whole folders."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import top_around
from swarm_hook_core.shell.model import Effects, Tree
from swarm_hook_core.shell.programs.git.named_files import submodules
from swarm_hook_core.stakes.owners import Author
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import Trail

Row = tuple[str, str, str, str, str, str]  # as of ``Repository.rows_against``

SECONDS = 2.0  # for all of git's answers about one call; commands of this kind are rare, and slow themselves
MOST_TREES = 50  # folders of one call
MOST_INSIDE = 300  # entries of a folder outside of any repository that are searched for repositories


class Stake:
    """One file with uncommitted content that a call loses, or takes along.

    path       absolute, links resolved but for a link that goes itself
    how        the call's effect on it (`EDIT`, ...)
    by         the part of the command that does it; "" for a tool
    words      git's words, for a git command; else empty
    is_certain False if the call may leave the file alone
    is_new     True if git does not know the file
    spelled    the path as the call names it
    trace      the newest uncommitted change in it of another session; None without any
    author     the author of the rest; None until it is looked up (``owners``)
    """

    __slots__ = ("path", "how", "by", "words", "is_certain", "is_new", "spelled", "trace", "author")

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
        self.trace: Trace | None = None
        self.author: Author | None = None

    @property
    def is_replaced(self) -> bool:
        """True if the call replaces the whole file, by itself."""
        return self.how == REPLACE and not self.words

    @property
    def is_persons(self) -> bool:
        """True if a part of it is a person's, as far as its author was looked up."""
        return self.author is not None and self.author.is_person


class Changed:
    """The uncommitted files of folders, asked of git once for the same folders."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SECONDS
        self._listed: dict[tuple[object, ...], dict[str, bool]] = {}
        self._rows: dict[str, tuple[str, Row]] = {}  # path of a tracked file -> its work tree and git's row

    def left(self) -> float:
        """Return the seconds left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    def listed_below(self, top: str, *folders: str, with_new: bool = True) -> dict[str, bool]:
        """Return ``{path: True if git does not know the file}`` at and below `folders`, of files that may be changed.

        Their contents are not compared (`certain`). `top`: the work tree. `with_new`: also untracked files. Raises
        NoAnswer.
        """
        found = self._listed.get((True, top, *folders))
        if found is not None:
            return found
        asked = (with_new, top, *folders)
        if asked not in self._listed:
            inside = [os.path.relpath(folder, top) for folder in folders]
            rows, new = _dirty(top, [name * (name != ".") for name in inside], self.left(), with_new)
            start = top.rstrip("/") + "/"
            for row in rows:
                self._rows.setdefault(start + row[0], (top, row))
            names = {**dict.fromkeys((row[0] for row in rows), False), **dict.fromkeys(new, True)}
            self._listed[asked] = {start + name: is_new for name, is_new in names.items()}
        return self._listed[asked]

    def certain(self, paths: Iterable[str]) -> list[str]:
        """Return those of the listed `paths` that are there, with other contents than in the last commit.

        Raises NoAnswer.
        """
        paths = [path for path in paths if size_of(path) >= 0]
        by_top: dict[str, list[Row]] = {}
        for path in paths:
            if path in self._rows:
                top, row = self._rows[path]
                by_top.setdefault(top, []).append(row)
        same: set[str] = set()
        for top, rows in by_top.items():
            changed = Repository(top, self.left()).by_content(rows)
            same.update(os.path.join(top, name) for name in {row[0] for row in rows}.difference(changed))
        return [path for path in paths if path not in same]

    def below(self, top: str, folder: str) -> dict[str, bool]:
        """Return the same as `listed_below`, of files that are certainly changed. Raises NoAnswer."""
        listed = self.listed_below(top, folder)
        return {path: listed[path] for path in self.certain(listed)}


class Files:
    """The Stakes of one call by its own words.

    found    the Stake of each file, by its path
    free     Stakes of named files that the session has read, that git ignores, or that no repository has: not
             protected, but worth keeping

    Git is not asked about a named file if `is_own(stake)`: nothing is lost, or `was_read(stake)`.
    """

    def __init__(
        self, trail: Trail, effects: Effects | None, changed: Changed, is_own: Callable[[Stake], bool],
        was_read: Callable[[Stake], bool],
    ):  # fmt: skip
        self.found: dict[str, Stake] = {}
        self.free: list[Stake] = []
        self._changed = changed
        self._named(trail, effects, is_own, was_read)
        for tree in effects.trees[:MOST_TREES] if effects is not None else ():
            if tree.how != EDIT:
                self._tree(tree)

    def _named(
        self, trail: Trail, effects: Effects | None, is_own: Callable[[Stake], bool], was_read: Callable[[Stake], bool]
    ) -> None:
        by_top: dict[str, list[Stake]] = {}
        for path, resolved, how, by in trail.targets_of(effects):
            is_moved = how == REMOVE and by.partition(" ")[0] == "mv"  # the content exists at another place
            if how == EDIT or is_moved or size_of(resolved) <= 0:
                continue
            stake = Stake(resolved, how, by, False, spelled=path)
            top = top_around(resolved)
            if top and is_own(stake):
                continue
            if not top or was_read(stake):
                self.free.append(stake)
            else:
                by_top.setdefault(top, []).append(stake)
        for top, stakes in by_top.items():
            names = {os.path.relpath(one.path, top): one for one in stakes}
            try:
                changed, new, ignored = _states_of(top, list(names), self._changed.left())
            except NoAnswer:
                continue  # the call goes ahead: nothing says that the file has changes
            for name, stake in names.items():
                stake.is_new = name in new
                if name in changed or name in new:
                    self.found.setdefault(stake.path, stake)
                elif name in ignored:
                    self.free.append(stake)

    def _tree(self, tree: Tree) -> None:
        folder, name = os.path.split(os.path.normpath(tree.root))
        root = os.path.join(os.path.realpath(folder), name)  # a link goes itself
        if not os.path.lexists(root):
            return
        for top, below in _repositories(root):
            try:
                found = self._changed.below(top, below)
            except NoAnswer:
                continue  # as with named files
            for path, is_new in found.items():
                admits = tree.admits(path)
                if admits is not False and size_of(path):
                    stake = Stake(path, tree.how, tree.by, is_new, is_certain=admits is True)
                    self.found.setdefault(path, stake)


def top_of(path: str) -> str:
    """Return the top of the work tree that absolute `path`, a file or a folder, lies in or is; or ""."""
    if os.path.isdir(path) and not os.path.islink(path):
        path = os.path.join(path, "x")
    return top_around(path)


def _dirty(top: str, inside: list[str], seconds: float, with_new: bool) -> tuple[list[Row], list[str]]:
    """Return ``(rows of files that may be changed, names of untracked ones)`` at and below `inside`, relative to `top`.

    Raises NoAnswer.
    """
    repository, new = Repository(top, seconds), list[str]()
    try:
        if with_new:
            new = repository.new(inside)
        try:
            return repository.rows_against("HEAD", inside), new
        except Refused:  # no commit yet
            return [(path, "", "", "A", "", "") for path in repository.tracked(inside)], new
    except Refused:
        return [], []  # not a work tree that git accepts: nothing is known to be uncommitted


def _states_of(top: str, names: Collection[str], seconds: float) -> tuple[set[str], set[str], set[str]]:
    """Return ``(changed, untracked, ignored)`` of the files with these `names`, relative to `top`. Raises NoAnswer."""
    repository = Repository(top, seconds)
    try:
        tracked = set(repository.tracked(names))
        others = set(names) - tracked
        new = set(repository.new(others))
    except Refused:
        return set(), set(), set()  # not a work tree that git accepts: nothing is known to be uncommitted
    try:
        changed = set(repository.against("HEAD", names))
    except Refused:
        changed = tracked  # no commit yet
    return changed, new, others - new - changed


def size_of(path: str) -> int:
    """Return the size of a file or link, -1 if there is none."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return -1  # missing, or a path that cannot exist
    if found.st_mode & 0o170000 not in (0o120000, 0o100000):
        return -1
    return found.st_size


def _repositories(root: str) -> list[tuple[str, str]]:
    """Return ``[(top, folder)]`` of the work trees that `root` lies in, or that lie in it."""
    top = top_of(root)
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

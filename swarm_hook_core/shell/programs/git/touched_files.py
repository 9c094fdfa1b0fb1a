"""The files with locks of peers that a git call would touch, asked of git itself, read-only and in time."""

from __future__ import annotations

import os
import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core import wildcards
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.paths import NO_CASE, contains, real_paths
from swarm_hook_core.shell.model import GitCall, is_known
from swarm_hook_core.shell.programs.git import work_tree_verbs
from swarm_hook_core.shell.programs.git.listings import inside, tree_of
from swarm_hook_core.shell.programs.git.named_files import Pathspec
from swarm_hook_core.shell.programs.git.table import asks, is_subcommand, only_reads, options_of
from swarm_hook_core.wildcards import Cover, covered_below, folded, start_of

MOST_ALIASES = 5  # that lead to one another
MOST_PATHS = 300  # of one command, before its locked files are asked about instead
_LISTED = ("add", "commit", "push")  # functions that ask git for files alone, and look at no locked file by themselves


class Touch:
    """The effects of a git call on locked files.

    certain             the locked paths that it would write, remove, stage or commit
    lost, taken         those of them whose uncommitted changes it would throw away or put aside; or take along into the
                        index or a commit. For the others git keeps such changes, or refuses
    covered             ``(absolute path, Cover)`` of the files it would touch that locked patterns cover
    unsure              True if it may touch more of them than git could tell
    late                True if that is because git did not answer in time
    paths, is_any       all paths, relative to the top, that the questions were about; True if it may also touch others
    changes_repository  True if it changes the repository: index, HEAD, refs, stash
    """

    __slots__ = ("certain", "lost", "taken", "covered", "unsure", "late", "paths", "is_any", "changes_repository")

    def __init__(self) -> None:
        self.certain: list[str] = []
        self.lost: list[str] = []
        self.taken: list[str] = []
        self.covered: list[tuple[str, Cover]] = []
        self.unsure = False
        self.late = False
        self.paths: list[str] = []
        self.is_any = False
        self.changes_repository = False


def touched(
    call: GitCall,
    locked: Sequence[str],
    seconds: float,
    covers: Sequence[Cover] = (),
    is_by_name: bool = False,
) -> Touch:
    """Return the effects of GitCall `call` on `locked`: absolute paths of files or folders, by any of their names.

    Also on files that `covers` (``wildcards.Cover``) cover, existing or not. `is_by_name`: a link in `locked` means
    the link alone, not its target. Changes nothing. Takes at most about `seconds`; unanswered questions make it
    `unsure`.
    """
    touch = Touch()
    top = tree_of(call)
    if top is None or not call.words:
        return touch
    repository = Repository(top, seconds, call.top, call.environment)
    try:
        words = _without_aliases(call.words, repository)
        if words is None:
            touch.unsure = touch.is_any = bool(locked or covers)
            return touch
        if only_reads(words):
            return touch
        touch.changes_repository = True
        name = asks(words)
        if name:
            _ask(name, Question(call, words, repository, locked, touch, covers, is_by_name))
    except (NoAnswer, Refused) as error:
        touch.unsure = touch.is_any = bool(locked or covers)
        touch.late = isinstance(error, NoAnswer)
    return touch


def paths_of(call: GitCall, seconds: float) -> list[str] | None:
    """Return the absolute paths that a GitCall may touch, but for its repository; None if git cannot list these.

    Takes at most about `seconds`. For a work tree with very many locks.
    """
    top = tree_of(call)
    if not top or not call.words or asks(call.words) not in _LISTED:
        return None
    touch = touched(call, [top], seconds)
    paths = [os.path.join(top, path) for path in dict.fromkeys(touch.paths)]
    if touch.is_any or touch.late or len(paths) > MOST_PATHS or any(map(os.path.isdir, paths)):
        return None
    return paths


def without_aliases(call: GitCall, seconds: float) -> list[str] | None:
    """Return the words of a GitCall with aliases replaced, None if unknown."""
    if is_subcommand(call.words[0]):
        return call.words
    top = tree_of(call)
    try:
        if top is not None:
            return _without_aliases(call.words, Repository(top, seconds, call.top, call.environment))
        return None
    except (NoAnswer, Refused):  # git gives no answer: the alias is unknown
        return None


def _ask(name: str, question: Question) -> None:
    if not question.locked and not question.nested:
        return
    if name == "anything":
        question.cannot_tell()
        return

    function = getattr(work_tree_verbs, name, None) or getattr(work_tree_verbs, name)
    function(question)


def _without_aliases(words: list[str], repository: Repository) -> list[str] | None:
    """Return `words` with aliases replaced; None for those that run a shell, and for commands git does not have."""
    for _ in range(MOST_ALIASES):
        name = words[0]
        if is_subcommand(name):
            return words
        if "\0" in name or not name or name.startswith("-"):
            return None
        value = repository.setting(f"alias.{name}").strip()
        if not value or value.startswith("!"):
            return None

        try:
            words = [*shlex.split(value), *words[1:]]
        except ValueError:  # quotes that are not closed
            return None
    return None


class Question:
    """The context of the subcommands' own questions.

    `words`: subcommand and arguments; `options`: these, split; `repository`; `locked`: the locked paths that git sees
    here, relative to the top; `nested`: those inside repositories within this one. A locked pattern is represented by
    the folder that contains all it covers; `covers` are those patterns. Answers go into `touch`.
    """

    def __init__(
        self,
        call: GitCall,
        words: list[str],
        repository: Repository,
        locked: Sequence[str],
        touch: Touch,
        covers: Sequence[Cover] = (),
        is_by_name: bool = False,
    ) -> None:
        self.call = call
        self.words = words
        self.options = options_of(words)
        self.repository = repository
        self.touch = touch
        self._fold: Callable[[str], str] = str
        if repository.ignores_case:
            self._fold = str.casefold
        self._held = self._by_name(locked, is_by_name)
        self.covers = list(covers)
        self._places = {name: place for place, name in enumerate(self._held)}
        self._folded: dict[str, list[str]] = {}  # name as git compares it -> names
        for name in self._held:
            self._folded.setdefault(self._fold(name), []).append(name)
        self._sorted = sorted(self._folded)
        names = list(dict.fromkeys([*self._held, *self._folders()]))
        nested: dict[str, Any] = {}  # folder -> True if it is in a repository within this one
        self.nested = [path for path in names if self._is_nested(os.path.dirname(path), nested)]
        self.locked = [path for path in names if not nested[os.path.dirname(path)]]
        self.prefix = inside(call.folder, repository.top)

    def _by_name(self, locked: Sequence[str], is_by_name: bool) -> dict[str, list[str]]:
        """Path relative to the top (empty: all of it) -> the locked paths that it stands for.

        `is_by_name`: a link is not its target.
        """
        top, resolved = self.repository.top, real_paths()
        start = top.rstrip("/") + "/"
        held: dict[str, Any] = {}
        for path in locked:
            folder, name = os.path.split(path)
            # git writes a link itself, other programs the file behind it; the lock is on both.
            own = os.path.join(resolved(folder), name)
            for real in (own,) if is_by_name else dict.fromkeys((own, resolved(path))):
                if contains(real, top):
                    held.setdefault("", []).append(path)
                elif real.startswith(start):
                    held.setdefault(real[len(start) :], []).append(path)
        return {path: there for path, there in held.items() if path != ".git" and not path.startswith(".git/")}

    def _folders(self) -> list[str]:
        """The folders, relative to the top, that the covers' files are in."""
        found, top = [], self.repository.top
        for cover in self.covers:
            folder = cover.folder.removeprefix(NO_CASE)
            if contains(folder, top):
                found.append("")
            elif contains(top, folder):
                found.append(os.path.relpath(folder, top))
            elif contains(self._fold(top), self._fold(folder)):
                found.append(os.path.relpath(folder, self._fold(top)))
        return found

    def _is_nested(self, folder: str, known: dict[str, bool]) -> bool:
        if folder not in known:
            there = bool(folder) and os.path.lexists(os.path.join(self.repository.top, folder, ".git"))
            known[folder] = there or bool(folder) and self._is_nested(os.path.dirname(folder), known)
        return known[folder]

    # ------------------------------------------------------------- answers

    def hit(self, paths: Iterable[str]) -> list[str]:
        """Note that it touches these files or folders (relative); return the locked paths on, under and above them.

        Alone it means that git refuses to overwrite uncommitted changes; otherwise see the next two.
        """
        met: dict[str, Any] = {}
        for path in paths:
            whole = path.rstrip("/")
            self.touch.paths.append(whole)
            for name in self._met_by(whole):
                met.update(dict.fromkeys(self._held[name]))
            if self.covers:
                self.touch.covered += self._covered(whole)
        self.touch.certain = list(dict.fromkeys([*self.touch.certain, *met]))
        return list(met)

    def loses(self, paths: Iterable[str]) -> None:
        """Note that it touches these, and that their uncommitted changes are gone, or put aside."""
        self.touch.lost = list(dict.fromkeys([*self.touch.lost, *self.hit(paths)]))

    def takes(self, paths: Iterable[str]) -> None:
        """Note that it touches these, and takes their uncommitted changes along: staged, committed, moved."""
        self.touch.taken = list(dict.fromkeys([*self.touch.taken, *self.hit(paths)]))

    def maybe(self, paths: Iterable[str]) -> None:
        """It may touch these."""
        for path in paths:
            whole = path.rstrip("/")
            self.touch.paths.append(whole)
            if self._met_by(whole) or (self.covers and self._covered(whole)):
                self.touch.unsure = True

    def cannot_tell(self) -> None:
        """It may touch any of the locked files."""
        if self._held or self.covers:
            self.touch.unsure = self.touch.is_any = True

    def moves_to(self, revision: str, old: str = "HEAD") -> None:
        """Note that the work tree goes from commit `old` to `revision`: the files that differ are touched."""
        self.hit(self.repository.differing(old, self.known(revision), self.locked))

    def becomes(self, revision: str) -> None:
        """Note that all files become as in commit `revision`, with or without changes."""
        if not is_known(revision):  # no commit contains uncommitted changes
            self.loses(self.repository.against("HEAD", self.locked))
        self.loses(self.repository.against(self.known(revision), self.locked))

    def staged(self, tree: str = "HEAD") -> list[str]:
        """Return the locked files whose entry in the index differs from `tree`."""
        return self.repository.staged(self.locked, tree)

    # ----------------------------------------------------------- questions

    def known(self, revision: str) -> str:
        """`revision` as git can be asked about it. Raises Refused where it is computed."""
        if not is_known(revision):
            raise Refused("a computed revision")
        if self.call.after:
            self.touch.unsure = self.touch.is_any = True  # by then it may be another commit
        if revision == "-":
            return "@{-1}"
        return revision

    def specs(self, words: Iterable[str]) -> Pathspec:
        """These words as pathspecs, with those from ``--pathspec-from-file``."""
        specs = Pathspec([*words, *self._listed()], self.prefix, self.repository.top, self.call.found)
        if specs.is_unsure:
            self.cannot_tell()
        return specs

    def _listed(self) -> list[str]:
        file = self.options.value("--pathspec-from-file")
        if file is None:
            return []
        text = None
        path = os.path.join(self.call.folder, file)
        if is_known(file) and file != "-" and os.path.isfile(path):  # a pipe would keep us waiting
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as lines:
                    text = lines.read(1 << 20)
            except OSError:
                text = None
        if text is None:
            return ["\0"]  # unknown words
        return [line for line in text.split("\0" if self.options.has("--pathspec-file-nul") else "\n") if line]

    def chosen(self, specs: Pathspec, ask: Callable[[list[str]], Iterable[str]]) -> list[str]:
        """Return the answers of ``ask(paths)`` for the locked files that `specs` may match, if they do match."""
        answers = []
        for path in ask(specs.narrowed(self.locked)):
            matches = specs.matches(path)
            if matches:
                answers.append(path)
            elif matches is None:
                self.maybe([path])
        return answers

    def differing_from(self, tree: str, specs: Pathspec, additions: bool = True) -> list[str]:
        """The locked files that `specs` may mean and that are not as `tree` has them (see ``Repository.against``)."""
        return self.chosen(specs, lambda paths: self.repository.against(tree, paths, additions))

    def named(self, specs: Pathspec) -> list[str]:
        """The locked files that `specs` says by name."""
        named = [path for path in self.locked if path in self._held and specs.names(path)]
        return named + [path for path in specs.literals() if self.covers and self._covered(path)]

    def is_below(self, path: str) -> bool:
        """Return True if `path` is in the command's folder, or that folder in it."""
        return not self.prefix or self._meet(path, self.prefix)

    def is_there(self, path: str, prefix: str = "") -> bool:
        """Return True if there is such a file or folder, relative to `prefix` of the work tree."""
        return os.path.lexists(os.path.join(self.repository.top, prefix, path))

    def _covered(self, path: str) -> list[tuple[str, Cover]]:
        """Return ``[(absolute path, Cover)]`` of covered files at `path`, relative to the top, or in the folder
        there.
        """
        if path:
            whole = os.path.join(self.repository.top, path)
        else:
            whole = self.repository.top
        keys = (whole, NO_CASE + folded(whole))
        found = [(whole, cover) for cover in self.covers if any(map(cover.has, keys))]
        if found or os.path.islink(whole) or not os.path.isdir(whole):
            return found
        starts = [start for cover in self.covers if (start := start_of(cover, whole, keys))]
        for inner, cover in covered_below(starts, wildcards.SEARCH_SECONDS):
            if inner:
                return [(inner, cover)]
            self.touch.unsure = True  # more than could be looked through
        return []

    def _met_by(self, path: str) -> list[str]:
        """Return the locked names that `_meet` this path, in their order."""
        whole = self._fold(path)
        above = [whole[:at] for at, letter in enumerate(whole) if letter == "/"]
        below = self._sorted[bisect_left(self._sorted, whole + "/") : bisect_left(self._sorted, whole + "0")]
        keys = dict.fromkeys(["", *above, whole, *(below if whole else ())])
        found = [name for key in keys for name in self._folded.get(key, ())]
        return sorted(found, key=self._places.__getitem__)

    def _meet(self, path: str, locked: str) -> bool:
        """Return True if one is the other, or lies under it."""
        path, locked = self._fold(path), self._fold(locked)
        return path == locked or not locked or path.startswith(locked + "/") or locked.startswith(path + "/")

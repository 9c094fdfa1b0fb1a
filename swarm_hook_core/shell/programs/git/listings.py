"""Git's output for the commands that read it: names of files, the top of the work tree, patches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from swarm_hook_core import repository
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import Found, GitCall, Stream, is_known
from swarm_hook_core.shell.programs.git.table import options_of

# git's command line: global options, and the work tree that is meant.

TOP_WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")
)
_KEPT = ("-c", "--git-dir", "--work-tree", "--config-env")


def without_global_options(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split git's arguments into (folders of ``-C``, global options to keep, the subcommand and its arguments)."""
    folders: list[Any] = []
    kept: list[Any] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        at += 1
        if name in ("--version", "--help", "-v", "-h", "--html-path", "--man-path", "--info-path"):
            return folders, kept, ["version"]
        if name == "--exec-path" and not equals:
            return folders, kept, ["version"]
        if name in TOP_WITH_VALUE and not equals:
            if at >= len(words):
                return folders, kept, ["version"]  # git only complains
            value = words[at]
            at += 1
        if name == "-C":
            folders.append(value)
        elif name in _KEPT:
            if name == "-c":
                kept += [name, value]
            else:
                kept.append(f"{name}={value}")
    return folders, kept, list(words[at:])


def cut(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Split a subcommand's arguments into (before ``--``, after it or None)."""
    if "--" not in words:
        return list(words), None
    at = words.index("--")
    return list(words[:at]), list(words[at + 1 :])


def work_tree(folder: str) -> str | None:
    """Return the resolved top of the work tree around absolute `folder`, or None. Linked trees and submodules count."""
    probe = os.path.realpath(folder)
    while True:
        mark = os.path.join(probe, ".git")
        if os.path.isfile(mark) or os.path.exists(os.path.join(mark, "HEAD")):
            return probe
        parent = os.path.dirname(probe)
        if parent == probe or os.path.basename(probe) == ".git":
            return None
        probe = parent


def inside(folder: str, top: str) -> str:
    """Return `folder` relative to the work tree's `top`; empty for the top itself, and for a folder outside of it."""
    relative = os.path.relpath(os.path.realpath(folder), top)
    if relative == "." or relative.startswith(".."):
        return ""
    return relative


def tree_of(call: GitCall) -> str | None:
    """Return the work tree of a GitCall, or None: as `work_tree`, unless options or variables name another."""
    named = git_dir = None
    for word in call.top:
        name, _, value = word.partition("=")
        if name == "--work-tree":
            named = value
        elif name == "--git-dir":
            git_dir = value
    named = named or call.environment.get("GIT_WORK_TREE") or os.environ.get("GIT_WORK_TREE")
    git_dir = git_dir or call.environment.get("GIT_DIR") or os.environ.get("GIT_DIR")
    if "\0" in (named or "") or "\0" in (git_dir or ""):
        return work_tree(call.folder)
    if named:
        return os.path.realpath(os.path.join(call.folder, named))
    if git_dir:
        return os.path.realpath(call.folder)
    return work_tree(call.folder)


SECONDS = 1.0


class Patch(Stream):
    """A stream with a patch of git's; `about`: the Found of its files.

    `of_work_tree`: the patch holds uncommitted changes, so that applying it backwards loses them.
    """

    __slots__ = ("about", "of_work_tree")

    def __init__(self, about: Found, of_work_tree: bool = False) -> None:
        super().__init__()
        self.about = about
        self.of_work_tree = of_work_tree


class _Listing:
    """The files that ``git <words>`` prints, asked at the first question. `from_top`: names are relative to the top."""

    def __init__(self, call: Call, top: Sequence[str], words: Sequence[str], root: str, from_top: bool) -> None:
        self._folder, self._top, self._words, self._root = call.folder or "/", top, words, root
        self._effects = call.walk.effects
        self._base = root
        if not from_top:
            self._base = os.path.realpath(self._folder)
        self._asked = False
        self._names: set[str] | None = None

    def admits(self, path: str) -> bool | None:
        """Return True if it prints `path`, or something under it; None if git gives no answer."""
        if not self._asked:
            self._asked, self._names = True, self._ask()
        if self._names is None:
            return None
        real = os.path.realpath(path)
        return real in self._names or any(name.startswith(real + "/") for name in self._names)

    def _ask(self) -> set[str] | None:
        repository = Repository(self._root, SECONDS, self._top)
        try:
            if self._words[0].startswith("diff"):
                names = repository.shown(self._folder, *self._words)
            else:
                names = repository.ask("-C", self._folder, *self._words).split("\0")
        except Refused as refusal:
            if refusal.code == 1:
                return set()  # nothing found
            return None
        except NoAnswer:
            self._effects.came_late("git " + " ".join(self._words))
            return None
        return {os.path.normpath(os.path.join(self._base, name)) for name in names if name}


def _found(call: Call, top: Sequence[str], words: Sequence[str], from_top: bool) -> Found | None:
    """Return a Found of the files that ``git <words>`` prints, or None if git cannot be asked."""
    root = work_tree(call.folder or "/")
    if root is None or call.folder is None or not all(is_known(word) for word in words):
        return None
    return Found(root, _Listing(call, top, words, root, from_top).admits)


class _Status(_Listing):
    """The lines that ``git status`` prints: two letters, a blank, and a name each."""

    def lines(self) -> list[str] | None:
        """Return the lines as they are printed; None if git gives no answer."""
        self.admits("")
        return self._lines

    def _ask(self) -> set[str] | None:
        self._lines: list[str] | None = None
        try:
            told = Repository(self._root, SECONDS, self._top).ask("-C", self._folder, *self._words)
        except Refused:  # it is no work tree to git
            return None
        except NoAnswer:
            self._effects.came_late("git " + " ".join(self._words))
            return None
        self._lines = told.splitlines()
        return {os.path.normpath(os.path.join(self._base, line[3:])) for line in self._lines}


def _status(call: Call, top: Sequence[str]) -> None:
    options = options_of(call.words)
    root = work_tree(call.folder or "/")
    if root is None or not all(map(is_known, call.words)) or options.has("-z", "-b", "--branch", "-v", "--verbose"):
        return
    is_short = options.has("-s", "--short")
    if is_short or call.words[1:2] in (["--porcelain"], ["--porcelain=v1"]) or options.has("--porcelain"):
        status, effects = _Status(call, top, call.words, root, not is_short), call.walk.effects
        is_first = not (effects.size or effects.runs)  # else the lines may be others by then
        call.says(found=Found(root, status.admits, status.lines if is_first else None))


def _with(words: list[str], *options: str) -> list[str]:
    """`words` of a subcommand with `options` behind its name."""
    return [words[0], *options, *words[1:]]


def _rev_parse(call: Call, _top: Sequence[str]) -> None:
    folder = call.folder or "/"
    root, wanted = work_tree(folder), call.words[1:]
    if root is None or len(wanted) != 1:
        return
    inside = os.path.relpath(os.path.realpath(folder), root)
    prefix = ""
    if inside != ".":
        prefix = inside + "/"
    answers = {
        "--show-toplevel": root,
        "--show-prefix": prefix,
        "--show-cdup": "../" * prefix.count("/"),
        "--is-inside-work-tree": "true",
    }
    if os.path.isdir(os.path.join(root, ".git")):
        answers["--absolute-git-dir"] = os.path.join(root, ".git")
        answers["--git-dir"] = answers["--git-common-dir"] = os.path.join(root, ".git") if prefix else ".git"
    if wanted[0] in answers:
        call.says(text=answers[wanted[0]] + "\n")


def _ls_files(call: Call, top: list[Any]) -> None:
    options = options_of(call.words)
    if options.has("-s", "--stage", "-u", "--unmerged", "-t", "-v", "-f", "--eol", "--format", "--debug"):
        return
    words = [word for word in call.words if word != "-z"]
    call.says(found=_found(call, top, _with(words, "-z"), options.has("--full-name")))


def _ls_tree(call: Call, top: list[Any]) -> None:
    options = options_of(call.words)
    if options.has("--name-only", "--name-status"):
        call.says(found=_found(call, top, _with(call.words, "-z"), options.has("--full-name", "--full-tree")))


def _grep(call: Call, top: list[Any]) -> None:
    options = options_of(call.words)
    lists = options.has("-l", "-L", "--files-with-matches", "--name-only", "--files-without-match")
    if lists and not options.has("-O", "--open-files-in-pager", "--no-index", "--textconv"):
        call.says(found=_found(call, top, _with(call.words, "-z"), options.has("--full-name")))


def _diff(call: Call, top: list[Any]) -> None:
    before, _after = cut(call.words)
    outside = {"--no-index", "--ext-diff", "--textconv", "--show-signature"}  # the last three start programs
    if any(word in outside or word.startswith(("--output", "--relative", "-O")) for word in before):
        return
    plain = {"-p", "-u", "--patch", "-z", "--binary", "--no-color", "--exit-code", "--quiet", "--name-only", "--raw"}
    asked = _with([word for word in call.words if word not in plain], *repository.NO_PROGRAMS, "-z")
    if call.words[0] == "format-patch":
        if "--stdout" in before:
            call.output = _patch_about(_found(call, top, _picked(call.words), True))
        return
    if not call.words[0].startswith("diff"):
        shown = [word for word in before if word.startswith(("--format", "--pretty", "--oneline"))]
        if "--name-only" in before and shown not in (["--format="], ["--pretty="], ["--pretty=format:"]):
            return  # names between other lines
        asked = _with([word for word in asked if word not in shown], "--format=", "--name-only")
    other = ("--stat", "--numstat", "--shortstat", "--name-status", "--raw", "--quiet")
    found = _found(call, top, asked, True)
    if found is None or any(word.startswith(other) for word in before):
        return
    if "--name-only" in before:
        call.says(found=found)
    else:
        call.output = Patch(found, _is_of_work_tree(call, before))


def _is_of_work_tree(call: Call, before: list[str]) -> bool:
    """Return True if the ``diff`` with these words `before` any ``--`` compares with the files of the work tree."""
    if not call.words[0].startswith("diff") or call.words[0] == "diff-tree":
        return False
    named = [word for word in before[1:] if word[:1] != "-"]
    revisions = [word for word in named if not os.path.lexists(os.path.join(call.folder or "/", word))]
    staged = any(word in ("--cached", "--staged") for word in before)
    return not staged and len(revisions) < 2 and not any(".." in word for word in revisions)


def _picked(words: list[str]) -> list[str]:
    """Return the ``log`` of the commits that ``format-patch`` takes: one revision means all since then, ``-1 X`` that
    one.
    """
    rest = words[1:]
    counted = [word for word in rest if word[:1] == "-" and word[1:].isdigit()]
    revisions = [word for word in rest if not word.startswith("-")]
    if len(revisions) == 1 and not counted and ".." not in revisions[0]:
        revisions = [revisions[0] + "..HEAD"]
    return ["log", "--format=", "--name-only", "-z", *repository.NO_PROGRAMS, *counted, *revisions]


def _patch_about(found: Found | None) -> Patch | None:
    if found is not None:
        return Patch(found)
    return None


TELLERS = {
    "diff": _diff,
    "diff-files": _diff,
    "diff-index": _diff,
    "diff-tree": _diff,
    "format-patch": _diff,
    "grep": _grep,
    "log": _diff,
    "ls-files": _ls_files,
    "ls-tree": _ls_tree,
    "rev-parse": _rev_parse,
    "show": _diff,
    "status": _status,
    "whatchanged": _diff,
}

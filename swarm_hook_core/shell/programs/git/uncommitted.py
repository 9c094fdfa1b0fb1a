"""The effect of a git call on uncommitted changes: it loses them, takes them along, or leaves them alone.

The verbs' own functions decide (``work_tree_verbs``: `loses`, `takes`, `hit`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.paths import own_path
from swarm_hook_core.repository import ON
from swarm_hook_core.shell.call import Options
from swarm_hook_core.shell.model import GitCall, absolute, is_known
from swarm_hook_core.shell.programs.git.listings import cut, inside, tree_of
from swarm_hook_core.shell.programs.git.named_files import Pathspec, places, removed_trees, submodules
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.shell.programs.git.touched_files import touched


def swept(call: GitCall, files: Sequence[str], seconds: float) -> tuple[list[str], list[str]]:
    """Return ``(lost, taken)``: the `files` whose changes GitCall `call` would lose, or take along.

    `files`: absolute paths of files with uncommitted changes. Changes nothing, takes at most about `seconds`. Raises
    NoAnswer if git does not answer in that time.
    """
    removed = tuple(tree + "/" for tree in removed_trees(call))
    gone = [file for file in files if removed and own_path(file).startswith(removed)]
    if removed and call.words[0] != "rm":
        return gone, []
    top = tree_of(call)
    if top is None:
        return [], []
    touch = touched(call, files, seconds, is_by_name=True)
    if touch.late:
        raise NoAnswer("out of time")
    return list(dict.fromkeys([*gone, *touch.lost])), touch.taken


def changed_in(top: str, folder: str, seconds: float) -> list[str] | None:
    """Return the files at and below `folder` in work tree `top` with uncommitted changes, as a list.

    Without ignored files. Returns None if git does not answer in time.
    """
    repository, inside = Repository(top, seconds), os.path.relpath(folder, top)
    below = ["" if inside == "." else inside]
    try:
        found = [*repository.untracked(below), *repository.against("HEAD", below)]
    except NoAnswer:  # git was too slow
        return None
    except Refused:  # not a work tree that git accepts: nothing to protect
        return []
    return [os.path.join(top, name) for name in found]


def moved_or_removed(call: GitCall) -> list[str]:
    """Return absolute paths of files that ``git mv`` moves, and moves to, or that ``git rm`` removes.

    [] for other calls.
    """
    options = options_of(call.words)
    named = options.operands
    if call.words[0] == "rm" and not options.has("--cached", "-n", "--dry-run"):
        return [path for path in (absolute(call.folder, one) for one in named) if path and os.path.lexists(path)]
    if call.words[0] != "mv" or not named:
        return []
    *sources, target = named
    place = absolute(call.folder, target)
    if place is None:
        return []
    found = [path for path in (absolute(call.folder, source) for source in sources) if path]
    if os.path.isdir(place):
        return [*found, *(os.path.join(place, os.path.basename(source.rstrip("/"))) for source in sources)]
    if len(sources) == 1:
        return [*found, place]
    return []


# Commands of a work tree that reach into its submodules.

_RECURSING = "--recurse-submodules"
SECONDS = 0.2  # for git's answer about the commits of submodules


def within_submodules(call: GitCall) -> list[GitCall]:
    """Return the commands in submodules that have the effects of GitCall `call` there: on changes, and on HEAD.

    Of ``submodule update``, and of commands with ``--recurse-submodules`` or that setting.
    """
    words, options, top = call.words, options_of(call.words), tree_of(call)
    if top is None or not os.path.isfile(os.path.join(top, ".gitmodules")):
        return []
    repository, named = Repository(top, SECONDS, call.top, call.environment), options.operands[1:]
    compare, is_forced, is_deep = ["diff-files"], options.has("-f", "--force"), True
    if words[0] == "submodule":
        if options.operands[:1] != ["update"]:
            return []
        is_deep = options.has("--recursive")
    else:
        losing_here = losing(call, words)
        is_forced = losing_here is not None and not options.has("--merge")
        named = losing_here or []
        if words[0] in ("checkout", "reset", "switch") and not named:
            compare = ["diff-index", next(filter(is_known, options.operands), "HEAD")]
        if not (is_forced or compare[1:]) or not _recurses(options, repository):
            return []
    trees = submodules(call.folder, top, named, call.found, is_deep)
    commits = _commits_elsewhere(repository, compare, trees)
    found = []
    for tree in trees:
        if is_forced:
            found.append(GitCall(tree, ["reset", "--hard"], call.by))
        if tree in commits:
            found.append(GitCall(tree, ["checkout", "--detach", commits[tree]], call.by))
    return found


def _recurses(options: Options, repository: Repository) -> bool:
    if options.has(_RECURSING) or options.has("--no" + _RECURSING[1:]):
        return options.has(_RECURSING)
    try:
        return repository.setting("submodule.recurse").lower() in ON
    except (NoAnswer, Refused):
        return False  # git is too slow: the setting is rare


def _commits_elsewhere(repository: Repository, compare: list[str], trees: list[str]) -> dict[str, str]:
    """Return ``{top: commit}`` of those submodules in which the command checks another commit out than is there now.

    compare  the git command that compares their present commits with the coming ones
    """
    paths = [os.path.relpath(tree, repository.top) for tree in trees]
    if not paths:
        return {}
    try:
        output = repository.ask(*compare, "--raw", "-z", "--no-abbrev", "--ignore-submodules=dirty", "--", *paths)
    except (NoAnswer, Refused):  # no such commit: git refuses the command, too
        return {}
    words = iter(output.split("\0"))
    found = {}
    for facts, path in zip(words, words):
        modes = facts.split(" ")
        if modes[0] == ":160000" and len(modes) > 2:
            found[os.path.join(repository.top, path)] = modes[2]
    return found


def roots(call: GitCall) -> list[str]:
    """Return the files and folders, without links, that contain all the call may lose or take along."""
    removed = removed_trees(call)
    if removed and call.words[0] != "rm":
        return removed
    top = tree_of(call)
    if top is None:
        return removed
    repository = os.path.join(top, ".git")
    return removed + ([place for place in places(call, top) if place != repository] or [top])


# The uncommitted changes that a git call would lose, or take along, judged by its words alone.
#
# Used if git does not answer in time. The files are known to be changed then, so the question is only: does the command
# mean them? If its words do not say that (a branch, a merge), only git itself could tell.

_GIVE_UP = ("--abort", "--skip")
_WITH_AUTOSTASH = ("rebase", "merge", "pull")
_WITH_GIVING_UP = (*_WITH_AUTOSTASH, "cherry-pick", "revert", "am")


def swept_by_words(call: GitCall, words: list[str], files: list[str]) -> tuple[list[str], list[str]]:
    """Return ``(lost, taken)``: the `files` that ``git <words>`` loses, or takes along, as far as its words say.

    `call`: the GitCall, with aliases replaced in `words`; `files`: absolute paths of changed files.
    """
    lost = _chosen(call, files, losing(call, words))
    return lost, [file for file in _chosen(call, files, _taking(words)) if file not in lost]


def losing(call: GitCall, words: list[str]) -> list[str] | None:
    """Return the pathspecs of the files whose changes ``git <words>`` loses; [] for all files; None for no file."""
    verb, options = words[0], options_of(words)
    if options.has("-p", "--patch"):
        return None
    find = _LOSING.get(verb)
    if find is not None:
        found: list[str] | None = find(call, words, options)
        return found
    if verb in _WITH_GIVING_UP and options.has(*_GIVE_UP):
        return []
    if verb in _WITH_AUTOSTASH and options.has("--autostash") and not options.has("--no-autostash"):
        return []
    return None


def _checkout(call: GitCall, words: list[str], options: Options) -> list[str] | None:
    _before, after = cut(words[1:])
    force = options.has("-f", "--force")
    if options.has("-b", "-B", "--orphan") or after == []:
        if force:
            return []
        return None
    if after is None and not options.has("--pathspec-from-file"):  # if a word is a branch, only git knows
        after = [word for word in options.operands if _names_files(call, word)]
        return after or ([] if force else None)
    return after or ["\0"]


def _names_files(call: GitCall, word: str) -> bool:
    return os.path.exists(os.path.join(call.folder, word)) or word in call.found or any(sign in word for sign in ":*?[")


def _restore(_call: GitCall, _words: list[str], options: Options) -> list[str] | None:
    if options.has("-S", "--staged") and not options.has("-W", "--worktree"):
        return None
    return options.operands or (["\0"] if options.has("--pathspec-from-file") else None)


def _stash(_call: GitCall, words: list[str], options: Options) -> list[str] | None:
    _before, after = cut(words[1:])
    verb = "push"
    if len(words) > 1 and words[1][:1] != "-":
        verb = words[1]
    if verb == "push":
        operands = options.operands
        if after is not None:
            return after
        if operands[:1] == ["push"]:
            return operands[1:]
        return operands
    if verb == "save":
        return []
    return None


def _checkout_index(_call: GitCall, _words: list[str], options: Options) -> list[str] | None:
    if not options.has("-f", "--force") or options.has("--prefix", "--temp"):
        return None
    if options.has("-a", "--all"):
        return []
    return options.operands or None


_LOSING: dict[str, Callable[[GitCall, list[str], Options], list[str] | None]] = {
    "checkout": _checkout,
    "checkout-index": _checkout_index,
    "clean": lambda _call, _words, options: options.operands,
    "mv": lambda _call, _words, options: options.operands if options.has("-f", "--force") else None,
    "read-tree": lambda _call, _words, options: [] if options.has("-u") and options.operands else None,
    "reset": lambda _call, _words, options: [] if options.has("--hard", "--merge") else None,
    "restore": _restore,
    "rm": lambda _call, _words, options: (
        (options.operands or None) if options.has("-f", "--force") and not options.has("--cached") else None
    ),
    "stash": _stash,
    "switch": lambda _call, _words, options: [] if options.has("-f", "--force", "--discard-changes") else None,
}


def _taking(words: list[str]) -> list[str] | None:
    """Return the pathspecs of the files whose changes ``git <words>`` stages, commits or moves; [] for all; None for no
    file.
    """
    verb, options = words[0], options_of(words)
    if options.has("-p", "--patch", "-i", "--interactive", "-e", "--edit") and verb in ("add", "stage"):
        return None
    if verb in ("add", "stage"):
        everything = options.has("-A", "--all", "-u", "--update", "--no-ignore-removal", "--renormalize")
        return options.operands or ([] if everything else None)
    if verb == "commit":
        if options.has("-a", "--all"):
            return []
        return options.operands or None
    if verb in ("mv", "update-index"):
        return options.operands or None
    return None


def _chosen(call: GitCall, files: list[str], words: list[str] | None) -> list[str]:
    """Return the `files` that pathspecs certainly match."""
    top = tree_of(call)
    if words is None or top is None:
        return []
    specs = Pathspec(words, inside(call.folder, top), top, call.found)
    start = top.rstrip("/") + "/"
    return [file for file in files if file.startswith(start) and specs.matches(file[len(start) :])]

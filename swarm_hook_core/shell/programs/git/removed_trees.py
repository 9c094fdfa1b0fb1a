"""Work trees that a git call removes with all that is in them: linked ones, and those of submodules."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from swarm_hook_core.repository import SMALL, tree_at, trees_beside
from swarm_hook_core.shell.model import Found, GitCall, absolute, is_known
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.table import options_of

MOST = 200  # submodules of one repository that are looked at


def removed_trees(call: GitCall, are_changed: bool = True) -> list[str]:
    """Return the tops, without links, of the work trees that GitCall `call` removes, changed or not.

    Empty for other calls, and where git refuses to remove a changed one; without `are_changed` it need not, and may
    move them as well. A computed name may be that of any of them.
    """
    words = call.words
    is_move = not are_changed and words[:2] == ["worktree", "move"]
    if not is_move and words[:2] not in (["worktree", "remove"], ["submodule", "deinit"]) and words[:1] != ["rm"]:
        return []
    options, top = options_of(words), tree_of(call)
    if top is None or (are_changed and not options.has("-f", "--force")):
        return []
    if words[0] == "worktree":
        named = options.operands[1:]
        if is_move:
            del named[1:]  # its new place
        return [tree for word in named for tree in _linked(call, word, top)]
    if words[0] == "submodule":
        return submodules(call.folder, top, options.operands[1:], call.found)
    if options.has("--cached"):
        return []
    folders = [absolute(call.folder, word) for word in options.operands if is_known(word)]
    return [os.path.realpath(one) for one in folders if one is not None and os.path.isfile(os.path.join(one, ".git"))]


def submodules(
    folder: str, top: str, words: Sequence[str], found: Mapping[str, list[Found]] | None = None
) -> list[str]:
    """Return the tops of the checked out submodules in work tree `top` that `words`, said in `folder`, mean.

    No words mean all, as ``--all`` does.
    """
    listed = [os.path.join(top, path) for path in _listed(os.path.join(top, ".gitmodules"))]
    trees = [os.path.realpath(one) for one in listed if os.path.lexists(os.path.join(one, ".git"))]
    return [tree for tree in trees if not words or any(_means(word, tree, folder, found or {}) for word in words)]


def _means(word: str, tree: str, folder: str, found: Mapping[str, list[Found]]) -> bool:
    if not is_known(word):
        if word in found:
            return any(one.admits(tree) is not False for one in found[word])
        return True
    named = os.path.realpath(os.path.join(folder, word))
    return (tree + "/").startswith(named.rstrip("/") + "/") or any(sign in word for sign in ":*?[")


def _listed(path: str) -> list[str]:
    """The paths in a ``.gitmodules``, relative to the top."""
    try:
        if not os.path.isfile(path):
            return []
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(SMALL).split("\n")
    except OSError:  # unreadable: no submodule is known
        return []
    pairs = [line.partition("=") for line in lines]
    return [value.strip().strip('"') for name, equals, value in pairs if equals and name.strip() == "path"][:MOST]


def _linked(call: GitCall, word: str, top: str) -> list[str]:
    """The linked work trees of the repository that `word` stands for."""
    folder = None
    if is_known(word):
        folder = absolute(call.folder, word)
    if folder is not None and os.path.exists(os.path.join(folder, ".git")):
        return [os.path.realpath(folder)]
    tree = tree_at(top, is_real=True)
    trees = []
    if tree:
        trees = [one for one in trees_beside(tree) if os.path.isfile(os.path.join(one, ".git"))]
    if is_known(word):  # the end of its path is name enough
        return [one for one in trees if one.endswith("/" + word.strip("/"))][:1]
    founds = call.found.get(word)
    if founds is None:
        return trees
    return [one for one in trees if any(found.admits(one) is not False for found in founds)]

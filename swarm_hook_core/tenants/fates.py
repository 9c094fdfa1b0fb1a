"""The fate of a folder under a call: whether it stays, and what moves or removes it."""

from __future__ import annotations

import os

from swarm_hook_core import EDIT, REMOVE
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.paths import contains
from swarm_hook_core.repository import Tree, small_text, tree_at
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.model import Tree as Below
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.removed_trees import removed_trees
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.shell.programs.patch import unquoted
from swarm_hook_core.tenants.eviction import Eviction

REMOVES, MOVES, FORGETS = "remove", "move away", "drop git's record of"
GIT_SECONDS = 1.0


def eviction_of(root: str, effects: Effects) -> Eviction | None:
    """Return the Eviction, without tenants, of real folder `root` by a call with these Effects; None if it stays."""
    tree = tree_at(root, is_real=True)
    for below in effects.trees:
        if _takes(below, root, tree):
            return Eviction(root, _deed(effects, below.how, below.by), below.by)
    for write in effects.writes:
        if write.how == REMOVE and _removes_mark(os.path.join(write.folder, write.path), root, write.by):
            return Eviction(root, _deed(effects, write.how, write.by), write.by)
    for call in effects.git:
        deed = _deed_of_git(root, tree, call)
        if deed:
            return Eviction(root, deed, call.by)
    return None


def record_of(root: str, call: GitCall) -> Tree | None:
    """Return the linked work tree that was at `root` before it was moved or removed, if git has a record of it."""
    top = tree_of(call)
    if top is None or os.path.lexists(root):
        return None
    tree = tree_at(top, is_real=True)
    if tree is None:
        return None
    listed = os.path.join(tree.common, "worktrees")
    try:
        names = os.listdir(listed)
    except OSError:
        return None  # no linked work trees
    for name in names:
        own = os.path.join(listed, name)
        is_kept = os.path.exists(os.path.join(own, "locked"))
        if not is_kept and small_text(os.path.join(own, "gitdir")).strip() == f"{root}/.git":
            return Tree(root, own, tree.common)
    return None


def _takes(below: Below, root: str, tree: Tree | None) -> bool:
    """Return True if the files of `below` go, and with them the folder `root`: its ``.git``, if it is a work tree."""
    over = os.path.realpath(below.root)
    if below.how == EDIT or (below.how != REMOVE and (below.is_whole or tree is None)):
        return False  # a copy laid over it
    mark = root
    if tree is not None:
        mark = f"{root}/.git"
        if below.how == REMOVE and tree.own != tree.common and contains(over, tree.own):
            return True  # git's part of the work tree
    return contains(over, mark) and below.admits(below.root + mark[len(over) :]) is True


def _removes_mark(path: str, root: str, by: str) -> bool:
    """Return True if the removal of `path` alone takes the folder `root`, or makes it no work tree."""
    whole = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return whole == f"{root}/.git" or (whole == root and not by.startswith("rmdir"))


def _deed(effects: Effects, how: str, by: str) -> str:
    """Return the effect of a part of the command: it moves the folder if it also puts something elsewhere."""
    puts = [(one.by, one.how) for one in effects.trees] + [(one.by, one.how) for one in effects.writes]
    if how == REMOVE and any(other == by and its != REMOVE for other, its in puts):
        return MOVES
    return REMOVES


def _deed_of_git(root: str, tree: Tree | None, call: GitCall) -> str:
    """Return the effect of a git command on the folder `root`, empty for none."""
    if call.in_doubt:
        return ""
    if call.words[0] == "clean":
        if contains(os.path.realpath(call.folder), root) and _cleans(root, call):
            return REMOVES
    elif call.words[:2] == ["worktree", "prune"]:
        if tree is None and record_of(root, call) is not None:
            return FORGETS
    elif any(contains(one, root) for one in removed_trees(call, are_changed=False)):
        if call.words[1] == "move":
            return MOVES
        return REMOVES
    return ""


def _cleans(root: str, call: GitCall) -> bool:
    """Return True if this ``git clean`` removes the folder `root`: git itself is asked, by its dry run."""
    options = options_of(call.words)
    if len(options.given.get("-f", ())) + len(options.given.get("--force", ())) < 2:
        return False  # it leaves work trees alone
    flags = [f"-{letter}" for letter in "dxX" if options.has(f"-{letter}")]
    flags += [word for pattern in options.values("-e", "--exclude") for word in ("-e", pattern)]
    try:
        repository = Repository(call.folder, GIT_SECONDS, call.top, call.environment)
        told = repository.ask("clean", "-n", "-f", "-f", *flags, "--", *options.operands)
    except (NoAnswer, Refused):
        return False  # nor will it clean
    gone = [unquoted(line[len("Would remove ") :]) for line in told.split("\n") if line.startswith("Would remove ")]
    return any(contains(os.path.realpath(os.path.join(call.folder, path)), root) for path in gone)

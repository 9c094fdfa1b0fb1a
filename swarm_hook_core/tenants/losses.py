"""The commits that are lost with a folder: those that no other ref has."""

from __future__ import annotations

import os

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import Tree, small_text, tree_at, trees_beside
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.tenants.fates import GIT_SECONDS, record_of
from swarm_hook_core.tenants.wording import MOST_COMMITS
from swarm_hook_core.traces.head import commit_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.tenants.eviction import Eviction

BRANCHES = "refs/heads/"


def find(eviction: Eviction, effects: Effects) -> None:
    """Set the `head`, `main` and `commits` of `eviction`. Git is asked once."""
    tree = tree_at(eviction.root, is_real=True) or _pruned(eviction.root, effects)
    if tree is None:
        return
    branch, eviction.head = _head_of(tree)
    if tree.own == tree.common:  # a clone, or a submodule, goes with all its refs
        _ask(eviction, eviction.root, ["HEAD", "--branches", "--tags", "--not", "--remotes"])
        return
    beside = [top for top in trees_beside(tree) if top != tree.top]
    eviction.main = next(filter(os.path.isdir, beside), "")
    stay = ["--glob=refs/*", *filter(None, map(_detached, beside))]
    if branch:
        if not any(call.words[0] == "branch" and "-D" in call.words and branch in call.words for call in effects.git):
            return
        stay.insert(0, f"--exclude={BRANCHES}{branch}")
    _ask(eviction, tree.common, [eviction.head or "HEAD", "--not", *stay])


def _ask(eviction: Eviction, folder: str, revisions: list[str]) -> None:
    try:
        told = Repository(folder, GIT_SECONDS).ask("log", "--format=%h %s", f"-{MOST_COMMITS}", *revisions, "--")
    except (NoAnswer, Refused):
        eviction.commits = None
        return
    parts = [line.partition(" ") for line in told.splitlines()]
    eviction.commits = [(name, subject) for name, _blank, subject in parts]


def _head_of(tree: Tree) -> tuple[str, str]:
    """Return ``(branch, commit)`` of the work tree's HEAD; no branch if it is detached."""
    text = small_text(os.path.join(tree.own, "HEAD")).strip()
    if not text.startswith("ref: "):
        return "", text
    ref = text[len("ref: ") :].strip()
    return ref.removeprefix(BRANCHES), commit_of(tree, ref)


def _detached(top: str) -> str:
    """Return the commit of the work tree `top` if its HEAD is detached; else empty."""
    tree = tree_at(top, is_real=True)
    if tree is None:
        return ""
    branch, commit = _head_of(tree)
    if branch:
        return ""
    return commit


def _pruned(root: str, effects: Effects) -> Tree | None:
    prunes = [call for call in effects.git if call.words[:2] == ["worktree", "prune"]]
    return next((tree for call in prunes if (tree := record_of(root, call)) is not None), None)

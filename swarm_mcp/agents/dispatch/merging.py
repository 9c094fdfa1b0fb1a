"""Merging of a task tree's commits into the branch that it was made from.

The commits are rebased onto that branch in the task's own work tree; then the branch is moved forward to them. So the
user's checkout never holds a half-done merge, and any failure leaves the commits on the task's branch. It runs under a
lock on the repository, and under locks on all files that the merge changes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_hook_core.lookup import storable
from swarm_hook_core.repository import Tree
from swarm_mcp.agents.dispatch import task_trees
from swarm_mcp.agents.dispatch.git_commands import (
    GitFailed,
    branch_of,
    commit_of,
    git,
    identity,
    is_ancestor,
    paths,
    tries,
    uncommitted,
)
from swarm_mcp.agents.dispatch.task_trees import TaskTree
from swarm_mcp.errors import Refused

MOST_LOCKED = 150  # files that are locked one by one; above that the whole work tree is
MARK = "swarm-merging"  # in git's folder of a task tree, while we rebase or merge there
UNDER_WAY = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
# Settings that a person may have for own rebases; an unattended one must not use them.
PLAIN = ("-c", "rebase.autoStash=false", "-c", "rebase.autoSquash=false", "-c", "rebase.updateRefs=false",
         "-c", "rerere.enabled=false")  # fmt: skip


class MergeStopped(Refused):
    """The commits of a task cannot be brought back as things are. `answer` names the `files` that it is about."""

    def __init__(self, tree: TaskTree, why: str, files: list[str], next_step: str = "", commit: str = ""):
        facts = {"task_id": tree.task_id, "path": tree.top, "branch": tree.branch, "files": files, "next": next_step}
        super().__init__(why, **facts, **({"commit": commit} if commit else {}))
        self.files, self.next_step = files, next_step


class Merged(NamedTuple):
    """A finished merge: its `commits` (``<short id> <subject>``, oldest first), the `files` they change, and the target
    `to`, a branch (empty for a detached HEAD); `left` has a line for each leftover.
    """

    task_id: str
    to: str
    commits: list[str]
    files: list[str]
    left: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return self._asdict()


def merge(
    tree: TaskTree, target: Tree, lock: Callable[[list[str]], object], here: bool = False, commit: bool = False
) -> Merged:
    """Merge the commits of `tree` into the branch that is checked out in `target`, and remove the tree.

    `lock` takes locks on the files at these absolute paths, and raises if it cannot; the caller releases them. The
    branch must be the tree's origin, unless `here` allows the checked-out one. With `commit`, uncommitted files of the
    tree are committed first. Raises MergeStopped, and SwarmError for all else.
    """
    lock([os.path.join(target.top, ".git")])
    _require_ready(tree, target, here, commit)
    goal = commit_of(target.top, "HEAD")
    if commit:
        task_trees.commit_rest(tree, tree.title)
    if not is_ancestor(tree.top, goal, "HEAD"):
        _put_on_top(tree, goal, branch_of(target.top) or goal[:12])
    tip = commit_of(tree.top, "HEAD")
    commits = git(tree.top, "log", "--reverse", "--format=%h %s", f"{goal}..{tip}").splitlines()
    files = paths(tree.top, "diff", "--name-only", "--no-renames", "-z", goal, tip)
    if files:
        each = len(files) <= MOST_LOCKED and all(map(storable, files))
        lock([os.path.join(target.top, file) for file in files] if each else [target.top])
    if tip != goal:
        _move_forward(tree, target, tip, files)
    return Merged(tree.task_id, branch_of(target.top), commits, files, _cleaned_up(tree, tip))


def _require_ready(tree: TaskTree, target: Tree, here: bool, commit: bool) -> None:
    """Raise MergeStopped where something stands in the way that has nothing to do with the commits."""
    if not tree.is_there:
        lost = f"its work tree in {tree.top} is gone"
        raise MergeStopped(tree, lost, [], f"git merge {tree.branch}, then git worktree prune")
    if target.top == tree.top:
        raise MergeStopped(tree, "this is the task's own work tree", [], "merge from the one that it was made from")
    _end_our_own(tree)
    under_way = next((name for name in UNDER_WAY if os.path.lexists(os.path.join(tree.own, name))), "")
    if under_way:
        if under_way.startswith("rebase"):
            what = "a rebase"
        else:
            what = "a merge"
        files = paths(tree.top, "diff", "--name-only", "-z", "--diff-filter=U")
        raise MergeStopped(tree, f"{what} is under way in its work tree", files, f"end it in {tree.top}, merge again")
    if not branch_of(tree.top):
        why = "no branch is checked out in its work tree, so its commits may be in none"
        raise MergeStopped(tree, why, [], f"git -C {tree.top} switch -c NAME, or git switch {tree.branch}")
    on = branch_of(target.top)
    if tree.into != on and not here:
        if on:
            where = f"on {on}"
        else:
            where = "on no branch"
        if tree.into:
            next_step = f"git switch {tree.into}, or --here"
        else:
            next_step = "--here brings them to it"
        raise MergeStopped(
            tree, f"it began on {tree.into or 'no branch'}, and this work tree is {where}", [], next_step
        )
    if commit:
        files = []
    else:
        files = uncommitted(tree.top)
    if files:
        why = f"{len(files)} file{'s are' if len(files) > 1 else ' is'} not committed in its work tree"
        raise MergeStopped(tree, why, files, f"commit in {tree.top}, or merge with --commit")


def _end_our_own(tree: TaskTree) -> None:
    """Take back our own merge in the task tree that was killed half-way."""
    mark = os.path.join(tree.own, MARK)
    if not os.path.lexists(mark):
        return
    for words in (("rebase", "--abort"), ("merge", "--abort")):
        tries(tree.top, *words)
    with contextlib.suppress(FileNotFoundError):
        os.remove(mark)


def _put_on_top(tree: TaskTree, goal: str, name: str) -> None:
    """Have the task's commits stand on top of commit `goal` of the branch `name`. Raises MergeStopped."""
    # Commits with several parents cannot be rebased one by one without losing the decisions in them.
    is_line = not git(tree.top, "rev-list", "--merges", f"{goal}..HEAD")
    if is_line:
        words = ["rebase", goal]
    else:
        words = ["merge", "--no-edit", goal]
    mark = os.path.join(tree.own, MARK)
    with open(mark, "w", encoding="utf-8"):
        pass
    try:
        done = tries(tree.top, *PLAIN, *words, environment=identity(tree.top))
        if done.returncode == 0:
            return
        files = paths(tree.top, "diff", "--name-only", "-z", "--diff-filter=U")
        if is_line:
            at = tries(tree.top, "log", "-1", "--format=%h %s", "REBASE_HEAD").stdout.strip()
        else:
            at = ""
    finally:
        _end_our_own(tree)  # also after an end that git did not cause
    if not files:
        raise GitFailed(tuple(words), done.stderr or done.stdout)
    if at:
        which = f"commit {at}"
    else:
        which = "its work"
    count = f"{len(files)} file{'s' if len(files) > 1 else ''}"
    next_step = f"cd {tree.top} && git {words[0]} {name}; then merge again"
    raise MergeStopped(tree, f"{which} conflicts with {name} in {count}", files, next_step, at)


def _move_forward(tree: TaskTree, target: Tree, tip: str, files: list[str]) -> None:
    """Move the branch of `target`, with its files, to `tip`. Raises MergeStopped."""
    done = tries(target.top, "merge", "--ff-only", "--no-edit", tip)
    if done.returncode == 0 and commit_of(target.top, "HEAD") == tip:
        return
    changed = set(files)
    in_the_way = [file for file in uncommitted(target.top) if file in changed]
    if in_the_way:
        count = f"{len(in_the_way)} file{'s' if len(in_the_way) > 1 else ''}"
        why = f"it would overwrite uncommitted changes in {count} here"
        raise MergeStopped(tree, why, in_the_way, "commit or stash that, then merge again")
    raise GitFailed(("merge",), done.stderr or done.stdout)


def _cleaned_up(tree: TaskTree, tip: str) -> list[str]:
    """Remove the task tree; a line for each thing that was left."""
    try:
        return task_trees.remove(tree, tip)
    except GitFailed as error:
        return [f"the work tree in {tree.top} is left: {error}"]

"""Work trees of tasks: a second checkout of a repository for the worker of one task, on a branch of its own.

A task tree lies in the state folder. Its record stands in git's own folder for that work tree (`RECORD`), so it goes
with the tree, and not with the task's row, kept for a day only. While a repository has task trees, locks on paths hold
in all of its work trees (``swarm.logical``).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from swarm_hook_core import repository
from swarm_hook_core.paths import contains
from swarm_hook_core.repository import Tree
from swarm_hook_core.state import make_private, open_private, state_dir, write_private
from swarm_mcp import contributions
from swarm_mcp.agents.dispatch.git_commands import (
    branch_of,
    commit_of,
    git,
    holds,
    identity,
    is_ancestor,
    paths,
    tries,
    uncommitted,
)
from swarm_mcp.answers.views import name_of, short
from swarm_mcp.domain.task import Task
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.locking.logical_locks import logical_of, set_logical
from swarm_mcp.store import Store

RECORD = "swarm-task"
FOLDER, LOCK = "worktrees", "swarm-worktrees.lock"
BRANCHES = "swarm/"
BY_US = "swarm.logicalForTasks"  # that we have set the other one, and are to take it out again
LONGEST_SLUG = 40
MOST_NAMED = 20  # files that conflict


class TaskTree(NamedTuple):
    """A task tree.

    top      its folder, links resolved; `own`: git's folder for it, `common`: that of the whole clone
    branch   its original branch; its worker may have checked out another since
    into     the branch for its commits, empty for a detached HEAD
    base     the commit that it began at; `scope`: of the task
    made_at  Unix seconds
    """

    task_id: str
    title: str
    top: str
    own: str
    common: str
    branch: str
    into: str
    base: str
    scope: str
    made_at: float

    @property
    def is_there(self) -> bool:
        """Return True if its folder still exists."""
        return os.path.lexists(os.path.join(self.top, ".git"))


class TreeState(NamedTuple):
    """The state of a task tree: its checked-out `branch` (may be empty), the number of `commits` missing in `into`,
    and the number of uncommitted `files`.
    """

    branch: str
    commits: int
    files: list[str]


# ----------------------------------------------------------------------- finding


def work_tree_at(folder: str) -> Tree:
    """Return the work tree around `folder`. Raises Refused outside of any."""
    tree = repository.tree_over(os.path.realpath(folder), is_real=True)
    if tree is None:
        raise Refused(f"{folder} is not in a git repository, so no task has a work tree of it")
    return tree


def repository_at(folder: str) -> Tree:
    """Return the work tree around `folder`. Raises Refused outside of any, or if it has no commit."""
    tree = work_tree_at(folder)
    if not commit_of(tree.top, "HEAD"):
        raise Refused(f"the repository in {tree.top} has no commit yet, which a work tree could begin at")
    return tree


def task_trees(tree: Tree) -> list[TaskTree]:
    """Return the task trees of the clone of work tree `tree`, in the order of their creation."""
    folder = os.path.join(tree.common, "worktrees")
    try:
        names = os.listdir(folder)
    except OSError:  # no task trees
        return []
    found = [one for name in names if (one := _read(os.path.join(folder, name), tree.common)) is not None]
    return sorted(found, key=lambda one: (one.made_at, one.task_id))


def find(tree: Tree, reference: str) -> TaskTree | None:
    """Return the task tree of a task, by its id or the beginning of it, or None. Raises Refused."""
    found = [one for one in task_trees(tree) if reference and one.task_id.startswith(reference)]
    exact = [one for one in found if one.task_id == reference]
    if len(exact or found) > 1:
        raise Refused(f"{reference[:60]!r} is how several tasks begin: {', '.join(one.task_id for one in found[:5])}")
    return next(iter(exact or found), None)


def of_task(folder: str, task_id: str) -> TaskTree | None:
    """Return a task's tree in the clone around `folder`, or None."""
    tree = repository.tree_over(os.path.realpath(folder), is_real=True)
    if tree:
        return find(tree, task_id)
    return None


def working_folder(folder: str, task_id: str, title: str) -> str:
    """Return the folder in its task tree, possibly not made yet, for a worker that was sent to `folder`."""
    tree = repository_at(folder)
    known = find(tree, task_id)
    if known:
        top = known.top
    else:
        top = _top(tree, task_id, title)
    place = os.path.relpath(os.path.realpath(folder), tree.top)
    if place == ".":
        return top
    return os.path.join(top, place)


def state_of(tree: TaskTree) -> TreeState:
    """Return how a task tree is. Raises SwarmError."""
    branch = branch_of(tree.top)
    into = tree.into and commit_of(tree.top, f"refs/heads/{tree.into}")
    count = git(tree.top, "rev-list", "--count", f"{into or tree.base}..HEAD")
    return TreeState(branch, int(count), uncommitted(tree.top))


def told(tree: TaskTree) -> str:
    """Return a line about a task tree, for the reader of the task's result. Raises SwarmError."""
    state = state_of(tree)
    if state.commits:
        commits = f"{state.commits} commit{'' if state.commits == 1 else 's'}"
    else:
        commits = "no commit"
    if state.files:
        rest = f", {len(state.files)} file{'' if len(state.files) == 1 else 's'} not committed"
    else:
        rest = ""
    if state.branch:
        place = f"on branch {state.branch}"
    else:
        place = f"in {tree.top}"
    return f"[{commits} {place}{rest}: swarm-mcp worker merge {short(tree.task_id)}]"


def worker_of(store: Store, tree: TaskTree, but: str = "") -> str:
    """Return the name of a session at work in a task tree, other than `but`, or an empty text."""
    run = next((run for run in store.runs.live() if run.task_id == tree.task_id), None)
    if run:
        row = store.instances.get(run.instance_id)
        if row:
            return name_of(row)
        return f"run {short(run.id)}"
    rows = [row for scope in (tree.top, tree.scope) for row in store.instances.in_scope(scope) if row.id != but]
    return next((name_of(row) for row in rows if contains(tree.top, os.path.realpath(row.directory))), "")


def _read(own: str, common: str) -> TaskTree | None:
    try:
        with open(os.path.join(own, RECORD), encoding="utf-8") as file:
            known = json.load(file)
        with open(os.path.join(own, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
            mark = file.read().rstrip("\r\n")
        # git may have written it relative to its own folder, and `git worktree move` writes it anew.
        top = os.path.realpath(os.path.dirname(os.path.join(own, mark)))
        told = {name: known[name] for name in ("task_id", "title", "branch", "into", "base", "scope", "made_at")}
        return TaskTree(top=top, own=own, common=common, **told)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # no record, or another program's
        return None


# ------------------------------------------------------------------------ making


def make(folder: str, task: Task) -> TaskTree:
    """Make the task tree of a task that was dispatched from `folder`, or return the one that it has.

    It begins at the commit that is checked out in `folder`, with the commits of the tasks that it depends on as far as
    those have task trees that are not merged yet. Raises SwarmError.
    """
    tree = repository_at(folder)
    with _alone():
        known = find(tree, task.id)
        if known and known.is_there:
            return known
        if known:
            raise Refused(f"the task's work tree in {known.top} is gone: `git worktree prune` forgets it")
        _let_logical(tree)
        try:
            made = _make(tree, task)
        except BaseException:
            _drop_logical(tree)
            raise
        return made


def _make(tree: Tree, task: Task) -> TaskTree:
    top, branch = _top(tree, task.id, task.title), BRANCHES + _leaf(task.id, task.title)
    left = next((one for one in repository.trees_beside(tree) if one == os.path.realpath(top)), "")
    if left:  # its maker was killed: no worker has used it
        git(tree.top, "worktree", "remove", "--force", "--force", left)
        tries(tree.top, "branch", "--delete", branch)
    elif os.path.lexists(top):
        raise Refused(f"{top} is in the way of the task's work tree: look at it, and remove it")
    make_private(os.path.dirname(top))
    base = commit_of(tree.top, "HEAD")
    needed = _unmerged(tree, base, task.depends_on or [])
    if len(needed) == 1 and is_ancestor(tree.top, base, needed[0]):
        start = needed[0]
    else:
        start = base
    is_new = not commit_of(tree.top, f"refs/heads/{branch}")  # a deleted folder leaves its commits behind
    try:
        git(tree.top, "worktree", "add", *(["--no-track", "-b", branch, top, start] if is_new else [top, branch]))
        for commit in needed:
            _take_in(top, commit)
        made = repository.tree_at(top)
        if made is None:
            raise SwarmError(f"git has made no work tree in {top}")
        known: dict[str, Any] = {
            "task_id": task.id,
            "title": task.title,
            "scope": task.scope,
            "branch": branch,
            "base": base,
        }
        known.update(into=branch_of(tree.top), made_at=time.time())
        write_private(os.path.join(made.own, RECORD), json.dumps(known))
    except BaseException:
        tries(tree.top, "worktree", "remove", "--force", "--force", top)
        if is_new:
            tries(tree.top, "branch", "--delete", "--force", branch)
        raise
    found = find(tree, task.id)
    assert found is not None  # its record has just been written
    return found


def _unmerged(tree: Tree, base: str, depends_on: list[str]) -> list[str]:
    """The last commits of those tasks' trees that are not in `base`, nor in one another."""
    trees = [one for one in task_trees(tree) if one.task_id in depends_on]
    tips = dict.fromkeys(commit_of(one.top, "HEAD") for one in trees if one.is_there)
    new = [tip for tip in tips if tip and not is_ancestor(tree.top, tip, base)]
    return [tip for tip in new if not any(tip != other and is_ancestor(tree.top, tip, other) for other in new)]


def _take_in(top: str, commit: str) -> None:
    """Merge the commits of a task that comes before. Raises Refused where they do not fit."""
    if tries(top, "merge", "--no-edit", commit, environment=identity(top)).returncode == 0:
        return
    files = paths(top, "diff", "--name-only", "-z", "--diff-filter=U")
    if files:
        named = f" in {', '.join(files[:MOST_NAMED])}"
    else:
        named = ""
    raise Refused(f"the work of earlier tasks conflicts{named}: swarm-mcp worker merge brings it together")


def _top(tree: Tree, task_id: str, title: str) -> str:
    if os.path.basename(tree.common) == ".git":
        main = os.path.dirname(tree.common)
    else:
        main = tree.top
    folder = os.path.join(state_dir(), FOLDER, os.path.basename(main) or "repository")
    return os.path.join(os.path.realpath(folder), _leaf(task_id, title))


def _leaf(task_id: str, title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    slug = ""
    for word in words:
        if len(slug) + 1 + len(word) > LONGEST_SLUG:
            break
        slug += f"{word}-"
    return slug + short(task_id)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One process at a time makes and removes task trees: git gives up where a clone's configuration is held."""
    make_private(state_dir())
    file = open_private(os.path.join(state_dir(), LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# ---------------------------------------------------------------------- removing


def commit_rest(tree: TaskTree, subject: str, environment: Mapping[str, str] = {}) -> int:
    """Commit the uncommitted files of a task tree, and return their number. Raises GitFailed, and leaves them as they
    were.
    """
    files = uncommitted(tree.top)
    if files:
        git(tree.top, "add", "--all")
        git(tree.top, "commit", "--quiet", "--message", subject, environment={**identity(tree.top), **environment})
    return len(files)


def remove(tree: TaskTree, kept_in: str = "") -> list[str]:
    """Remove a task tree and its branches; return a line for each leftover.

    With `kept_in`, a commit, the tree stays if it has uncommitted files or commits that are not in there. Without it,
    all of the tree is deleted. Raises GitFailed.
    """
    main = _beside(tree)
    with _alone():
        branches = dict.fromkeys(name for name in (tree.is_there and branch_of(tree.top), tree.branch) if name)
        if tree.is_there:
            git(main.top, "worktree", "remove", *([] if kept_in else ["--force", "--force"]), tree.top)
        else:
            git(main.top, "worktree", "prune")
        with contextlib.suppress(OSError):  # of the repository, then of all, where there is no other in it
            os.rmdir(os.path.dirname(tree.top))
            os.rmdir(os.path.dirname(os.path.dirname(tree.top)))
        left = []
        for branch in branches:
            kept = _delete(main, branch, kept_in)
            left += [kept] if kept else []
        _drop_logical(main)
    return left


def _delete(main: Tree, branch: str, kept_in: str) -> str:
    """Delete a branch of a task tree. Returns the reason if it is left, else an empty text."""
    tip = commit_of(main.top, f"refs/heads/{branch}")
    if not tip:
        return ""
    if kept_in and not _is_in(main, tip, kept_in):
        return f"branch {branch} is left: it has commits that are in no other"
    if not kept_in and not branch.startswith(BRANCHES):
        return f"branch {branch} is left: it was not made for the task"
    if not holds(main.top, "branch", "--delete", "--force", branch):
        return f"branch {branch} is left: git does not delete it"
    return ""


def _is_in(main: Tree, tip: str, whole: str) -> bool:
    """Return True if each commit of `tip` is in `whole`, in the original or rebased."""
    if is_ancestor(main.top, tip, whole):
        return True
    if git(main.top, "rev-list", "--merges", "--max-count=1", f"{whole}..{tip}"):
        return False
    return not any(line.startswith("+") for line in git(main.top, "cherry", whole, tip).splitlines())


def _beside(tree: TaskTree) -> Tree:
    """A work tree of the same clone that is not this one, for git to run in."""
    here = Tree(tree.top, tree.own, tree.common)
    for top in repository.trees_beside(here):
        if top != tree.top:
            other = repository.tree_at(top)
        else:
            other = None
        if other is not None and other.common == tree.common:
            return other
    return Tree(tree.common, tree.common, tree.common)  # a bare repository


# ------------------------------------------------------------------ logical locks


def _let_logical(tree: Tree) -> None:
    """Have locks on paths hold in all work trees, unless the repository's owner has decided on that."""
    if logical_of(tree) is None:
        set_logical(tree.common, "true", BY_US)
        set_logical(tree.common, "true")


def _drop_logical(tree: Tree) -> None:
    """Remove the setting with the last task tree, if we made it and no lock relies on it."""
    if task_trees(tree) or logical_of(tree, BY_US) is None:
        return
    if logical_of(tree) == "true" and not contributions.react(contributions.LOGICAL_NEEDED, tree):
        set_logical(tree.common, None)
    set_logical(tree.common, None, BY_US)

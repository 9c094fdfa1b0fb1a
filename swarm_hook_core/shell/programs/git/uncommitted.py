"""The effect of a git call on uncommitted changes: it loses them, takes them along, or leaves them alone.

The verbs' own functions decide (``work_tree_verbs``, ``history_verbs``: `loses`, `takes`, `hit`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.paths import own_path
from swarm_hook_core.shell.model import GitCall, absolute
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.named_places import places
from swarm_hook_core.shell.programs.git.removed_trees import removed_trees
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

"""What a git call would do to changes that nobody has committed: lose them, take them along, or leave them alone.

Which verbs do what is in their own functions (``work_tree_verbs``, ``history_verbs``: `loses`, `takes`, `hit`).
"""

import os
import time

from swarm_hook_core.shell.model import absolute
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.named_places import places
from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.shell.programs.git.touched_files import touched

MOST_FILES = 2000  # that one call is asked about


def swept(call, files, seconds: float):
    """``(lost, taken)``: those of `files` whose uncommitted changes GitCall `call` would lose, or take along.

    `files`: absolute paths; what is committed as it stands is in neither. Changes nothing, takes at most about
    `seconds`; what git could not be asked in that time is left out.
    """
    end = time.monotonic() + seconds
    if call.words[:2] == ["worktree", "remove"]:
        return _in_removed_tree(call, files, seconds), []
    top = tree_of(call)
    if top is None:
        return [], []
    touch = touched(call, _near(call, files, top), seconds)
    met = [*touch.lost, *touch.taken]
    if not met:
        return [], []
    changed = set(uncommitted(top, met, end - time.monotonic(), call.top, call.environment))
    return [file for file in touch.lost if file in changed], [file for file in touch.taken if file in changed]


def uncommitted(top: str, files, seconds: float, settings=(), environment=None) -> list:
    """Those of `files` (absolute) in the work tree `top` that are not there as its last commit has them.

    None of them where git does not say in time.
    """
    repository = Repository(top, seconds, settings, environment)
    named = {}
    for file in files:
        folder, name = os.path.split(file)
        inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
        if not inside.startswith("../"):
            named[inside] = file
    try:
        changed = set(repository.untracked(named, with_ignored=True))
        try:
            changed.update(repository.against("HEAD", named))
        except Refused:
            changed.update(repository.tracked(named))  # no commit yet
    except (NoAnswer, Refused):
        return []
    return [file for inside, file in named.items() if inside in changed]


def _near(call, files, top: str) -> list:
    """Those of `files` that the call may mean by its own words, no more than can be asked about."""
    roots = places(call, top)
    if roots:
        real = {file: os.path.join(os.path.realpath(os.path.dirname(file)), os.path.basename(file)) for file in files}
        files = [file for file, path in real.items() if any(path == one or path.startswith(one + "/") for one in roots)]
    return list(files)[:MOST_FILES]


def _in_removed_tree(call, files, seconds: float) -> list:
    """What ``worktree remove --force`` loses; without it git refuses."""
    options = options_of(call.words)
    if not options.has("-f", "--force") or len(options.operands) < 2:
        return []
    word, top = options.operands[1], tree_of(call)
    folder = absolute(call.folder, word)
    if folder is None or top is None:
        return []
    if not os.path.exists(os.path.join(folder, ".git")):  # the end of its path is name enough
        try:
            told = Repository(top, seconds, call.top, call.environment).ask("worktree", "list", "--porcelain")
        except (NoAnswer, Refused):
            return []
        trees = [line[len("worktree ") :] for line in told.split("\n") if line.startswith("worktree ")]
        folder = next((tree for tree in trees if tree.endswith("/" + word.strip("/"))), folder)
    tree = os.path.realpath(folder)
    inside = [file for file in files if os.path.realpath(file).startswith(tree + "/")][:MOST_FILES]
    return uncommitted(tree, inside, seconds) if inside else []

"""cd, pushd, popd: where the shell is afterwards."""

import os

from swarm_hook_core.shell.model import Stream, absolute


def change_folder(walk, scope, words):
    """cd, pushd, popd, dirs."""
    name = words[0]
    options = [word for word in words[1:] if word != "-" and word[:1] == "-" and not word.strip("-LPen@")]
    operands = [word for word in words[1:] if word not in options]
    if name == "dirs":
        return Stream(None)
    if name == "popd" or (name == "pushd" and not operands):
        if not scope.stack:
            scope.status = False  # it stays
        elif name == "popd":
            _go(walk, scope, scope.stack.pop())
        else:
            scope.stack[-1], target = scope.folder, scope.stack[-1]
            _go(walk, scope, target)
        return None
    came_from = scope.folder
    target = operands[0] if operands else scope.variable("HOME")
    if target == "-":
        _go(walk, scope, scope.previous)
    elif not isinstance(target, str) or (name == "pushd" and target[:1] in "+-"):
        _go(walk, scope, None)
    elif target:
        where = absolute(scope.folder, target)
        physical = where is not None and any("P" in option for option in options)
        _go(walk, scope, os.path.realpath(where) if physical else where)
    else:
        scope.status = True  # `cd ""` stays
    if name == "pushd" and scope.status is not False:
        scope.stack.append(came_from)
    return Stream("") if name == "cd" and target != "-" else None


def _go(walk, scope, folder) -> None:
    """Change to `folder` (None: not known). Where there is none, and nothing so far makes one, the shell stays.

    Where it may fail, the shell may be where it was.
    """
    there = folder is not None and os.path.isdir(folder)
    fresh = folder is not None and "XXXXXX" in folder  # what `mktemp` has just made
    sure = fresh or there and os.access(folder, os.X_OK) and not walk.files.may_be_gone(folder)
    scope.status = True if sure else None
    if scope.status is None and folder is not None and not there and walk.files.is_no_folder(folder):
        scope.status, scope.tried = False, folder
        return
    came_from = scope.folder
    scope.previous, scope.folder = came_from, folder
    if scope.status is None and folder is not None and came_from is not None and came_from != folder:
        scope.if_failed = (came_from,)

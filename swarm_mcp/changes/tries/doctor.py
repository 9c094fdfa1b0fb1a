"""The finding of `swarm-mcp doctor` about tries: the way in the checkout here, and the folders that are kept."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.repository import Tree, tree_over
from swarm_mcp.changes.tries import folder, running
from swarm_mcp.changes.tries.picture import Chosen, Picture
from swarm_mcp.changes.tries.running import BOUND, COPY, MEMORY, OVERLAY, Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.runtimes.base import Finding

_WORDS = {
    OVERLAY: "commands run at this checkout's path, in an overlay over it",
    MEMORY: "commands run at this checkout's path, in an overlay with its files in memory",
    BOUND: "commands run at this checkout's path, in a copy of its files",
    COPY: "commands run in a copy of its files elsewhere",
}


def findings(asked: Asked) -> Finding:
    """Return the way of `swarm-mcp try` in the work tree here."""
    tree, kept = tree_over(os.path.realpath(current_scope(asked.scope_flag))), folder.kept()
    details: dict[str, Any] = {
        "kept": [{"top": one.top, "bytes": one.bytes, "command": one.command or None} for one in kept]
    }
    words = folder.in_words(kept)
    if words:
        words = f"; {words}"
    if tree is None:
        return Finding("try", "info", f"no repository here{words}", details=details)
    try:
        details["way"] = _way(tree)
    except SwarmError as error:
        return Finding("try", "info", f"nothing can be tried here: {error}{words}", details=details)
    return Finding("try", "ok", f"{_WORDS[details['way']]}{words}", details=details)


def _way(tree: Tree) -> str:
    """Return the way in this work tree. A command that does nothing shows if an overlay works; nothing is copied."""
    picture, found = Picture(tree.top), running.ways(tree)
    overlays = [way for way in found if way in (OVERLAY, MEMORY)]
    if overlays:
        try:
            with Run(tree, picture, Chosen({}, []), Command(["true"], tree.top, os.environ), is_caught=True) as run:
                run.begin(overlays)
                return run.end().way
        except Refused:  # the kernel, or the file system, has none
            pass
    return next(way for way in found if way not in overlays)

"""The contents of the state folder, and their removal when swarm is uninstalled."""

from __future__ import annotations

import fnmatch
import os
import shutil

from swarm_hook_core.state import state_dir

# Made again whenever it is needed: it goes with an uninstallation.
OURS = (
    "*-fault", "*-hooks.json", "acting", "assignment-*", "authorship.lock", "awaited", "busy", "claims", "command",
    "commits", "checkers", "crashes", "ended", "faults.jsonl", "faults.jsonl.1", "fetched", "heads", "kernel", "loop",
    "plugin", "plugin.lock", "protected", "protection", "python", "repeated-denials.jsonl", "repeated-denials.jsonl.1",
    "relay", "repositories", "running", "server", "settled", "slots", "swarm-*", "traces", "tries",
    "turn-files", "unheard", "watched", "watched-edits", "work",
)  # fmt: skip
# A person may still want it: it is named, and stays.
THEIRS = {
    "edited": "what was put into files of clients that still hold it",
    "kept": "contents that `swarm-mcp restore` can bring back",
    "kept-names": "which files those are of",
    "projects.json": "which projects have git hooks of swarm's, or what `swarm-mcp init` put there",
    "runs": "records of what workers did",
    "team": "which clones have joined a team (`swarm-mcp team leave` in one ends that)",
    "undos": "what `swarm-mcp undo --undo` can take back",
    "worktrees": "work trees of tasks of an earlier release (`git worktree list` in their repository names them)",
}


def remove_ours() -> None:
    """Remove swarm's files from the state folder, and the folder once it is empty.

    A folder that a setting chose, with a name that does not mention swarm, is left alone: its entries may belong to
    another program. Files that cannot be removed stay, and `left` names them.
    """
    folder = state_dir()
    if "swarm" not in os.path.basename(folder):
        return
    for name in _entries(folder):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in OURS):
            _remove(os.path.join(folder, name))
    try:
        os.rmdir(folder)
    except OSError:
        pass  # an entry is left in it, and `left` names it


def remove_theirs() -> list[str]:
    """Remove what a person may still want, but for work trees; return its paths."""
    found = [path for path in left() if os.path.basename(path) in THEIRS and os.path.basename(path) != "worktrees"]
    for path in found:
        _remove(path)
    return found


def left() -> dict[str, str]:
    """Return the entries of the state folder by path, each with a few words about it."""
    folder = state_dir()
    return {os.path.join(folder, name): THEIRS.get(name, "") for name in _entries(folder)}


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such folder
        return []


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        os.remove(path)
    except OSError:
        pass  # `left` names it

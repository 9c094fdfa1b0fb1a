"""The guard of a repository's commits: its hooks in git's folder, and the setting by which git finds them."""

import os

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.repository import tree_over

LARGEST = 1024 * 1024  # bytes of a configuration that are read
MARK = b"# swarm guard, written by"  # in the guard's hooks
GUARD_FOLDER, GUARD_RECORD = "swarm-hooks", "swarm-guard.json"
GUARDED = ("pre-commit", "pre-push")
WAY = "they type `swarm-mcp guard uninstall`"


def git_folder(folder: str) -> str:
    """Return the git folder that all work trees of the repository around `folder` share; may be empty."""
    tree = tree_over(folder)
    if tree is None:
        return ""
    return tree.common


def guard_is_wired(common: str) -> bool:
    """Return True if git finds the guard's hooks, by the repository's own files."""
    looked = hooks_path(common)
    if looked:
        own = os.path.realpath(os.path.join(common, GUARD_FOLDER))
        return os.path.realpath(os.path.join(os.path.dirname(common), looked)) == own and _is_guards(
            os.path.join(own, GUARDED[0])
        )
    return all(_is_guards(os.path.join(common, "hooks", name)) for name in GUARDED)


def has_guard_record(common: str) -> bool:
    """Return True if the guard has a hook folder of its own in this git folder."""
    return os.path.isdir(os.path.join(common, GUARD_FOLDER))


def hooks_path(common: str) -> str:
    """Return ``core.hooksPath`` of the repository's own configuration; may be empty."""
    try:
        with open(os.path.join(common, "config"), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(LARGEST).splitlines()
    except (OSError, ValueError):  # no repository
        return ""
    found, section = "", ""
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[] \t").lower()
        name, equals, value = line.partition("=")
        if equals and section == "core" and name.strip().lower() == "hookspath":
            found = value.strip().strip('"')
    return found


def _is_guards(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK in file.read(4096)
    except (OSError, ValueError):  # no such hook
        return False


def is_weakened(real: str, how: str, given: object) -> bool:
    """Return True if a write to this path, without links, changes the guard. `given`: the call's input."""
    common, between, inner = real.rpartition("/.git/")
    if not between:
        return False
    common += "/.git"
    is_own = inner.startswith((GUARD_FOLDER, GUARD_RECORD)) or (inner.startswith("hooks/") and _is_guards(real))
    if inner in ("config", "config.worktree") and GUARD_FOLDER in hooks_path(common):
        # Other settings of a repository are the session's own business.
        is_own = how in (REPLACE, REMOVE) or _speaks_of_hooks(given)
    return is_own and guard_is_wired(common)


def _speaks_of_hooks(given: object) -> bool:
    if isinstance(given, dict):
        return any(_speaks_of_hooks(value) for value in given.values())
    if isinstance(given, list):
        return any(_speaks_of_hooks(value) for value in given)
    return isinstance(given, str) and "hookspath" in given.lower()

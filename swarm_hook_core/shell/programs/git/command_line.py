"""git's command line: global options, and the work tree that is meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from swarm_hook_core.shell.model import GitCall

TOP_WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")
)
_KEPT = ("-c", "--git-dir", "--work-tree", "--config-env")


def without_global_options(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split git's arguments into (folders of ``-C``, global options to keep, the subcommand and its arguments)."""
    folders: list[Any] = []
    kept: list[Any] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        at += 1
        if name in ("--version", "--help", "-v", "-h", "--html-path", "--man-path", "--info-path"):
            return folders, kept, ["version"]
        if name == "--exec-path" and not equals:
            return folders, kept, ["version"]
        if name in TOP_WITH_VALUE and not equals:
            if at >= len(words):
                return folders, kept, ["version"]  # git only complains
            value = words[at]
            at += 1
        if name == "-C":
            folders.append(value)
        elif name in _KEPT:
            if name == "-c":
                kept += [name, value]
            else:
                kept.append(f"{name}={value}")
    return folders, kept, list(words[at:])


def cut(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Split a subcommand's arguments into (before ``--``, after it or None)."""
    if "--" not in words:
        return list(words), None
    at = words.index("--")
    return list(words[:at]), list(words[at + 1 :])


def work_tree(folder: str) -> str | None:
    """Return the resolved top of the work tree around absolute `folder`, or None. Linked trees and submodules count."""
    probe = os.path.realpath(folder)
    while True:
        mark = os.path.join(probe, ".git")
        if os.path.isfile(mark) or os.path.exists(os.path.join(mark, "HEAD")):
            return probe
        parent = os.path.dirname(probe)
        if parent == probe or os.path.basename(probe) == ".git":
            return None
        probe = parent


def inside(folder: str, top: str) -> str:
    """Return `folder` relative to the work tree's `top`; empty for the top itself, and for a folder outside of it."""
    relative = os.path.relpath(os.path.realpath(folder), top)
    if relative == "." or relative.startswith(".."):
        return ""
    return relative


def tree_of(call: GitCall) -> str | None:
    """Return the work tree of a GitCall, or None: as `work_tree`, unless options or variables name another."""
    named = git_dir = None
    for word in call.top:
        name, _, value = word.partition("=")
        if name == "--work-tree":
            named = value
        elif name == "--git-dir":
            git_dir = value
    named = named or call.environment.get("GIT_WORK_TREE") or os.environ.get("GIT_WORK_TREE")
    git_dir = git_dir or call.environment.get("GIT_DIR") or os.environ.get("GIT_DIR")
    if "\0" in (named or "") or "\0" in (git_dir or ""):
        return work_tree(call.folder)
    if named:
        return os.path.realpath(os.path.join(call.folder, named))
    if git_dir:
        return os.path.realpath(call.folder)
    return work_tree(call.folder)

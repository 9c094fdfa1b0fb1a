"""Tools of git servers, as the git commands that they run.

``git_add {repo_path, files}`` of the reference server, ``git_checkout {path, target}`` and others.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

FOLDERS = ("repo_path", "repoPath", "path", "directory", "repository", "repo_dir", "cwd",
           "working_directory", "workingDir")  # fmt: skip
_FILES = ("files", "paths", "file_paths", "filePaths", "file", "pathspec")
_TARGETS = (
    "target", "branch_name", "branchName", "branchOrPath", "branch", "ref", "commits", "commit", "commitRef",
    "commitHash", "revision", "upstream", "source_branch", "stashRef",
)  # fmt: skip
_TREES = ("worktreePath", "worktree_path", "worktree", "target_path", "targetPath")
_MODES = ("mode", "action", "operation", "subcommand")
_CREATES = ("create", "createBranch", "create_branch", "newBranch")
_FORCES = ("force", "discard_changes", "discardChanges")

# A tool's name behind ``git_`` -> the git command. Tools that only read, or only add a name, are left out.
VERBS = {
    "add": "add", "add_all": "add", "stage": "add", "unstage": "reset", "commit": "commit", "commit_signed": "commit",
    "amend": "commit", "add_or_commit": "commit", "checkout": "checkout", "switch": "switch", "reset": "reset",
    "restore": "restore", "stash": "stash", "stash_push": "stash", "stash_save": "stash", "stash_pop": "stash",
    "stash_apply": "stash", "stash_drop": "stash", "stash_clear": "stash", "clean": "clean", "merge": "merge",
    "rebase": "rebase", "cherry_pick": "cherry-pick",
    "revert": "revert", "pull": "pull", "push": "push", "rm": "rm", "remove": "rm", "mv": "mv", "move": "mv",
    "worktree": "worktree", "worktree_remove": "worktree", "worktree_move": "worktree", "worktree_prune": "worktree",
    "apply": "apply", "am": "am", "command": "", "run": "", "execute": "",
}  # fmt: skip


def commands(name: str, given: dict[str, Any]) -> list[list[str]]:
    """Return the words after ``git`` for each command that the tool ``git_<name>`` runs, mostly one."""
    verb = VERBS[name]
    if not verb:
        words = _texts(given, ("args", "arguments", "command"))
        if len(words) == 1 and " " in words[0]:
            try:
                words = shlex.split(words[0])
            except ValueError:
                words = words[0].split()
        if words[:1] == ["git"]:
            words = words[1:]
        if words:
            return [words]
        return []
    files, target = _texts(given, _FILES), _texts(given, _TARGETS)
    mode = (_texts(given, _MODES) or [""])[0].lower().removeprefix("--")
    if verb == "add" or (name == "add_or_commit" and mode == "add"):
        return [["add", *(_operands(files) or ["-A"])]]
    if verb == "commit":
        return _commit(name, given, files)
    if verb == "worktree":
        return _worktree(name[len("worktree_") :] or mode, given)
    if verb == "stash":
        return _stash(name[len("stash_") :] or mode or "push", target, given)
    if verb in ("merge", "rebase", "cherry-pick", "revert") and mode in ("abort", "continue", "skip", "quit"):
        return [[verb, f"--{mode}"]]
    words = [verb]
    if verb == "reset" and mode in ("hard", "mixed", "soft", "merge", "keep"):
        words.append(f"--{mode}")
    elif verb == "clean":
        words += ["-f"] + [flag for flag, names in _CLEANS if is_on(given, names)]
        if is_on(given, ("dryRun", "dry_run")):
            words.append("-n")
    elif verb in ("checkout", "switch") and is_on(given, _CREATES):
        words.append("-b" if verb == "checkout" else "-c")
    elif verb == "restore" and is_on(given, ("staged",)):
        words.append("--staged")
    elif verb == "rm" and is_on(given, ("cached",)):
        words.append("--cached")
    elif verb in ("pull", "push"):
        return [[verb, *_texts(given, ("remote",)), *_texts(given, ("branch",))]]
    elif verb == "mv":
        return [["mv", *_texts(given, ("source", "from")), *_texts(given, ("destination", "to"))]]
    elif verb == "apply":
        return [["apply", *_texts(given, ("patch_file", "patchFile", "patch_path"))]]
    if verb in ("checkout", "reset") and is_on(given, _FORCES):
        words.append("--force" if verb == "checkout" else "--hard")
    if verb == "restore":
        source = _texts(given, ("source",))
        if source:
            words += ["--source", source[0]]
        return [[*words, "--", *files]]
    return [[*words, *target, *_operands(files)]]


def _operands(files: list[str]) -> list[str]:
    """Return the words for `files` at the end of a command."""
    if files:
        return ["--", *files]
    return []


_CLEANS = (("-d", ("directories", "includeDirectories")), ("-x", ("ignored", "removeIgnored")))


def _commit(name: str, given: dict[str, Any], files: list[str]) -> list[list[str]]:
    staged = _texts(given, ("filesToStage", "files_to_stage"))
    words = ["commit", "-m", (_texts(given, ("message",)) or [""])[0]]
    if is_on(given, ("all", "stageAll", "a")):
        words.insert(1, "-a")
    if name == "amend" or is_on(given, ("amend",)):
        words.insert(1, "--amend")
    if files:
        words += ["--", *files]
    if staged:
        return [["add", "--", *staged], words]
    return [words]


def _stash(mode: str, target: list[str], given: dict[str, Any]) -> list[list[str]]:
    if mode not in ("push", "save", "pop", "apply", "branch", "drop", "clear"):
        return []  # list, show
    if mode not in ("push", "save"):
        return [["stash", mode, *target]]
    if is_on(given, ("includeUntracked", "include_untracked", "u")):
        return [["stash", mode, "-u"]]
    return [["stash", mode]]


def _worktree(mode: str, given: dict[str, Any]) -> list[list[str]]:
    if mode == "prune":
        return [["worktree", "prune"]]
    folders = _texts(given, _TREES)[:1]
    if mode not in ("remove", "move") or not folders:
        return []  # list, add, lock
    if mode == "move":
        folders += _texts(given, ("newPath", "new_path", "destination"))[:1]
    elif is_on(given, _FORCES):
        folders.insert(0, "--force")
    return [["worktree", mode, *folders]]


def _texts(given: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Return the value of the first of these arguments that is present, as a list of texts."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return [value]
        if isinstance(value, list) and any(isinstance(one, str) for one in value):
            return [one for one in value if isinstance(one, str)]
    return []


def is_on(given: dict[str, Any], names: Iterable[str]) -> bool:
    return any(given.get(name) is True for name in names)

"""git's command line: global options, and which of its commands only read."""

import os

from swarm_hook_core.shell.git.table import READS, listed
from swarm_hook_core.shell.options import split

TOP_WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")
)
_KEPT = ("-c", "--git-dir", "--work-tree", "--config-env")

_BRANCH_CHANGES = (
    "-d", "-D", "-m", "-M", "-c", "-C", "-f", "-u", "-t", "--delete", "--move", "--copy", "--force", "--track",
    "--set-upstream-to", "--unset-upstream", "--edit-description", "--no-track",
)  # fmt: skip
_BRANCH_LISTS = (
    "-l", "-a", "-r", "--list", "--all", "--remotes", "--contains", "--no-contains", "--merged", "--no-merged",
    "--points-at", "--show-current", "--format", "--sort",
)  # fmt: skip
_TAG_CHANGES = ("-a", "-s", "-u", "-f", "-m", "-F", "-d", "--annotate", "--sign", "--delete", "--force", "--message")
_TAG_LISTS = (
    "-l", "-n", "-v", "--list", "--verify", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at",
    "--format", "--sort",
)  # fmt: skip
_CONFIG_CHANGES = (
    "--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section", "-e", "--edit",
)  # fmt: skip
_CONFIG_READS = ("-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color")
_APPLY_LOOKS = ("--check", "--stat", "--numstat", "--summary")


def without_global_options(words):
    """(folders of ``-C``, global options to keep, the subcommand and what follows) of git's arguments."""
    folders: list = []
    kept: list = []
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
            kept += [name, value] if name == "-c" else [f"{name}={value}"]
    return folders, kept, list(words[at:])


def options_of(words):
    """The `Options` of ``<subcommand> <arguments>``."""
    values = listed(words[0], "values")
    short = "".join(word[1] for word in values if word[1] != "-")
    return split(words[1:], short, values, "".join(listed(words[0], "attached")))


def only_reads(words) -> bool:
    """Whether ``git <words>`` leaves repository and work tree as they are (but for files that it is told to make)."""
    if not words:
        return True
    name, rest = words[0], words[1:]
    if rest in (["-h"], ["--help"]) or "--help" in rest[:1] or name in READS:
        return True
    options = options_of(words)
    if options.has(*listed(name, "dry")):
        return True
    first = options.operands[0] if options.operands else ""
    reading = listed(name, "reading")
    if reading and not (name == "stash" and not first):
        return (first or "-") in reading
    if name == "branch":
        return not options.has(*_BRANCH_CHANGES) and (options.has(*_BRANCH_LISTS) or not first)
    if name == "tag":
        return not options.has(*_TAG_CHANGES) and (options.has(*_TAG_LISTS) or not first)
    if name == "config":
        return _config_reads(options)
    if name == "symbolic-ref":
        return not options.has("-d", "--delete") and len(options.operands) < 2
    if name == "reflog":
        return first not in ("expire", "delete", "drop", "write")
    if name == "replace":
        return not first or options.has("-l", "--list")
    if name == "hash-object":
        return not options.has("-w")
    if name == "apply":
        return options.has(*_APPLY_LOOKS) and not options.has("--apply")
    if name == "checkout":
        return not options.operands and not options.has("-b", "-B", "-f", "--force", "-p", "--patch", "--orphan")
    if name == "update-index":
        return not options.operands and options.has("--refresh", "--really-refresh")
    return False


def _config_reads(options) -> bool:
    if options.has(*_CONFIG_CHANGES):
        return False
    if options.has(*_CONFIG_READS):
        return True
    first = options.operands[0] if options.operands else ""
    if first in ("set", "unset", "edit", "rename-section", "remove-section"):
        return False
    return first in ("get", "list", "") or len(options.operands) < 2


def cut(words):
    """(before ``--``, after it or None) of a subcommand's arguments."""
    if "--" not in words:
        return list(words), None
    at = words.index("--")
    return list(words[:at]), list(words[at + 1 :])


def work_tree(folder):
    """The resolved top of the work tree that absolute `folder` is in, or None. Linked trees and submodules too."""
    probe = os.path.realpath(folder)
    while True:
        mark = os.path.join(probe, ".git")
        if os.path.isfile(mark) or os.path.exists(os.path.join(mark, "HEAD")):
            return probe
        parent = os.path.dirname(probe)
        if parent == probe or os.path.basename(probe) == ".git":
            return None
        probe = parent


def tree_of(call):
    """The work tree that a GitCall works on, or None: as `work_tree`, unless it is told otherwise."""
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
    return os.path.realpath(call.folder) if git_dir else work_tree(call.folder)

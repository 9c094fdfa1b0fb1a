"""git's command line: global options, and which of its commands only read."""

import os

from swarm_hook_core.shell.options import split

TOP_WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source")
)
_KEPT = ("-c", "--git-dir", "--work-tree", "--config-env")

# Of each subcommand: short options with a value, long ones, and short ones whose value is attached.
VALUES = {
    "add": ("", ("--pathspec-from-file", "--chmod"), ""),
    "am": ("pCS", ("--directory", "--exclude", "--include", "--patch-format", "--whitespace"), "S"),
    "apply": ("pC", ("--directory", "--exclude", "--include", "--whitespace", "--build-fake-ancestor"), ""),
    "archive": ("o", ("--output", "--format", "--prefix", "--remote", "--exec", "--add-file"), ""),
    "branch": ("u", ("--set-upstream-to", "--points-at", "--format", "--sort"), ""),
    "bugreport": ("os", ("--output-directory", "--suffix"), ""),
    "checkout": ("bB", ("--orphan", "--conflict", "--pathspec-from-file"), ""),
    "checkout-index": ("", ("--prefix", "--stage"), ""),
    "cherry-pick": ("mX", ("--mainline", "--strategy", "--strategy-option", "--cleanup"), "S"),
    "clean": ("e", ("--exclude",), ""),
    "clone": (
        "bcjou",
        (
            "--branch", "--config", "--depth", "--filter", "--jobs", "--origin", "--reference", "--separate-git-dir",
            "--server-option", "--shallow-exclude", "--shallow-since", "--template", "--upload-pack", "--bundle-uri",
            "--reference-if-able", "--ref-format", "--revision",
        ),
        "",
    ),
    "commit": (
        "mFCct",
        (
            "--message", "--file", "--reuse-message", "--reedit-message", "--template", "--author", "--date", "--fixup",
            "--squash", "--cleanup", "--trailer", "--pathspec-from-file",
        ),
        "Su",
    ),
    "config": ("f", ("--file", "--blob", "--type", "--default", "--comment", "--value", "--url"), ""),
    "diagnose": ("os", ("--output-directory", "--suffix"), ""),
    "format-patch": (
        "onv",
        ("--output-directory", "--start-number", "--reroll-count", "--suffix", "--subject-prefix", "--to", "--cc",
         "--in-reply-to", "--base", "--range-diff", "--interdiff", "--signature", "--filename-max-length"),
        "",
    ),
    "init": ("b", ("--initial-branch", "--template", "--separate-git-dir", "--object-format", "--ref-format"), ""),
    "merge": ("mFsX", ("--strategy", "--strategy-option", "--into-name", "--file", "--cleanup"), "S"),
    "pull": (
        "sXjo",
        ("--strategy", "--strategy-option", "--depth", "--deepen", "--shallow-since", "--jobs", "--upload-pack",
         "--refmap", "--server-option", "--cleanup"),
        "rS",
    ),
    "read-tree": ("", ("--prefix", "--index-output", "--exclude-per-directory"), ""),
    "rebase": ("sXxC", ("--onto", "--strategy", "--strategy-option", "--exec", "--whitespace", "--empty"), "S"),
    "reset": ("", ("--pathspec-from-file",), ""),
    "restore": ("s", ("--source", "--conflict", "--pathspec-from-file"), ""),
    "rm": ("", ("--pathspec-from-file",), ""),
    "stash": ("m", ("--message", "--pathspec-from-file"), ""),
    "submodule": ("b", ("--branch", "--name", "--reference", "--depth"), ""),
    "switch": ("cC", ("--create", "--force-create", "--orphan", "--conflict"), ""),
    "tag": ("mFu", ("--message", "--file", "--local-user", "--points-at", "--format", "--sort", "--cleanup"), "n"),
    "update-index": ("", ("--chmod",), ""),
    "worktree": ("bB", ("--reason", "--expire", "--orphan"), ""),
}  # fmt: skip
for _name in ("diff", "diff-files", "diff-index", "diff-tree", "log", "show", "whatchanged", "rev-list"):
    VALUES[_name] = ("", ("--output",), "")
VALUES["revert"] = VALUES["cherry-pick"]
VALUES["stage"] = VALUES["add"]

READS = frozenset(
    "status diff log show blame annotate grep ls-files ls-tree ls-remote rev-parse rev-list cat-file describe"
    " shortlog check-ignore check-attr check-mailmap check-ref-format for-each-ref name-rev merge-base count-"
    " objects fsck version help var whatchanged show-ref show-branch show-index diff-files diff-index diff-tree"
    " diff-pairs cherry range-diff patch-id verify-commit verify-tag verify-pack get-tar-commit-id column"
    " stripspace fmt-merge-msg difftool gitk gui instaweb request-pull send-email fast-export merge-tree mktree"
    " daemon upload-pack upload-archive credential credential-cache check-rules web--browse citool last-modified"
    " archive bugreport diagnose mailinfo mailsplit interpret-trailers merge-file format-patch clone init init-db"
    " unpack-file".split()
)  # of a repository that exists; the files that some of them make are named by their words
REPOSITORY_ONLY = frozenset(
    "fetch push gc tag branch config remote notes update-ref symbolic-ref prune repack pack-refs prune-packed replace"
    " reflog maintenance commit-tree mktag hash-object write-tree bundle pack-objects unpack-objects index-pack"
    " fast-import commit-graph multi-pack-index rerere send-pack fetch-pack receive-pack update-server-info"
    " pack-redundant replay refs apply am worktree backfill http-fetch http-push".split()
)  # the files that some of them write are named by their words, or in a patch: `programs.git` reads both
_READING_WORDS = {  # subcommand -> its first words that read; "" for none
    "bisect": ("", "log", "view", "visualize", "terms", "help"),
    "bundle": ("", "create", "verify", "list-heads"),
    "commit-graph": ("verify",),
    "lfs": ("ls-files", "status", "env", "version", "logs", "fsck", "locks", "ext", "help", "", "pointer"),
    "maintenance": ("",),
    "multi-pack-index": ("verify",),
    "notes": ("", "list", "show", "get-ref"),
    "refs": ("verify", "list", "exists"),
    "remote": ("", "show", "get-url"),
    "rerere": ("status", "diff", "remaining"),
    "sparse-checkout": ("", "list", "check-rules"),
    "stash": ("list", "show"),
    "submodule": ("", "status", "summary", "get-url"),
    "worktree": ("", "list"),
}
_DRY = {  # subcommand -> options that make it only say what it would do
    "add": ("-n", "--dry-run", "--refresh"),
    "stage": ("-n", "--dry-run", "--refresh"),
    "clean": ("-n", "--dry-run"),
    "commit": ("--dry-run", "--short", "--porcelain", "--long"),
    "fetch": ("--dry-run",),
    "mv": ("-n", "--dry-run"),
    "prune": ("-n", "--dry-run"),
    "pull": ("--dry-run",),
    "push": ("-n", "--dry-run"),
    "read-tree": ("-n", "--dry-run"),
    "rebase": ("--show-current-patch",),
    "am": ("--show-current-patch",),
    "rm": ("-n", "--dry-run"),
}
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


def without_top(words):
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
    short, long, optional = VALUES.get(words[0], ("", (), ""))
    return split(words[1:], short, long, optional)


def only_reads(words) -> bool:
    """Whether ``git <words>`` leaves repository and work tree as they are (but for files that it is told to make)."""
    if not words:
        return True
    name, rest = words[0], words[1:]
    if rest in (["-h"], ["--help"]) or "--help" in rest[:1] or name in READS:
        return True
    options = options_of(words)
    if options.has(*_DRY.get(name, ())):
        return True
    first = options.operands[0] if options.operands else ""
    if name in _READING_WORDS and not (name == "stash" and not first):
        return first in _READING_WORDS[name]
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

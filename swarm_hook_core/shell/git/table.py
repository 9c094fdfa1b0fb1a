"""git's subcommands: one row each. To add one, add its name to a list or a row; a function only where git is asked.

values     options that take a value
attached   short options whose value, if any, is attached to them
asks       the function that asks git which files it touches: ``module.function`` of this package
dry        options that make it only say what it would do
reading    first words with which it only reads; ``-`` stands for none

What its own words name is in ``named_files``, what it prints in ``listings``.
"""

_OUTPUT = {"values": "--output"}
_PICK = {"values": "-m -X --mainline --strategy --strategy-option --cleanup", "attached": "S", "asks": "history.pick"}
_ADD = {"values": "--pathspec-from-file --chmod", "asks": "staging.add", "dry": "-n --dry-run --refresh"}
_FOLDER = {"values": "-o -s --output-directory --suffix"}

ROWS = {
    "add": _ADD,
    "stage": _ADD,
    "am": {
        "values": "-p -C -S --directory --exclude --include --patch-format --whitespace",
        "attached": "S",
        "asks": "history.am",
        "dry": "--show-current-patch",
    },
    "apply": {"values": "-p -C --directory --exclude --include --whitespace --build-fake-ancestor"},
    "archive": {"values": "-o --output --format --prefix --remote --exec --add-file"},
    "bisect": {"asks": "history.bisect", "reading": "- log view visualize terms help"},
    "branch": {"values": "-u --set-upstream-to --points-at --format --sort"},
    "bugreport": _FOLDER,
    "bundle": {"reading": "- create verify list-heads"},
    "checkout": {"values": "-b -B --orphan --conflict --pathspec-from-file", "asks": "switching.checkout"},
    "checkout-index": {"values": "--prefix --stage", "asks": "switching.checkout_index"},
    "cherry-pick": _PICK,
    "clean": {"values": "-e --exclude", "asks": "putting_aside.clean", "dry": "-n --dry-run"},
    "clone": {
        "values": "-b -c -j -o -u --branch --config --depth --filter --jobs --origin --reference --separate-git-dir"
        " --server-option --shallow-exclude --shallow-since --template --upload-pack --bundle-uri"
        " --reference-if-able --ref-format --revision",
    },
    "commit": {
        "values": "-m -F -C -c -t --message --file --reuse-message --reedit-message --template --author --date --fixup"
        " --squash --cleanup --trailer --pathspec-from-file",
        "attached": "Su",
        "asks": "staging.commit",
        "dry": "--dry-run --short --porcelain --long",
    },
    "commit-graph": {"reading": "verify"},
    "config": {"values": "-f --file --blob --type --default --comment --value --url"},
    "diagnose": _FOLDER,
    **dict.fromkeys("diff diff-files diff-index diff-tree log show whatchanged rev-list".split(), _OUTPUT),
    "fetch": {"dry": "--dry-run"},
    "format-patch": {
        "values": "-o -n -v --output-directory --start-number --reroll-count --suffix --subject-prefix --to --cc"
        " --in-reply-to --base --range-diff --interdiff --signature --filename-max-length",
    },
    "init": {"values": "-b --initial-branch --template --separate-git-dir --object-format --ref-format"},
    "lfs": {"reading": "- ls-files status env version logs fsck locks ext help pointer"},
    "maintenance": {"reading": "-"},
    "merge": {
        "values": "-m -F -s -X --strategy --strategy-option --into-name --file --cleanup",
        "attached": "S",
        "asks": "history.merge",
    },
    "multi-pack-index": {"reading": "verify"},
    "mv": {"asks": "staging.move", "dry": "-n --dry-run"},
    "notes": {"reading": "- list show get-ref"},
    "prune": {"dry": "-n --dry-run"},
    "pull": {
        "values": "-s -X -j -o --strategy --strategy-option --depth --deepen --shallow-since --jobs --upload-pack"
        " --refmap --server-option --cleanup",
        "attached": "rS",
        "asks": "history.pull",
        "dry": "--dry-run",
    },
    "push": {"dry": "-n --dry-run"},
    "read-tree": {
        "values": "--prefix --index-output --exclude-per-directory",
        "asks": "switching.read_tree",
        "dry": "-n --dry-run",
    },
    "rebase": {
        "values": "-s -X -x -C --onto --strategy --strategy-option --exec --whitespace --empty",
        "attached": "S",
        "asks": "history.rebase",
        "dry": "--show-current-patch",
    },
    "refs": {"reading": "verify list exists"},
    "remote": {"reading": "- show get-url"},
    "rerere": {"reading": "status diff remaining"},
    "reset": {"values": "--pathspec-from-file", "asks": "switching.reset"},
    "restore": {"values": "-s --source --conflict --pathspec-from-file", "asks": "switching.restore"},
    "revert": _PICK,
    "rm": {"values": "--pathspec-from-file", "asks": "staging.remove", "dry": "-n --dry-run"},
    "sparse-checkout": {"reading": "- list check-rules"},
    "stash": {
        "values": "-m --message --pathspec-from-file",
        "asks": "putting_aside.stash",
        "reading": "list show",
    },
    "submodule": {"values": "-b --branch --name --reference --depth", "reading": "- status summary get-url"},
    "switch": {"values": "-c -C --create --force-create --orphan --conflict", "asks": "switching.switch"},
    "tag": {
        "values": "-m -F -u --message --file --local-user --points-at --format --sort --cleanup",
        "attached": "n",
    },
    "update-index": {"values": "--chmod", "asks": "staging.update_index"},
    "worktree": {"values": "-b -B --reason --expire --orphan", "reading": "- list"},
}

# Those that leave a repository as it is; the files that some of them make are named by their words.
READS = frozenset(
    "status diff log show blame annotate grep ls-files ls-tree ls-remote rev-parse rev-list cat-file describe"
    " shortlog check-ignore check-attr check-mailmap check-ref-format for-each-ref name-rev merge-base count-objects"
    " fsck version help var whatchanged show-ref show-branch show-index diff-files diff-index diff-tree"
    " diff-pairs cherry range-diff patch-id verify-commit verify-tag verify-pack get-tar-commit-id column"
    " stripspace fmt-merge-msg difftool gitk gui instaweb request-pull send-email fast-export merge-tree mktree"
    " daemon upload-pack upload-archive credential credential-cache check-rules web--browse citool last-modified"
    " archive bugreport diagnose mailinfo mailsplit interpret-trailers merge-file format-patch clone init init-db"
    " unpack-file".split()
)
# Those that change the repository and no file of the work tree but what their words, or a patch, name.
REPOSITORY_ONLY = frozenset(
    "fetch push gc tag branch config remote notes update-ref symbolic-ref prune repack pack-refs prune-packed replace"
    " reflog maintenance commit-tree mktag hash-object write-tree bundle pack-objects unpack-objects index-pack"
    " fast-import commit-graph multi-pack-index rerere send-pack fetch-pack receive-pack update-server-info"
    " pack-redundant replay refs apply am worktree backfill http-fetch http-push".split()
)
# Those of which nobody can say beforehand which files they touch.
UNPREDICTABLE = frozenset(
    "filter-branch filter-repo sparse-checkout submodule lfs mergetool subtree merge-index merge-one-file quiltimport"
    " svn p4 cvsimport cvsexportcommit annex flow absorb rebase--interactive".split()
)


def listed(name: str, column: str) -> list:
    """The words that the row of subcommand `name` has in `column`."""
    return ROWS.get(name, {}).get(column, "").split()


def is_subcommand(name: str) -> bool:
    """Whether `name` is a command of git's own, or of a well-known extension; else it may be an alias."""
    return "asks" in ROWS.get(name, {}) or name in READS or name in REPOSITORY_ONLY or name in UNPREDICTABLE

"""git's subcommands: one row each, in the language of ``programs.table``.

To add one, write its row; a function is needed only to ask git, or if a row cannot describe the files that its words
name. The writes of a row are the files named in the command's own words; besides that a row has

  reads     it leaves the repository as it is (for a case: then)
  asks f    git is asked by ``work_tree_verbs.f`` for the files it touches; with ``asks
            anything`` they are unknown. A row that neither reads nor asks changes the repository and no file of the
            work tree.

A subcommand without a row may be an alias. The output is in ``listings``.
"""

from __future__ import annotations

from collections.abc import Callable

from swarm_hook_core.shell.call import Call, Options, split
from swarm_hook_core.shell.programs import Case, row_in
from swarm_hook_core.shell.programs.engine import Reading

ROWS = """
# ---- they only read
status annotate grep ls-files ls-tree ls-remote rev-parse cat-file describe shortlog check-ignore: reads
check-attr check-mailmap check-ref-format for-each-ref name-rev merge-base count-objects fsck version help var: reads
show-ref show-branch show-index diff-pairs cherry range-diff patch-id verify-commit verify-tag verify-pack: reads
get-tar-commit-id column stripspace fmt-merge-msg difftool gitk gui instaweb request-pull send-email: reads
fast-export merge-tree mktree daemon upload-pack upload-archive credential credential-cache check-rules: reads
web--browse citool last-modified unpack-file: reads
diff: -GSUO,--unified= --output=FILE reads do show_changes
log: -nGSLO,--max-count,--since,--until,--after,--before,--author,--grep= --output=FILE reads
show: --output=FILE reads
blame: -LSC= reads do show_blamed
diff-files diff-index diff-tree whatchanged rev-list: --output=FILE reads

# ---- they leave a repository as it is, and make files that their words name
archive: -o,--output=FILE --format,--prefix,--remote,--exec,--add-file= reads
bugreport diagnose: -os,--output-directory,--suffix= reads do report
clone: -bcjou,--branch,--config,--depth,--filter,--jobs,--origin,--reference,--separate-git-dir,--server-option=
    --shallow-exclude,--shallow-since,--template,--upload-pack,--bundle-uri,--reference-if-able,--ref-format,--revision=
    reads do clone
format-patch: -onv,--output-directory,--start-number,--reroll-count,--suffix,--subject-prefix,--to,--cc,--in-reply-to=
    --base,--range-diff,--interdiff,--signature,--filename-max-length= reads do format_patch
  --stdout: reads
  --output: --output=FILE reads
init init-db: -b,--initial-branch,--template,--separate-git-dir,--object-format,--ref-format= reads do init
interpret-trailers: reads
  --in-place: reads write {}
mailinfo: reads replace {1} {2}
mailsplit: -o? reads tree {-o}
merge-file: reads write {1}
  -p --stdout: reads

# ---- they change the repository, and no file of the work tree but what their words, or a patch, name
apply: -pC,--directory,--exclude,--include,--whitespace,--build-fake-ancestor= do patch
  --apply: do patch
    --cached: asks apply
  --check --stat --numstat --summary: reads
  --cached: asks apply
branch: -u,--set-upstream-to,--points-at,--format,--sort= reads
  -d -D -m -M -c -C -f -u -t --delete --move --copy --force --track --set-upstream-to --unset-upstream: nothing
  --edit-description --no-track: nothing
  -l -a -r --list --all --remotes --contains --no-contains --merged --no-merged --points-at --show-current: reads
  --format --sort: reads
  *: nothing
bundle: reads
  create: reads replace {1}
  verify list-heads: reads
  *: nothing
commit-graph multi-pack-index: nothing
  verify: reads
  *: nothing
config: -f,--file,--blob,--type,--default,--comment,--value,--url= --global --local --system --worktree reads
  --add --unset --unset-all --replace-all --rename-section --remove-section -e --edit: do settings
  -l --list --get --get-all --get-regexp --get-urlmatch --get-color: reads
  set unset edit rename-section remove-section: do settings
  get list: reads
  *: reads
    *: do settings
fetch: unless --dry-run
hash-object: reads
  -w: nothing
maintenance: reads
  *: nothing
notes: reads
  list show get-ref: reads
  *: nothing
prune: unless -n --dry-run
push: -o,--push-option,--repo,--receive-pack,--exec= unless -n --dry-run asks push
reflog: reads
  expire delete drop write: nothing
  *: reads
refs: nothing
  verify list exists: reads
  *: nothing
remote: reads
  show get-url: reads
  *: nothing
replace: reads
  -l --list: reads
  *: nothing
rerere: nothing
  status diff remaining: reads
  *: nothing
symbolic-ref: -m= reads
  -d --delete: nothing
  *: reads
    *: nothing
tag: -mFu,--message,--file,--local-user,--points-at,--format,--sort,--cleanup= -n? reads
  -a -s -u -f -m -F -d --annotate --sign --delete --force --message: nothing
  -l -n -v --list --verify --contains --no-contains --merged --no-merged --points-at --format --sort: reads
  *: nothing
worktree: -bB,--reason,--expire,--orphan= reads
  list: reads
  add: tree {1}
  remove: remove-all {1}
  move: remove-all {1} tree {2}
  *: nothing
update-ref: -m= nothing
gc repack pack-refs prune-packed commit-tree mktag write-tree pack-objects unpack-objects index-pack: nothing
fast-import send-pack fetch-pack receive-pack update-server-info pack-redundant replay backfill: nothing
http-fetch http-push: nothing

# ---- git is asked which files of the work tree they touch
add stage: --pathspec-from-file,--chmod= unless -n --dry-run --refresh asks add
am: -pC,--directory,--exclude,--include,--patch-format,--whitespace= -S? unless --show-current-patch asks am do patch
  --abort --continue --skip --quit -r --resolved --retry: asks am
bisect: reads
  log view visualize terms help: reads
  run: ends asks bisect project run {}
  *: asks bisect
checkout: -bB,--orphan,--conflict,--pathspec-from-file= reads
  -b -B -f --force -p --patch --orphan --pathspec-from-file: asks checkout
  *: asks checkout
checkout-index: --prefix,--stage= asks checkout_index
cherry-pick revert: -mX,--mainline,--strategy,--strategy-option,--cleanup= -S? asks pick
clean: -e,--exclude= unless -n --dry-run asks clean
commit: -mFCct,--message,--file,--reuse-message,--reedit-message,--template,--author,--date,--fixup,--squash,--cleanup=
    --trailer,--pathspec-from-file= -Su? unless --dry-run --short --porcelain --long asks commit
merge: -mFsX,--strategy,--strategy-option,--into-name,--file,--cleanup= -S? asks merge
mv: unless -n --dry-run asks move
pull: -sXjo,--strategy,--strategy-option,--depth,--deepen,--shallow-since,--jobs,--upload-pack,--refmap,--cleanup=
    --server-option= -rS? unless --dry-run asks pull
read-tree: --prefix,--index-output,--exclude-per-directory= unless -n --dry-run asks read_tree
rebase: -sXxC,--onto,--strategy,--strategy-option,--exec,--whitespace,--empty= -S?
    unless --show-current-patch asks rebase text {-x} {--exec}
reset: --pathspec-from-file= asks reset
restore: -s,--source,--conflict,--pathspec-from-file= asks restore
rm: --pathspec-from-file= unless -n --dry-run asks unlink do removed_submodules
stash: -m,--message,--pathspec-from-file= asks stash
  list show: reads
switch: -cC,--create,--force-create,--orphan,--conflict= asks switch
update-index: --chmod= asks update_index
  --refresh --really-refresh: reads
    *: asks update_index

# ---- nobody can say beforehand which files they touch
lfs: reads
  ls-files status env version logs fsck locks ext help pointer: reads
  track untrack: asks anything needs 1 write .gitattributes
  *: asks anything
sparse-checkout: reads
  list check-rules: reads
  *: asks anything
submodule: -bj,--branch,--name,--reference,--depth,--jobs,--filter= reads
  status summary get-url: reads
  add: asks anything do add_submodule
  deinit: asks anything do removed_submodules
  foreach: ends asks anything do in_submodules
  *: asks anything
filter-branch filter-repo mergetool subtree merge-index merge-one-file quiltimport svn p4 cvsimport: asks anything
cvsexportcommit annex flow absorb rebase--interactive: asks anything

"""


MOST_ROWS = 1000  # words: a process that answers many calls meets ever new ones
_rows: dict[str, Case | None] = {}


def _row(name: str) -> Case | None:
    if name not in _rows:
        if len(_rows) >= MOST_ROWS:
            _rows.clear()
        _rows[name] = row_in(ROWS, name)
    return _rows[name]


def reading_of(call: Call, words: list[str], functions: Callable[[str], Callable[..., None]] | None) -> Reading | None:
    """Return ``git <words>`` as its row reads it, or None if it has no row."""
    row = _row(words[0])
    if row is None:
        return None
    return Reading(call, row, functions, words[1:])


def is_subcommand(name: str) -> bool:
    """Return True if `name` is a command of git's own, or of a well-known extension; else it may be an alias."""
    return _row(name) is not None


def options_of(words: list[str]) -> Options:
    """The `Options` of ``<subcommand> <arguments>``; of a subcommand of its own the first operand is that."""
    row = _row(words[0])
    kinds = {}
    if row:
        kinds = row.parse().options
    values = [name for name, kind in kinds.items() if kind[:1] == "="]
    optional = "".join(name[1] for name, kind in kinds.items() if kind == "?")
    return split(words[1:], "".join(name[1] for name in values if name[1] != "-"), values, optional)


def only_reads(words: list[str], reading: Reading | None = None) -> bool:
    """Return True if ``git <words>`` leaves repository and work tree as they are (except for files it is told to make).

    `reading`: the result of `reading_of`, if known.
    """
    if not words or words[1:] in (["-h"], ["--help"]) or words[1:2] == ["--help"]:
        return True
    reading = reading or _alone(words)
    return reading is not None and (reading.is_quiet or "reads" in reading.case.flags)


def asks(words: list[str]) -> str:
    """Return the name of the function that asks git for the files that ``git <words>`` touches; empty if it touches no
    file.
    """
    reading = _alone(words)
    if reading:
        return (reading.case.words["asks"] or [""])[0]
    return ""


def _alone(words: list[str]) -> Reading | None:
    return reading_of(Call(None, "git", words, None), words, None)  # type: ignore[arg-type]  # it only reads words

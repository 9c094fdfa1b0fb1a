"""The files that git's subcommands touch, in the work tree or by other commits: add to worktree.

Each is a function of a `Question`. It answers with the paths that it can change: those that pathspecs match, those of
the index, those that differ between two states, or any. It also says the fate of uncommitted changes there: it `loses`
them, it `takes` them along, or (`hit`) git keeps them or refuses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core.git_repository import Refused
from swarm_hook_core.shell.call import split
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.git import commit_hooks
from swarm_hook_core.shell.programs.git.listings import cut
from swarm_hook_core.shell.programs.patch import unquoted

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.programs.git.touched_files import Question


def checkout(question: Question) -> None:
    """``checkout``: to a branch, or files out of a tree or the index."""
    _before, after = cut(question.words[1:])
    options = question.options
    if after is None:
        operands = options.operands
    else:
        operands = options.operands[: len(options.operands) - len(after)]
    force = options.has("-f", "--force")
    if options.has("-p", "--patch"):
        question.maybe(question.repository.against("HEAD", question.locked))
    elif not options.has("-b", "-B", "--orphan") and (after or options.has("--pathspec-from-file")):
        _files(question, next(iter(operands), None), after or [])
    elif not operands:
        if force:
            question.becomes("HEAD")
    elif options.has("-b", "-B", "--orphan"):
        _switch(question, operands[0], force)
    elif operands[0] in question.call.found:
        _files(question, None, operands)
    else:
        _branch_or_files(question, operands, force, only_branch=after is not None)


def _branch_or_files(question: Question, operands: list[str], force: bool, only_branch: bool) -> None:
    """``checkout X ...``: only git knows if X is a revision."""
    first, rest = operands[0], operands[1:]
    if first[:1] == "." or first[-1:] == "/":  # no revision is called like that
        _files(question, None, operands)
        return
    try:
        if rest:
            question.repository.ask("rev-parse", "--verify", "--quiet", f"{question.known(first)}^{{tree}}")
            _files(question, first, rest)
        else:
            _switch(question, first, force)
        return
    except Refused:
        if "\0" in first:
            question.cannot_tell()
            return
    if only_branch or not rest and not _may_be_file(question, first):
        if not _switch_to_remote(question, first, force) and question.call.after:
            question.cannot_tell()
    else:
        _files(question, None, operands)


def _may_be_file(question: Question, word: str) -> bool:
    looks_so = word[:1] == ":" or any(letter in word for letter in "*?[")
    return looks_so or question.is_there(word, question.prefix) or bool(question.named(question.specs([word])))


def switch(question: Question) -> None:
    """``switch``: to a branch."""
    options = question.options
    force = options.has("-f", "--force", "--discard-changes")
    if options.has("--orphan"):
        question.hit(question.repository.tracked(question.locked))  # starts with an empty tree
    elif options.operands:
        try:
            _switch(question, options.operands[0], force)
        except Refused:
            if "\0" in options.operands[0] or not _switch_to_remote(question, options.operands[0], force):
                raise
    elif force:
        question.becomes("HEAD")


def _switch(question: Question, target: str, force: bool) -> None:
    if force:
        question.becomes(target)
    else:
        question.moves_to(target)


def _switch_to_remote(question: Question, name: str, force: bool) -> bool:
    """Switch to the one remote branch of this name, which git would then follow. Return False if there is no such
    branch.
    """
    if any(letter in name for letter in "*?[\\:~^ "):
        return False
    output = question.repository.ask("for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}")
    found = output.rstrip("\n").split("\n")
    if len(found) != 1 or not found[0]:
        return False
    _switch(question, found[0], force)
    return True


def _files(question: Question, tree: str | None, words: Sequence[str], removes: bool = False) -> None:
    """Files out of `tree` (None: the index). Named files are written even if nothing changes."""
    specs = question.specs(words)
    question.loses(question.named(specs))
    if tree is None:
        question.loses(question.chosen(specs, question.repository.modified))
        if question.call.after:  # the index may be another by then
            question.maybe(question.chosen(specs, list))
    else:
        if not is_known(tree):  # as with a commit that is computed (`becomes`)
            question.loses(question.differing_from("HEAD", specs))
        question.loses(question.differing_from(question.known(tree), specs, removes))


def restore(question: Question) -> None:
    """``restore``: files out of a tree or the index; into the index alone is no write of files."""
    options = question.options
    staged = options.has("-S", "--staged")
    if staged and not options.has("-W", "--worktree"):
        return
    source = options.value("-s", "--source") or ("HEAD" if staged else None)
    if options.has("-p", "--patch"):
        question.maybe(question.differing_from(source or "HEAD", question.specs(options.operands)))
    elif options.operands or options.has("--pathspec-from-file"):
        _files(question, source, options.operands, removes=not options.has("--overlay"))


def reset(question: Question) -> None:
    """``reset``: with --hard, --merge, --keep; the others change no file."""
    options = question.options
    target = "HEAD"
    if options.operands:
        target = options.operands[0]
    if options.has("--hard"):
        question.becomes(target)
    elif options.has("--merge", "--keep"):
        question.moves_to(target)
        if options.has("--merge"):
            question.loses(question.staged())


def read_tree(question: Question) -> None:
    """``read-tree``: with -u."""
    options = question.options
    if options.has("-u") and options.operands:
        if options.has("--reset"):
            question.becomes(options.operands[-1])
        else:
            question.loses(question.staged(question.known(options.operands[-1])))


def checkout_index(question: Question) -> None:
    """``checkout-index``: missing files; with -f also existing ones."""
    options = question.options
    if options.has("--prefix", "--temp"):
        return
    if options.has("--stdin") or question.call.after:
        question.cannot_tell()
    everything, force = options.has("-a", "--all"), options.has("-f", "--force")
    specs = question.specs([] if everything else options.operands)
    if specs.is_empty and not everything:
        return
    if force and not specs.is_empty:
        question.loses(question.named(specs))
    changed = question.chosen(specs, question.repository.modified)
    question.loses(path for path in changed if force or not question.is_there(path))


def stash(question: Question) -> None:
    """``stash``: changes that it would take from the work tree, or put there."""
    operands = question.options.operands
    verb = "push"
    if operands and question.words[1] == operands[0]:
        verb = operands[0]
    if verb in ("push", "save"):
        _put_aside(question, verb)
    elif verb in ("pop", "apply", "branch"):
        if verb == "branch":
            rest = operands[2:]
        else:
            rest = operands[1:]
        _bring_back(question, next(iter(rest), "stash@{0}"), verb == "branch")


def _put_aside(question: Question, verb: str) -> None:
    if question.words[1:2] == [verb]:
        words = question.words[2:]
    else:
        words = question.words[1:]
    options = split(words, "m", ("--message", "--pathspec-from-file"))
    specs = question.specs([] if verb == "save" else options.operands)
    if options.has("-p", "--patch"):
        question.maybe(question.differing_from("HEAD", specs))
    elif options.has("-S", "--staged"):
        question.loses(question.staged())
    else:
        changed = question.differing_from("HEAD", specs)
        if options.has("-k", "--keep-index"):  # staged changes come back at once
            question.hit(changed)
            changed = question.chosen(specs, question.repository.modified)
        question.loses(changed)
        ignored = options.has("-a", "--all")
        if ignored or options.has("-u", "--include-untracked"):
            question.loses(question.chosen(specs, lambda paths: question.repository.untracked(paths, ignored)))


def _bring_back(question: Question, which: str, on_its_commit: bool) -> None:
    kept = question.known(f"stash@{{{which}}}" if which.isdigit() else which)
    try:
        question.moves_to(kept, f"{kept}^1")
    except Refused:
        return  # there is no such stash; one that the same command makes has been asked about as it is made
    if on_its_commit:
        question.moves_to(kept)
    try:
        if question.locked:
            untracked = question.repository.ask("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"{kept}^3")
            question.hit(path for path in untracked.split("\0") if path)
    except Refused:
        return  # it holds no untracked files


def clean(question: Question) -> None:
    """``clean``: asked of git itself, by its own dry run."""
    options = question.options
    flags = [f"-{letter}" for letter in "dxX" if options.has(f"-{letter}")]
    flags += ["-f"] * (len(options.given.get("-f", ())) + len(options.given.get("--force", ())))
    for pattern in options.values("-e", "--exclude"):
        if not is_known(pattern):
            question.cannot_tell()
            return
        flags += ["-e", pattern]
    specs = question.specs(options.operands)
    asked = specs.narrowed(path for path in (*question.locked, *question.nested) if question.is_below(path))
    if not asked:
        return
    if specs.is_empty and (not options.has("-d") or question.nested):
        # Without pathspecs whole folders are left out, or go; naming the files would ask something else.
        limits, top = [], os.path.join(question.repository.top, question.prefix)
    else:
        limits, top = [f":(top,literal){path}" for path in asked], question.repository.top
    answer = question.repository.ask("-C", top, "clean", "-n", *flags, "--", *limits)
    output = [unquoted(line[len("Would remove ") :]) for line in answer.split("\n") if line.startswith("Would remove ")]
    gone = [os.path.relpath(os.path.normpath(os.path.join(top, path)), question.repository.top) for path in output]
    if options.has("-i", "--interactive"):
        question.maybe(gone)
    else:
        question.loses(gone)


def add(question: Question) -> None:
    """``add``: a half-done file that differs from the index; an unchanged one is left alone."""
    options = question.options
    only_tracked = options.has("-u", "--update", "--renormalize")
    one_by_one = options.has("-p", "--patch", "-i", "--interactive", "-e", "--edit")
    everything = only_tracked or options.has("-A", "--all", "--no-ignore-removal")
    if not (options.operands or everything or one_by_one or options.has("--pathspec-from-file")):
        return
    specs = question.specs(options.operands)
    changed = question.chosen(specs, question.repository.modified)
    if one_by_one:
        question.maybe(changed)
        return
    question.takes(changed)
    if not only_tracked:
        forced = options.has("-f", "--force")
        question.takes(question.chosen(specs, lambda paths: question.repository.untracked(paths, forced)))
    if options.has("--chmod"):
        question.hit(question.named(specs))


def commit(question: Question) -> None:
    """``commit``: the staged changes of locked files, and with -a or paths the unstaged ones."""
    options = question.options
    if options.has("-p", "--patch", "--interactive"):
        question.maybe(question.repository.modified(question.locked))
    named: list[Any] = []
    if options.operands or options.has("--pathspec-from-file"):
        named = question.differing_from("HEAD", question.specs(options.operands))
        question.takes(named)
    if not (options.operands or options.has("--pathspec-from-file")) or options.has("-i", "--include"):
        question.takes(question.staged())
    if options.has("-a", "--all"):
        question.takes(question.repository.modified(question.locked))
    elif question.locked:
        _leave_to_hooks(question, "pre-commit", named)


def apply(question: Question) -> None:
    """``apply --cached``: the files of the patch get into the index, and so into the next commit."""
    if question.call.patch is None:
        question.cannot_tell()
        return
    named, founds = question.call.patch
    top = question.repository.top
    question.takes(os.path.relpath(path, top) for path in named if path.startswith(top + "/"))
    for path in question.locked if founds else ():
        output = [one.admits(os.path.join(top, path)) for one in founds]
        if any(output):
            question.takes([path])
        elif None in output:
            question.maybe([path])


def push(question: Question) -> None:
    """``push``: no file, but for its hooks."""
    if question.locked:
        _leave_to_hooks(question, "pre-push")


def _leave_to_hooks(question: Question, hook: str, named: Sequence[str] = ()) -> None:
    """Changes outside of the commit are put aside while this hook runs, if the hook is of such a kind."""
    call = question.call
    if not call.aside:
        call.aside = commit_hooks.putting_aside(call, question.options, question.repository, hook)
    if call.aside:
        question.loses(path for path in question.repository.modified(question.locked) if path not in named)


def unlink(question: Question) -> None:
    """``rm``: tracked files; with --cached it takes a peer's file out of the index."""
    options = question.options
    specs = question.specs(options.operands)
    forced = options.has("-f", "--force") and not options.has("--cached")
    say: Callable[[Iterable[str]], object] = question.hit
    if forced:
        say = question.loses
    if not specs.is_empty:
        say(question.named(specs))
        say(question.chosen(specs, question.repository.tracked))


def move(question: Question) -> None:
    """``mv``: files and folders, both where they were and where they get."""
    *sources, target = question.options.operands or [""]
    if sources and not all(map(is_known, [*sources, target])):
        question.cannot_tell()
    say = _moving(question)
    into = is_known(target) and os.path.isdir(os.path.join(question.call.folder, target))
    for source in sources:
        if source in question.call.found:
            specs = question.specs([source])
            say(path for path in question.locked if specs.matches(path))
            if question.covers:
                say(question.chosen(specs, question.repository.tracked))
        elif is_known(source):
            old = _seen_from_top(question, source)
            new = target
            if into:
                new = os.path.join(target, os.path.basename(source.rstrip("/")))
            if old is not None:
                _rename(question, old, _seen_from_top(question, new) if is_known(target) else None)


def _rename(question: Question, old: str, new: str | None) -> None:
    """The file or folder `old` becomes `new`: all that is in it goes, and arrives."""
    say = _moving(question)
    say(path for path in (old, new) if path is not None and path in question.locked)
    if question.covers:
        moved = question.repository.tracked([old])
        say(moved)
        say(new + path[len(old) :] for path in moved if new is not None)
    for path in question.locked:
        for folder in (old, new):
            if folder is None:
                continue
            if path.startswith(folder + "/") and question.is_there(old + path[len(folder) :]):
                say([path])
            elif folder.startswith(path + "/"):
                say([folder])


def _moving(question: Question) -> Callable[[Iterable[str]], object]:
    """Return the effect of a move: changes go along; with -f it also overwrites existing files."""
    if question.options.has("-f", "--force"):
        return question.loses
    return question.takes


def _seen_from_top(question: Question, word: str) -> str | None:
    """Return `word` relative to the top of the work tree, None if it is outside."""
    relative = os.path.relpath(os.path.join(question.repository.top, question.prefix, word), question.repository.top)
    if relative == "." or relative.startswith("../"):
        return None
    return relative


def update_index(question: Question) -> None:
    """``update-index``: the files it is given."""
    if question.options.has("--stdin", "--index-info", "--cacheinfo", "--again", "-g"):
        question.cannot_tell()
    before, after = cut(question.words[1:])
    words = [word for word in before if not word.startswith("-")] + (after or [])
    if words:
        question.takes(question.named(question.specs(words)))


# merge, rebase, cherry-pick, revert, pull, am, bisect: they bring other commits into the work tree.

UPSTREAM = "@{upstream}"
_PICKS = frozenset("pick p revert edit e reword r squash s fixup f".split())  # verbs in a list of commits to do


def merge(question: Question) -> None:
    """``merge``: files that the other side changed since the fork, and that differ from ours."""
    options = question.options
    if _goes_on(question, "", ""):
        return
    _autostash(question, "merge")
    if options.value("-s", "--strategy") != "ours":
        for head in options.operands or [UPSTREAM]:
            _merge(question, head)


def _merge(question: Question, head: str) -> None:
    theirs = question.known(head)
    changed = question.repository.since_fork("HEAD", theirs, question.locked)
    if changed:
        question.hit(set(changed) & set(question.repository.differing("HEAD", theirs, question.locked)))


def rebase(question: Question) -> None:
    """``rebase``: first all files that differ from the new base, then the files of its own commits."""
    options = question.options
    if options.has("--edit-todo"):
        question.cannot_tell()
    elif not _goes_on(question, "rebase-merge/orig-head", "rebase-merge/git-rebase-todo"):
        root = options.has("--root")
        _autostash(question, "rebase")
        _rebase(question, [""] * root + options.operands, root)


def _rebase(question: Question, operands: list[str], root: bool) -> None:
    options = question.options
    upstream = ""
    if not root:
        upstream = question.known(next(iter(operands), UPSTREAM))
    onto = ""
    if options.value("--onto") or upstream:
        onto = question.known(options.value("--onto") or upstream)
    tip = "HEAD"
    if len(operands) > 1:
        tip = question.known(operands[1])
    if not onto:
        question.maybe(question.repository.tracked(question.locked))
        return
    if options.has("--keep-base"):
        question.maybe(question.repository.since_fork(upstream, tip, question.locked))
        return
    ours = set(question.repository.differing("HEAD", onto, question.locked))
    own = ours
    if tip != "HEAD":
        own = set(question.repository.since_fork(upstream, tip, question.locked))
    if ours or own:
        anew = options.has("--onto", "--force-rebase", "--no-ff") or (
            options.has("-f") and question.words[0] == "rebase"
        )
        if anew or not question.repository.is_ancestor(onto, tip):
            question.hit(ours | own)
        elif tip != "HEAD":
            question.moves_to(tip)
        if options.has("-i", "--interactive"):
            question.maybe(own)  # commits that are picked as they are stay as they are


def pick(question: Question) -> None:
    """``cherry-pick``, ``revert``: the files of these commits."""
    options = question.options
    if not _goes_on(question, "sequencer/head", "sequencer/todo") and options.operands:
        revisions = [question.known(one) for one in options.operands]
        question.hit(question.repository.changed_in(revisions, question.locked, options.has("-m", "--mainline")))


def pull(question: Question) -> None:
    """``pull``: the commits fetched before are known; the ones it will fetch are not."""
    options = question.options
    question.cannot_tell()
    rebases = options.given.get("-r", []) + options.given.get("--rebase", [])
    if rebases:
        how = rebases[-1] or "true"
    else:
        how = question.repository.setting("pull.rebase")
    will_rebase = how not in ("", "false") and not options.has("--no-rebase")
    _autostash(question, "rebase" if will_rebase else "merge")
    remote, *refs = options.operands or [""]
    name = ""
    if refs:
        name = refs[0].partition(":")[0].lstrip("+")
    try:
        known = name
        if remote != ".":
            known = f"refs/remotes/{remote}/{name}"
        theirs = question.known(known if name else UPSTREAM)
        if will_rebase:
            _rebase(question, [theirs], False)
        else:
            _merge(question, theirs)
    except Refused:  # there is no upstream yet, and the fetched commits are unknown anyway
        return


def am(question: Question) -> None:
    """``am``: its patch is read elsewhere; here, the options that continue or give up an earlier one."""
    options = question.options
    _goes_on(question, "rebase-apply/orig-head", "")
    if options.has("-r", "--resolved"):
        question.takes(question.staged())
    if options.has("--continue", "-r", "--resolved", "--skip"):
        question.cannot_tell()


def bisect(question: Question) -> None:
    """``bisect``: to the commit halfway, as git itself finds it; `reset` goes back to where it began."""
    if "--no-checkout" in question.words:
        return
    verb, *rest = question.options.operands or [""]
    goods = "--glob=refs/bisect/good-*"
    if verb == "reset":
        if rest:
            target = rest[0]
        else:
            target = question.repository.note("BISECT_START")
        if target:
            question.moves_to(target)
    elif verb == "start" and "--" not in question.words and len(rest) != 1:
        if rest:
            _halfway(question, question.known(rest[0]), [question.known(one) for one in rest[1:]])
    elif verb in ("good", "old"):
        _halfway(question, "refs/bisect/bad", [goods, *map(question.known, rest or ["HEAD"])])
    elif verb in ("bad", "new"):
        _halfway(question, question.known(next(iter(rest), "HEAD")), [goods])
    else:
        question.cannot_tell()


def _halfway(question: Question, bad: str, goods: list[str]) -> None:
    for good in goods:
        if not good.startswith("--") and not question.repository.is_ancestor(good, bad):
            commit = question.repository.ask("merge-base", good, bad).strip()  # is tested first
            break
    else:
        output = question.repository.ask("rev-list", "--bisect-vars", bad, "--not", *goods)
        commit = output.partition("bisect_rev='")[2].partition("'")[0]
    if commit and commit != question.repository.ask("rev-parse", bad).strip():  # else it has found the one
        question.hit(question.repository.differing("HEAD", commit, question.locked))


def _goes_on(question: Question, original: str, todo: str) -> bool:
    """Return True if it continues or gives up an earlier operation, after noting the staged or conflicting files.

    `original` and `todo` are files of git's own: the commit that it goes back to, and its list of commits to do.
    """
    options = question.options
    if not options.has("--abort", "--continue", "--skip"):
        return options.has("--quit")
    gives_up = options.has("--abort", "--skip")
    if gives_up and question.words[0] == "rebase":  # the others keep unstaged changes
        question.becomes("HEAD")
    elif gives_up:
        question.loses(question.staged())
    else:
        question.takes(question.staged())
    if options.has("--abort"):
        head = ""
        if original:
            head = question.repository.note(original)
        if head:
            question.hit(question.repository.differing("HEAD", head, question.locked))
        return True
    commits = []
    for line in question.repository.note(todo).split("\n") if todo else ():
        words = line.split()
        if len(words) > 1 and words[0] in _PICKS:
            commits.append(words[2] if words[1].startswith("-") and len(words) > 2 else words[1])
    if commits:
        question.hit(question.repository.changed_in(commits, question.locked))
    return True


def _autostash(question: Question, command: str) -> None:
    """Uncommitted changes are put aside, and brought back."""
    if not question.locked or question.options.has("--no-autostash"):
        return
    if question.options.has("--autostash") or (
        question.repository.setting(f"{command}.autoStash").lower() in ("true", "yes", "on", "1")
    ):
        question.loses(question.repository.against("HEAD", question.locked))

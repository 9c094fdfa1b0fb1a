"""checkout, switch, restore, reset and their plumbing: what replaces files by those of another state."""

from swarm_hook_core.shell.git.command_line import cut
from swarm_hook_core.shell.git.repository import Refused


def checkout(question) -> None:
    """``checkout``: to a branch, or files out of a tree or the index."""
    before, after = cut(question.words[1:])
    options = question.options
    operands = options.operands if after is None else options.operands[: len(options.operands) - len(after)]
    force = options.has("-f", "--force")
    if options.has("-p", "--patch"):
        question.maybe(question.repository.against("HEAD", question.locked))
    elif options.has("-b", "-B", "--orphan"):
        if operands:
            _move(question, operands[0], force)
        elif force:
            question.hit(question.repository.against(question.known("HEAD"), question.locked))
    elif options.has("--pathspec-from-file"):
        _files(question, operands[0] if operands else None, [], removes=False)
    elif after:
        _files(question, operands[0] if operands else None, after, removes=False)
    elif not operands:
        if force:
            question.hit(question.repository.against(question.known("HEAD"), question.locked))
    elif operands[0] in question.call.found:
        _files(question, None, operands, removes=False)
    else:
        _branch_or_files(question, operands, force, only_branch=after is not None)


def _branch_or_files(question, operands, force: bool, only_branch: bool) -> None:
    """``checkout X ...``, where only git knows whether X is a revision."""
    first, rest = operands[0], operands[1:]
    if first[:1] == "." or first[-1:] == "/":  # no revision is called like that
        _files(question, None, operands, removes=False)
        return
    try:
        if rest:
            question.repository.ask("rev-parse", "--verify", "--quiet", f"{question.known(first)}^{{tree}}")
            _files(question, first, rest, removes=False)
        else:
            _move(question, first, force)
        return
    except Refused:
        if "\0" in first:
            question.cannot_tell()
            return
    if only_branch or not rest and not _may_be_file(question, first):
        if not _move_to_remote(question, first, force) and question.call.after:
            question.cannot_tell()
    else:
        _files(question, None, operands, removes=False)


def _may_be_file(question, word: str) -> bool:
    looks_so = word[:1] == ":" or any(letter in word for letter in "*?[")
    return looks_so or question.is_there(word, question.prefix) or bool(question.named(question.specs([word])))


def switch(question) -> None:
    """``switch``: to a branch."""
    options = question.options
    force = options.has("-f", "--force", "--discard-changes")
    if options.has("--orphan"):
        question.hit(question.repository.tracked(question.locked))  # starts with an empty tree
    elif options.operands:
        try:
            _move(question, options.operands[0], force)
        except Refused:
            if "\0" in options.operands[0] or not _move_to_remote(question, options.operands[0], force):
                raise
    elif force:
        question.hit(question.repository.against(question.known("HEAD"), question.locked))


def restore(question) -> None:
    """``restore``: files out of a tree or the index; into the index alone is no write of files."""
    options = question.options
    staged = options.has("-S", "--staged")
    if staged and not options.has("-W", "--worktree"):
        return
    source = options.value("-s", "--source") or ("HEAD" if staged else None)
    if options.has("-p", "--patch"):
        question.maybe(
            question.chosen(
                question.specs(options.operands), lambda paths: question.repository.against(source or "HEAD", paths)
            )
        )
    elif options.operands or options.has("--pathspec-from-file"):
        _files(question, source, options.operands, removes=not options.has("--overlay"))


def reset(question) -> None:
    """``reset``: with --hard, --merge, --keep; the others change no file."""
    options = question.options
    target = options.operands[0] if options.operands else "HEAD"
    if options.has("--hard"):
        question.hit(question.repository.against(question.known(target), question.locked))
    elif options.has("--merge", "--keep"):
        question.hit(question.repository.differing("HEAD", question.known(target), question.locked))
        if options.has("--merge"):
            question.hit(question.repository.staged(question.locked))


def read_tree(question) -> None:
    """``read-tree``: with -u."""
    options = question.options
    if options.has("-u") and options.operands:
        tree = question.known(options.operands[-1])
        question.hit(
            question.repository.against(tree, question.locked)
            if options.has("--reset")
            else question.repository.staged(question.locked, tree)
        )


def checkout_index(question) -> None:
    """``checkout-index``: what is missing; with -f also what is there."""
    options = question.options
    if options.has("--prefix", "--temp"):
        return
    if options.has("--stdin") or question.call.after:
        question.cannot_tell()
    specs = question.specs([] if options.has("-a", "--all") else options.operands)
    if specs.is_empty and not options.has("-a", "--all"):
        return
    if options.has("-f", "--force"):
        if not specs.is_empty:
            question.hit(question.named(specs))
        question.hit(question.chosen(specs, question.repository.modified))
    else:
        question.hit(
            path for path in question.chosen(specs, question.repository.modified) if not question.is_there(path)
        )


def _move(question, target: str, force: bool) -> None:
    revision = question.known(target)
    if force:
        question.hit(question.repository.against(revision, question.locked))
    else:
        question.hit(question.repository.differing("HEAD", revision, question.locked))


def _move_to_remote(question, name: str, force: bool) -> bool:
    """To the one remote branch of this name, which git would then follow; whether there is one."""
    if any(letter in name for letter in "*?[\\:~^ "):
        return False
    found = (
        question.repository.ask("for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}")
        .rstrip("\n")
        .split("\n")
    )
    if len(found) != 1 or not found[0]:
        return False
    _move(question, found[0], force)
    return True


def _files(question, tree, words, removes: bool) -> None:
    """Files out of `tree` (None: the index). Those that are named are written even where nothing changes."""
    specs = question.specs(words)
    question.hit(question.named(specs))
    if tree is None:
        question.hit(question.chosen(specs, question.repository.modified))
        if question.call.after:  # the index may be another by then
            question.maybe(question.chosen(specs, list))
    else:
        revision = question.known(tree)
        question.hit(question.chosen(specs, lambda paths: question.repository.against(revision, paths, removes)))

"""checkout, switch, restore, reset and their plumbing: what replaces files by those of another state."""

from swarm_hook_core.shell.git.repository import Refused
from swarm_hook_core.shell.git.words import cut


def checkout(q) -> None:
    """``checkout``: to a branch, or files out of a tree or the index."""
    before, after = cut(q.words[1:])
    o = q.options
    operands = o.operands if after is None else o.operands[: len(o.operands) - len(after)]
    force = o.has("-f", "--force")
    if o.has("-p", "--patch"):
        q.maybe(q.repository.against("HEAD", q.locked))
    elif o.has("-b", "-B", "--orphan"):
        if operands:
            _move(q, operands[0], force)
        elif force:
            q.hit(q.repository.against(q.known("HEAD"), q.locked))
    elif o.has("--pathspec-from-file"):
        _files(q, operands[0] if operands else None, [], removes=False)
    elif after:
        _files(q, operands[0] if operands else None, after, removes=False)
    elif not operands:
        if force:
            q.hit(q.repository.against(q.known("HEAD"), q.locked))
    elif operands[0] in q.call.found:
        _files(q, None, operands, removes=False)
    else:
        _branch_or_files(q, operands, force, only_branch=after is not None)


def _branch_or_files(q, operands, force: bool, only_branch: bool) -> None:
    """``checkout X ...``, where only git knows whether X is a revision."""
    first, rest = operands[0], operands[1:]
    if first[:1] == "." or first[-1:] == "/":  # no revision is called like that
        _files(q, None, operands, removes=False)
        return
    try:
        if rest:
            q.repository.ask("rev-parse", "--verify", "--quiet", f"{q.known(first)}^{{tree}}")
            _files(q, first, rest, removes=False)
        else:
            _move(q, first, force)
        return
    except Refused:
        if "\0" in first:
            q.cannot_tell()
            return
    if only_branch or not rest and not _may_be_file(q, first):
        if not _move_to_remote(q, first, force) and q.call.after:
            q.cannot_tell()
    else:
        _files(q, None, operands, removes=False)


def _may_be_file(q, word: str) -> bool:
    looks_so = word[:1] == ":" or any(letter in word for letter in "*?[")
    return looks_so or q.is_there(word, q.prefix) or bool(q.named(q.specs([word])))


def switch(q) -> None:
    """``switch``: to a branch."""
    o = q.options
    force = o.has("-f", "--force", "--discard-changes")
    if o.has("--orphan"):
        q.hit(q.repository.tracked(q.locked))  # starts with an empty tree
    elif o.operands:
        try:
            _move(q, o.operands[0], force)
        except Refused:
            if "\0" in o.operands[0] or not _move_to_remote(q, o.operands[0], force):
                raise
    elif force:
        q.hit(q.repository.against(q.known("HEAD"), q.locked))


def restore(q) -> None:
    """``restore``: files out of a tree or the index; into the index alone is no write of files."""
    o = q.options
    staged = o.has("-S", "--staged")
    if staged and not o.has("-W", "--worktree"):
        return
    source = o.value("-s", "--source") or ("HEAD" if staged else None)
    if o.has("-p", "--patch"):
        q.maybe(q.chosen(q.specs(o.operands), lambda paths: q.repository.against(source or "HEAD", paths)))
    elif o.operands or o.has("--pathspec-from-file"):
        _files(q, source, o.operands, removes=not o.has("--overlay"))


def reset(q) -> None:
    """``reset``: with --hard, --merge, --keep; the others change no file."""
    o = q.options
    target = o.operands[0] if o.operands else "HEAD"
    if o.has("--hard"):
        q.hit(q.repository.against(q.known(target), q.locked))
    elif o.has("--merge", "--keep"):
        q.hit(q.repository.differing("HEAD", q.known(target), q.locked))
        if o.has("--merge"):
            q.hit(q.repository.staged(q.locked))


def read_tree(q) -> None:
    """``read-tree``: with -u."""
    o = q.options
    if o.has("-u") and o.operands:
        tree = q.known(o.operands[-1])
        q.hit(q.repository.against(tree, q.locked) if o.has("--reset") else q.repository.staged(q.locked, tree))


def checkout_index(q) -> None:
    """``checkout-index``: what is missing; with -f also what is there."""
    o = q.options
    if o.has("--prefix", "--temp"):
        return
    if o.has("--stdin") or q.call.after:
        q.cannot_tell()
    specs = q.specs([] if o.has("-a", "--all") else o.operands)
    if specs.is_empty and not o.has("-a", "--all"):
        return
    if o.has("-f", "--force"):
        if not specs.is_empty:
            q.hit(q.named(specs))
        q.hit(q.chosen(specs, q.repository.modified))
    else:
        q.hit(path for path in q.chosen(specs, q.repository.modified) if not q.is_there(path))


def _move(q, target: str, force: bool) -> None:
    revision = q.known(target)
    if force:
        q.hit(q.repository.against(revision, q.locked))
    else:
        q.hit(q.repository.differing("HEAD", revision, q.locked))


def _move_to_remote(q, name: str, force: bool) -> bool:
    """To the one remote branch of this name, which git would then follow; whether there is one."""
    if any(letter in name for letter in "*?[\\:~^ "):
        return False
    found = q.repository.ask("for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}").rstrip("\n").split("\n")
    if len(found) != 1 or not found[0]:
        return False
    _move(q, found[0], force)
    return True


def _files(q, tree, words, removes: bool) -> None:
    """Files out of `tree` (None: the index). Those that are named are written even where nothing changes."""
    specs = q.specs(words)
    q.hit(q.named(specs))
    if tree is None:
        q.hit(q.chosen(specs, q.repository.modified))
        if q.call.after:  # the index may be another by then
            q.maybe(q.chosen(specs, list))
    else:
        revision = q.known(tree)
        q.hit(q.chosen(specs, lambda paths: q.repository.against(revision, paths, removes)))

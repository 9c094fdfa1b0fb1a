"""stash and clean: what puts work aside, brings it back, or throws it away."""

import os

from swarm_hook_core.shell.git.repository import Refused
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split


def stash(q) -> None:
    """``stash``: what it would take from the work tree, or put there."""
    operands = q.options.operands
    verb = operands[0] if operands and q.words[1] == operands[0] else "push"
    if verb in ("push", "save"):
        _push(q, verb)
    elif verb in ("pop", "apply", "branch"):
        rest = operands[2:] if verb == "branch" else operands[1:]
        _pop(q, rest[0] if rest else "stash@{0}", verb == "branch")


def _push(q, verb: str) -> None:
    words = q.words[2:] if q.words[1:2] == [verb] else q.words[1:]
    o = split(words, "m", ("--message", "--pathspec-from-file"))
    specs = q.specs([] if verb == "save" else o.operands)
    if o.has("-p", "--patch"):
        q.maybe(q.chosen(specs, lambda paths: q.repository.against("HEAD", paths)))
    elif o.has("-S", "--staged"):
        q.hit(q.repository.staged(q.locked))
    else:
        q.hit(q.chosen(specs, lambda paths: q.repository.against("HEAD", paths)))
        if o.has("-u", "--include-untracked", "-a", "--all"):
            ignored = o.has("-a", "--all")
            q.hit(q.chosen(specs, lambda paths: q.repository.untracked(paths, ignored)))


def _pop(q, which: str, on_its_commit: bool) -> None:
    kept = q.known(f"stash@{{{which}}}" if which.isdigit() else which)
    try:
        q.hit(q.repository.differing(f"{kept}^1", kept, q.locked))
    except Refused:
        return  # there is no such stash; one that the same command makes has been asked about as it is made
    if on_its_commit:
        q.hit(q.repository.differing("HEAD", kept, q.locked))
    try:
        if q.locked:
            untracked = q.repository.ask("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"{kept}^3")
            q.hit(path for path in untracked.split("\0") if path)
    except Refused:
        return  # it holds no untracked files


def clean(q) -> None:
    """``clean``: asked of git itself, by its own dry run."""
    from swarm_hook_core.shell.git.patches import unquoted

    o = q.options
    flags = [f"-{letter}" for letter in "dxXq" if letter != "q" and o.has(f"-{letter}")]
    flags += ["-f"] * (len(o.given.get("-f", ())) + len(o.given.get("--force", ())))
    for pattern in o.values("-e", "--exclude"):
        if not is_known(pattern):
            q.cannot_tell()
            return
        flags += ["-e", pattern]
    asked = [path for path in (*q.locked, *q.nested) if q.is_below(path)]
    specs = q.specs(o.operands)
    if not specs.is_empty:
        asked = specs.narrowed(asked)
    if not asked:
        return
    if specs.is_empty and (not o.has("-d") or q.nested):
        # Without pathspecs whole folders are left out, or go; naming the files would ask something else.
        limits, top = [], os.path.join(q.repository.top, q.prefix)
    else:
        limits, top = [f":(top,literal){path}" for path in asked], q.repository.top
    answer = q.repository.ask("-C", top, "clean", "-n", *flags, "--", *limits)
    told = [unquoted(line[len("Would remove ") :]) for line in answer.split("\n") if line.startswith("Would remove ")]
    gone = [os.path.relpath(os.path.normpath(os.path.join(top, path)), q.repository.top) for path in told]
    if o.has("-i", "--interactive"):
        q.maybe(gone)
    else:
        q.hit(gone)

"""stash and clean: what puts work aside, brings it back, or throws it away."""

import os

from swarm_hook_core.shell.git.repository import Refused
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.options import split


def stash(question) -> None:
    """``stash``: what it would take from the work tree, or put there."""
    operands = question.options.operands
    verb = operands[0] if operands and question.words[1] == operands[0] else "push"
    if verb in ("push", "save"):
        _push(question, verb)
    elif verb in ("pop", "apply", "branch"):
        rest = operands[2:] if verb == "branch" else operands[1:]
        _pop(question, rest[0] if rest else "stash@{0}", verb == "branch")


def _push(question, verb: str) -> None:
    words = question.words[2:] if question.words[1:2] == [verb] else question.words[1:]
    options = split(words, "m", ("--message", "--pathspec-from-file"))
    specs = question.specs([] if verb == "save" else options.operands)
    if options.has("-p", "--patch"):
        question.maybe(question.chosen(specs, lambda paths: question.repository.against("HEAD", paths)))
    elif options.has("-S", "--staged"):
        question.hit(question.repository.staged(question.locked))
    else:
        question.hit(question.chosen(specs, lambda paths: question.repository.against("HEAD", paths)))
        if options.has("-u", "--include-untracked", "-a", "--all"):
            ignored = options.has("-a", "--all")
            question.hit(question.chosen(specs, lambda paths: question.repository.untracked(paths, ignored)))


def _pop(question, which: str, on_its_commit: bool) -> None:
    kept = question.known(f"stash@{{{which}}}" if which.isdigit() else which)
    try:
        question.hit(question.repository.differing(f"{kept}^1", kept, question.locked))
    except Refused:
        return  # there is no such stash; one that the same command makes has been asked about as it is made
    if on_its_commit:
        question.hit(question.repository.differing("HEAD", kept, question.locked))
    try:
        if question.locked:
            untracked = question.repository.ask("ls-tree", "-r", "-z", "--name-only", "--full-tree", f"{kept}^3")
            question.hit(path for path in untracked.split("\0") if path)
    except Refused:
        return  # it holds no untracked files


def clean(question) -> None:
    """``clean``: asked of git itself, by its own dry run."""
    from swarm_hook_core.shell.git.patches import unquoted

    options = question.options
    flags = [f"-{letter}" for letter in "dxXq" if letter != "q" and options.has(f"-{letter}")]
    flags += ["-f"] * (len(options.given.get("-f", ())) + len(options.given.get("--force", ())))
    for pattern in options.values("-e", "--exclude"):
        if not is_known(pattern):
            question.cannot_tell()
            return
        flags += ["-e", pattern]
    asked = [path for path in (*question.locked, *question.nested) if question.is_below(path)]
    specs = question.specs(options.operands)
    if not specs.is_empty:
        asked = specs.narrowed(asked)
    if not asked:
        return
    if specs.is_empty and (not options.has("-d") or question.nested):
        # Without pathspecs whole folders are left out, or go; naming the files would ask something else.
        limits, top = [], os.path.join(question.repository.top, question.prefix)
    else:
        limits, top = [f":(top,literal){path}" for path in asked], question.repository.top
    answer = question.repository.ask("-C", top, "clean", "-n", *flags, "--", *limits)
    told = [unquoted(line[len("Would remove ") :]) for line in answer.split("\n") if line.startswith("Would remove ")]
    gone = [os.path.relpath(os.path.normpath(os.path.join(top, path)), question.repository.top) for path in told]
    if options.has("-i", "--interactive"):
        question.maybe(gone)
    else:
        question.hit(gone)

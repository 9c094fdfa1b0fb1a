"""A simple command: its assignments, its words, its redirections; ``[[ ]]`` and ``(( ))``."""

from swarm_hook_core.shell.model import Stream, is_known
from swarm_hook_core.shell.parser import words_in
from swarm_hook_core.shell.redirections import redirected
from swarm_hook_core.shell.variables import DECLARERS, assign, declare, is_assignment
from swarm_hook_core.shell.words import fields, pattern, value


def command(walk, node, scope):
    raws, redirects = node.words, node.redirects
    scope.predicate = False
    assigned = 0
    while assigned < len(raws) and is_assignment(raws[assigned]):
        assigned += 1
    if assigned == len(raws):
        for raw in raws:
            assign(walk, scope, raw)
        scope.status = True
        return redirected(walk, redirects, scope, "", lambda: Stream("")) if redirects else Stream("")
    if raws[assigned] in DECLARERS and raws[assigned] not in scope.functions:
        declare(walk, scope, raws[assigned:])
        return redirected(walk, redirects, scope, raws[assigned], lambda: Stream("")) if redirects else Stream("")
    words: list[str] = []
    for raw in raws[assigned:]:
        words += fields(walk, scope, raw)
    if not words:  # `$empty`
        return redirected(walk, redirects, scope, "", lambda: Stream("")) if redirects else Stream("")
    kept: dict = {}
    for raw in raws[:assigned]:
        name = raw.partition("=")[0].rstrip("+").partition("[")[0]
        kept.setdefault(name, scope.variables.get(name))
        assign(walk, scope, raw)
    try:
        if not redirects:
            return walk.simple(scope, words)
        if words == ["exec"]:
            return redirected(walk, redirects, scope, "exec", lambda: Stream(""), lasting=True)
        return redirected(walk, redirects, scope, " ".join(map(walk.shown, words)), lambda: walk.simple(scope, words))
    finally:
        for name, held in kept.items():
            if held is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = held


def calculation(walk, node, scope):
    """``(( ))``."""
    number = walk.computed(scope, node.raw)
    scope.predicate = True
    scope.status = number != "0" if is_known(number) else None
    return Stream("")


def condition(walk, node, scope):
    """``[[ ]]``."""
    from swarm_hook_core.shell.conditions import answer

    words: list[str] = []
    patterns: dict[int, str] = {}
    for raw in words_in(node.raw, walk.known):
        walk.spend()
        if words and words[-1] in ("=", "==", "!="):
            patterns[len(words)] = pattern(walk, scope, raw)
        words.append(value(walk, scope, raw))
    scope.predicate = True
    scope.status = answer(walk, scope, words, patterns)
    return Stream("")

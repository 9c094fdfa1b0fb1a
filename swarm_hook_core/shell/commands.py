"""A simple command: its assignments, its words, its redirections; ``[[ ]]`` and ``(( ))``."""

from swarm_hook_core.shell.model import Stream, is_known
from swarm_hook_core.shell.redirections import redirected
from swarm_hook_core.shell.variables import DECLARERS, Assignment, assign, assignment, declare
from swarm_hook_core.shell.words import fields, number, pattern, value


def command(walk, node, scope):
    scope.predicate = False
    assignments: list[Assignment] = []
    for word in node.words:
        to = assignment(word) if "=" in word.raw else None
        if to is None:
            break
        assignments.append(to)
    rest = node.words[len(assignments) :]
    if not rest or (rest[0].raw in DECLARERS and rest[0].raw not in scope.functions):
        if rest:
            declare(walk, scope, rest)
        else:
            for to in assignments:
                assign(walk, scope, to)
            scope.status = True
        return redirected(walk, node.redirects, scope, rest[0].raw if rest else "", lambda: Stream(""))
    words: list[str] = []
    for word in rest:
        words += fields(walk, scope, word)
    if not words:  # `$empty`
        return redirected(walk, node.redirects, scope, "", lambda: Stream(""))
    kept: dict = {}
    for to in assignments:
        kept.setdefault(to.name, scope.variables.get(to.name))
        assign(walk, scope, to)
    try:
        if not node.redirects:
            return walk.simple(scope, words)
        if words == ["exec"]:
            return redirected(walk, node.redirects, scope, "exec", lambda: Stream(""), lasting=True)
        return redirected(
            walk, node.redirects, scope, " ".join(map(walk.shown, words)), lambda: walk.simple(scope, words)
        )
    finally:
        for name, held in kept.items():
            if held is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = held


def calculation(walk, node, scope):
    """``(( ))``."""
    answer = number(walk, scope, node.word)
    scope.predicate = True
    scope.status = answer != "0" if is_known(answer) else None
    return Stream("")


def condition(walk, node, scope):
    """``[[ ]]``."""
    from swarm_hook_core.shell.conditions import answer

    words: list[str] = []
    patterns: dict[int, str] = {}
    for word in node.words:
        walk.spend()
        if words and words[-1] in ("=", "==", "!="):
            patterns[len(words)] = pattern(walk, scope, word)
        words.append(value(walk, scope, word))
    scope.predicate = True
    scope.status = answer(walk, scope, words, patterns)
    return Stream("")

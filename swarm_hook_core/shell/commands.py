"""A simple command as it stands in the tree: its assignments, its words, its redirections."""

from swarm_hook_core.shell.assignments import assign, is_assignment
from swarm_hook_core.shell.entries import Arithmetic, Redirect, Test
from swarm_hook_core.shell.model import Stream, is_known
from swarm_hook_core.shell.redirections import redirected
from swarm_hook_core.shell.skeleton import words_in
from swarm_hook_core.shell.words import fields, pattern, value

_DECLARERS = ("export", "local", "declare", "typeset", "readonly")


def table(walk, node):
    """The entry of the skeleton's table that `node` (``w12``) stands for."""
    if node is None:
        return ""
    first, last = node.start_byte, node.end_byte
    number = walk.unit.code[first + 1 : last]
    return walk.unit.table[int(number)] if number.isdecimal() else walk.unit.code[first:last]


def entries(walk, node) -> list:
    """What stands in a simple command, in order."""
    return [table(walk, one) for one in node.children if one.is_named and one.type != "ERROR"]


def command(walk, node, scope):
    held = entries(walk, node)
    raws = [one for one in held if isinstance(one, str)]
    redirects = [one for one in held if isinstance(one, Redirect)]
    scope.predicate = False
    special = next((one for one in held if isinstance(one, (Test, Arithmetic))), None)
    if special is not None:
        work = lambda: asked(walk, special, scope)
        return redirected(walk, redirects, scope, "", work) if redirects else work()
    assigned = 0
    while assigned < len(raws) and is_assignment(raws[assigned]):
        assigned += 1
    if assigned == len(raws):
        for raw in raws:
            assign(walk, scope, raw)
        scope.status = True
        return redirected(walk, redirects, scope, "", lambda: Stream("")) if redirects else Stream("")
    if raws[assigned] in _DECLARERS and raws[assigned] not in scope.functions:
        from swarm_hook_core.shell.builtins import declare

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


def asked(walk, entry, scope):
    """``[[ ]]`` and ``(( ))``."""
    scope.predicate = True
    if isinstance(entry, Arithmetic):
        number = walk.computed(scope, entry.raw)
        scope.status = number != "0" if is_known(number) else None
        return Stream("")
    from swarm_hook_core.shell.conditions import answer

    words, patterns = [], {}
    for raw in words_in(entry.raw, walk.known):
        walk.spend()
        if words and words[-1] in ("=", "==", "!="):
            patterns[len(words)] = pattern(walk, scope, raw)
        words.append(value(walk, scope, raw))
    scope.status = answer(walk, scope, words, patterns)
    return Stream("")

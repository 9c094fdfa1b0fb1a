"""Lists, pipes, branches and loops: one function for each kind of statement in `syntax`.

Each takes the walk, the statement and the Scope that it changes, and gives the Stream that is printed, or None.
"""

from swarm_hook_core.shell import globs, syntax
from swarm_hook_core.shell.commands import calculation, command, condition, redirected
from swarm_hook_core.shell.model import UNKNOWN, Input, Stream, is_known, joined
from swarm_hook_core.shell.word_reader import TooLong
from swarm_hook_core.shell.words import fields, number, pattern, value

MOST_ROUNDS = 40  # of one loop; the names beyond go through it as one
DEEPEST = 60  # statements within each other


def sequence(walk, nodes, scope):
    """Statements one after the other."""
    printed: list = []
    before = None
    for node in nodes:
        if scope.ended:
            break
        if not isinstance(before, syntax.Command) or "errexit" not in scope.options:
            scope.may_be_in(scope.if_failed)
        scope.if_failed, before = (), node
        printed.append(statement(walk, node, scope))
    return joined(printed)


def _in_each_folder(walk, node, scope):
    """The statement in the folder where the shell should be, and what it may do in those where it may be as well."""
    others, scope.elsewhere = scope.elsewhere, ()
    before = scope.fork()
    stream = statement(walk, node, scope)
    for folder in others:
        inside = before.fork()
        inside.folder = folder
        walk.in_doubt(statement, node, inside)
        if not inside.ended:
            scope.may_be_in([inside.folder, *inside.if_failed])
    return stream


def statement(walk, node, scope):
    """One statement; the Stream it prints, or None where that is not known."""
    if scope.elsewhere and not walk.doubts:
        return _in_each_folder(walk, node, scope)
    walk.spend()
    walk.depth += 1
    if walk.depth > DEEPEST:
        raise TooLong
    before, walk.scope = walk.scope, scope
    try:
        return _STATEMENTS[type(node)](walk, node, scope)
    finally:
        walk.scope = before
        walk.depth -= 1


def chain(walk, node, scope):
    printed = [statement(walk, node.first, scope)]
    for operator, right in node.rest:
        if scope.ended:
            break
        goes_on = scope.status if operator == "&&" else None if scope.status is None else not scope.status
        asked = scope.predicate
        failed = scope.failed()
        other = failed.fork() if operator == "||" else scope.fork()
        other.if_failed = ()
        if operator == "&&" and scope.tried is not None:
            other.folder = scope.tried  # `cd nowhere && rm x` names `nowhere/x`
        printed.append(statement(walk, right, other))
        if right is node.rest[-1][1] and "errexit" in scope.options:
            other.if_failed = ()  # the script would end there
        if goes_on is True:
            scope.adopt(other)
        elif goes_on is None and operator == "&&" and not asked and not other.ended:
            where = [*other.if_failed, failed.folder, *scope.if_failed[1:]]
            scope.adopt(other)
            scope.if_failed = tuple(dict.fromkeys(one for one in where if one not in (None, scope.folder)))
            scope.status = False if scope.status is False else None  # it may not have been reached
        elif goes_on is None:
            before = failed if operator == "&&" else scope.fork()
            before.if_failed = ()
            scope.merge([before, other], walk.one_of)
            scope.status = None
    return joined(printed)


def pipeline(walk, node, scope):
    stream = None
    for part in node.parts:
        inside = scope.fork()
        inside.heard = scope.heard or part is not node.parts[-1]
        if part is not node.parts[0]:
            inside.stdin = Input(stream)
        stream = statement(walk, part, inside)
    scope.status, scope.predicate = None, inside.predicate
    return stream


def subshell(walk, node, scope):
    inside = scope.fork()
    stream = sequence(walk, node.body, inside)
    scope.status, scope.predicate = inside.status, inside.predicate
    return stream


def with_redirections(walk, node, scope):
    return redirected(walk, node.redirects, scope, "a block", lambda: statement(walk, node.inner, scope))


def branches(walk, node, scope):
    """if, elif, else."""
    printed: list = []
    after: list = []
    taken = False  # a branch that is certainly the one
    for asked, body in node.clauses:
        sequence(walk, asked, scope)
        decided = scope.status
        inside = scope.fork()
        inside.if_failed = ()
        printed.append(sequence(walk, body, inside))
        if not taken and decided is not False:
            after.append(inside)
            taken = decided is True
        scope.adopt(scope.failed())
    if node.otherwise is not None:
        inside = scope.fork()
        printed.append(sequence(walk, node.otherwise, inside))
        if not taken:
            after.append(inside)
    elif not taken:
        after.append(scope.fork())
    scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def cases(walk, node, scope):
    subject = value(walk, scope, node.word)
    printed, after, sure, falls = [], [], False, False
    for patterns, body, goes_on in node.items:
        hit = None
        if is_known(subject):
            wanted = [pattern(walk, scope, word) for word in patterns]
            hit = any(globs.match(subject, one, True) for one in wanted) if all(map(is_known, wanted)) else None
        if (hit is False or sure) and not falls:
            continue  # another pattern is known to be the one
        falls = goes_on
        inside = scope.fork()
        printed.append(sequence(walk, body, inside))
        if not sure:
            after.append(inside)
            sure = hit is True or [word.raw for word in patterns] == ["*"]
    if not sure:
        after.append(scope.fork())
    scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def each(walk, node, scope):
    """for, select."""
    words: list[str] = []
    for word in node.words:
        words += fields(walk, scope, word)
    if len(words) > MOST_ROUNDS:
        rest = words[MOST_ROUNDS // 2 :]
        if all(map(is_known, rest)):
            words[MOST_ROUNDS // 2 :] = [walk.each_of(rest)]
    printed: list = []
    for text in words:
        scope.variables[node.name] = text
        printed.append(_round(walk, node.body, scope))
        if _left_loop(walk, scope):
            break
    if words and walk.has_found(words[-1]):
        scope.variables[node.name] = UNKNOWN
    return joined(printed)


def rounds(walk, node, scope):
    """while, until, and the counting for."""
    printed: list = []
    for _number in range(MOST_ROUNDS):
        sequence(walk, node.condition, scope)
        decided = scope.status if not node.until or scope.status is None else not scope.status
        if scope.ended or decided is False:
            break
        if decided is None:  # how often it goes round, nobody knows: once as it is, once with what that changed
            before = scope.fork()
            printed.append(_round(walk, node.body, scope))
            if not _left_loop(walk, scope):
                if _forget_changed(walk, before, scope):
                    sequence(walk, node.condition, scope)
                    printed.append(_round(walk, node.body, scope))
                    _left_loop(walk, scope)
                scope.merge([before, scope.fork()], walk.one_of)
            printed.append(None)
            break
        printed.append(_round(walk, node.body, scope))
        if _left_loop(walk, scope):
            break
        if node.step:
            number(walk, scope, node.step)
    else:
        walk.guess(scope, "a long loop", "")
    scope.status = None
    return joined(printed)


def _round(walk, body, scope):
    walk.spend()
    return sequence(walk, body, scope)


def _forget_changed(walk, before, scope) -> bool:
    """Variables that a round of a loop has changed may hold anything in the next."""
    changed = [name for name in scope.variables if before.variables.get(name) != scope.variables[name]]
    for name in changed:
        if not walk.has_found(str(scope.variables[name])):
            scope.variables[name] = UNKNOWN
    if scope.folder != before.folder:
        scope.folder = None
        return True
    return bool(changed)


def _left_loop(walk, scope) -> bool:
    """Whether the body ended in a way that ends the loop; `break` and `continue` end with it."""
    ended = scope.ended
    if ended in ("break", "continue"):
        scope.ended = ""
    return ended not in ("", "continue")


def define(walk, node, scope):
    scope.functions[node.name] = node.body
    scope.status = True
    return Stream("")


def negated(walk, node, scope):
    stream = statement(walk, node.inner, scope)
    scope.status = None if scope.status is None else not scope.status
    if scope.if_failed:
        scope.folder, scope.if_failed = scope.if_failed[0], (scope.folder, *scope.if_failed[1:])
    return stream


_STATEMENTS = {
    syntax.Arithmetic: calculation,
    syntax.Background: lambda walk, node, scope: statement(walk, node.inner, scope.fork()),
    syntax.Case: cases,
    syntax.Chain: chain,
    syntax.Command: command,
    syntax.For: each,
    syntax.Function: define,
    syntax.Group: lambda walk, node, scope: sequence(walk, node.body, scope),
    syntax.If: branches,
    syntax.Negated: negated,
    syntax.Pipeline: pipeline,
    syntax.Redirected: with_redirections,
    syntax.Subshell: subshell,
    syntax.Test: condition,
    syntax.While: rounds,
}

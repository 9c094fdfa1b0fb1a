"""Lists, pipes, branches and loops: the statements of the syntax tree, one function each.

Each takes the walk, the node and the Scope that it changes, and gives the Stream that is printed, or None.
"""

from swarm_hook_core.shell import globs
from swarm_hook_core.shell.commands import command, entries, redirected, table
from swarm_hook_core.shell.entries import Arithmetic, Redirect
from swarm_hook_core.shell.model import UNKNOWN, Stream, is_known
from swarm_hook_core.shell.quoting import TooLong
from swarm_hook_core.shell.streams import Input, joined
from swarm_hook_core.shell.words import fields, pattern, value

MOST_ROUNDS = 40  # of one loop; the names beyond go through it as one
DEEPEST = 60  # statements within each other


def sequence(walk, nodes, scope):
    """Statements one after the other."""
    printed: list = []
    before = None
    for place, node in enumerate(nodes):
        if not node.is_named:
            continue
        if scope.ended:
            break
        if before is None or before.type != "command" or "errexit" not in scope.options:
            scope.may_be_in(scope.if_failed)
        scope.if_failed, before = (), node
        background = place + 1 < len(nodes) and nodes[place + 1].type == "&"
        printed.append(statement(walk, node, scope.fork() if background else scope))
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
    """One node of the tree; the Stream it prints, or None where that is not known."""
    if scope.elsewhere and not walk.doubts:
        return _in_each_folder(walk, node, scope)
    walk.spend()
    walk.depth += 1
    if walk.depth > DEEPEST:
        raise TooLong
    before, walk.scope = walk.scope, scope
    try:
        handle = STATEMENTS.get(node.type)
        if handle is not None:
            return handle(walk, node, scope)
        if node.type == "ERROR":
            return sequence(walk, [one for one in node.children if one.type in STATEMENTS], scope)
        return Stream("")
    finally:
        walk.scope = before
        walk.depth -= 1


def chain(walk, node, scope):
    """``a && b || c``, which the tree nests to the left."""
    parts: list = []
    while node.type == "list" and len(node.children) == 3:
        left, operator, right = node.children
        parts.append((operator.type, right))
        node = left
    printed = [statement(walk, node, scope)]
    for place, (operator, right) in enumerate(reversed(parts), 1):
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
        if place == len(parts) and "errexit" in scope.options:
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
    stream, first, several = None, True, False
    parts = [one for one in node.children if one.is_named]
    for one in parts:
        inside = scope.fork()
        inside.heard = scope.heard or one is not parts[-1]
        if not first:
            inside.stdin = Input(stream)
        stream = statement(walk, one, inside)
        several = not first
        first = False
    scope.status, scope.predicate = None, several and inside.predicate
    return stream


def subshell(walk, node, scope):
    inside = scope.fork()
    stream = sequence(walk, node.children, inside)
    scope.status, scope.predicate = inside.status, inside.predicate
    return stream


def braces(walk, node, scope):
    """``{ a; }``, and what the skeleton put into braces for the sake of its redirections."""
    nodes = [one for one in node.children if one.type not in "{}"]
    redirects = entries(walk, nodes[0]) if nodes and nodes[0].type == "command" else []
    if not redirects or not all(isinstance(one, Redirect) and one.of_compound for one in redirects):
        return sequence(walk, nodes, scope)
    return redirected(walk, redirects, scope, "a block", lambda: sequence(walk, nodes[1:], scope))


def branches(walk, node, scope):
    """if, elif, else."""
    printed, after, taken = [], [], False
    part, conditions, last = "condition", [], None

    def body(nodes, decided):
        nonlocal taken
        inside = scope.fork()
        inside.if_failed = ()
        printed.append(sequence(walk, nodes, inside))
        if not taken and decided is not False:
            after.append(inside)
            taken = decided is True

    def visit(clause):
        nonlocal part, conditions, last
        here: list = []
        decided = None
        for child in clause.children:
            if child.type in ("if", "elif"):
                here, part = [], "condition"
            elif child.type == "then":
                sequence(walk, here, scope)
                decided = scope.status
                here, part = [], "body"
            elif child.type in ("elif_clause", "else_clause", "fi"):
                if part == "body":
                    body(here, decided)
                    scope.adopt(scope.failed())
                    part = ""
                if child.type == "elif_clause":
                    visit(child)
                elif child.type == "else_clause":
                    body(child.children[1:], None if not taken else False)
                    last = child
            else:
                here.append(child)
        if part == "body":
            body(here, decided)
            scope.adopt(scope.failed())
            part = ""

    visit(node)
    if last is None and not taken:
        after.append(scope.fork())
    if after:
        scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def cases(walk, node, scope):
    subject = _word(walk, scope, node.child_by_field_name("value"))
    printed, after, sure, falls = [], [], False, False
    for item in node.children:
        if item.type != "case_item":
            continue
        patterns, body = [], []
        for child in item.children_by_field_name("value"):
            patterns.append(_raw(walk, child))
        values = {child.id for child in item.children_by_field_name("value")}
        body = [child for child in item.children if child.is_named and child.id not in values]
        hit = None
        if is_known(subject):
            wanted = [pattern(walk, scope, raw) for raw in patterns]
            hit = any(globs.match(subject, one, True) for one in wanted) if all(map(is_known, wanted)) else None
        if (hit is False or sure) and not falls:
            continue  # another pattern is known to be the one
        falls = item.children[-1].type in (";&", ";;&")
        inside = scope.fork()
        printed.append(sequence(walk, body, inside))
        if not sure:
            after.append(inside)
            sure = hit is True or patterns == ["*"]
    if not sure:
        after.append(scope.fork())
    scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def each(walk, node, scope):
    """for, select."""
    name = table(walk, node.child_by_field_name("variable"))
    words: list[str] = []
    for child in node.children_by_field_name("value"):
        words += fields(walk, scope, table(walk, child))
    body = node.child_by_field_name("body")
    if body is None:
        return None
    if len(words) > MOST_ROUNDS:
        rest = words[MOST_ROUNDS // 2 :]
        if all(map(is_known, rest)):
            words[MOST_ROUNDS // 2 :] = [walk.each_of(rest)]
    printed: list = []
    for word in words:
        scope.variables[name] = word
        printed.append(statement(walk, body, scope))
        if _left_loop(walk, scope):
            break
    if words and walk.has_found(words[-1]):
        scope.variables[name] = UNKNOWN
    return joined(printed)


def rounds(walk, node, scope):
    """while, until, and the counting for."""
    conditions = [one for one in node.children_by_field_name("condition") if one.is_named]
    body = node.child_by_field_name("body")
    until = node.children[0].type == "until"
    step = _step_of(walk, conditions)
    printed: list = []
    for _round in range(MOST_ROUNDS):
        sequence(walk, conditions, scope)
        decided = scope.status if not until or scope.status is None else not scope.status
        if scope.ended or decided is False or body is None:
            break
        if decided is None:  # how often it goes round, nobody knows: once as it is, once with what that changed
            before = scope.fork()
            printed.append(statement(walk, body, scope))
            if not _left_loop(walk, scope):
                changed = _forget_changed(walk, before, scope)
                if changed:
                    sequence(walk, conditions, scope)
                    printed.append(statement(walk, body, scope))
                    _left_loop(walk, scope)
                scope.merge([before, scope.fork()], walk.one_of)
            printed.append(None)
            break
        printed.append(statement(walk, body, scope))
        if _left_loop(walk, scope):
            break
        if step:
            walk.computed(scope, step)
    else:
        walk.guess(scope, "a long loop", "")
    scope.status = None
    return joined(printed)


def _step_of(walk, conditions) -> str:
    first = entries(walk, conditions[0]) if conditions and conditions[0].type == "command" else []
    return first[0].step if first and isinstance(first[0], Arithmetic) else ""


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
    name = table(walk, node.child_by_field_name("name"))
    body = node.child_by_field_name("body")
    if body is not None:
        scope.functions[name] = (walk.unit, body)
    scope.status = True
    return Stream("")


def negated(walk, node, scope):
    stream = sequence(walk, node.children, scope)
    scope.status = None if scope.status is None else not scope.status
    if scope.if_failed:
        scope.folder, scope.if_failed = scope.if_failed[0], (scope.folder, *scope.if_failed[1:])
    return stream


def _raw(walk, node) -> str:
    entry = table(walk, node)
    return entry if isinstance(entry, str) else ""


def _word(walk, scope, node) -> str:
    return value(walk, scope, _raw(walk, node))


STATEMENTS = {
    "command": command,
    "list": chain,
    "pipeline": pipeline,
    "subshell": subshell,
    "compound_statement": braces,
    "do_group": lambda walk, node, scope: sequence(walk, node.children, scope),
    "if_statement": branches,
    "case_statement": cases,
    "for_statement": each,
    "while_statement": rounds,
    "function_definition": define,
    "negated_command": negated,
}

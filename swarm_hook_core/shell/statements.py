"""One function for each kind of statement in `syntax`: simple commands, lists, pipes, branches, loops, redirections.

Each takes the walk, the Scope that it changes and the statement, and returns the Stream that is printed, or None.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core import EDIT, REPLACE, wildcards
from swarm_hook_core.shell import syntax
from swarm_hook_core.shell.files import Commands
from swarm_hook_core.shell.model import (
    UNKNOWN,
    Input,
    Stream,
    Write,
    absolute,
    cited_output,
    edit_or_replace,
    is_device,
    is_known,
    joined,
)
from swarm_hook_core.shell.spans import rarely_fails, shown_parts
from swarm_hook_core.shell.syntax import (
    Arithmetic,
    Case,
    Chain,
    Command,
    For,
    Function,
    If,
    Negated,
    Node,
    Pipeline,
    Redirect,
    Redirected,
    Subshell,
    Test,
    While,
)
from swarm_hook_core.shell.variables import DECLARERS, Assignment, Scope, assign, assignment, declare
from swarm_hook_core.shell.words import document, fields, number, pattern, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

_SCREENS = ("/dev/stdout", "/dev/stderr", "/dev/tty")
_GOES_ON = (">>", "&>>", "<>")  # the file keeps its content


def _command(walk: Walk, scope: Scope, node: Command) -> Stream | None:
    scope.predicate = False
    assignments: list[Assignment] = []
    for word in node.words:
        to = None
        if "=" in word.raw:
            to = assignment(word)
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
        return _redirected(walk, scope, node.redirects, rest[0].raw if rest else "", lambda: Stream(""))
    words: list[str] = []
    line, scope.line = scope.line, []  # of the commands that the words are made of
    try:
        for word in rest:
            words += fields(walk, scope, word)
    finally:
        made_of, scope.line = scope.line, line
    if line is not None:
        line += made_of
    if not words:  # `$empty`
        return _redirected(walk, scope, node.redirects, "", lambda: Stream(""))
    kept: dict[str, Any] = {}
    for to in assignments:
        kept.setdefault(to.name, scope.variables.get(to.name))
        assign(walk, scope, to)
    try:
        if not node.redirects:
            return walk.simple(scope, words)
        if words == ["exec"]:
            return _redirected(walk, scope, node.redirects, "exec", lambda: Stream(""), lasting=True)
        by = " ".join(map(walk.shown, words))
        return _redirected(walk, scope, node.redirects, by, lambda: walk.simple(scope, words), made_of=made_of)
    finally:
        for name, current in kept.items():
            if current is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = current


def _calculation(walk: Walk, scope: Scope, node: Arithmetic) -> Stream:
    """``(( ))``."""
    answer = number(walk, scope, node.word)
    scope.predicate = True
    scope.status = None
    if is_known(answer):
        scope.status = answer != "0"
    return Stream("")


def _condition(walk: Walk, scope: Scope, node: Test) -> Stream:
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


def _redirected(
    walk: Walk,
    scope: Scope,
    redirects: list[Redirect],
    by: str,
    work: Callable[[], Stream | None],
    lasting: bool = False,
    made_of: Commands = (),
) -> Stream | None:
    """Run `work()` with `redirects` in place, and return the Stream that none of them catches.

    `made_of`: (folder, words) of the commands that its words are made of. They have run before a file is opened.
    """
    if not redirects:
        return work()
    stdin, line, heard, shown = scope.stdin, scope.line, scope.heard, scope.shown
    scope.line = [] if line is None else line
    opened = _Redirections(walk, scope, scope.line, made_of)
    for one in redirects:
        opened.open(one, by)
    caught = opened.caught
    scope.heard = heard or bool(caught)
    scope.shown = shown and (caught is None or caught in _SCREENS)
    try:
        stream = work()
    finally:
        scope.heard, scope.shown = heard, shown
        if not lasting:
            scope.stdin = stdin
        ran, scope.line = [*made_of, *opened.line], line
    opened.finish(stream, ran)
    if caught is not None or opened.to_nowhere:
        return Stream("")
    return stream


class _Redirections:
    """The redirections of one command.

    line        (folder, words) of the commands whose output goes the same way
    caught      the file that catches the output, empty for an unknown one; None if the output is not caught
    appends     True if the output is added to `caught`
    to_nowhere  True if the output goes to another descriptor, or is closed
    replaced    the Writes that replace a file's content
    """

    def __init__(self, walk: Walk, scope: Scope, line: list[tuple[str | None, list[str]]], made_of: Commands) -> None:
        self.walk = walk
        self.scope = scope
        self.line = line
        self.made_of = made_of
        self.caught: str | None = None
        self.appends = self.to_nowhere = False
        self.replaced: list[Write] = []

    def open(self, one: Redirect, by: str) -> None:
        walk, scope, kind = self.walk, self.scope, one.operator
        if kind in ("<<", "<<-"):
            body = one.body or ""
            quoted = any(letter in one.word.raw for letter in "\\'\"")
            if quoted or not set("$`\\").intersection(body):
                text = body
            else:
                text = document(self.walk, self.scope, body)
            if one.fd in ("", "0"):
                scope.stdin = Input(Stream(text), has_nul=False)
            return
        if kind == "<<<":
            scope.stdin = Input(Stream(value(walk, scope, one.word) + "\n"), has_nul=False)
            return
        found = fields(walk, scope, one.word)
        if len(found) == 1:
            target = found[0]
        else:
            target = value(walk, scope, one.word)
        if kind in ("<&", ">&") and (target == "-" or target.rstrip("-").isdecimal()):
            if kind == ">&" and one.fd in ("", "1") and target != "1":
                self.to_nowhere = True
        elif kind == ">&" and not is_known(target) and (one.fd or one.word.raw.startswith("$")):
            return  # `>&$fd`
        elif kind in ("<", "<&"):
            if one.fd in ("", "0"):
                scope.stdin = Input(walk.files.text_of(target, scope.folder))
                self.line.append((scope.folder, ["<", target]))
        else:
            self._write(one, target, by)

    def _write(self, one: Redirect, target: str, by: str) -> None:
        walk, folder, kind = self.walk, self.scope.folder, one.operator
        writes = len(walk.effects.writes)
        how = edit_or_replace(kind in _GOES_ON or walk.files.is_read_by(self.made_of, absolute(folder, target)))
        walk.files.write(target, folder, cited_output(by, kind, walk.shown(target)), how)
        if how == REPLACE:
            self.replaced += walk.effects.writes[writes:]
        if kind != "<>" and one.fd in ("", "1"):
            self.caught, self.appends = absolute(folder, target) or "", kind in (">>", "&>>")

    def finish(self, stream: Stream | None, ran: list[tuple[str | None, list[str]]]) -> None:
        """Note the files' new content: `stream` of the commands that `ran`."""
        files, caught = self.walk.files, self.caught
        if files.made_of:
            for write in self.replaced:
                if files.goes_through(ran, absolute(write.folder, write.path)):
                    write.how = EDIT
        if not caught:
            return
        if self.appends:
            ran = [*files.made_of.get(caught, ()), *ran]
            before = None
            if files.contents.get(caught) or not os.path.exists(caught):
                before = files.text_of(caught)
            stream = before and joined([before, stream])
        files.made_of[caught] = ran
        if not is_device(caught):
            files.contents[caught] = stream


MOST_ROUNDS = 40  # of one loop; the names beyond go through it as one
DEEPEST = 60  # statements within each other


def sequence(walk: Walk, scope: Scope, nodes: list[Node]) -> Stream | None:
    """Statements one after the other."""
    printed: list[Any] = []
    before = None
    for node in nodes:
        if scope.ended:
            break
        if not isinstance(before, syntax.Command) or "errexit" not in scope.options:
            scope.may_be_in(scope.if_failed)
        scope.if_failed, before = (), node
        printed.append(statement(walk, scope, node))
        if "errexit" in scope.options and scope.status is None and not rarely_fails(node):
            scope.shown = False  # the script may end there
    return joined(printed)


def _in_each_folder(walk: Walk, scope: Scope, node: Any) -> Stream | None:
    """Run the statement in the shell's likely folder, and record its possible effects in the other possible folders."""
    others, scope.elsewhere = scope.elsewhere, ()
    before = scope.fork()
    stream = statement(walk, scope, node)
    for folder in others:
        inside = before.fork()
        inside.folder = folder
        walk.in_doubt(statement, inside, node)
        if not inside.ended:
            scope.may_be_in([inside.folder, *inside.if_failed])
    return stream


def statement(walk: Walk, scope: Scope, node: Any) -> Stream | None:
    """Run one statement. Return the Stream it prints, or None if unknown."""
    if scope.elsewhere and not walk.doubts:
        return _in_each_folder(walk, scope, node)
    walk.spend()
    return walk.within(scope, DEEPEST, _STATEMENTS[type(node)], node)


def chain(walk: Walk, scope: Scope, node: Chain) -> Stream | None:
    printed = [statement(walk, scope, node.first)]
    left = node.first
    for operator, right in node.rest:
        if scope.ended:
            break
        if operator == "&&":
            goes_on = scope.status
        elif scope.status is None:
            goes_on = None
        else:
            goes_on = not scope.status
        asked = scope.predicate
        failed = scope.failed()
        if operator == "||":
            other = failed.fork()
        else:
            other = scope.fork()
        other.if_failed = ()
        if goes_on is not True and (goes_on is False or operator == "||" or asked or not rarely_fails(left)):
            other.shown = False
        left = right
        if operator == "&&" and scope.tried is not None:
            other.folder = scope.tried  # `cd nowhere && rm x` names `nowhere/x`
        printed.append(statement(walk, other, right))
        if right is node.rest[-1][1] and "errexit" in scope.options:
            other.if_failed = ()  # the script would end there
        if goes_on is True:
            scope.adopt(other)
        elif goes_on is None and operator == "&&" and not asked and not other.ended:
            where = [*other.if_failed, failed.folder, *scope.if_failed[1:]]
            scope.adopt(other)
            scope.if_failed = tuple(dict.fromkeys(one for one in where if one not in (None, scope.folder)))
            if scope.status:
                scope.status = None  # it may not have been reached
        elif goes_on is None:
            before = failed
            if operator != "&&":
                before = scope.fork()
            before.if_failed = ()
            scope.merge([before, other], walk.one_of)
            scope.status = None
    return joined(printed)


def pipeline(walk: Walk, scope: Scope, node: Pipeline) -> Stream | None:
    stream = None
    shown = shown_parts(node.parts)
    line = []
    if scope.line is not None:
        line = scope.line
    for part, spans in zip(node.parts, shown):
        inside = scope.fork()
        inside.line, inside.shown = line, scope.shown and spans is not None
        inside.spans = (*scope.spans, *(spans or ()))
        inside.heard = scope.heard or part is not node.parts[-1]
        if part is not node.parts[0]:
            inside.stdin = Input(stream)
        stream = statement(walk, inside, part)
    scope.status, scope.predicate = None, inside.predicate
    return stream


def subshell(walk: Walk, scope: Scope, node: Subshell) -> Stream | None:
    inside = scope.fork()
    stream = sequence(walk, inside, node.body)
    scope.status, scope.predicate = inside.status, inside.predicate
    return stream


def _with_redirections(walk: Walk, scope: Scope, node: Redirected) -> Stream | None:
    return _redirected(walk, scope, node.redirects, "a block", lambda: statement(walk, scope, node.inner))


def branches(walk: Walk, scope: Scope, node: If) -> Stream | None:
    """if, elif, else."""
    printed: list[Any] = []
    after: list[Any] = []
    taken = False  # a branch that is certainly the one
    shown = scope.shown
    for asked, body in node.clauses:
        sequence(walk, scope, asked)
        decided = scope.status
        inside = scope.fork()
        inside.if_failed = ()
        inside.shown = scope.shown and decided is True
        scope.shown = scope.shown and decided is False
        printed.append(sequence(walk, inside, body))
        if not taken and decided is not False:
            after.append(inside)
            taken = decided is True
        scope.adopt(scope.failed())
    if node.otherwise is not None:
        inside = scope.fork()
        printed.append(sequence(walk, inside, node.otherwise))
        if not taken:
            after.append(inside)
    elif not taken:
        after.append(scope.fork())
    scope.shown = shown
    scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def cases(walk: Walk, scope: Scope, node: Case) -> Stream | None:
    subject = value(walk, scope, node.word)
    printed, after, sure, falls = [], [], False, False
    for patterns, body, goes_on in node.items:
        hit = None
        if is_known(subject):
            wanted = [pattern(walk, scope, word) for word in patterns]
            hit = None
            if all(map(is_known, wanted)):
                hit = any(wildcards.match(subject, one, True) for one in wanted)
        if (hit is False or sure) and not falls:
            continue  # another pattern is known to be the one
        falls = goes_on
        inside = scope.fork()
        inside.shown = scope.shown and hit is True
        printed.append(sequence(walk, inside, body))
        if not sure:
            after.append(inside)
            sure = hit is True or [word.raw for word in patterns] == ["*"]
    if not sure:
        after.append(scope.fork())
    scope.merge(after, walk.one_of)
    scope.status, scope.predicate = None, False
    return joined(printed)


def each(walk: Walk, scope: Scope, node: For) -> Stream | None:
    """for, select."""
    words: list[str] = []
    for word in node.words:
        words += fields(walk, scope, word)
    if len(words) > MOST_ROUNDS:
        rest = words[MOST_ROUNDS // 2 :]
        if all(map(is_known, rest)):
            words[MOST_ROUNDS // 2 :] = [walk.each_of(rest)]
    printed: list[Any] = []
    for text in words:
        scope.variables[node.name] = text
        printed.append(_round(walk, scope, node.body))
        if _left_loop(scope):
            break
    if words and walk.has_found(words[-1]):
        scope.variables[node.name] = UNKNOWN
    return joined(printed)


def rounds(walk: Walk, scope: Scope, node: While) -> Stream | None:
    """while, until, and the counting for."""
    printed: list[Any] = []
    shown = scope.shown
    for _number in range(MOST_ROUNDS):
        sequence(walk, scope, node.condition)
        if not node.until or scope.status is None:
            decided = scope.status
        else:
            decided = not scope.status
        if scope.ended or decided is False:
            break
        if decided is None:  # the number of rounds is unknown: one as it is, one with the variables that it changed
            before = scope.fork()
            scope.shown = False
            printed.append(_round(walk, scope, node.body))
            if not _left_loop(scope):
                if _forget_changed(walk, before, scope):
                    sequence(walk, scope, node.condition)
                    printed.append(_round(walk, scope, node.body))
                    _left_loop(scope)
                scope.merge([before, scope.fork()], walk.one_of)
            scope.shown = shown
            printed.append(None)
            break
        printed.append(_round(walk, scope, node.body))
        if _left_loop(scope):
            break
        if node.step:
            number(walk, scope, node.step)
    else:
        walk.guess(scope, "a long loop", "")
    scope.status = None
    return joined(printed)


def _round(walk: Walk, scope: Scope, body: list[Node]) -> Stream | None:
    walk.spend()
    return sequence(walk, scope, body)


def _forget_changed(walk: Walk, before: Scope, scope: Scope) -> bool:
    """Variables that a round of a loop has changed may hold anything in the next."""
    changed = [name for name in scope.variables if before.variables.get(name) != scope.variables[name]]
    for name in changed:
        if not walk.has_found(str(scope.variables[name])):
            scope.variables[name] = UNKNOWN
    if scope.folder != before.folder:
        scope.folder = None
        return True
    return bool(changed)


def _left_loop(scope: Scope) -> bool:
    """Return True if the body ended in a way that ends the loop; `break` and `continue` end with it."""
    ended = scope.ended
    if ended in ("break", "continue"):
        scope.ended = ""
    return ended not in ("", "continue")


def define(walk: Walk, scope: Scope, node: Function) -> Stream:
    scope.functions[node.name] = node.body
    scope.status = True
    return Stream("")


def negated(walk: Walk, scope: Scope, node: Negated) -> Stream | None:
    stream = statement(walk, scope, node.inner)
    if scope.status is None:
        scope.status = None
    else:
        scope.status = not scope.status
    if scope.if_failed:
        scope.folder, scope.if_failed = scope.if_failed[0], (scope.folder, *scope.if_failed[1:])
    return stream


_STATEMENTS: dict[type, Callable[[Walk, Scope, Any], Stream | None]] = {
    syntax.Arithmetic: _calculation,
    syntax.Background: lambda walk, scope, node: statement(walk, scope.fork(), node.inner),
    syntax.Case: cases,
    syntax.Chain: chain,
    syntax.Command: _command,
    syntax.For: each,
    syntax.Function: define,
    syntax.Group: lambda walk, scope, node: sequence(walk, scope, node.body),
    syntax.If: branches,
    syntax.Negated: negated,
    syntax.Pipeline: pipeline,
    syntax.Redirected: _with_redirections,
    syntax.Subshell: subshell,
    syntax.Test: _condition,
    syntax.While: rounds,
}

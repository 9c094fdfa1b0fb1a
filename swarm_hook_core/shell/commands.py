"""A simple command: its assignments, its words; ``[[ ]]`` and ``(( ))``; redirections, of compound commands, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.shell.files import Commands
from swarm_hook_core.shell.model import (
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
from swarm_hook_core.shell.syntax import Arithmetic, Command, Redirect, Test
from swarm_hook_core.shell.variables import DECLARERS, Assignment, Scope, assign, assignment, declare
from swarm_hook_core.shell.words import document, fields, number, pattern, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk


_SCREENS = ("/dev/stdout", "/dev/stderr", "/dev/tty")
_GOES_ON = (">>", "&>>", "<>")  # the file keeps its content


def command(walk: Walk, scope: Scope, node: Command) -> Stream | None:
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
        return redirected(walk, scope, node.redirects, rest[0].raw if rest else "", lambda: Stream(""))
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
        return redirected(walk, scope, node.redirects, "", lambda: Stream(""))
    kept: dict[str, Any] = {}
    for to in assignments:
        kept.setdefault(to.name, scope.variables.get(to.name))
        assign(walk, scope, to)
    try:
        if not node.redirects:
            return walk.simple(scope, words)
        if words == ["exec"]:
            return redirected(walk, scope, node.redirects, "exec", lambda: Stream(""), lasting=True)
        by = " ".join(map(walk.shown, words))
        return redirected(walk, scope, node.redirects, by, lambda: walk.simple(scope, words), made_of=made_of)
    finally:
        for name, current in kept.items():
            if current is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = current


def calculation(walk: Walk, scope: Scope, node: Arithmetic) -> Stream:
    """``(( ))``."""
    answer = number(walk, scope, node.word)
    scope.predicate = True
    scope.status = None
    if is_known(answer):
        scope.status = answer != "0"
    return Stream("")


def condition(walk: Walk, scope: Scope, node: Test) -> Stream:
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


def redirected(
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

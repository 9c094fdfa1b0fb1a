"""Runs a command whose words are known: a function, a builtin, or a program."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from swarm_hook_core.shell.builtins import BUILTINS
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.lexer import TooLong
from swarm_hook_core.shell.model import Stream, absolute, is_known
from swarm_hook_core.shell.statements import statement
from swarm_hook_core.shell.variables import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.programs import Program
    from swarm_hook_core.shell.walk import Walk


MOST_WORDS = 4000  # of a command that writes
SECONDS_TO_LOAD = 0.008  # for loading one program; the Budget limits all of them

_ASKS = frozenset("test [ grep egrep fgrep rg which type hash diff cmp pgrep command".split())
_ASKS_WHAT_IT_IS = (["-h"], ["-V"], ["-help"], ["-version"], ["help"], ["version"], ["--usage"])
# Names of read-only subcommands in nearly every program.
_LOOKS = frozenset(
    "list ls show status st info search describe log logs diff view ping devices policy whoami doctor query tree top ps"
    " history version help".split()
)
MOST_BEFORE = 8  # words of an unknown program that are looked at for a command that it runs
_TAKES_TEXT = ("-c", "--command", "--cmd", "--exec")
_NEVER_FAIL = frozenset("echo printf pwd date sleep".split())
# Names of programs that a file of the project may have as well: `./test` is not `test`.
_COMMON_NAMES = frozenset("test [ install watch script make true false echo sort patch view time env run w".split())


def run(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    name = words[0]
    scope.status, scope.predicate = True if name in _NEVER_FAIL else None, name in _ASKS
    scope.tried, scope.if_failed = None, ()
    if scope.line is not None:
        scope.line.append((scope.folder, words))
    if name in scope.functions:
        return _function(walk, scope, words)
    if name in scope.aliases and walk.depth < 20:
        text = scope.aliases[name]
        kept, scope.words = scope.words, ["bash", *words[1:]]
        aliases, scope.aliases = scope.aliases, {one: scope.aliases[one] for one in scope.aliases if one != name}
        try:
            return walk.evaluated(scope, text + ' "$@"')
        finally:
            scope.words, scope.aliases = kept, aliases
    before, scope.last = scope.last, words[-1]
    try:
        if name in BUILTINS:
            return BUILTINS[name](walk, scope, words)
        return _program(walk, scope, words)
    except (TooLong, RecursionError, MemoryError):
        raise
    except Exception as error:  # a fault in one command must not lose the others
        scope.last = before
        walk.not_understood(scope, error, " ".join(map(walk.shown, words)))
        return None


def _function(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    body = scope.functions[words[0]]
    kept_words, kept_locals = scope.words, scope.locals
    scope.words, scope.locals = [kept_words[0], *words[1:]], {}
    try:
        stream = statement(walk, scope, body)
    finally:
        for name, current in (scope.locals or {}).items():
            if current is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = current
        scope.words, scope.locals = kept_words, kept_locals
    if scope.ended == "return":
        scope.ended = ""
    return stream


def _program(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    name = words[0]
    if is_known(name):
        base = name.rpartition("/")[2]
    else:
        base = walk.shown(name)
    call = Call(walk, base, words[1:], scope.folder, scope.stdin.rest())
    if not is_known(name):
        call.guess("a computed command")
        return None
    if len(words) > MOST_WORDS and not only_reads(walk, words):
        call.guess("more words than are looked at")
        return None
    _note_program(walk, call.name, words)
    if words[1:] in (["--help"], ["--version"]) or not call.name:
        if "/" in name:  # a script of the project need not know the option
            call.runs_project()
        return None
    if "/" in name:
        script = _script_text(walk, scope, name, call.name)
        if script is not None:
            return _own_shell(walk, scope, script, words)
    program = _loaded(walk, call.name)
    if (
        program is None
        or (name.startswith(".") and call.name in _COMMON_NAMES)
        or _is_a_script_called_so(name, program)
    ):
        if "/" not in name and (words[1:] in _ASKS_WHAT_IT_IS or words[2:] == ["--help"]):
            return None
        if "/" not in name and (words[1:2] == ["--list"] or words[1:] == ["-l"] or _LOOKS.intersection(words[1:2])):
            call.runs_project()  # watched, without a word
        else:
            call.guess(_unknown(walk, scope, name))
            _wrapped(call)
        _name_outputs(call)
        return None
    if program.runs:  # these may take long
        program.does(call)
        return call.output
    if call.name in walk.met:
        _do(call, program)
        return call.output
    walk.met.add(call.name)
    budget, before, start, modules = walk.budget, walk.end, time.thread_time(), len(sys.modules)
    end, left, imported = budget.end, budget.to_load, budget.imported
    walk.end += max(min(left, SECONDS_TO_LOAD), left / 2)  # importing takes time: allow more if imports are slow
    try:
        _do(call, program)
    finally:
        imported = budget.imported - imported
        walk.end, budget.end, budget.to_load = before + imported, end + imported, left + imported
        if len(sys.modules) > modules:
            walk.forgive(time.thread_time() - start - imported)
    return call.output


def _wrapped(call: Call) -> None:
    """Follow a command in the arguments of an unknown program: it may run that, as ``newtool run -- git stash``."""
    walk, words = call.walk, call.words
    places, text = list(range(min(len(words), MOST_BEFORE))), ""
    if "--" in words[MOST_BEFORE:-1]:
        places.append(words.index("--") + 1)
    for at in places:
        before = words[at - 1] if at else ""
        if before in _TAKES_TEXT and is_known(words[at]):
            text = words[at]
        if text or (words[at] not in _COMMON_NAMES and _runs_or_writes(walk, words[at])):
            trees = len(walk.effects.trees)
            walk.in_doubt(_run_wrapped, call, text, words[at:])
            for tree in walk.effects.trees[trees:]:
                tree.is_told = True
            return


def _run_wrapped(_walk: Walk, call: Call, text: str, words: list[str]) -> None:
    if text:
        call.script(text)
    else:
        call.run(words)


def _runs_or_writes(walk: Walk, word: str) -> bool:
    program = _loaded(walk, word) if word.replace("-", "").isalnum() else None
    return program is not None and not program.reads


def _note_program(walk: Walk, name: str, words: list[str]) -> None:
    """Record that the program runs: some rules about whole commands go by their programs."""
    programs = walk.effects.programs
    programs.add(name)
    if name == "git":
        at = 1
        while at < len(words) and words[at][:1] == "-":
            at += 1 + (words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
        programs.update(f"git {word}" for word in words[at : at + 1])


def _do(call: Call, program: Program) -> None:
    """Run the program's row; for an interpreter with an unread script, also take the outputs that its options name."""
    guesses = len(call.walk.effects.guesses)
    program.does(call)
    if program.module == "interpreters" and len(call.walk.effects.guesses) > guesses:
        words = call.words
        at = next((at for at, word in enumerate(words) if word[:1] != "-"), len(words))
        _name_outputs(call, words[at + 1 :])


def _name_outputs(call: Call, words: list[str] | None = None) -> None:
    """Call `undeclared.name_outputs`."""

    def load() -> Callable[[Call, list[str] | None], None]:
        from swarm_hook_core.shell.programs.undeclared import name_outputs

        return name_outputs

    call.walk.untimed(load)(call, words)


def _is_a_script_called_so(name: str, program: Program) -> bool:
    """Return True if `name` is a project file with the name of a read-only program: ``./info``."""
    reads = program.reads and not program.module
    return reads and "/" in name and name[0] != "/" and "/.bin/" not in name and "venv/" not in name


def _loaded(walk: Walk, name: str) -> Program | None:
    """Return the Program `name`, or None."""

    def load() -> Program | None:
        from swarm_hook_core.shell.programs import program

        return program(name)

    return walk.untimed(load)


def _own_shell(walk: Walk, scope: Scope, text: str, words: list[str]) -> Stream | None:
    """A script file that is run."""
    inside = scope.fork()
    inside.words = list(words)
    inside.functions, inside.aliases, inside.options = {}, {}, set()  # sh or bash, mostly
    return walk.evaluated(inside, text)


def _unknown(walk: Walk, scope: Scope, name: str) -> str:
    whole = None
    if "/" in name:
        whole = absolute(scope.folder, name)
    if whole is not None and os.path.isfile(whole):
        return "an opaque script"
    return f"{walk.shown(name)} is not known"


def _script_text(walk: Walk, scope: Scope, name: str, base: str) -> str | None:
    """Return the text of the shell script that command `name` runs, or None."""
    known = _loaded(walk, base)
    if known is not None and (known.module or not known.reads) and base not in _COMMON_NAMES:
        return None
    stream = walk.files.text_of(name, scope.folder)
    if stream is None or stream.text is None or not is_known(stream.text):
        return None
    from swarm_hook_core.shell.programs.interpreters import is_shell_script

    if is_shell_script(stream.text, base):
        return stream.text
    return None


def only_reads(walk: Walk, words: list[str]) -> bool:
    """Return True if the command writes nothing, so that its arguments and repetitions do not matter."""
    known = None
    if words:
        known = _loaded(walk, words[0].rpartition("/")[2])
    return known is not None and known.reads

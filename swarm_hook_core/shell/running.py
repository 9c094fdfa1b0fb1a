"""Runs a command whose words are known: a function, one of the shell's own commands, or a program."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.lexer import TooLong
from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known
from swarm_hook_core.shell.statements import statement
from swarm_hook_core.shell.variables import DECLARERS, Scope, declare_texts, map_file, read, unset

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
        if name in _BUILTINS:
            return _BUILTINS[name](walk, scope, words)
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
    """Report the outputs that the options of a command without a row name."""

    def load() -> Callable[[Call, list[str] | None], None]:
        from swarm_hook_core.shell.programs.engine import name_outputs

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


# The shell's own commands: they change its folder, its variables, or the next step. `_BUILTINS` names them.


def _set_words(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """set."""
    rest = words[1:]
    while rest:
        if rest[0] in ("--", "-"):
            scope.words = [scope.words[0], *rest[1:]]
            return Stream("")
        if rest[0][:1] not in ("-", "+") or not is_known(rest[0]):
            scope.words = [scope.words[0], *rest]
            return Stream("")
        takes = rest[0].endswith("o")
        change: Callable[[str], None] = scope.options.discard
        if rest[0][0] == "-":
            change = scope.options.add
        if takes and rest[1:2] == ["errexit"] or "e" in rest[0][1:]:
            change("errexit")
        if takes and rest[1:2] == ["noglob"] or "f" in rest[0][1:]:
            change("noglob")
        if takes:
            rest = rest[2:]
        else:
            rest = rest[1:]
    return Stream("")


def _shift(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    by = "1"
    if len(words) > 1:
        by = words[1]
    if UNKNOWN not in scope.words:
        if by.isdecimal():
            del (kept := list(scope.words))[1 : 1 + int(by)]
            scope.words = kept
        else:
            scope.words = [scope.words[0], UNKNOWN]
    scope.status = True
    if UNKNOWN in scope.words:
        scope.status = None
    return Stream("")


def _set_options(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """shopt, setopt, unsetopt."""
    unset_them = words[0] == "unsetopt" or "-u" in words[1:]
    for word in words[1:]:
        if not word.startswith("-"):
            option = word.lower().replace("_", "")
            if unset_them:
                scope.options.discard(option)
            else:
                scope.options.add(option)
    scope.status = True
    return Stream("")


def _alias(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    for word in words[1:]:
        name, mark, text = word.partition("=")
        if mark and is_known(word):
            scope.aliases[name] = text
    scope.status = True
    return Stream("")


def _unalias(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    for word in words[1:]:
        scope.aliases.pop(word, None)
    if "-a" in words:
        scope.aliases.clear()
    return Stream("")


def _leave(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """exit, return, break, continue, logout."""
    scope.ended = "exit"
    if words[0] != "logout":
        scope.ended = words[0]
    if len(words) > 1:
        scope.status = None
        if words[1].isdecimal():
            scope.status = words[1] == "0"
    return Stream("")


def _succeed(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    scope.status = True
    return Stream("")


def _fail(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    scope.status = False
    return Stream("")


def _test(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    from swarm_hook_core.shell.conditions import answer

    if words[0] == "[" and words[-1] == "]":
        inner = words[1:-1]
    else:
        inner = words[1:]
    scope.status = answer(walk, scope, inner)
    return Stream("")


def _evaluate(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    text = " ".join(words[2:] if words[1:2] == ["--"] else words[1:])
    return walk.evaluated(scope, text)


def _source(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    """source, and its short form."""
    if words[1:2] == ["--"]:
        operands = words[2:]
    else:
        operands = words[1:]
    if not operands:
        return None
    whole = absolute(scope.folder, operands[0])
    if whole is not None and walk.files.is_missing(whole):
        scope.status = False
        return Stream("")
    stream = walk.files.text_of(operands[0], scope.folder)
    if stream is None or stream.text is None or not is_known(stream.text):
        walk.guess(scope, "an opaque script", walk.shown(" ".join(words)))
        return None
    kept = scope.words
    if operands[1:]:
        scope.words = [kept[0], *operands[1:]]
    try:
        stream = walk.evaluated(scope, stream.text)
    finally:
        scope.words = kept
    if scope.ended == "return":
        scope.ended = ""
    return stream


def _past(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    """command, builtin, exec, noglob, nocorrect: the rest is the command, functions aside."""
    rest, name = words[1:], words[0]
    while rest and rest[0].startswith("-"):
        option, rest = rest[0], rest[1:]
        if name == "command" and ("v" in option.lower()):
            scope.predicate = True
            return None
        if name == "exec" and option == "-a":
            rest = rest[1:]
        if option == "--":
            break
    if not rest:
        return Stream("")
    kept, scope.functions = scope.functions, {}
    try:
        stream = walk.simple(scope, rest)
    finally:
        if not scope.functions:
            scope.functions = kept
        else:
            scope.functions = {**kept, **scope.functions}
    if name == "exec":
        scope.ended = "exit"
    return stream


def _trap(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    operands = [word for word in words[1:] if word not in ("--", "-p", "-l")]
    if len(operands) > 1 and operands[0] not in ("-", "") and is_known(operands[0]):
        inside = scope.fork()
        walk.evaluated(inside, operands[0])
    elif len(operands) > 1 and not is_known(operands[0]):
        walk.guess(scope, "a computed command", walk.shown(" ".join(words)))
    return Stream("")


def _let(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    number = "0"
    for word in words[1:]:
        number = walk.computed(scope, word)
    scope.status = None
    if is_known(number):
        scope.status = number != "0"
    return Stream("")


def _get_options(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """getopts: the options are not followed, so its variables become unknown."""
    for name in (*words[2:3], "OPTARG", "OPTIND"):
        scope.variables[name] = UNKNOWN
    scope.status = None
    return Stream("")


def _nothing(walk: Walk, scope: Scope, words: list[str]) -> None:
    scope.status = None
    return None


def _where(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    """pwd."""
    scope.status = True
    if scope.folder is not None:
        return Stream(scope.folder + "\n")
    return None


def _change_folder(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    """cd, pushd, popd, dirs."""
    name = words[0]
    options = [word for word in words[1:] if word != "-" and word[:1] == "-" and not word.strip("-LPen@")]
    operands = [word for word in words[1:] if word not in options]
    if name == "dirs":
        return Stream(None)
    if name == "popd" or (name == "pushd" and not operands):
        if not scope.stack:
            scope.status = False  # it stays
        elif name == "popd":
            _go(walk, scope, scope.stack.pop())
        else:
            scope.stack[-1], folder = scope.folder, scope.stack[-1]
            _go(walk, scope, folder)
        return None
    came_from = scope.folder
    target = scope.variable("HOME")
    if operands:
        target = operands[0]
    if target == "-":
        _go(walk, scope, scope.previous)
    elif not isinstance(target, str) or (name == "pushd" and target[:1] in "+-"):
        _go(walk, scope, None)
    elif target:
        there = absolute(scope.folder, target)
        if there is not None and any("P" in option for option in options):
            there = os.path.realpath(there)
        _go(walk, scope, there)
    else:
        scope.status = True  # `cd ""` stays
    if name == "pushd" and scope.status is not False:
        scope.stack.append(came_from)
    if name == "cd" and target != "-":
        return Stream("")
    return None


def _go(walk: Walk, scope: Scope, folder: str | None) -> None:
    """Change to `folder` (None: unknown). The shell stays if the folder does not exist and no earlier command makes it.

    If the change may fail, the old folder stays possible.
    """
    came_from, scope.status = scope.folder, None
    if folder is not None:
        there = os.path.isdir(folder)
        if not there and "XXXXXX" not in folder and walk.files.is_no_folder(folder):
            scope.status, scope.tried = False, folder
            return
        # `mktemp` has made the folder of such a name.
        if "XXXXXX" in folder or there and os.access(folder, os.X_OK) and not walk.files.may_be_gone(folder):
            scope.status = True
        elif came_from is not None and came_from != folder:
            scope.if_failed = (came_from,)
    scope.previous, scope.folder = came_from, folder


_BUILTINS = {
    **dict.fromkeys(("cd", "pushd", "popd", "dirs", "chdir"), _change_folder),
    **dict.fromkeys(DECLARERS, declare_texts),
    **dict.fromkeys(("exit", "return", "break", "continue", "logout"), _leave),
    **dict.fromkeys(("command", "builtin", "exec", "noglob", "nocorrect"), _past),
    **dict.fromkeys(("mapfile", "readarray"), map_file),
    **dict.fromkeys(("shopt", "setopt", "unsetopt"), _set_options),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("test", "["), _test),
    **dict.fromkeys(("true", ":"), _succeed),
    **dict.fromkeys(
        "umask ulimit hash bind jobs fg bg disown times caller wait history enable emulate zmodload autoload compinit"
        " complete compgen fc help suspend rehash unhash".split(),
        _nothing,
    ),
    "set": _set_words,
    "shift": _shift,
    "unset": unset,
    "read": read,
    "alias": _alias,
    "unalias": _unalias,
    "false": _fail,
    "eval": _evaluate,
    "trap": _trap,
    "let": _let,
    "getopts": _get_options,
    "pwd": _where,
}

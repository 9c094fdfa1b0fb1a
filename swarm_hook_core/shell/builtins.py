"""The shell's own commands: they change its folder, its variables, or the next step."""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known
from swarm_hook_core.shell.variables import DECLARERS, Scope, declare_texts, map_file, read, unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk


def set_words(walk: Walk, scope: Scope, words: list[str]) -> Stream:
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


def shift(walk: Walk, scope: Scope, words: list[str]) -> Stream:
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


def set_options(walk: Walk, scope: Scope, words: list[str]) -> Stream:
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


def alias(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    for word in words[1:]:
        name, mark, text = word.partition("=")
        if mark and is_known(word):
            scope.aliases[name] = text
    scope.status = True
    return Stream("")


def unalias(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    for word in words[1:]:
        scope.aliases.pop(word, None)
    if "-a" in words:
        scope.aliases.clear()
    return Stream("")


def leave(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """exit, return, break, continue, logout."""
    scope.ended = "exit"
    if words[0] != "logout":
        scope.ended = words[0]
    if len(words) > 1:
        scope.status = None
        if words[1].isdecimal():
            scope.status = words[1] == "0"
    return Stream("")


def succeed(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    scope.status = True
    return Stream("")


def fail(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    scope.status = False
    return Stream("")


def test(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    from swarm_hook_core.shell.conditions import answer

    if words[0] == "[" and words[-1] == "]":
        inner = words[1:-1]
    else:
        inner = words[1:]
    scope.status = answer(walk, scope, inner)
    return Stream("")


def evaluate(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    text = " ".join(words[2:] if words[1:2] == ["--"] else words[1:])
    return walk.evaluated(scope, text)


def source(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
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


def past(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
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


def trap(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    operands = [word for word in words[1:] if word not in ("--", "-p", "-l")]
    if len(operands) > 1 and operands[0] not in ("-", "") and is_known(operands[0]):
        inside = scope.fork()
        walk.evaluated(inside, operands[0])
    elif len(operands) > 1 and not is_known(operands[0]):
        walk.guess(scope, "a computed command", walk.shown(" ".join(words)))
    return Stream("")


def let(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    number = "0"
    for word in words[1:]:
        number = walk.computed(scope, word)
    scope.status = None
    if is_known(number):
        scope.status = number != "0"
    return Stream("")


def get_options(walk: Walk, scope: Scope, words: list[str]) -> Stream:
    """getopts: the options are not followed, so its variables become unknown."""
    for name in (*words[2:3], "OPTARG", "OPTIND"):
        scope.variables[name] = UNKNOWN
    scope.status = None
    return Stream("")


def nothing(walk: Walk, scope: Scope, words: list[str]) -> None:
    scope.status = None
    return None


def where(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
    """pwd."""
    scope.status = True
    if scope.folder is not None:
        return Stream(scope.folder + "\n")
    return None


def change_folder(walk: Walk, scope: Scope, words: list[str]) -> Stream | None:
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
        where = absolute(scope.folder, target)
        if where is not None and any("P" in option for option in options):
            where = os.path.realpath(where)
        _go(walk, scope, where)
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


BUILTINS = {
    **dict.fromkeys(("cd", "pushd", "popd", "dirs", "chdir"), change_folder),
    **dict.fromkeys(DECLARERS, declare_texts),
    **dict.fromkeys(("exit", "return", "break", "continue", "logout"), leave),
    **dict.fromkeys(("command", "builtin", "exec", "noglob", "nocorrect"), past),
    **dict.fromkeys(("mapfile", "readarray"), map_file),
    **dict.fromkeys(("shopt", "setopt", "unsetopt"), set_options),
    **dict.fromkeys(("source", "."), source),
    **dict.fromkeys(("test", "["), test),
    **dict.fromkeys(("true", ":"), succeed),
    **dict.fromkeys(
        "umask ulimit hash bind jobs fg bg disown times caller wait history enable emulate zmodload autoload compinit"
        " complete compgen fc help suspend rehash unhash".split(),
        nothing,
    ),
    "set": set_words,
    "shift": shift,
    "unset": unset,
    "read": read,
    "alias": alias,
    "unalias": unalias,
    "false": fail,
    "eval": evaluate,
    "trap": trap,
    "let": let,
    "getopts": get_options,
    "pwd": where,
}

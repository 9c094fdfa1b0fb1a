"""What the shell does itself: commands that change its folder, variables, or what it does next."""

from swarm_hook_core.shell.assignments import assign
from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known
from swarm_hook_core.shell.words import value


def change_folder(walk, scope, words):
    """cd, pushd, popd, dirs."""
    name = words[0]
    operands = [word for word in words[1:] if not (word.startswith("-") and word.strip("-LPen@") == "" and word != "-")]
    if name == "dirs":
        return Stream(None)
    if name == "popd":
        if scope.stack:
            _go(walk, scope, scope.stack.pop())
        else:
            scope.status = False  # it stays
        return None
    if not operands and name == "pushd":
        if scope.stack:
            scope.stack[-1], target = scope.folder, scope.stack[-1]
            _go(walk, scope, target)
        else:
            scope.status = False
        return None
    came_from = scope.folder
    target = operands[0] if operands else walk.variable(scope, "HOME")
    if target == "-":
        _go(walk, scope, scope.previous)
    elif not isinstance(target, str) or (name == "pushd" and target[:1] in "+-"):
        _go(walk, scope, None)
    elif target:
        where = absolute(scope.folder, target)
        if where is not None and any(word.startswith("-") and "P" in word for word in words[1:-1]):
            import os

            where = os.path.realpath(where)
        _go(walk, scope, where)
    else:
        scope.status = True  # `cd ""` stays
    if name == "pushd" and scope.status is not False:
        scope.stack.append(came_from)
    return Stream("") if name == "cd" and target != "-" else None


def _go(walk, scope, folder) -> None:
    """Change to `folder` (None: not known). Where there is none, and nothing so far makes one, the shell stays.

    Where it may fail, the shell may be where it was.
    """
    import os

    there = folder is not None and os.path.isdir(folder)
    fresh = folder is not None and "XXXXXX" in folder  # what `mktemp` has just made
    scope.status = True if fresh or there and os.access(folder, os.X_OK) and not walk.may_be_gone(folder) else None
    if scope.status is None and folder is not None and not there and walk.is_no_folder(folder):
        scope.status, scope.tried = False, folder
        return
    came_from = scope.folder
    scope.previous, scope.folder = came_from, folder
    if scope.status is None and folder is not None and came_from is not None and came_from != folder:
        scope.if_failed = (came_from,)


def set_words(walk, scope, words):
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
        if takes and rest[1:2] == ["errexit"] or "e" in rest[0][1:]:
            (scope.options.add if rest[0][0] == "-" else scope.options.discard)("errexit")
        if takes and rest[1:2] == ["noglob"] or "f" in rest[0][1:]:
            (scope.options.add if rest[0][0] == "-" else scope.options.discard)("noglob")
        rest = rest[2:] if takes else rest[1:]
    return Stream("")


def shift(walk, scope, words):
    by = words[1] if len(words) > 1 else "1"
    if UNKNOWN not in scope.words:
        if by.isdecimal():
            del (kept := list(scope.words))[1 : 1 + int(by)]
            scope.words = kept
        else:
            scope.words = [scope.words[0], UNKNOWN]
    scope.status = None if UNKNOWN in scope.words else True
    return Stream("")


def declare(walk, scope, raws) -> None:
    """export, local, declare, typeset, readonly: `raws` are words as they were written."""
    name, local = raws[0], raws[0] in ("local", "declare", "typeset") and scope.locals is not None
    associative = prints = refers = False
    for raw in raws[1:]:
        if raw.startswith(("-", "+")):
            associative = associative or "A" in raw
            prints = prints or "p" in raw
            refers = refers or "n" in raw
            local = local and "g" not in raw
            continue
        left, mark, _ = raw.partition("=")
        variable = left.rstrip("+").partition("[")[0]
        if not variable.isidentifier():
            value(walk, scope, raw)
            continue
        if local and variable not in scope.locals:
            scope.locals[variable] = scope.variables.get(variable)
        if associative and not isinstance(scope.variables.get(variable), dict):
            scope.variables[variable] = {}
        if refers and name != "export":  # stands for another variable
            scope.variables[variable] = UNKNOWN
        elif mark:
            assign(walk, scope, raw)
        elif local and name == "local":
            scope.variables[variable] = ""
    scope.status = True


def declare_words(walk, scope, words):
    """The same where the command itself was computed: `command export x=1`."""
    declare(walk, scope, [words[0], *(_quoted(word) for word in words[1:])])
    return Stream("")


def _quoted(word: str) -> str:
    left, mark, right = word.partition("=")
    return left + mark + "'" + right.replace("'", "'\\''") + "'" if mark else word


def unset(walk, scope, words):
    functions = "-f" in words[1:]
    for word in words[1:]:
        if word.startswith("-"):
            continue
        if functions:
            scope.functions.pop(word, None)
        elif "[" in word:
            scope.variables[word.partition("[")[0]] = UNKNOWN
        elif word in scope.variables or word in walk.environment:
            scope.variables[word] = ""
        else:
            scope.functions.pop(word, None)
            scope.variables[word] = ""
    scope.status = True
    return Stream("")


def read(walk, scope, words):
    from swarm_hook_core.shell.options import split

    given = split(words[1:], short="adinNptu")
    names = [name for name in given.operands if is_known(name)]
    if given.value("-u") not in (None, "0"):
        line, status = UNKNOWN, None
    else:
        line, status = scope.stdin.line(walk)
    scope.status = status
    if given.has("-a"):
        scope.variables[given.value("-a")] = line.split() if is_known(line) else [line]
        return Stream("")
    if not names:
        scope.variables["REPLY"] = line
        return Stream("")
    separators = walk.separators(scope)
    if len(names) == 1 or not is_known(line) and walk.has_found(line):
        scope.variables[names[0]] = line.strip(" \t") if separators else line
        for name in names[1:]:
            scope.variables[name] = ""
        return Stream("")
    rest = line
    for place, name in enumerate(names):
        rest = rest.lstrip(" \t") if " " in separators else rest
        cut = min((rest.find(one) for one in separators if one in rest), default=-1)
        if place == len(names) - 1 or cut < 0:
            scope.variables[name], rest = rest.rstrip(" \t\n"), ""
        else:
            scope.variables[name], rest = rest[:cut], rest[cut + 1 :]
    return Stream("")


def map_file(walk, scope, words):
    """mapfile, readarray."""
    from swarm_hook_core.shell.options import split

    given = split(words[1:], short="dnOsuCc")
    name = given.operands[0] if given.operands else "MAPFILE"
    stream = scope.stdin.rest()
    if stream is not None and stream.found is not None:
        from swarm_hook_core.shell.programs.listing import text_of

        text_of(stream)
    if stream is None or (stream.text is None and stream.found is None):
        scope.variables[name] = [UNKNOWN]
    elif stream.text is None:
        scope.variables[name] = [walk.mark(stream.found)]
    else:
        scope.variables[name] = stream.text.removesuffix("\n").split("\n") if stream.text else []
    scope.status = True
    return Stream("")


def set_options(walk, scope, words):
    """shopt, setopt, unsetopt."""
    unset_them = words[0] == "unsetopt" or "-u" in words[1:]
    for word in words[1:]:
        if not word.startswith("-"):
            option = word.lower().replace("_", "")
            (scope.options.discard if unset_them else scope.options.add)(option)
    scope.status = True
    return Stream("")


def alias(walk, scope, words):
    for word in words[1:]:
        name, mark, text = word.partition("=")
        if mark and is_known(word):
            scope.aliases[name] = text
    scope.status = True
    return Stream("")


def unalias(walk, scope, words):
    for word in words[1:]:
        scope.aliases.pop(word, None)
    if "-a" in words:
        scope.aliases.clear()
    return Stream("")


def leave(walk, scope, words):
    """exit, return, break, continue, logout."""
    scope.ended = "exit" if words[0] == "logout" else words[0]
    if len(words) > 1:
        scope.status = words[1] == "0" if words[1].isdecimal() else None
    return Stream("")


def succeed(walk, scope, words):
    scope.status = True
    return Stream("")


def fail(walk, scope, words):
    scope.status = False
    return Stream("")


def test(walk, scope, words):
    from swarm_hook_core.shell.conditions import answer

    inner = words[1:-1] if words[0] == "[" and words[-1] == "]" else words[1:]
    scope.status = answer(walk, scope, inner)
    return Stream("")


def evaluate(walk, scope, words):
    text = " ".join(words[2:] if words[1:2] == ["--"] else words[1:])
    return walk.nested_in(scope, text)


def source(walk, scope, words):
    """source, and its short form."""
    operands = words[2:] if words[1:2] == ["--"] else words[1:]
    if not operands:
        return None
    whole = absolute(scope.folder, operands[0])
    if whole is not None and walk.is_missing(whole):
        scope.status = False
        return Stream("")
    stream = walk.text_of(operands[0], scope.folder)
    if stream is None or stream.text is None or not is_known(stream.text):
        walk.guess(scope, "an opaque script", walk.shown(" ".join(words)))
        return None
    kept = scope.words
    if operands[1:]:
        scope.words = [kept[0], *operands[1:]]
    try:
        stream = walk.nested_in(scope, stream.text)
    finally:
        scope.words = kept
    if scope.ended == "return":
        scope.ended = ""
    return stream


def past(walk, scope, words):
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


def trap(walk, scope, words):
    operands = [word for word in words[1:] if word not in ("--", "-p", "-l")]
    if len(operands) > 1 and operands[0] not in ("-", "") and is_known(operands[0]):
        inside = scope.fork()
        walk.nested_in(inside, operands[0])
    elif len(operands) > 1 and not is_known(operands[0]):
        walk.guess(scope, "a computed command", walk.shown(" ".join(words)))
    return Stream("")


def let(walk, scope, words):
    number = "0"
    for word in words[1:]:
        number = walk.computed(scope, word)
    scope.status = number != "0" if is_known(number) else None
    return Stream("")


def get_options(walk, scope, words):
    """getopts: the next option of the positional parameters."""
    given = words[3:] or scope.words[1:]
    letters, name = (words[1], words[2]) if len(words) > 2 else ("", "")
    index = scope.variables.get("OPTIND", "1")
    scope.status = None
    if not name:
        return Stream("")
    if not all(map(is_known, [letters, index, *given])) or not index.isdecimal():
        for one in (name, "OPTARG", "OPTIND"):
            scope.variables[one] = UNKNOWN
        return Stream("")
    at, inside = int(index) - 1, int(scope.variables.get(_INSIDE, "1"))
    word = given[at] if at < len(given) else ""
    if len(word) < 2 or word[0] != "-" or word == "--":
        scope.variables[name], scope.status = "?", False
        scope.variables["OPTIND"] = str(at + 1 + (word == "--"))
        return Stream("")
    letter, rest = word[inside], word[inside + 1 :]
    place = letters.find(letter) if letter != ":" else -1
    scope.variables[name] = letter if place >= 0 else "?"
    scope.variables["OPTARG"] = "" if place >= 0 else letter
    if place >= 0 and letters.startswith(":", place + 1):
        scope.variables["OPTARG"] = rest or (given[at + 1] if at + 1 < len(given) else "")
        at, inside = at + (1 if rest else 2), 1
    else:
        at, inside = (at, inside + 1) if rest else (at + 1, 1)
    scope.variables["OPTIND"], scope.variables[_INSIDE] = str(at + 1), str(inside)
    scope.status = True
    return Stream("")


_INSIDE = "\0getopts"  # where in a word of several options; no script can name it


def nothing(walk, scope, words):
    scope.status = None
    return None


def where(walk, scope, words):
    """pwd."""
    scope.status = True
    return Stream(scope.folder + "\n") if scope.folder is not None else None


BUILTINS = {
    **dict.fromkeys(("cd", "pushd", "popd", "dirs", "chdir"), change_folder),
    **dict.fromkeys(("export", "local", "declare", "typeset", "readonly"), declare_words),
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

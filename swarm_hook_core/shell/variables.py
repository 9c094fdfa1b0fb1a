"""Variables: assignments to them, to arrays and their elements; declare, unset, read, mapfile."""

from swarm_hook_core.shell.model import UNKNOWN, Stream, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.parser import words_in
from swarm_hook_core.shell.quoting import NAME_LETTERS
from swarm_hook_core.shell.streams import text_of
from swarm_hook_core.shell.words import fields, value

DECLARERS = ("export", "local", "declare", "typeset", "readonly")


def is_assignment(raw: str) -> bool:
    """Whether `raw` is ``name=value``, ``name+=value`` or ``name[i]=value``."""
    left, mark, _ = raw.partition("=")
    if not mark or not left:
        return False
    name = left[:-1] if left.endswith("+") else left
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(name) and not name[0].isdecimal() and all(letter in NAME_LETTERS for letter in name)


def assign(walk, scope, raw: str) -> None:
    """``name=value``, ``name+=value``, ``name[i]=value``, ``name=(a b)``."""
    left, _, right = raw.partition("=")
    adds = left.endswith("+")
    name, bracket, index = left.rstrip("+").partition("[")
    if bracket:
        index = index.rstrip("]")
        _assign_element(walk, scope, name, index, value(walk, scope, right), adds)
        return
    if right.startswith("(") and right.endswith(")"):
        listed = _array(walk, scope, right[1:-1], scope.variables.get(name))
        held = scope.variables.get(name) if adds else None
        if isinstance(listed, list) and isinstance(held, (list, str)):
            listed = ([held] if isinstance(held, str) else held) + listed
        scope.variables[name] = listed
        return
    text = value(walk, scope, right)
    held = scope.variable(name) if adds else None
    if isinstance(held, list):
        scope.variables[name] = [*held[:-1], held[-1] + text] if held else [text]
    else:
        scope.variables[name] = (held or "") + text if adds and not isinstance(held, dict) else text


def _assign_element(walk, scope, name, index, text, adds) -> None:
    held = scope.variables.get(name)
    if isinstance(held, dict):
        key = value(walk, scope, index)
        scope.variables[name] = {**held, key: held.get(key, "") + text if adds else text}
        return
    number = walk.computed(scope, index)
    listed = list(held) if isinstance(held, list) else [] if held is None else [held]
    if not is_known(number) or not -len(listed) <= int(number) <= 1000:
        scope.variables[name] = [*listed, UNKNOWN]
        return
    place = int(number)
    listed += [""] * (place + 1 - len(listed))
    listed[place] = listed[place] + text if adds else text
    scope.variables[name] = listed


def _array(walk, scope, inner: str, held):
    """A list; a dict where all is ``[key]=value`` and the variable was declared so."""
    raws = words_in(inner, walk.known)
    if isinstance(held, dict):
        found = dict(held)
        for raw in raws:
            key, mark, text = raw.partition("]=")
            if mark and key.startswith("["):
                found[value(walk, scope, key[1:])] = value(walk, scope, text)
        return found
    listed: list = []
    for raw in raws:
        walk.spend()
        key, mark, text = raw.partition("]=")
        listed += [value(walk, scope, text)] if mark and key.startswith("[") else fields(walk, scope, raw)
    return listed


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
        elif word in scope.variables or word in scope.environment:
            scope.variables[word] = ""
        else:
            scope.functions.pop(word, None)
            scope.variables[word] = ""
    scope.status = True
    return Stream("")


def read(walk, scope, words):
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
    separators = scope.separators()
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
    given = split(words[1:], short="dnOsuCc")
    name = given.operands[0] if given.operands else "MAPFILE"
    stream = scope.stdin.rest()
    if stream is not None and stream.found is not None:
        text_of(stream)
    if stream is None or (stream.text is None and stream.found is None):
        scope.variables[name] = [UNKNOWN]
    elif stream.text is None:
        scope.variables[name] = [walk.mark(stream.found)]
    else:
        scope.variables[name] = stream.text.removesuffix("\n").split("\n") if stream.text else []
    scope.status = True
    return Stream("")

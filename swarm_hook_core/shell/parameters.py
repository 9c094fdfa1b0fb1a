"""Parameter expansion: what ``${...}`` stands for."""

from swarm_hook_core.shell import globs
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.quoting import NAME_LETTERS
from swarm_hook_core.shell.words import default, pattern, value

LONGEST_TRIMMED = 4096  # characters of a value that is matched against a pattern at every place
_SPECIAL = "@*#?-$!"
_OPERATORS = (":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,", *"-=+?#%/^,:@")


def expanded(walk, scope, inner: str, quoted: bool = True):
    """The text of ``${inner}``; a list for what ``${a[@]}`` and the like are; a tuple for fields already split."""
    if inner.startswith("#") and len(inner) > 1 and (inner[1] in NAME_LETTERS or inner[1] in "@*"):
        name, index, rest = _named(inner[1:])
        if not rest:
            return _length(walk, scope, name, index)
    if inner.startswith("!") and len(inner) > 1:
        return _indirect(walk, scope, inner[1:])
    name, index, rest = _named(inner)
    if not name:
        return UNKNOWN
    held = _held(walk, scope, name, index)
    # Not set here: a profile may set it (see `Walk.parameter`), but no element of an array.
    plain = held if held is not None else "" if index is not None else walk.parameter(scope, name)
    if not rest:
        return plain
    operator = next((one for one in _OPERATORS if rest.startswith(one)), None)
    if operator is None:
        return UNKNOWN
    argument = rest[len(operator) :]
    if operator.lstrip(":") in ("-", "=", "+", "?") and operator != ":":
        return _defaulted(walk, scope, name, held, operator, argument, quoted)
    held = plain
    if isinstance(held, list):
        if operator == ":":
            return _slice(walk, scope, [scope.words[0], *held] if name in "@*" else held, argument)
        return [_changed(walk, scope, one, operator, argument) for one in held]
    return _changed(walk, scope, held, operator, argument)


def _named(text: str):
    """(name, index or None, what follows) of what stands first in `text`."""
    if text[:1] and text[0] in _SPECIAL:
        return text[0], None, text[1:]
    end = 0
    while end < len(text) and text[end] in NAME_LETTERS:
        end += 1
    if text.startswith("[", end):
        close = text.find("]", end)
        if close > 0:
            return text[:end], text[end + 1 : close], text[close + 1 :]
    return text[:end], None, text[end:]


def _held(walk, scope, name: str, index):
    """Text, list, or None where it is not set, of the variable or its element."""
    if index is None:
        return walk.parameter(scope, name, missing=None)
    held = walk.variable(scope, name)
    if index in ("@", "*"):
        if isinstance(held, dict):
            return list(held.values())
        return held if isinstance(held, list) else [] if held is None else [held]
    key = value(walk, scope, index)
    if isinstance(held, dict):
        return held.get(key) if is_known(key) else UNKNOWN
    number = walk.computed(scope, index)
    if not is_known(number):
        return UNKNOWN
    listed = held if isinstance(held, list) else [] if held is None else [held]
    place = int(number) - ("zsh" in scope.options and int(number) > 0)  # there the first element is 1
    return listed[place] if -len(listed) <= place < len(listed) else None


def _length(walk, scope, name: str, index):
    held = _held(walk, scope, name, index)
    if isinstance(held, list):
        return str(len(held)) if all(map(is_known, held)) else UNKNOWN
    return str(len(held or "")) if is_known(held or "") else UNKNOWN


def _indirect(walk, scope, inner: str):
    name, index, rest = _named(inner)
    if index in ("@", "*") and not rest:
        held = walk.variable(scope, name)
        if isinstance(held, dict):
            return list(held)
        return [str(place) for place in range(len(held))] if isinstance(held, list) else []
    target = _held(walk, scope, name, index)
    if rest or not isinstance(target, str) or not is_known(target):
        return UNKNOWN
    found = walk.parameter(scope, target, missing="")
    return found


def _defaulted(walk, scope, name, held, operator, argument, quoted):
    empty = held is None or (operator.startswith(":") and held in ("", []))
    kind = operator[-1]
    if kind == "+":
        return "" if empty else default(walk, scope, argument, quoted)
    if kind == "?":
        return UNKNOWN if empty else held
    if not empty:
        if isinstance(held, str) and walk.has_found(held):  # one of several texts, some of which may be empty
            instead = value(walk, scope, argument)
            return walk.renamed(held, lambda one: one or instead, "", "", otherwise=held)
        return held
    if kind == "=":
        scope.variables[name] = value(walk, scope, argument)
        return scope.variables[name]
    return default(walk, scope, argument, quoted)


def _slice(walk, scope, held: list, argument: str):
    start, _, count = argument.partition(":")
    first, length = walk.computed(scope, start), walk.computed(scope, count) if count else ""
    if not is_known(first + length):
        return [UNKNOWN]
    part = held[int(first) :]
    return part[: int(length)] if length else part


def _changed(walk, scope, text: str, operator: str, argument: str) -> str:
    """`text` with a part removed or replaced. A mark in it is a letter like others, as long as it stays whole."""
    if walk.has_found(text):
        return walk.renamed(text, lambda one: _changed(walk, scope, one, operator, argument), operator, argument)
    if len(text) > LONGEST_TRIMMED:
        return UNKNOWN
    if operator in ("#", "##", "%", "%%"):
        return _trimmed(text, pattern(walk, scope, argument), operator)
    if operator in ("/", "//", "/#", "/%"):
        wanted, replacement = _halves(argument)
        return _replaced(text, pattern(walk, scope, wanted), value(walk, scope, replacement), operator)
    if operator in ("^", "^^", ",", ",,") and not argument:
        change = str.upper if operator[0] == "^" else str.lower
        return text if not text else change(text) if len(operator) == 2 else change(text[0]) + text[1:]
    if operator == ":" and is_known(text):
        found = _slice(walk, scope, list(text), argument)
        return "".join(found)
    return UNKNOWN


def _trimmed(text: str, wanted: str, operator: str) -> str:
    if not globs.is_magic(wanted, True):
        wanted = globs.literal(wanted)
        if operator[0] == "#":
            return text[len(wanted) :] if text.startswith(wanted) else text
        return text[: len(text) - len(wanted)] if wanted and text.endswith(wanted) else text
    items = globs.compiled(wanted, True)
    places = range(len(text) + 1)
    if operator in ("##", "%"):
        places = reversed(places)
    if len(text) > 512:
        return UNKNOWN
    for place in places:
        if operator[0] == "#" and globs.matches(text[:place], items):
            return text[place:]
        if operator[0] == "%" and globs.matches(text[place:], items):
            return text[:place]
    return text


def _halves(argument: str):
    """(pattern, replacement) of what stands behind ``/``."""
    at = 0
    while at < len(argument):
        if argument[at] == "\\":
            at += 1
        elif argument[at] == "/" and at:
            return argument[:at], argument[at + 1 :]
        at += 1
    return argument, ""


def _replaced(text: str, wanted: str, replacement: str, operator: str) -> str:
    if not wanted:
        return text
    if not globs.is_magic(wanted, True):
        wanted = globs.literal(wanted)
        if operator == "/#":
            return replacement + text[len(wanted) :] if text.startswith(wanted) else text
        if operator == "/%":
            return text[: -len(wanted)] + replacement if text.endswith(wanted) else text
        return text.replace(wanted, replacement, -1 if operator == "//" else 1)
    if len(text) > 128:
        return UNKNOWN
    items, out, at = globs.compiled(wanted, True), [], 0
    while at < len(text):
        ends = range(len(text), at, -1)
        if operator == "/#" and at:
            break
        if operator == "/%":
            ends = range(len(text), len(text) - 1, -1)
        end = next((end for end in ends if globs.matches(text[at:end], items)), None)
        if end is None:
            out.append(text[at])
            at += 1
            continue
        out.append(replacement)
        at = end
        if operator != "//":
            break
    return "".join(out) + text[at:]

"""Parameter expansion: what ``${...}`` stands for."""

from swarm_hook_core.shell import globs
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.quoting import NAME_LETTERS

LONGEST_MATCHED = 512  # characters of a value that is matched against a pattern at every place
LONGEST_REPLACED = 128  # characters of a value that a pattern is looked for in
_SPECIAL = "@*#?-$!"
_OPERATORS = (":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,", *"-=+?#%/^,:@")


def expanded(words, inner: str, quoted: bool):
    """The text of ``${inner}``; a list for what ``${a[@]}`` and the like are; a tuple for fields already split.

    `words`: the `Words` that what stands in it is expanded by.
    """
    return _Parameter(words, quoted).expanded(inner)


class _Parameter:
    def __init__(self, words, quoted):
        self.words = words
        self.walk = words.walk
        self.scope = words.scope
        self.quoted = quoted

    def expanded(self, inner: str):
        if inner.startswith("#") and len(inner) > 1 and (inner[1] in NAME_LETTERS or inner[1] in "@*"):
            name, index, rest = _named(inner[1:])
            if not rest:
                return self.length(name, index)
        if inner.startswith("!") and len(inner) > 1:
            return self.indirect(inner[1:])
        name, index, rest = _named(inner)
        if not name:
            return UNKNOWN
        held = self.held(name, index)
        # Not set here: a profile may set it (see `Walk.parameter`), but no element of an array.
        plain = held if held is not None else "" if index is not None else self.scope.parameter(name)
        if not rest:
            return plain
        operator = next((one for one in _OPERATORS if rest.startswith(one)), None)
        if operator is None:
            return UNKNOWN
        argument = rest[len(operator) :]
        if operator.lstrip(":") in ("-", "=", "+", "?") and operator != ":":
            return self.defaulted(name, held, operator, argument)
        if not isinstance(plain, list):
            return self.changed(plain, operator, argument)
        if operator == ":":
            return self.slice([self.scope.words[0], *plain] if name in "@*" else plain, argument)
        return [self.changed(one, operator, argument) for one in plain]

    def held(self, name: str, index):
        """Text, list, or None where it is not set, of the variable or its element."""
        if index is None:
            return self.scope.parameter(name, missing=None)
        held = self.scope.variable(name)
        if index in ("@", "*"):
            if isinstance(held, dict):
                return list(held.values())
            return held if isinstance(held, list) else [] if held is None else [held]
        if isinstance(held, dict):
            key = self.words.value(index)
            return held.get(key) if is_known(key) else UNKNOWN
        number = self.walk.computed(self.scope, index)
        if not is_known(number):
            return UNKNOWN
        listed = held if isinstance(held, list) else [] if held is None else [held]
        place = int(number) - ("zsh" in self.scope.options and int(number) > 0)  # there the first element is 1
        return listed[place] if -len(listed) <= place < len(listed) else None

    def length(self, name: str, index):
        held = self.held(name, index) or ""
        known = all(map(is_known, held)) if isinstance(held, list) else is_known(held)
        return str(len(held)) if known else UNKNOWN

    def indirect(self, inner: str):
        name, index, rest = _named(inner)
        if index in ("@", "*") and not rest:
            held = self.scope.variable(name)
            return list(held) if isinstance(held, dict) else [str(place) for place in range(len(held or ()))]
        target = self.held(name, index)
        if rest or not isinstance(target, str) or not is_known(target):
            return UNKNOWN
        return self.scope.parameter(target, missing="")

    def defaulted(self, name, held, operator, argument):
        empty = held is None or (operator.startswith(":") and held in ("", []))
        kind = operator[-1]
        if kind == "+":
            return "" if empty else self.words.default(argument, self.quoted)
        if kind == "?":
            return UNKNOWN if empty else held
        if not empty:
            if isinstance(held, str) and self.walk.has_found(held):  # one of several texts, some may be empty
                instead = self.words.value(argument)
                return self.walk.renamed(held, lambda one: one or instead, "", "", otherwise=held)
            return held
        if kind == "=":
            self.scope.variables[name] = self.words.value(argument)
            return self.scope.variables[name]
        return self.words.default(argument, self.quoted)

    def slice(self, held: list, argument: str):
        start, _, count = argument.partition(":")
        first = self.walk.computed(self.scope, start)
        length = self.walk.computed(self.scope, count) if count else ""
        if not is_known(first + length):
            return [UNKNOWN]
        part = held[int(first) :]
        return part[: int(length)] if length else part

    def changed(self, text: str, operator: str, argument: str) -> str:
        """`text` with a part removed or replaced. A mark in it is a letter like others, as long as it stays whole."""
        if self.walk.has_found(text):
            change = lambda one: self.changed(one, operator, argument)  # noqa: E731
            return self.walk.renamed(text, change, operator, argument)
        if operator in ("#", "##", "%", "%%"):
            return _trimmed(text, self.words.pattern(argument), operator)
        if operator in ("/", "//", "/#", "/%"):
            wanted, replacement = _halves(argument)
            return _replaced(text, self.words.pattern(wanted), self.words.value(replacement), operator)
        if operator in ("^", "^^", ",", ",,") and not argument:
            change = str.upper if operator[0] == "^" else str.lower
            return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
        if operator == ":" and is_known(text):
            return "".join(self.slice(list(text), argument))
        return UNKNOWN


def _named(text: str):
    """(name, index or None, what follows) of what stands first in `text`."""
    if text[:1] and text[0] in _SPECIAL:
        return text[0], None, text[1:]
    end = 0
    while end < len(text) and text[end] in NAME_LETTERS:
        end += 1
    close = text.find("]", end) if text.startswith("[", end) else -1
    if close > 0:
        return text[:end], text[end + 1 : close], text[close + 1 :]
    return text[:end], None, text[end:]


def _halves(argument: str):
    """(pattern, replacement) of what stands behind ``/``."""
    at = 0
    while at < len(argument):
        if argument[at] == "/" and at:
            return argument[:at], argument[at + 1 :]
        at += 2 if argument[at] == "\\" else 1
    return argument, ""


def _trimmed(text: str, wanted: str, operator: str) -> str:
    if not globs.is_magic(wanted, True):
        wanted = globs.literal(wanted)
        return text.removeprefix(wanted) if operator[0] == "#" else text.removesuffix(wanted)
    if len(text) > LONGEST_MATCHED:
        return UNKNOWN
    items = globs.compiled(wanted, True)
    places = range(len(text) + 1)
    for place in reversed(places) if operator in ("##", "%") else places:
        cut, kept = (text[:place], text[place:]) if operator[0] == "#" else (text[place:], text[:place])
        if globs.matches(cut, items):
            return kept
    return text


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
    if len(text) > LONGEST_REPLACED:
        return UNKNOWN
    items, out, at = globs.compiled(wanted, True), [], 0
    while at < len(text) and not (operator == "/#" and at):
        ends = range(len(text), at if operator != "/%" else len(text) - 1, -1)
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

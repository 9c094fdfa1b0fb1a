"""Expands ``${...}``."""

from __future__ import annotations

from typing import Union

from swarm_hook_core import wildcards
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.syntax import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.syntax import Word
    from swarm_hook_core.shell.words import Expansion

    Value = Union[str, list[str], Word]


LONGEST_MATCHED = 512  # characters of a value that is matched against a pattern at every place
LONGEST_REPLACED = 128  # characters of a value that a pattern is looked for in


def expanded(expansion: Expansion, part: Parameter) -> Value:
    """Return the meaning of `part`: a text; a list for ``${a[@]}`` and the like; or the Word that replaces it."""
    return _Expanded(expansion, part).result()


class _Expanded:
    def __init__(self, expansion: Expansion, part: Parameter) -> None:
        self.words = expansion
        self.walk = expansion.walk
        self.scope = expansion.scope
        self.part = part

    def result(self) -> Value:
        part, name, index, operator = self.part, self.part.name, self.part.index, self.part.operator
        if not name:
            return UNKNOWN
        if part.flag == "#":
            if not operator:
                return self.length()
            return UNKNOWN
        if part.flag == "!":
            return self.indirect()
        current = self.current()
        # Not set here: a profile may set it (see `Scope.parameter`), but no element of an array.
        plain = current
        if current is None and index is None:
            plain = self.scope.parameter(name)
        if plain is None:
            plain = ""
        if not operator:
            return plain
        if operator[-1] in "-=+?":
            return self.defaulted(current)
        if not isinstance(plain, list):
            return self.changed(plain)
        if operator == ":":
            if name in "@*":
                plain = [self.scope.words[0], *plain]
            return self.slice(plain)
        return [self.changed(one) for one in plain]

    def current(self) -> str | list[str] | None:
        """Return the variable or its element: a text, a list, or None if it is not set."""
        name, index = self.part.name, self.part.index
        if index is None:
            return self.scope.parameter(name, missing=None)
        current = self.scope.variable(name)
        if index.raw in ("@", "*"):
            if isinstance(current, dict):
                return list(current.values())
            if isinstance(current, list):
                return current
            if current is None:
                return []
            return [current]
        if isinstance(current, dict):
            key = self.words.value(index)
            if is_known(key):
                return current.get(key)
            return UNKNOWN
        number = self.words.number(index)
        if not is_known(number):
            return UNKNOWN
        if isinstance(current, list):
            listed = current
        elif current is None:
            listed = []
        else:
            listed = [current]
        place = int(number) - ("zsh" in self.scope.options and int(number) > 0)  # there the first element is 1
        if -len(listed) <= place < len(listed):
            return listed[place]
        return None

    def length(self) -> str:
        current = self.current() or ""
        if isinstance(current, list):
            known = all(map(is_known, current))
        else:
            known = is_known(current)
        if known:
            return str(len(current))
        return UNKNOWN

    def indirect(self) -> Value:
        part = self.part
        if part.index is not None and part.index.raw in ("@", "*") and not part.operator:
            current = self.scope.variable(part.name)
            if isinstance(current, dict):
                return list(current)
            return [str(place) for place in range(len(current or ()))]
        target = self.current()
        if part.operator or not isinstance(target, str) or not is_known(target):
            return UNKNOWN
        return self.scope.parameter(target, missing="") or ""

    def defaulted(self, current: str | list[str] | None) -> Value:
        operator, argument = self.part.operator, self.part.argument
        kind = operator[-1]
        if current is None or (operator.startswith(":") and current in ("", [])):
            return self.instead(kind)
        if kind == "+":
            return argument
        if kind != "?" and isinstance(current, str) and self.walk.has_found(current):  # some may be empty
            instead = self.words.value(argument)
            return self.walk.renamed(current, lambda one: one or instead, "", "", otherwise=current)
        return current

    def instead(self, kind: str) -> Value:
        """Return the value of an empty variable."""
        argument = self.part.argument
        if kind == "+":
            return ""
        if kind == "?":
            return UNKNOWN
        if kind == "=":
            text = self.words.value(argument)
            self.scope.variables[self.part.name] = text
            return text
        return argument

    def slice(self, current: list[str]) -> list[str]:
        part = self.part
        first = self.words.number(part.argument)
        length = ""
        if part.other:
            length = self.words.number(part.other)
        if not is_known(first + length):
            return [UNKNOWN]
        kept = current[int(first) :]
        if length:
            return kept[: int(length)]
        return kept

    def changed(self, text: str) -> str:
        """`text` with a part removed or replaced. A mark in it is a letter like others, as long as it stays whole."""
        operator, argument = self.part.operator, self.part.argument
        if self.walk.has_found(text):
            return self.walk.renamed(text, self.changed, operator, argument.raw)
        if operator in ("#", "##", "%", "%%"):
            return _trimmed(text, self.words.pattern(argument), operator)
        if operator[0] == "/":
            replacement = ""
            if self.part.other:
                replacement = self.words.value(self.part.other)
            return _replaced(text, self.words.pattern(argument), replacement, operator)
        if operator in ("^", "^^", ",", ",,") and not argument.raw:
            if operator[0] == "^":
                change = str.upper
            else:
                change = str.lower
            if len(operator) == 2:
                return change(text)
            return change(text[:1]) + text[1:]
        if operator == ":" and is_known(text):
            return "".join(self.slice(list(text)))
        return UNKNOWN


def _trimmed(text: str, wanted: str, operator: str) -> str:
    if not wildcards.is_magic(wanted):
        wanted = wildcards.literal(wanted)
        if operator[0] == "#":
            return text.removeprefix(wanted)
        return text.removesuffix(wanted)
    if len(text) > LONGEST_MATCHED:
        return UNKNOWN
    items = wildcards.compiled(wanted, True)
    places = range(len(text) + 1)
    for place in reversed(places) if operator in ("##", "%") else places:
        cut, kept = text[:place], text[place:]
        if operator[0] == "%":
            cut, kept = kept, cut
        if wildcards.matches(cut, items):
            return kept
    return text


def _replaced(text: str, wanted: str, replacement: str, operator: str) -> str:
    if not wanted:
        return text
    if not wildcards.is_magic(wanted):
        wanted = wildcards.literal(wanted)
        if operator == "/#":
            if text.startswith(wanted):
                return replacement + text[len(wanted) :]
            return text
        if operator == "/%":
            if text.endswith(wanted):
                return text[: -len(wanted)] + replacement
            return text
        return text.replace(wanted, replacement, -1 if operator == "//" else 1)
    if len(text) > LONGEST_REPLACED:
        return UNKNOWN
    items, out, at = wildcards.compiled(wanted, True), [], 0
    while at < len(text) and not (operator == "/#" and at):
        ends = range(len(text), at if operator != "/%" else len(text) - 1, -1)
        end = next((end for end in ends if wildcards.matches(text[at:end], items)), None)
        if end is None:
            out.append(text[at])
            at += 1
            continue
        out.append(replacement)
        at = end
        if operator != "//":
            break
    return "".join(out) + text[at:]

"""Values of expressions in scanned code: literal texts, concatenations, names, and lists of them.

A value is a text or a list of texts; marks in it (see ``model``) stand for an unknown part or for each of several
texts. Parts of the code are ranges of token positions.
"""

from __future__ import annotations

import os
import time
from typing import Any

from swarm_hook_core.shell.inline.effects import CodeEffects, TooLong
from swarm_hook_core.shell.inline.tokens import NAME, NUMBER, SIGN, TEXT, Language, Token
from swarm_hook_core.shell.model import UNKNOWN, is_known

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_SUFFIX_WORDS = frozenset("if unless or and do while until for foreach rescue then".split())
# Where the arguments of the code are, and the place that the first of them has there
_ARGUMENTS = {"process.argv": 1, "Bun.argv": 1, "ARGV": 0, "$ARGV": 0, "$argv": 1, "arg": 1, "Deno.args": 0}
_JOIN = ("path.join", "path.resolve", "path.posix.join", "join", "resolve", "File.join", "Path.join")
_SAME_PATH = ("File.expand_path", "Pathname.new", "Pathname", "String", "realpath")
_FOLDER = ("process.cwd", "Dir.pwd", "getcwd", "cwd", "Deno.cwd", "__dirname", "__DIR__")


def sign_at(found: list[Any], at: int) -> str | None:
    """Return the sign at `at`, or None."""
    if 0 <= at < len(found) and found[at].kind == SIGN:
        value: str = found[at].value
        return value
    return None


def name_at(found: list[Any], at: int) -> str:
    """Return the name at `at`, or an empty text."""
    if 0 <= at < len(found) and found[at].kind == NAME:
        value: str = found[at].value
        return value
    return ""


def as_list(value: Any) -> list[Any]:
    """Return a list value, or a list of the one text."""
    if isinstance(value, list):
        return value
    return [value]


def text_or_unknown(value: Any) -> str:
    """Return a text value, or `UNKNOWN` for a list."""
    if isinstance(value, str):
        return value
    return UNKNOWN


class Values:
    """Code in `language`, read up to time `until` of this thread.

    argv    the arguments that it gets
    known   name -> its value; other names are unknown
    """

    def __init__(self, effects: CodeEffects, language: Language, argv: list[str], until: float) -> None:
        self.effects = effects
        self.language = language
        self.argv = list(argv)
        self.until = until
        self.known: dict[str, Any] = {}

    def tick(self) -> None:
        if time.thread_time() > self.until:
            raise TooLong

    # -------------------------------------------------------------- structure

    def matching(self, found: list[Any], at: int) -> int:
        """Return the position where the bracket at `at` closes."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            if found[place].kind == SIGN:
                depth += (found[place].value in _OPENING) - (found[place].value in _CLOSING)
                if not depth:
                    return place
        return len(found)

    def start_of_value(self, found: list[Any], at: int) -> int:
        """Return the position where the value that ends before `at` begins."""
        self.tick()
        place, depth = at - 1, 0
        while place > 0 and sign_at(found, at - 1) in _CLOSING:
            depth += (sign_at(found, place) in _CLOSING) - (sign_at(found, place) in _OPENING)
            if not depth:
                break
            place -= 1
        return max(place, 0)

    def split(self, found: list[Any], start: int, stop: int, signs: tuple[str, ...] = (",",)) -> list[Any]:
        """Return (start, stop) of each part between `signs`, outside of brackets."""
        self.tick()
        pairs, begin, depth = [], start, 0
        for place in range(start, min(stop, len(found))):
            sign = sign_at(found, place)
            if sign in signs and not depth and place > start:
                pairs.append((begin, place))
                begin = place + 1
            depth += (sign in _OPENING) - (sign in _CLOSING)
        pairs.append((begin, stop))
        return [(begin, end) for begin, end in pairs if any(token.value != "\n" for token in found[begin:end])]

    def arguments(self, found: list[Any], at: int) -> list[Any]:
        """Return (start, stop) of each argument of the call with its name before `at`."""
        if sign_at(found, at) == "(":
            return self.split(found, at + 1, self.matching(found, at))
        return self.split(found, at, self.end(found, at, True))

    def end(self, found: list[Any], at: int, is_list: bool = False) -> int:
        """Return the end of the expression that starts at `at`, or, with `is_list`, of a list without parentheses."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            if not depth and place > at and name_at(found, place) in _SUFFIX_WORDS:
                return place
            sign = sign_at(found, place)
            if not depth and (sign in (*_CLOSING, ";") or sign in (("{", "||", "&&") if is_list else (",",))):
                return place
            if not depth and sign == "\n" and self.language.newline_ends and place > at:
                before, after = sign_at(found, place - 1), sign_at(found, place + 1)
                goes_on = before is not None and before not in (*_CLOSING, ";")
                if not goes_on and after not in (self.language.joins, "?", ":", "||"):
                    return place
            depth += (sign in _OPENING) - (sign in _CLOSING)
        return len(found)

    # ----------------------------------------------------------------- values

    def value(self, found: list[Any], start: int, stop: int) -> Any:
        """Return the value of the expression from `start` to `stop`."""
        self.tick()
        while start < stop and found[start].value in ("\n", "new", "await", "return", "\\"):
            start += 1
        while stop > start and found[stop - 1].value == "\n":
            stop -= 1
        if start >= stop:
            return UNKNOWN
        opening = sign_at(found, start)
        if opening in _OPENING and self.matching(found, start) == stop - 1:
            if opening == "[" or (opening, self.language.name) in (("(", "perl"), ("{", "lua")):
                return self.listed(found, start + 1, stop - 1)
            if opening == "(":
                return self.value(found, start + 1, stop - 1)
            return UNKNOWN
        choices = self.split(found, start, stop, ("?", ":", "||", "??"))
        if len(choices) > 1:
            has_condition = sign_at(found, choices[0][1]) == "?"
            values = [self.value(found, *bounds) for bounds in choices[has_condition:]]
            return self.either([value for value in values if value != ""] or [""])
        parts = self.split(found, start, stop, (self.language.joins,))
        if len(parts) > 1:
            return self.joined([self.value(found, *bounds) for bounds in parts])
        token = found[start]
        if token.kind == NAME:
            return self.named(found, start, stop)
        if stop - start > 1 or token.kind == SIGN:
            return UNKNOWN
        if token.kind == NUMBER:
            return token.value
        if token.many:
            return token.value[0].split()
        if token.shell:
            return UNKNOWN
        return self.text_of(token)

    def either(self, values: list[Any]) -> Any:
        """Return the value for an unknown one of `values`."""
        if all(value == values[0] for value in values):
            return values[0]
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) == len(values):
            return self.effects.call.walk.one_of(texts)
        return UNKNOWN

    def each(self, value: Any) -> str:
        """Return a text that stands for each element of a list."""
        if not isinstance(value, list) or not all(map(is_known, value)):
            return UNKNOWN
        if len(value) > 1:
            return self.effects.call.walk.each_of(value)
        return "".join(value)

    def joined(self, parts: list[Any]) -> str:
        return "".join(map(text_or_unknown, parts))

    def text_of(self, token: Token) -> str:
        """Return the text of a literal, with the values of the expressions in it."""
        return self.joined([part if isinstance(part, str) else self.value(part, 0, len(part)) for part in token.value])

    def named(self, found: list[Any], start: int, stop: int) -> Any:
        """Return the value of a name, an element of a list or a call."""
        name, sign = found[start].value, sign_at(found, start + 1)
        if stop - start == 1:
            if name in self.known:
                return self.known[name]
            if name in _FOLDER:
                return self.effects.folder or UNKNOWN
            if name in ("@ARGV", "ARGV"):
                return self.argv
            is_shift = self.language.name == "perl" and name == "shift"
            if is_shift and self.argv:
                return self.argv[0]
            return UNKNOWN
        if name == "require" and sign == "(" and name_at(found, start + 4)[:1] == "." and found[start + 2].kind == TEXT:
            return self.result(f"{self.text_of(found[start + 2])}{found[start + 4].value}", found, start + 5)
        if sign not in ("(", "[") or self.matching(found, start + 1) != stop - 1:
            return UNKNOWN
        if sign == "[":
            return self.element(name, found[start + 2].value if stop - start == 4 else "")
        if name == "array":
            return self.listed(found, start + 2, stop - 1)
        if name in ("ipairs", "pairs"):
            return self.value(found, start + 2, stop - 1)
        return self.result(name, found, start + 1)

    def element(self, name: str, index: Any) -> Any:
        """Return the value of ``name[index]``."""
        if not isinstance(index, str) or not index.isdecimal():
            return UNKNOWN
        if name in _ARGUMENTS:
            place = int(index) - _ARGUMENTS[name]
            return "".join(self.argv[place : place + 1]) if place >= 0 else UNKNOWN  # nothing past the last
        items = self.known.get("@" + name[1:] if self.language.name == "perl" else name)
        if isinstance(items, list) and int(index) < len(items):
            return items[int(index)]
        return UNKNOWN

    def result(self, name: str, found: list[Any], at: int) -> Any:
        """Return the result of a call of `name`, with its arguments in the parentheses at `at`."""
        given = [self.value(found, *bounds) for bounds in self.arguments(found, at)]
        texts = list(map(text_or_unknown, given))
        if name.removeprefix("node:") in _JOIN and texts:
            if name.endswith("resolve"):
                return os.path.join(*texts)
            return "/".join(texts).replace("//", "/")
        if name in _FOLDER:
            return self.effects.folder or UNKNOWN
        if name in _SAME_PATH and texts:
            return texts[0]
        return UNKNOWN

    def listed(self, found: list[Any], start: int, stop: int) -> list[Any]:
        """The elements of a list."""
        values: list[Any] = []
        for bounds in self.split(found, start, stop):
            one = self.value(found, *bounds)
            values += as_list(one)
        return values

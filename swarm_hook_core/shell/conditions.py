"""Answers ``test``, ``[``, ``[[`` and arithmetic without running anything, if possible."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core import wildcards
from swarm_hook_core.shell.lexer import NAME_LETTERS
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known
from swarm_hook_core.shell.variables import Scope

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk

MOST_WORDS = 60
_NUMERIC = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
_COMPARED = frozenset([*_NUMERIC, "=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"])
_OF_FILES = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-s": lambda path: os.path.exists(path) and os.path.getsize(path) > 0,
    "-L": os.path.islink,
    "-h": os.path.islink,
}


def answer(walk: Walk, scope: Scope, words: list[str], patterns: dict[int, str] | None = None) -> bool | None:
    """Return True, False, or None if unknown, for the condition `words` (``]`` is gone).

    `patterns`: place in `words` -> the shell pattern on the right side of ``==``, in ``[[``.
    """
    if not words or len(words) > MOST_WORDS:
        if words:
            return None
        return False
    condition = _Condition(walk, scope, words, patterns)
    result = condition.either()
    if condition.at >= len(words):
        return result
    return None


class _Condition:
    def __init__(self, walk: Walk, scope: Scope, words: list[str], patterns: dict[int, str] | None) -> None:
        self.walk = walk
        self.scope = scope
        self.words = words
        self.patterns = patterns
        self.at = 0

    def peek(self) -> str:
        if self.at < len(self.words):
            return self.words[self.at]
        return ""

    def joined(self, operators: tuple[str, str], part: Callable[[], bool | None], decides: bool) -> bool | None:
        """`part`s between `operators`; one that is `decides` decides it all."""
        result = part()
        while self.peek() in operators:
            self.at += 1
            both = (result, part())
            if decides in both:
                result = decides
            elif None in both:
                result = None
            else:
                result = not decides
        return result

    def either(self) -> bool | None:
        return self.joined(("-o", "||"), self.both, True)

    def both(self) -> bool | None:
        return self.joined(("-a", "&&"), self.one, False)

    def one(self) -> bool | None:
        left = len(self.words) - self.at
        word = self.peek()
        if left >= 3 and self.words[self.at + 1] in _COMPARED:
            self.at += 3
            return self.compared(word, self.words[self.at - 2], self.at - 1)
        self.at += 1
        if word == "!" and left > 1:
            result = self.one()
            if result is None:
                return None
            return not result
        if word == "(":
            result = self.either()
            self.at += 1
            return result
        if left >= 2 and len(word) == 2 and word[0] == "-" and word[1].isalpha():
            self.at += 1
            return self.unary(word, self.words[self.at - 1])
        if is_known(word):
            return bool(word)
        return None

    def unary(self, operator: str, word: str) -> bool | None:
        if operator in ("-z", "-n"):
            if is_known(word):
                return (not word) == (operator == "-z")
            return None
        path = None
        if word:
            path = absolute(self.scope.folder, word)
        effects = self.walk.effects
        if path is None or operator not in _OF_FILES or effects.writes or effects.trees or effects.guesses:
            return None  # an earlier command may have made or removed it
        return _OF_FILES[operator](path)

    def compared(self, left: str, operator: str, place: int) -> bool | None:
        right = self.words[place]
        if not is_known(left) or not is_known(right):
            return None
        if operator in ("=", "==", "!="):
            if self.patterns is not None and place not in self.patterns:
                return None
            if self.patterns is None:
                same = left == right
            else:
                same = wildcards.match(left, self.patterns[place], True)
            return same == (operator != "!=")
        try:
            return _NUMERIC[operator](int(left), int(right))
        except (KeyError, ValueError):  # no number, or an operator that is not followed
            return None


# Shell arithmetic on numbers that are known.

LONGEST = 400  # characters of an expression
_LARGEST = 1 << 63


def _divided(left: int, right: int) -> int:
    """Divide as C does, towards zero."""
    quotient = abs(left) // abs(right)
    if (left < 0) == (right < 0):
        return quotient
    return -quotient


_BINARY: dict[str, tuple[int, Callable[[int, int], Any]]] = {  # operator -> (precedence, function)
    "||": (0, lambda left, right: int(bool(left or right))),
    "&&": (1, lambda left, right: int(bool(left and right))),
    "|": (2, int.__or__),
    "^": (3, int.__xor__),
    "&": (4, int.__and__),
    "==": (5, int.__eq__),
    "!=": (5, int.__ne__),
    "<=": (6, int.__le__),
    ">=": (6, int.__ge__),
    "<": (6, int.__lt__),
    ">": (6, int.__gt__),
    "<<": (7, int.__lshift__),
    ">>": (7, int.__rshift__),
    "+": (8, int.__add__),
    "-": (8, int.__sub__),
    "*": (9, int.__mul__),
    "/": (9, _divided),
    "%": (9, lambda left, right: left - _divided(left, right) * right),
    "**": (10, int.__pow__),
}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": int.__neg__,
    "+": int.__pos__,
    "~": int.__invert__,
    "!": lambda operand: int(not operand),
}
_ASSIGNMENTS = {"=", *(f"{one}=" for one in ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"))}
_OPERATORS = sorted({*_BINARY, *_ASSIGNMENTS, *"()?:,!~", "++", "--"}, key=len, reverse=True)


class _Unknown(Exception):
    pass


def computed(walk: Walk, scope: Scope, text: str) -> str:
    """The number that `text` (expanded) amounts to, as text; UNKNOWN where a part is not known, or it is no number."""
    if len(text) > LONGEST or "\0" in text:
        return UNKNOWN
    try:
        return str(_Expression(walk, scope, text).whole())
    except (_Unknown, ValueError, ZeroDivisionError, OverflowError, RecursionError):  # not a number that is known here
        return UNKNOWN


class _Expression:
    def __init__(self, walk: Walk, scope: Scope, text: str) -> None:
        self.walk = walk
        self.scope = scope
        self.tokens = _tokens(text)
        self.at = 0

    def whole(self) -> int:
        result = 0
        if self.tokens:
            result = self.comma()
        if self.at < len(self.tokens):
            raise _Unknown
        return result

    def peek(self, ahead: int = 0) -> str:
        if self.at + ahead < len(self.tokens):
            return self.tokens[self.at + ahead]
        return ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            raise _Unknown
        self.at += 1
        return token

    def comma(self) -> int:
        result = self.choice()
        while self.peek() == ",":
            self.take()
            result = self.choice()
        return result

    def choice(self) -> int:
        """An assignment, ``a ? b : c``, or less."""
        name, operator = self.peek(), self.peek(1)
        if operator in _ASSIGNMENTS and _is_name(name):
            self.at += 2
            result = self.choice()
            if operator != "=":
                result = _applied(operator[:-1], self.current(name), result)
            return self.assign(name, result)
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.choice()
        self.take(":")
        no = self.choice()
        if condition:
            return yes
        return no

    def binary(self, least: int) -> int:
        left = self.unary()
        while self.peek() in _BINARY and _BINARY[self.peek()][0] >= least:
            operator = self.take()
            tightness = _BINARY[operator][0]
            left = _applied(operator, left, self.binary(tightness + (operator != "**")))
        return left

    def unary(self) -> int:
        token = self.take()
        if token == "(":
            result = self.comma()
            self.take(")")
            return result
        if token in ("++", "--"):
            return self.step(self.take(), token)
        if token in _UNARY:
            return _UNARY[token](self.unary())
        if not _is_name(token):
            return _number(token)
        result = self.current(token)
        if self.peek() in ("++", "--"):
            self.step(token, self.take())
        return result

    def step(self, name: str, operator: str) -> int:
        if not _is_name(name):
            raise _Unknown
        if operator == "++":
            return self.assign(name, self.current(name) + 1)
        return self.assign(name, self.current(name) - 1)

    def assign(self, name: str, number: int) -> int:
        self.scope.variables[name] = str(number)
        return number

    def current(self, name: str) -> int:
        current = self.scope.parameter(name, missing="0")
        if not isinstance(current, str) or "\0" in current:
            raise _Unknown
        if current:
            return _number(current)
        return 0


def _applied(operator: str, left: int, right: int) -> int:
    if abs(left) > _LARGEST or abs(right) > _LARGEST:
        raise _Unknown
    if operator in ("<<", ">>", "**") and not 0 <= right < 64:
        raise _Unknown
    return int(_BINARY[operator][1](left, right))


def _number(text: str) -> int:
    if not text or not text.isascii():
        raise _Unknown
    if "#" in text:
        base, _, digits = text.partition("#")
        return int(digits, int(base))
    if text.lower().startswith("0x"):
        return int(text, 16)
    if len(text) > 1 and text[0] == "0" and text.isdecimal():
        return int(text, 8)
    return int(text)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        end = at
        while end < len(text) and (text[end] in NAME_LETTERS or (text[end] == "#" and end > at)):
            end += 1
        if end == at and text[at] not in " \t\n":
            operator = next((one for one in _OPERATORS if text.startswith(one, at)), None)
            if operator is None:
                raise _Unknown
            end = at + len(operator)
        if end > at:
            found.append(text[at:end])
        at = max(end, at + 1)
    return found


def _is_name(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"

"""Shell arithmetic on numbers that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.scope import Scope
from swarm_hook_core.shell.word_reader import NAME_LETTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk


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

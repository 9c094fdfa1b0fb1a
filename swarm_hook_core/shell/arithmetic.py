"""Shell arithmetic on numbers that are known."""

from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.quoting import NAME_LETTERS

_BINARY = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>"), ("+", "-")) + (
    ("*", "/", "%"),
    ("**",),
)
_OPERATORS = sorted(
    {*(one for level in _BINARY for one in level), *"()?:,!~=", "++", "--"}
    | {one + "=" for one in ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^")},
    key=len,
    reverse=True,
)
LONGEST = 400  # characters of an expression
_LARGEST = 1 << 63


class _Unknown(Exception):
    pass


def computed(walk, scope, text: str) -> str:
    """The number that `text` (expanded) amounts to, as text; UNKNOWN where a part is not known, or it is no number."""
    if len(text) > LONGEST or "\0" in text:
        return UNKNOWN
    try:
        return str(_Expression(walk, scope, text).all())
    except (_Unknown, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return UNKNOWN


class _Expression:
    def __init__(self, walk, scope, text):
        self.walk = walk
        self.scope = scope
        self.tokens = _tokens(text)
        self.at = 0

    def all(self) -> int:
        if not self.tokens:
            return 0
        result = self.comma()
        if self.at < len(self.tokens):
            raise _Unknown
        return result

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def comma(self) -> int:
        result = self.choice()
        while self.peek() == ",":
            self.take()
            result = self.choice()
        return result

    def choice(self) -> int:
        name, operator = self.peek(), self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if _is_name(name) and operator.endswith("=") and operator not in ("==", "<=", ">=", "!="):
            self.at += 2
            right = self.choice()
            result = right if operator == "=" else _apply(operator[:-1], self.number_of(name), right)
            self.scope.variables[name] = str(result)
            return result
        condition = self.level(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.choice()
        if self.take() != ":":
            raise _Unknown
        no = self.choice()
        return yes if condition else no

    def level(self, depth: int) -> int:
        if depth == len(_BINARY):
            return self.unary()
        left = self.level(depth + 1)
        while self.peek() in _BINARY[depth]:
            operator = self.take()
            right = self.level(depth if operator == "**" else depth + 1)
            left = _apply(operator, left, right)
        return left

    def unary(self) -> int:
        token = self.take()
        if token == "(":
            result = self.comma()
            if self.take() != ")":
                raise _Unknown
            return result
        if token in ("++", "--"):
            name = self.take()
            return self.step(name, 1 if token == "++" else -1)
        if token in ("-", "+", "!", "~"):
            operand = self.unary()
            return {"-": -operand, "+": operand, "!": int(not operand), "~": ~operand}[token]
        if _is_name(token):
            result = self.number_of(token)
            if self.peek() in ("++", "--"):
                self.step(token, 1 if self.take() == "++" else -1)
            return result
        return _number(token)

    def step(self, name: str, by: int) -> int:
        if not _is_name(name):
            raise _Unknown
        result = self.number_of(name) + by
        self.scope.variables[name] = str(result)
        return result

    def number_of(self, name: str) -> int:
        held = self.walk.parameter(self.scope, name, missing="0")
        if not isinstance(held, str) or "\0" in held:
            raise _Unknown
        return _number(held) if held else 0


def _number(text: str) -> int:
    if not text or not text.isascii():
        raise _Unknown
    if "#" in text:
        base, _, digits = text.partition("#")
        return int(digits, int(base))
    if text.lower().startswith("0x"):
        return int(text, 16)
    return int(text, 8) if len(text) > 1 and text[0] == "0" and text.isdecimal() else int(text)


def _apply(operator: str, left: int, right: int) -> int:
    if abs(left) > _LARGEST or abs(right) > _LARGEST:
        raise _Unknown
    if operator in ("<<", ">>", "**") and not 0 <= right < 64:
        raise _Unknown
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    return int(_DOES[operator](left, right))


_DOES = {
    "||": lambda left, right: bool(left or right),
    "&&": lambda left, right: bool(left and right),
    "|": int.__or__,
    "^": int.__xor__,
    "&": int.__and__,
    "==": int.__eq__,
    "!=": int.__ne__,
    "<=": int.__le__,
    ">=": int.__ge__,
    "<": int.__lt__,
    ">": int.__gt__,
    "<<": int.__lshift__,
    ">>": int.__rshift__,
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "**": int.__pow__,
}


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\n":
            at += 1
            continue
        end = at
        while end < len(text) and (text[end] in NAME_LETTERS or (text[end] == "#" and end > at)):
            end += 1
        if end == at:
            operator = next((one for one in _OPERATORS if text.startswith(one, at)), None)
            if operator is None:
                raise _Unknown
            end = at + len(operator)
        found.append(text[at:end])
        at = end
    return found


def _is_name(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"

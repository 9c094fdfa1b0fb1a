"""Values of followed Python code, and the results of operators and methods.

A known value is itself: a text, a number, a list, a dict. A text may hold marks (see ``model``) for parts that only a
run could tell. All else is one of the classes below. Nothing here raises for anything in the code, and no value grows
past `LONGEST`.
"""

from __future__ import annotations

import _operator as operator  # ``operator`` is a module of Python around it
import os
from typing import Any

from swarm_hook_core.shell.model import UNKNOWN, is_known

LONGEST = 64 * 1024  # characters of a text
MOST = 300  # elements of a list
LARGEST = 10**9  # of numbers that are multiplied


class Unknown:
    """An unknown value; `made_by`: the library function that it comes from, if known."""

    __slots__ = ("made_by",)

    def __init__(self, made_by: str = "") -> None:
        self.made_by = made_by


ANY = Unknown()
LEAVES = Unknown("sys.exit")  # the value of a call that ends the code


class Database:
    """A connection to the SQLite file `path`, or a cursor of it."""

    __slots__ = ("path",)

    def __init__(self, path: Any) -> None:
        self.path = path


class Path:
    """A ``pathlib`` path."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class LibraryName:
    """A module, or a member of a module or of ``builtins``, by its dotted name: ``os.path.join``, ``open``."""

    __slots__ = ("dotted",)

    def __init__(self, dotted: str) -> None:
        self.dotted = dotted


class Method:
    """The method `name` of the value `of`, not called yet."""

    __slots__ = ("of", "name")

    def __init__(self, of: Any, name: str) -> None:
        self.of = of
        self.name = name


class Function:
    """A function of the code: its node, and the names that it sees."""

    __slots__ = ("node", "names")

    def __init__(self, node: Any, names: Names) -> None:
        self.node = node
        self.names = names


class OpenFile:
    """An open file: its `path`, and its text (`ANY`: unknown)."""

    __slots__ = ("path", "text")

    def __init__(self, path: str, text: Any = ANY) -> None:
        self.path = path
        self.text = text


class Names:
    """The values of names in a function or module; other names are looked up in `above`."""

    __slots__ = ("held", "above", "outer")

    def __init__(self, held: dict[str, Any], above: Names | None = None) -> None:
        self.held = held
        self.above = above
        self.outer: set[str] = set()  # declared ``global`` or ``nonlocal``

    def find(self, name: str) -> tuple[Any, bool]:
        """Return (value, True), or (None, False)."""
        if name in self.held:
            return self.held[name], True
        if self.above is None:
            return (None, False)
        return self.above.find(name)

    def set(self, name: str, value: Any) -> None:
        names = self
        if name in self.outer and self.above is not None:
            names = self.above
            while names.above is not None and name not in names.held:
                names = names.above
        names.held[name] = value


class Arguments:
    """The arguments of a call, by place or name."""

    __slots__ = ("given", "named")

    def __init__(self, given: list[Any], named: dict[str, Any]) -> None:
        self.given = given
        self.named = named

    def get(self, place: int, name: str = "", default: Any = None) -> Any:
        if name and name in self.named:
            return self.named[name]
        if place < len(self.given):
            return self.given[place]
        return default


# Values as a text, a path, a condition, a list


def text_of(value: Any) -> str:
    """Return `value` as ``str`` would, with `UNKNOWN` for an unknown value."""
    if isinstance(value, (str, Path)):
        if isinstance(value, str):
            return value
        return value.text
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    return UNKNOWN


def path_of(value: Any) -> str | None:
    """Return the path that `value` names; None for a number: an open file's."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    if isinstance(value, (str, Path)):
        return text_of(value)
    return UNKNOWN


def is_plain(value: Any) -> bool:
    """Return True if `value` and all in it is known."""
    if isinstance(value, str):
        return is_known(value)
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, bytes))


def is_found(value: Any) -> bool:
    """Return True if a mark in `value` stands for files that only the disk knows."""
    if isinstance(value, (list, tuple)):
        return any(map(is_found, value))
    return isinstance(value, (str, Path)) and "\0" in text_of(value).replace(UNKNOWN, "")


def truth(value: Any) -> bool | None:
    """Return True, False, or None if unknown."""
    if is_found(value) or (isinstance(value, str) and not is_known(value)):
        return None
    if value is None or isinstance(value, (str, bool, int, float, bytes, list, tuple, dict)):
        return bool(value)
    if isinstance(value, (Path, OpenFile, Function, LibraryName)):
        return True
    return None


def elements(value: Any) -> Any:
    """Return the elements of `value` as a list, or None if unknown."""
    if isinstance(value, OpenFile):
        if isinstance(value.text, str) and is_known(value.text):
            return value.text.splitlines(True)
        return None
    if isinstance(value, (list, tuple, dict)) or (isinstance(value, str) and is_known(value)):
        if len(value) <= MOST:
            return list(value)
        return None
    return None


def spread(value: Any) -> list[Any]:
    """Return the elements of `value` for ``*value``: one that stands for all if they are unknown."""
    return elements(value) or [ANY]


def same(left: Any, right: Any) -> bool:
    """Return True if both are known and equal."""
    if isinstance(left, Path) and isinstance(right, Path):
        return left.text == right.text
    return type(left) is type(right) and is_plain(left) and is_plain(right) and left == right


# Operators


def tidy(text: str) -> str:
    """`text` as ``str(Path(text))`` gives it: no ``.`` parts, no doubled or last slash."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts) or "."


def bounded(value: Any) -> Any:
    """`value`, or `ANY` where it has grown too long."""
    if isinstance(value, (str, bytes, list, tuple)) and len(value) > LONGEST:
        return ANY
    return value


_OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod"}
_OPERATORS |= {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "BitOr": "or_"}


def operate(kind: Any, left: Any, right: Any) -> Any:
    """Return the result of an operator or a comparison, `kind` (the name of its ``ast`` class), for two values."""
    if kind == "Div" and (isinstance(left, Path) or isinstance(right, Path)):
        return Path(tidy(os.path.join(text_of(left), text_of(right))))
    if kind == "Add" and (isinstance(left, str) or isinstance(right, str)):
        both = isinstance(left, (str, Unknown)) and isinstance(right, (str, Unknown))
        if both:
            return bounded(text_of(left) + text_of(right))
        return ANY
    if kind == "Add" and isinstance(left, (list, tuple)) and type(left) is type(right):
        return bounded(type(left)([*left, *right]))
    if kind == "Mod" and isinstance(left, str):
        given = right
        if not isinstance(right, tuple):
            given = (right,)
        plain = left.replace("%d", "%s")
        fits = is_known(left) and plain.count("%") == plain.count("%s") == len(given)
        if fits:
            return bounded(plain % tuple(map(text_of, given)))
        return ANY
    if isinstance(left, Path) and isinstance(right, Path):
        left, right = left.text, right.text
    is_one = None in (left, right) and not isinstance(right if left is None else left, Unknown)
    if kind in ("Is", "IsNot") and is_one:
        return (left is right) == (kind == "Is")
    if not is_plain(left) or not is_plain(right) or (kind == "Mult" and not (_is_small(left) and _is_small(right))):
        return ANY
    try:
        if kind in ("In", "NotIn"):
            return (left in right) == (kind == "In")
        if kind in _OPERATORS:
            return bounded(getattr(operator, _OPERATORS[kind])(left, right))
        return ANY
    except Exception:  # the code itself would raise here
        return ANY


def _is_small(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < LARGEST


def item_of(owner: Any, key: Any) -> Any:
    """``owner[key]``; `ANY` where that is not known."""
    if isinstance(owner, dict):
        if isinstance(key, (str, int, tuple)) and is_plain(key):
            return owner.get(key, ANY)
        return ANY
    known = isinstance(owner, (list, tuple)) or (isinstance(owner, str) and is_known(owner))
    if not known:
        return ANY
    is_place = isinstance(key, slice) or (isinstance(key, int) and -len(owner) <= key < len(owner))
    if is_place:
        return owner[key]
    return ANY


def put(owner: Any, key: Any, value: Any) -> bool:
    """Do ``owner[key] = value``. Return True if the place is known."""
    if isinstance(owner, dict):
        known = isinstance(key, (str, int)) and is_plain(key) and len(owner) < MOST
    else:
        known = isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner)
    if known:
        owner[key] = value
    return known


# Texts

_TEXT_METHODS = frozenset(
    "strip lstrip rstrip lower upper title capitalize swapcase casefold startswith endswith split rsplit splitlines"
    " partition rpartition replace removeprefix removesuffix find rfind index rindex count isdigit isalpha isalnum"
    " isupper islower isspace isidentifier isnumeric isdecimal encode".split()
)


def text_method(text: str, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """Return the result of method `name` of a text."""
    if not is_known(text):
        return ANY
    if name == "join" and len(args) == 1:
        parts = elements(args[0])
        if parts is None:
            return ANY
        return bounded(text.join(map(text_of, parts)))
    if name == "format" and ":" not in text:
        args, named = list(map(text_of, args)), {key: text_of(value) for key, value in named.items()}
        if text.count("{") * max(map(len, [*args, *named.values()]), default=0) > 16 * LONGEST:
            return ANY
    elif name not in _TEXT_METHODS or not is_plain(args) or not is_plain(named):
        return ANY
    if name == "replace" and len(text) * len(text_of(args[1] if len(args) > 1 else "")) > 16 * LONGEST:
        return ANY
    try:
        return bounded(getattr(text, name)(*args, **named))
    except Exception:  # the code itself would raise here
        return ANY


def formatted(value: Any, spec: str) -> str:
    """``format(value, spec)``."""
    if not spec:
        return text_of(value)
    if len(spec) > 4 or not is_known(spec) or not is_plain(value):
        return UNKNOWN
    try:
        return format(value, spec)
    except Exception:  # the code itself would raise here
        return UNKNOWN

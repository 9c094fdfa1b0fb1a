"""Values of Python code that is followed: what an expression stands for, and what operators and methods make of it.

A value that is known is itself: a text, a number, a list, a dict. A text may hold marks (see ``model``): parts that
only a run could tell. All else is one of the classes below. Nothing here raises for what is in the code, and nothing
grows past `LONGEST`.
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.model import UNKNOWN, is_known

LONGEST = 64 * 1024  # characters of a text
MOST = 300  # elements of a list


class Unknown:
    """A value that nobody knows; `made_by`: the library function that it comes from, where that is known."""

    __slots__ = ("made_by",)

    def __init__(self, made_by: str = ""):
        self.made_by = made_by


ANY = Unknown()


class Path:
    """A ``pathlib`` path."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text


class LibraryName:
    """A module, or what a module or ``builtins`` holds, by its dotted name: ``os.path.join``, ``open``."""

    __slots__ = ("dotted",)

    def __init__(self, dotted: str):
        self.dotted = dotted


class Method:
    """The method `name` of the value `of`, not called yet."""

    __slots__ = ("of", "name")

    def __init__(self, of, name: str):
        self.of = of
        self.name = name


class Function:
    """A function of the code: its node, and the names that it sees."""

    __slots__ = ("node", "names")

    def __init__(self, node, names):
        self.node = node
        self.names = names


class OpenFile:
    """An open file, or what a command prints: its `path`, and what reading it gives (`ANY`: not known)."""

    __slots__ = ("path", "text")

    def __init__(self, path: str, text=ANY):
        self.path = path
        self.text = text


class Database:
    """A connection to the SQLite file `path`, or a cursor of it."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = path


class DiskFiles:
    """Files at and under absolute `root` that a loop goes over, any of which is `element`, a value with a mark."""

    __slots__ = ("root", "element")

    def __init__(self, root: str, element):
        self.root = root
        self.element = element


class SomeFiles(list):
    """Of the files that a loop goes over, the one that a replay is about: no other is known, nor which comes first."""


class Arguments:
    """The arguments of a call, by place or name."""

    __slots__ = ("given", "named")

    def __init__(self, given: list, named: dict):
        self.given = given
        self.named = named

    def get(self, place: int, name: str = "", default=None):
        if name and name in self.named:
            return self.named[name]
        return self.given[place] if place < len(self.given) else default


# What a value is as a text, a path, a condition, a list


def text_of(value) -> str:
    """`value` as ``str`` would give it, with `UNKNOWN` for what is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, Path):
        return value.text
    return str(value) if value is None or isinstance(value, (bool, int, float)) else UNKNOWN


def path_of(value):
    """The path that `value` names for a function that takes one; None for a number: an open file's."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    return text_of(value) if isinstance(value, (str, Path)) else UNKNOWN


def is_plain(value) -> bool:
    """Whether `value` is known through and through."""
    if isinstance(value, str):
        return is_known(value)
    if isinstance(value, (list, tuple)):
        return not isinstance(value, SomeFiles) and all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, bytes))


def truth(value):
    """True, False, or None where that is not known."""
    if isinstance(value, SomeFiles) or (isinstance(value, str) and not is_known(value)):
        return None
    if value is None or isinstance(value, (str, bool, int, float, bytes, list, tuple, dict)):
        return bool(value)
    return True if isinstance(value, (Path, OpenFile, Function, LibraryName)) else None


def elements(value):
    """What going through `value` gives, as a list, or None where that is not known."""
    if isinstance(value, OpenFile):
        return value.text.splitlines(True) if isinstance(value.text, str) and is_known(value.text) else None
    if isinstance(value, (list, tuple, dict)) or (isinstance(value, str) and is_known(value)):
        return value if isinstance(value, SomeFiles) else list(value) if len(value) <= MOST else None
    return None


def same(left, right) -> bool:
    """Whether both are known and equal."""
    if isinstance(left, Path) and isinstance(right, Path):
        return left.text == right.text
    return type(left) is type(right) and is_plain(left) and is_plain(right) and left == right


# Operators


def bounded(value):
    """`value`, or `ANY` where it has grown too long."""
    return ANY if isinstance(value, (str, bytes, list, tuple)) and len(value) > LONGEST else value


_OPERATORS = {"Sub": "sub", "FloorDiv": "floordiv", "Div": "truediv", "Mod": "mod", "BitOr": "or_", "BitAnd": "and_"}
_OPERATORS |= {"Add": "add", "Mult": "mul", "BitXor": "xor", "RShift": "rshift"}


def operate(kind: str, left, right):
    """What binary operator `kind` (the name of its ``ast`` class) makes of two values."""
    if kind == "Div" and (isinstance(left, Path) or isinstance(right, Path)):
        return Path(tidy(join(text_of(left), text_of(right))))
    if kind == "Add" and (isinstance(left, str) or isinstance(right, str)):
        both = isinstance(left, (str, Unknown)) and isinstance(right, (str, Unknown))
        return bounded(text_of(left) + text_of(right)) if both else ANY
    if kind == "Add" and isinstance(left, (list, tuple)) and type(left) is type(right):
        return bounded(type(left)([*left, *right]))
    if kind == "Mod" and isinstance(left, str):
        given = right if isinstance(right, tuple) else (right,)
        if is_known(left) and left.count("%") == left.count("%s") == len(given):
            return bounded(left % tuple(map(text_of, given)))
        if not is_known(left) or isinstance(right, dict) or _is_wide(left):
            return ANY
    if kind not in _OPERATORS or not is_plain(left) or not is_plain(right) or _is_vast(kind, left, right):
        return ANY
    import operator

    try:
        return bounded(getattr(operator, _OPERATORS[kind])(left, right))
    except Exception:  # what the code would raise
        return ANY


def _is_vast(kind: str, left, right) -> bool:
    """Whether a product might be."""
    if kind != "Mult":
        return False
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)):
            return not isinstance(other, int) or len(one) * other > LONGEST
    return isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 256


def compare(kind: str, left, right):
    """True, False or `ANY`: what comparison `kind` (the name of its ``ast`` class) gives."""
    if isinstance(left, Path) and isinstance(right, Path):
        left, right = left.text, right.text
    if kind in ("Is", "IsNot") and None in (left, right) and not isinstance(right if left is None else left, Unknown):
        return (left is right) == (kind == "Is")
    if not is_plain(left) or not is_plain(right):
        return ANY
    try:
        if kind in ("Eq", "NotEq", "Is", "IsNot"):
            return (left == right) == (kind in ("Eq", "Is"))
        if kind in ("In", "NotIn"):
            return (left in right) == (kind == "In")
        return (left < right) == (kind == "Lt") if kind in ("Lt", "GtE") else (left > right) == (kind == "Gt")
    except Exception:
        return ANY


def item_of(owner, key):
    """``owner[key]``; `ANY` where that is not known."""
    if isinstance(owner, dict):
        return owner.get(key, ANY) if isinstance(key, (str, int, tuple)) and is_plain(key) else ANY
    if isinstance(owner, (list, tuple)) or (isinstance(owner, str) and is_known(owner)):
        known = isinstance(key, int) and -len(owner) <= key < len(owner) and not isinstance(owner, SomeFiles)
        return owner[key] if known else ANY
    return ANY


# Texts

_TEXT_METHODS = frozenset(
    "strip lstrip rstrip lower upper title capitalize swapcase casefold startswith endswith split rsplit splitlines"
    " partition rpartition replace removeprefix removesuffix format find rfind index rindex count isdigit isalpha"
    " isalnum isupper islower isspace isidentifier isnumeric isdecimal encode zfill ljust rjust center".split()
)


def text_method(text: str, name: str, args: list, named: dict):
    """What method `name` of a text gives."""
    if name == "join" and len(args) == 1 and is_known(text):
        parts = elements(args[0])
        return ANY if parts is None else bounded(text.join(map(text_of, parts)))
    if name == "format" and is_known(text) and not named and text.count("{}") == text.count("{") == len(args):
        return bounded(text.replace("%", "%%").replace("{}", "%s") % tuple(map(text_of, args)))
    if name not in _TEXT_METHODS or not is_known(text) or not is_plain(args) or not is_plain(named):
        return ANY
    if name in ("zfill", "ljust", "rjust", "center") and not (args and isinstance(args[0], int) and args[0] < 1000):
        return ANY
    if name == "format" and _is_wide(text):
        return ANY
    if name == "replace" and len(args) > 1 and all(isinstance(one, str) for one in args[:2]):
        count = text.count(args[0]) if args[0] else len(text) + 1
        if len(args[1]) * count > LONGEST:
            return ANY
    try:
        return bounded(getattr(text, name)(*args, **named))
    except Exception:  # what the code would raise
        return ANY


def formatted(value, spec: str) -> str:
    """``format(value, spec)``."""
    if not spec:
        return text_of(value)
    if _is_wide(spec) or not is_known(spec) or not is_plain(value):
        return UNKNOWN
    try:
        return format(value, spec)
    except Exception:
        return UNKNOWN


def _is_wide(text: str) -> bool:
    """Whether a format in `text` might make something long: a number of four digits."""
    digits = 0
    for letter in text:
        digits = digits + 1 if letter.isdigit() else 0
        if digits > 3:
            return True
    return False


# Paths


def join(*parts: str) -> str:
    """``os.path.join`` of texts that may hold marks."""
    path = parts[0]
    for part in parts[1:]:
        path = part if part.startswith("/") else f"{path}{part}" if not path or path.endswith("/") else f"{path}/{part}"
    return path


def tidy(text: str) -> str:
    """`text` as ``str(Path(text))`` gives it: no ``.`` parts, no doubled or last slash."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts) or "."


def at_home(text: str, home: str) -> str:
    """``os.path.expanduser``, with `home` for the user's own folder."""
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return os.path.expanduser(text) if text.startswith("~") and is_known(text) else text


def path_attribute(path: Path, name: str):
    """The attribute `name` of a path, or None where it has no such one (a method)."""
    if name not in ("parent", "parents", "parts", "name", "stem", "suffix"):
        return None
    text = path.text
    if not is_known(text):
        return ANY
    folder, base = os.path.split(text)
    if name == "parts":
        return tuple(["/"] * text.startswith("/") + [part for part in text.split("/") if part])
    if name in ("parent", "parents"):
        above = [folder]
        while above[-1] not in ("", "/"):
            above.append(os.path.dirname(above[-1]))
        found = [Path(one or ".") for one in above]
        return found[0] if name == "parent" else found
    stem, dot, last = base.rpartition(".")
    has_suffix = bool(dot and stem and last)
    return {"name": base, "stem": stem if has_suffix else base, "suffix": f".{last}" if has_suffix else ""}[name]


def path_method(path: Path, name: str, args: list, folder, home: str):
    """What method `name` gives that only works on the path itself; None for any other."""
    text = path.text
    if name == "joinpath":
        return Path(tidy(join(text, *map(text_of, args))))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("absolute", "resolve"):
        known = is_known(text) and (folder is not None or text.startswith("/"))
        return Path(os.path.normpath(join(folder or "/", text)) if known else UNKNOWN)
    if name == "expanduser":
        return Path(at_home(text, home))
    if name not in ("with_suffix", "with_name", "with_stem", "relative_to"):
        return None
    given = text_of(args[0]) if args else UNKNOWN
    if not is_known(text) or not is_known(given):
        return Path(UNKNOWN)
    if name == "relative_to":
        return Path(os.path.relpath(text, given) if text.startswith("/") == given.startswith("/") else UNKNOWN)
    if name == "with_suffix":
        given = path_attribute(path, "stem") + given
    elif name == "with_stem":
        given += path_attribute(path, "suffix")
    return Path(os.path.join(os.path.dirname(text), given))


def path_function(name: str, texts: list, folder, home: str):
    """What ``os.path.<name>`` gives for texts."""
    if name == "join" and texts:
        return join(*texts)
    if not texts or not all(map(is_known, texts)):
        return ANY
    if name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
        return getattr(os.path, name)(texts[0])
    if name in ("abspath", "realpath"):
        return ANY if folder is None else os.path.normpath(os.path.join(folder, texts[0]))
    if name == "expanduser":
        return at_home(texts[0], home)
    if name == "relpath" and folder is not None:
        start = os.path.join(folder, *texts[1:2])
        return os.path.relpath(os.path.join(folder, texts[0]), start)
    return ANY

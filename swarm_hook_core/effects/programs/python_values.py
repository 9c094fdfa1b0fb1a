"""What expressions of Python code stand for, as far as that is known without running it.

Known values are themselves: texts, numbers, lists, dicts. A text may hold marks (see ``model``): a part that only
a run could tell. All else is one of the classes below. Every operation here answers `ANY` rather than raise, and
makes nothing longer than `LONGEST`.
"""

import os

from swarm_hook_core.effects.model import UNKNOWN, is_known

LONGEST = 64 * 1024  # characters of a text that is worked out
MOST = 300  # elements of a list that is gone through
CHOICES = 12


class Unknown:
    """A value that nobody knows; `dotted`: the call that made it, where that is known."""

    __slots__ = ("dotted",)

    def __init__(self, dotted=""):
        self.dotted = dotted


ANY = Unknown()


class Place:
    """A ``pathlib`` path."""

    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text


class Choice:
    """One of `values`; which one, a run would tell."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


class Name:
    """A module, or what a module or ``builtins`` holds: ``os.path.join``, ``open``."""

    __slots__ = ("dotted",)

    def __init__(self, dotted):
        self.dotted = dotted


class Method:
    """Method `name` of `of`, not yet called."""

    __slots__ = ("of", "name")

    def __init__(self, of, name):
        self.of = of
        self.name = name


class Function:
    """A function of the code: its node, the scope that it was made in, and the object it is bound to."""

    __slots__ = ("node", "scope", "bound")

    def __init__(self, node, scope, bound=None):
        self.node = node
        self.scope = scope
        self.bound = bound


class Class:
    """A class of the code: what its body holds."""

    __slots__ = ("name", "members")

    def __init__(self, name, members):
        self.name = name
        self.members = members


class Instance:
    __slots__ = ("of", "attributes")

    def __init__(self, of):
        self.of = of
        self.attributes: dict = {}


class Handle:
    """An open file: its `path`, and what reading it would give (`text`, None: not known)."""

    __slots__ = ("path", "text")

    def __init__(self, path, text=None):
        self.path = path
        self.text = text


class Archive:
    """A zip or tar file that is open."""

    __slots__ = ()


class Database:
    """A connection to the SQLite file `path`, or a cursor of it."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = path


class Result:
    """What a finished command left: its output as a text or `ANY`."""

    __slots__ = ("output",)

    def __init__(self, output):
        self.output = output


def text_of(value) -> str:
    """`value` as ``str`` would give it, with `UNKNOWN` for what is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, Place):
        return value.text
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    return UNKNOWN


def path_of(value):
    """The path that `value` names for a function that takes one; None for a file descriptor, which names none."""
    if isinstance(value, (str, Place)):
        return text_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        return None
    return UNKNOWN


def is_plain(value) -> bool:
    """Whether `value` is known through and through."""
    if isinstance(value, str):
        return is_known(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, bytes))


def truth(value):
    """True, False, or None where that is not known."""
    if isinstance(value, Choice):
        answers = {truth(one) for one in value.values}
        return answers.pop() if len(answers) == 1 else None
    if isinstance(value, str):
        return True if value and is_known(value) else None if value else False
    if value is None or isinstance(value, (bool, int, float, bytes, list, tuple, dict, set, frozenset)):
        return bool(value)
    return True if isinstance(value, (Place, Handle, Function, Class, Name)) else None


def alternatives(value) -> list:
    """The values that `value` may be."""
    return value.values if isinstance(value, Choice) else [value]


def choice(values):
    """One value for those in `values`, without repeats."""
    found: list = []
    for value in values:
        for one in alternatives(value):
            if not any(one is other or (same(one, other)) for other in found):
                found.append(one)
    if len(found) > CHOICES:
        return ANY
    return found[0] if len(found) == 1 else Choice(found) if found else ANY


def same(left, right) -> bool:
    """Whether both are known and equal."""
    if isinstance(left, Place) and isinstance(right, Place):
        return left.text == right.text
    return type(left) is type(right) and is_plain(left) and is_plain(right) and left == right


def spread(function, *values):
    """`function` of every combination of what `values` may be."""
    if not any(isinstance(value, Choice) for value in values):
        return function(*values)
    rows: list = [[]]
    for value in values:
        rows = [[*row, one] for row in rows for one in alternatives(value)]
        if len(rows) > CHOICES:
            return ANY
    return choice([function(*row) for row in rows])


def elements(value):
    """What going through `value` gives, as a list, or None where that is not known."""
    if isinstance(value, Choice):
        parts = [elements(one) for one in value.values]
        return None if any(part is None for part in parts) else [one for part in parts for one in part]
    if isinstance(value, str):
        return list(value) if is_known(value) and len(value) <= MOST else None
    if isinstance(value, Handle):
        return value.text.splitlines(True) if isinstance(value.text, str) and is_known(value.text) else None
    if isinstance(value, (list, tuple, dict, set, frozenset, range)):
        return list(value) if len(value) <= MOST else None
    return None


def join(*parts: str) -> str:
    """``os.path.join`` of texts that may hold marks."""
    path = parts[0]
    for part in parts[1:]:
        path = part if part.startswith("/") else f"{path}{part}" if not path or path.endswith("/") else f"{path}/{part}"
    return path


def tidy(text: str) -> str:
    """`text` as ``str(Path(text))`` gives it: no ``.`` parts, no doubled or last slash."""
    if not text.strip("./"):
        return "/" if text.startswith("/") else text if ".." in text else "."
    root = "/" if text.startswith("/") else ""
    return root + "/".join(part for part in text.split("/") if part not in ("", "."))


_PURE_TEXT = frozenset(
    "strip lstrip rstrip lower upper title capitalize swapcase casefold startswith endswith split rsplit splitlines"
    " partition rpartition replace removeprefix removesuffix join format find rfind index rindex count isdigit isalpha"
    " isalnum isupper islower isspace isidentifier isnumeric isdecimal encode zfill ljust rjust center".split()
)


def text_method(text: str, name: str, args: list, named: dict):
    """What method `name` of a str gives."""
    if name == "join" and len(args) == 1 and is_known(text):
        parts = elements(args[0])
        if parts is None:
            return ANY
        return shortened(text.join(map(text_of, parts)))
    if name == "format" and is_known(text) and not named and text.count("{}") == text.count("{") == len(args):
        return shortened(text.replace("%", "%%").replace("{}", "%s") % tuple(map(text_of, args)))
    if name not in _PURE_TEXT or not is_known(text) or not all(map(is_plain, args)) or not is_plain(named):
        return ANY
    if name in ("zfill", "ljust", "rjust", "center") and args and (not isinstance(args[0], int) or args[0] > 1000):
        return ANY
    if name == "format" and _wide(text):
        return ANY
    if name == "replace" and len(args) >= 2 and isinstance(args[1], str):
        if len(args[1]) * (text.count(args[0]) if args[0] else len(text) + 1) > LONGEST:
            return ANY
    try:
        return shortened(getattr(text, name)(*args, **named))
    except Exception:  # what the code would raise at run time
        return ANY


def shortened(value):
    """`value`, or `ANY` where it has grown too long."""
    return ANY if isinstance(value, (str, bytes, list, tuple)) and len(value) > LONGEST else value


def _wide(text: str) -> bool:
    """Whether a format in `text` might make something long."""
    digits = 0
    for letter in text:
        digits = digits + 1 if letter.isdigit() else 0
        if digits > 3:
            return True
    return False


def formatted(value, spec: str):
    """``format(value, spec)``."""
    if not spec:
        return text_of(value)
    if _wide(spec) or not is_known(spec) or not is_plain(value):
        return UNKNOWN
    try:
        return format(value, spec)
    except Exception:
        return UNKNOWN


def operate(kind: str, left, right):
    """What binary operator `kind` (the name of its ``ast`` class) makes of two values."""
    if kind == "Div" and (isinstance(left, Place) or isinstance(right, Place)):
        return Place(tidy(join(text_of(left), text_of(right))))
    if kind == "Add" and isinstance(left, str) != isinstance(right, str) and _one_is_unknown(left, right):
        return shortened(text_of(left) + text_of(right))
    if kind == "Add" and isinstance(left, (str, list, tuple)) and type(left) is type(right):
        return shortened(left + right)
    if kind == "Mod" and isinstance(left, str) and is_known(left):
        values = right if isinstance(right, tuple) else (right,)
        if isinstance(right, dict) or _wide(left):
            return ANY
        if left.count("%") == left.count("%s") == len(values):
            return shortened(left % tuple(map(text_of, values)))
        values = values if is_plain(values) else None
        try:
            return ANY if values is None else shortened(left % values)
        except Exception:
            return ANY
    if not is_plain(left) or not is_plain(right):
        return ANY
    if kind in ("Pow", "LShift") or (kind == "Mult" and _product_too_long(left, right)):
        return ANY
    function = _operators().get(kind)
    try:
        return ANY if function is None else shortened(function(left, right))
    except Exception:
        return ANY


def _one_is_unknown(left, right) -> bool:
    """Whether one of them is not known; only then may the other, a text, be added to it."""
    return isinstance(left, Unknown) or isinstance(right, Unknown)


def _product_too_long(left, right) -> bool:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)):
            return not isinstance(other, int) or len(one) * other > LONGEST
        if isinstance(one, int) and one.bit_length() > 256:
            return True
    return False


def _operators():
    import operator

    return {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mult": operator.mul,
        "Div": operator.truediv,
        "FloorDiv": operator.floordiv,
        "Mod": operator.mod,
        "BitOr": operator.or_,
        "BitAnd": operator.and_,
        "BitXor": operator.xor,
        "RShift": operator.rshift,
    }


def compare(kind: str, left, right):
    """True, False or `ANY`: what comparison `kind` (the name of its ``ast`` class) gives."""
    if kind in ("Is", "IsNot") and (left is None or right is None):
        if isinstance(left, (Unknown, Choice)) or isinstance(right, (Unknown, Choice)):
            return ANY
        return (left is right) == (kind == "Is")
    if isinstance(left, Place) and isinstance(right, Place):
        left, right = left.text, right.text
    if not is_plain(left) or not is_plain(right):
        return ANY
    try:
        if kind in ("Eq", "NotEq", "Is", "IsNot"):
            return (left == right) == (kind in ("Eq", "Is"))
        if kind in ("In", "NotIn"):
            return (left in right) == (kind == "In")
        if kind in ("Lt", "GtE"):
            return (left < right) == (kind == "Lt")
        return (left > right) == (kind == "Gt")
    except Exception:
        return ANY


def place_attribute(place: Place, name: str):
    """Attribute `name` of a path: `ANY` for methods and what is not known."""
    text = place.text
    if not is_known(text):
        return ANY
    folder, base = os.path.split(text)
    stem, dot, last = base.rpartition(".")
    has_suffix = bool(dot and stem and last)
    if name == "parent":
        return Place(folder or ("/" if text == "/" else "."))
    if name == "parents":
        found = []
        while folder not in ("", "/"):
            found.append(Place(folder))
            folder = os.path.dirname(folder)
        return [*found, Place(folder or ".")]
    if name == "parts":
        return tuple((["/"] if text.startswith("/") else []) + [part for part in text.split("/") if part])
    return {"name": base, "stem": stem if has_suffix else base, "suffix": f".{last}" if has_suffix else ""}.get(name, ANY)


def place_method(place: Place, name: str, args: list, folder):
    """What a method that only works on the path itself gives; None for any other."""
    text = place.text
    if name == "joinpath":
        return Place(tidy(join(text, *map(text_of, args))))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("absolute", "resolve"):
        if folder is None and not text.startswith("/"):
            return ANY
        return Place(os.path.normpath(join(folder or "/", text)) if is_known(text) else UNKNOWN)
    if name == "expanduser":
        return Place(expanded(text))
    if name in ("with_suffix", "with_name", "with_stem", "relative_to"):
        if not is_known(text) or not args or not is_plain(args[0]) and not isinstance(args[0], Place):
            return Place(UNKNOWN)
        above, base = os.path.split(text)
        stem, given = place_attribute(place, "stem"), text_of(args[0])
        if name == "relative_to":
            inside = os.path.relpath(text, given) if text.startswith("/") == given.startswith("/") else UNKNOWN
            return Place(inside)
        if name == "with_suffix":
            given = stem + given
        elif name == "with_stem":
            given += place_attribute(place, "suffix")
        return Place(os.path.join(above, given))
    return None


def expanded(text: str) -> str:
    """``os.path.expanduser``."""
    return os.path.expanduser(text) if is_known(text) else text


def path_function(name: str, args: list, folder):
    """What ``os.path.<name>`` of known texts gives; `ANY` where it does not tell."""
    texts = list(map(text_of, args))
    if not texts:
        return ANY
    if name == "join":
        return join(*texts)
    if not all(map(is_known, texts)):
        return ANY
    if name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
        return getattr(os.path, name)(texts[0])
    if name in ("abspath", "realpath"):
        return ANY if folder is None else os.path.normpath(os.path.join(folder, texts[0]))
    if name == "expanduser":
        return expanded(texts[0])
    if name == "relpath" and folder is not None:
        start = os.path.join(folder, texts[1]) if len(texts) > 1 else folder
        return os.path.relpath(os.path.join(folder, texts[0]), start)
    return ANY

"""Values of followed Python code, and the results of operators, and of functions and methods that write nothing.

A known value is itself: a text, a number, a list, a dict. A text may hold marks (see ``model``) for parts that only a
run could tell. All else is one of the classes below. Nothing here raises for anything in the code, and no value grows
past `LONGEST`.
"""

from __future__ import annotations

import _operator as operator  # ``operator`` is a module of Python around it
import os
from fnmatch import fnmatchcase
from typing import Any

from swarm_hook_core.shell.inline.effects import SCRATCH
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known
from swarm_hook_core.shell.programs.places import fixed_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.inline.python import Code

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


# Functions and methods that write nothing: of paths, texts, lists, maps, and of the library.

ANYTHING = "?"  # dotted name of a value with a name that is only known when the code runs
_GROWING = ("append", "add", "insert", "extend", "update")


def method_of_value(code: Code, owner: Any, name: str, a: Arguments) -> Any:
    """Return the result of method `name` of a text, a list, a map or an open file."""
    if isinstance(owner, str):
        return text_method(owner, name, a.given, a.named)
    if name == "copy":
        if isinstance(owner, (list, dict)):
            return type(owner)(owner)
        return ANY
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(code, owner, name, a)
    if name in ("read", "read_text", "decode"):
        return owner.text
    lines = elements(owner)
    if name == "readlines" and lines is not None:
        return lines
    return ANY


def _of_list(code: Code, owner: Any, name: str, a: Arguments) -> Any:
    if name in _GROWING and len(owner) < MOST:
        value = a.get(1 if name == "insert" else 0, default=ANY)
        if name in ("append", "add", "insert"):
            owner.append(value)
        else:
            owner += spread(value)
    elif name == "pop":
        at = a.get(0, default=-1)
        if isinstance(at, int) and -len(owner) <= at < len(owner):
            if code.effects.doubt:
                return owner[at]
            return owner.pop(at)
    return ANY


def _of_dict(code: Code, owner: Any, name: str, a: Arguments) -> Any:
    if name in ("items", "values", "keys"):
        return list(getattr(owner, name)())
    if name in ("get", "setdefault", "pop"):
        key = a.get(0)
        if isinstance(key, (str, int)) and is_plain(key):
            return owner.get(key, a.get(1))
        code.hand_over(owner.values())
    if name == "update" and isinstance(a.get(0), dict):
        owner.update(a.get(0))
    return ANY


def at_home(text: str, home: str) -> str:
    """``os.path.expanduser``, with `home` for the user's own folder."""
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    if text.startswith("~") and is_known(text):
        return os.path.expanduser(text)
    return text


def path_attribute(path: Path, name: str) -> Any:
    """Return the attribute `name` of a path, or None for a method."""
    if name not in ("parent", "parents", "parts", "name", "stem", "suffix"):
        return None
    text = path.text
    if not is_known(text) or name == "parts":
        return ANY
    folder, base = os.path.split(text)
    stem, ending = os.path.splitext(base)
    if name == "parents":
        above = [Path(folder or ".")]
        if folder.strip("/"):
            above += path_attribute(Path(folder), name)
        return above
    return {"name": base, "stem": stem, "suffix": ending, "parent": Path(folder or ".")}[name]


def path_method(path: Path, name: str, args: list[Any], folder: str | None, home: str) -> Any:
    """Return the result of a method `name` that works on the path alone; None for any other."""
    text = path.text
    if name == "joinpath":
        return Path(tidy(os.path.join(text, *map(text_of, args))))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("absolute", "resolve"):
        known = is_known(text) and (folder is not None or text.startswith("/"))
        return Path(os.path.normpath(os.path.join(folder or "/", text)) if known else UNKNOWN)
    if name == "expanduser":
        return Path(at_home(text, home))
    given = "".join(map(text_of, args[:1])) or UNKNOWN
    if name not in ("with_suffix", "with_name") or not is_known(text + given):
        return None
    if name == "with_suffix":
        given = path_attribute(path, "stem") + given
    return Path(os.path.join(os.path.dirname(text), given))


def path_function(name: str, texts: list[Any], folder: str | None, home: str) -> Any:
    """Return the result of ``os.path.<name>`` for texts."""
    if name == "join" and texts:
        return os.path.join(*texts)
    if not texts or not all(map(is_known, texts)):
        return ANY
    if name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
        return getattr(os.path, name)(texts[0])
    if name in ("abspath", "realpath"):
        if folder is None:
            return ANY
        return os.path.normpath(os.path.join(folder, texts[0]))
    if name == "expanduser":
        return at_home(texts[0], home)
    if name == "relpath" and folder is not None:
        return os.path.relpath(os.path.join(folder, texts[0]), os.path.join(folder, *texts[1:2]))
    return ANY


# Files that only the disk knows: a list with one mark that stands for all of them


def globbed(code: Code, pattern: str, folder: str, as_paths: bool, is_deep: bool = True) -> Any:
    """Return the files that a glob `pattern` seen from `folder` finds."""
    base = absolute(code.effects.folder, "/" if pattern.startswith("/") else folder or ".")
    if base is None or not is_known(pattern):
        return ANY
    loose = os.path.normpath(pattern).lstrip("/").replace("**/", "*")
    is_deep = is_deep and "**" in pattern
    start = len(base.rstrip("/")) + 1

    def admits(path: str) -> bool:
        inside = path[start:]
        is_shown = as_paths or "/." not in "/" + inside
        return is_shown and fnmatchcase(inside, loose) and (is_deep or inside.count("/") == loose.count("/"))

    mark = code.effects.call.walk.mark(Found(os.path.normpath(os.path.join(base, fixed_part(loose))), admits))
    if as_paths:
        return [Path(mark)]
    return [mark]


def _walked(code: Code, a: Arguments) -> Any:
    """``os.walk(folder)``: folder, names of folders, names of files. Any file under `folder` may be meant."""
    base = absolute(code.effects.folder, text_of(a.get(0, "top", ANY)))
    if base is None:
        return ANY
    mark = code.effects.call.walk.mark(Found(base, lambda _path: None))
    return [(mark, [UNKNOWN], [UNKNOWN])]


def _listed(code: Code, a: Arguments) -> Any:
    """``os.listdir(folder)``: names in it."""
    return globbed(code, "*", text_of(a.get(0, "path", ".")), False)


def _of_elements(make: Any) -> Any:
    """Return a function that makes a list or a map of the elements of lists, known or not."""

    def give(code: Code, a: Arguments) -> Any:
        lists = [elements(one) for one in a.given]
        if None in lists or (len(lists) > 1 and is_found(lists)):
            return ANY
        try:
            return make(*lists, **a.named)
        except (TypeError, ValueError):  # the code itself would raise here, or only a run can tell
            return next(iter(lists), ANY)

    return give


def _of_plain(make: Any) -> Any:
    """A function of values that must be known through and through."""

    def give(code: Code, a: Arguments) -> Any:
        try:
            if is_plain(a.given) and is_plain(a.named):
                return bounded(make(*a.given, **a.named))
            return ANY
        except Exception:  # the code itself would raise here
            return ANY

    return give


def _range(*bounds: int) -> Any:
    found = range(*bounds)
    if len(found) <= MOST:
        return list(found)
    return ANY


def _sorted(items: Any, **options: Any) -> Any:
    if options or not is_plain(items):
        raise TypeError
    return sorted(items)


def _enumerated(code: Code, a: Arguments) -> Any:
    items, start = elements(a.get(0)), a.get(1, "start", 0)
    if items is None or not isinstance(start, int):
        return ANY
    return [(ANY if is_found(one) else at, one) for at, one in enumerate(items, start)]


def _mapped(code: Code, a: Arguments) -> Any:
    items = elements(a.get(1))
    if items is None or len(a.given) > 2:
        code.hand_over(a.given)
        return ANY
    return [code.call(a.get(0), [one], {}) for one in items]


def _as_text(code: Code, a: Arguments) -> Any:
    value = a.get(0, default="")
    if isinstance(value, (list, dict, tuple)):
        return ANY
    return text_of(value)


def _length(code: Code, a: Arguments) -> Any:
    value = a.get(0)
    if value is code.argv and isinstance(value, list):
        return len(value)
    return _of_plain(len)(code, a)


def _attribute_got(code: Code, a: Arguments) -> Any:
    name = a.get(1)
    if isinstance(name, str) and is_known(name):
        return code.attribute(a.get(0), name)
    if isinstance(a.get(0), LibraryName):
        return LibraryName(ANYTHING)
    return ANY


def _variable(code: Code, a: Arguments) -> Any:
    known = code.variable(text_of(a.get(0, "key")))
    if known is not ANY:
        return known
    return a.get(1, "default", ANY)


def _module(code: Code, a: Arguments) -> Any:
    module = a.get(0, "name", ANY)
    if isinstance(module, str) and is_known(module):
        code.imported(module)
        return LibraryName(module)
    code.effects.guess_code()
    return LibraryName(ANYTHING)


_TEMPORARY_FILES = ("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile", "tempfile.SpooledTemporaryFile")
_TEMPORARY_PATHS = ("tempfile.mkdtemp", "tempfile.mktemp", "tempfile.TemporaryDirectory")
GIVES = {
    **dict.fromkeys(_TEMPORARY_FILES, lambda code, a: OpenFile(SCRATCH)),
    **dict.fromkeys(_TEMPORARY_PATHS, lambda code, a: SCRATCH),
    "tempfile.mkstemp": lambda code, a: (3, SCRATCH),
    "tempfile.gettempdir": lambda code, a: os.environ.get("TMPDIR") or "/tmp",
    "getattr": _attribute_got,
    "pathlib.Path": lambda code, a: Path(tidy(os.path.join(*map(text_of, a.given or ["."])))),
    "pathlib.Path.home": lambda code, a: Path(code.home()),
    "pathlib.Path.cwd": lambda code, a: Path(code.effects.folder or UNKNOWN),
    "os.getcwd": lambda code, a: code.effects.folder or ANY,
    "os.fspath": lambda code, a: text_of(a.get(0)),
    **dict.fromkeys(("os.getenv", "os.environ.get"), _variable),
    **dict.fromkeys(("os.listdir", "os.scandir"), _listed),
    "os.walk": _walked,
    "glob.glob": lambda code, a: globbed(
        code, text_of(a.get(0, "pathname", ANY)), text_of(a.get(9, "root_dir", "")), False, bool(a.get(9, "recursive"))
    ),
    **dict.fromkeys(("list", "iter", "set", "frozenset", "dict.fromkeys"), _of_elements(lambda items=(), *_: items)),
    "tuple": _of_elements(lambda items=(): tuple(items)),
    "reversed": _of_elements(lambda items: items[::-1]),
    "sorted": _of_elements(_sorted),
    "dict": lambda code, a: {**a.get(0), **a.named} if isinstance(a.get(0), dict) else _of_elements(dict)(code, a),
    "zip": _of_elements(lambda *columns: list(zip(*columns))),
    "enumerate": _enumerated,
    "map": _mapped,
    "range": _of_plain(_range),
    "len": _length,
    "str": _as_text,
    **{make.__name__: _of_plain(make) for make in (min, max, abs, chr, ord)},
    "sqlite3.connect": lambda code, a: ANY if a.get(0) == ":memory:" else Database(a.get(0, "database", ANY)),
    **dict.fromkeys(("__import__", "importlib.import_module"), _module),
    "asyncio.run": lambda code, a: a.get(0),
    **dict.fromkeys(("exit", "quit", "sys.exit", "os._exit", "os.abort"), lambda code, a: LEAVES),
}

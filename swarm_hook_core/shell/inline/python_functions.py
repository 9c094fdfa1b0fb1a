"""Results of Python functions and methods that write nothing: of paths, texts, lists, maps, and of the library."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import Any

from swarm_hook_core.shell.inline.effects import SCRATCH
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    LEAVES,
    MOST,
    Arguments,
    Database,
    LibraryName,
    OpenFile,
    Path,
    bounded,
    elements,
    is_found,
    is_plain,
    spread,
    text_method,
    text_of,
    tidy,
)
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known
from swarm_hook_core.shell.programs.places import fixed_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.inline.python import Code


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

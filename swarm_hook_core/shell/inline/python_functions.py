"""What functions and methods of Python give that write nothing: of texts, lists, maps, open files, and the library."""

from __future__ import annotations

import os

from swarm_hook_core.shell.inline import python_paths as paths
from swarm_hook_core.shell.inline.effects import SCRATCH
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    MOST,
    DiskFiles,
    LibraryName,
    OpenFile,
    Path,
    SomeFiles,
    bounded,
    elements,
    is_plain,
    text_method,
    text_of,
    tidy,
)
from swarm_hook_core.shell.model import UNKNOWN, is_known

ANYTHING = "?"  # the dotted name of what was taken from where names are only known when the code runs
_GROWING = ("append", "add", "insert", "extend", "update")


def method_of_value(code, owner, name: str, a):
    """What method `name` of a text, a list, a map or an open file gives."""
    if isinstance(owner, str):
        return text_method(owner, name, a.given, a.named)
    if name == "copy":
        return type(owner)(owner) if isinstance(owner, (list, dict)) else ANY
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(code, owner, name, a)
    if name in ("read", "read_text", "decode"):
        return owner.text
    lines = elements(owner)
    return (owner.text, ANY) if name == "communicate" else lines if name == "readlines" and lines is not None else ANY


def _of_list(code, owner: list, name: str, a):
    if name in _GROWING and len(owner) < MOST:
        value = a.get(1 if name == "insert" else 0, default=ANY)
        if name in ("append", "add", "insert"):
            owner.append(value)
        else:
            owner += [value.element] if isinstance(value, DiskFiles) else elements(value) or [ANY]
    elif name == "pop":
        at = a.get(0, default=-1)
        if isinstance(at, int) and -len(owner) <= at < len(owner):
            return owner[at] if code.effects.doubt else owner.pop(at)
    return ANY


def _of_dict(code, owner: dict, name: str, a):
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


def _of_elements(make):
    """A function that makes a list or a map of the elements of lists, whatever these are."""

    def give(code, a):
        lists = [elements(one) for one in a.given]
        if None in lists:
            return a.given[0] if isinstance(a.given[0], DiskFiles) else ANY
        try:
            made = make(*lists, **a.named)
        except (TypeError, ValueError):  # what the code would raise, or what only a run could tell
            return lists[0] if lists else ANY
        return SomeFiles(made) if any(isinstance(one, SomeFiles) for one in lists) else made

    return give


def _of_plain(make):
    """A function of values that must be known through and through."""

    def give(code, a):
        try:
            return bounded(make(*a.given, **a.named)) if is_plain(a.given) and is_plain(a.named) else ANY
        except Exception:  # what the code would raise
            return ANY

    return give


def _range(*bounds: int):
    found = range(*bounds)
    return list(found) if len(found) <= MOST else ANY


def _sorted(items: list, **options):
    if options or not is_plain(items):
        raise TypeError
    return sorted(items)


def _enumerated(code, a):
    value = a.get(0)
    if isinstance(value, DiskFiles):
        return DiskFiles(value.root, (ANY, value.element))
    items, start = elements(value), a.get(1, "start", 0)
    if items is None or not isinstance(start, int):
        return ANY
    return type(items)((ANY if isinstance(items, SomeFiles) else at, one) for at, one in enumerate(items, start))


def _mapped(code, a):
    items = elements(a.get(1))
    if items is None or len(a.given) > 2:
        code.hand_over(a.given)
        return ANY
    return type(items)([code.call(a.get(0), [one], {}) for one in items])


def _as_text(code, a):
    value = a.get(0, default="")
    return ANY if isinstance(value, (list, dict, tuple)) else text_of(value)


def _length(code, a):
    value = a.get(0)
    return len(value) if value is code.argv and isinstance(value, list) else _of_plain(len)(code, a)


def _attribute_got(code, a):
    name = a.get(1)
    if isinstance(name, str) and is_known(name):
        return code.attribute(a.get(0), name)
    return LibraryName(ANYTHING) if isinstance(a.get(0), LibraryName) else ANY


def _variable(code, a):
    known = code.variable(text_of(a.get(0, "key")))
    return known if known is not ANY else a.get(1, "default", ANY)


def _module(code, a):
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
    "os.listdir": lambda code, a: paths.entries(code, text_of(a.get(0, "path", ".")), False, True),
    "os.scandir": lambda code, a: paths.entries(code, text_of(a.get(0, "path", ".")), True),
    "os.walk": lambda code, a: paths.walked(code, text_of(a.get(0, "top", ANY))),
    "glob.glob": paths.glob_found,
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
    **{make.__name__: _of_plain(make) for make in (int, min, max, abs, chr, ord)},
    "compile": lambda code, a: a.get(0, "source"),
    **dict.fromkeys(("__import__", "importlib.import_module"), _module),
    "asyncio.run": lambda code, a: a.get(0),
    **dict.fromkeys(("exit", "quit", "sys.exit", "os._exit", "os.abort"), lambda code, a: code.leave()),
}

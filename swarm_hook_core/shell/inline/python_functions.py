"""Functions of Python that write nothing, and give what other code names files with."""

import os

from swarm_hook_core.shell.inline import python_disk
from swarm_hook_core.shell.inline.effects import SCRATCH
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    MOST,
    DiskFiles,
    LibraryName,
    OpenFile,
    Path,
    SomeFiles,
    elements,
    is_plain,
    join,
    text_of,
    tidy,
)
from swarm_hook_core.shell.model import UNKNOWN, is_known

ANYTHING = "?"  # the dotted name of what was taken from where names are only known when the code runs


def _attribute_got(code, a):
    name = a.get(1)
    if isinstance(name, str) and is_known(name):
        return code.attribute(a.get(0), name)
    return LibraryName(ANYTHING) if isinstance(a.get(0), LibraryName) else ANY


def _printed(code, a):
    file = a.named.get("file")
    if file is None or (isinstance(file, LibraryName) and file.dotted == "sys.stdout"):
        between, end = a.named.get("sep", " "), a.named.get("end", "\n")
        code.says(text_of(between).join(map(_shown, a.given)) + text_of(end))


def _shown(value) -> str:
    return str(value) if isinstance(value, (list, tuple, dict)) and is_plain(value) else text_of(value)


def _path(code, a):
    return Path(tidy(join(*map(text_of, a.given or ["."]))))


def _as_list(code, a):
    value = a.get(0, default=[])
    if isinstance(value, (DiskFiles, SomeFiles)):
        return value
    items = elements(value)
    return ANY if items is None else list(items)


def _sorted(code, a):
    value = _as_list(code, a)
    code.hand_over(a.named.values())
    try:
        return sorted(value) if type(value) is list and is_plain(value) and not a.named else value
    except TypeError:
        return value


def _as_dict(code, a):
    value = a.get(0, default={})
    if isinstance(value, dict):
        return {**value, **a.named}
    pairs = [elements(pair) for pair in elements(value) or ()]
    return {**{text_of(pair[0]): pair[1] for pair in pairs if pair and len(pair) == 2}, **a.named}


def _enumerated(code, a):
    value, start = a.get(0), a.get(1, "start", 0)
    if isinstance(value, DiskFiles):
        return DiskFiles(value.root, (ANY, value.element))
    items = elements(value)
    if isinstance(items, SomeFiles):
        return SomeFiles([(ANY, one) for one in items])
    return ANY if items is None or not isinstance(start, int) else list(enumerate(items, start))


def _zipped(code, a):
    columns = [elements(one) for one in a.given]
    return ANY if None in columns else list(zip(*columns))


def _mapped(code, a):
    items = elements(a.get(1))
    if items is None or len(a.given) > 2:
        code.hand_over(a.given)
        return ANY
    return type(items)([code.call(a.get(0), [one], {}) for one in items])


def _range(code, a):
    if not a.given or not all(isinstance(one, int) for one in a.given) or (len(a.given) > 2 and a.given[2] == 0):
        return ANY
    found = range(*a.given[:3])
    return list(found) if len(found) <= MOST else ANY


def _length(code, a):
    value = a.get(0)
    return (
        len(value) if isinstance(value, (list, tuple, dict, str)) and (is_plain(value) or value is code.argv) else ANY
    )


def _as_text(code, a):
    value = a.get(0, default="")
    return ANY if isinstance(value, (list, dict, tuple)) else text_of(value)


def _as_number(code, a):
    value = a.get(0)
    known = isinstance(value, (int, float)) or (isinstance(value, str) and value.isdecimal() and len(value) < 20)
    return int(value) if known else ANY


def _json_read(code, a):
    source = a.get(0)
    text = source.text if isinstance(source, OpenFile) else source
    if not isinstance(text, str) or not is_known(text):
        return ANY
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ANY


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


GIVES = {
    **dict.fromkeys(
        ("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile", "tempfile.SpooledTemporaryFile"),
        lambda code, a: OpenFile(SCRATCH),
    ),
    **dict.fromkeys(("tempfile.mkdtemp", "tempfile.mktemp", "tempfile.TemporaryDirectory"), lambda code, a: SCRATCH),
    "tempfile.mkstemp": lambda code, a: (3, SCRATCH),
    "tempfile.gettempdir": lambda code, a: os.environ.get("TMPDIR") or "/tmp",
    "getattr": _attribute_got,
    "print": _printed,
    "sys.stdout.write": lambda code, a: code.says(text_of(a.get(0))),
    "pathlib.Path": _path,
    "pathlib.Path.home": lambda code, a: Path(code.home()),
    "pathlib.Path.cwd": lambda code, a: Path(code.effects.folder or UNKNOWN),
    "os.getcwd": lambda code, a: code.effects.folder or ANY,
    "os.fspath": lambda code, a: text_of(a.get(0)),
    "os.getenv": _variable,
    "os.environ.get": _variable,
    "os.listdir": lambda code, a: python_disk.entries(code, text_of(a.get(0, "path", ".")), False, True),
    "os.scandir": lambda code, a: python_disk.entries(code, text_of(a.get(0, "path", ".")), True),
    "os.walk": lambda code, a: python_disk.walked(code, text_of(a.get(0, "top", ANY))),
    "glob.glob": python_disk.glob_found,
    "list": _as_list,
    "iter": _as_list,
    "reversed": _as_list,
    "set": _as_list,
    "frozenset": _as_list,
    "dict.fromkeys": _as_list,
    "tuple": _as_list,
    "dict": _as_dict,
    "sorted": _sorted,
    "enumerate": _enumerated,
    "zip": _zipped,
    "map": _mapped,
    "range": _range,
    "len": _length,
    "str": _as_text,
    "int": _as_number,
    "json.loads": _json_read,
    "json.load": _json_read,
    "compile": lambda code, a: a.get(0, "source"),
    "__import__": _module,
    "importlib.import_module": _module,
    "asyncio.run": lambda code, a: a.get(0),
    **dict.fromkeys(("exit", "quit", "sys.exit", "os._exit", "os.abort"), lambda code, a: code.leave()),
}

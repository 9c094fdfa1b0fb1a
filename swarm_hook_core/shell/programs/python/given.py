"""Functions of Python's library that write nothing, but give what other code names files with."""

import os

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.python import disk
from swarm_hook_core.shell.programs.python.operations import join, tidy
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    MOST,
    SCRATCH,
    Arguments,
    Function,
    Handle,
    Name,
    Place,
    choice,
    elements,
    is_plain,
    spread,
    text_of,
    truth,
    word_of,
)


def _got_attribute(code, a):
    name = a.get(1)
    return code.attribute(a.get(0), name) if isinstance(name, str) and is_known(name) else ANY


def _printed(code, a):
    file = a.named.get("file")
    if file is None or (isinstance(file, Name) and file.dotted == "sys.stdout"):
        end, between = a.named.get("end", "\n"), a.named.get("sep", " ")
        end, between = "\n" if end is None else end, " " if between is None else between
        says(code, text_of(between).join(map(_shown, a.given)) + text_of(end))
    return None


def _shown(value) -> str:
    if isinstance(value, (list, tuple, dict)) and is_plain(value):
        return str(value)
    return text_of(value)


def says(code, text: str) -> None:
    if code.printed is None or code.doubt or not is_known(text) or SCRATCH in text or len(code.printed) > MOST:
        code.printed = None
    else:
        code.printed.append(text)


def _place(code, a):
    if not a.given:
        return Place(".")
    return spread(lambda *parts: Place(tidy(join(*map(word_of, parts)))), *a.given)


def _as_list(code, a):
    value = a.get(0, default=[])
    if disk.files_in(value) is not None:
        return value
    items = elements(value)
    return ANY if items is None else items


def _as_tuple(code, a):
    value = _as_list(code, a)
    return tuple(value) if isinstance(value, list) else value


def _sorted(code, a):
    value = _as_list(code, a)
    if isinstance(value, list) and is_plain(value) and "key" not in a.named:
        try:
            return sorted(value, reverse=bool(a.named.get("reverse")))
        except TypeError:
            return value
    return value


def _as_set(code, a):
    value = _as_list(code, a)
    return list(dict.fromkeys(value)) if isinstance(value, list) and is_plain(value) and _hashable(value) else value


def _hashable(values: list) -> bool:
    return not any(isinstance(one, (list, dict, set)) for one in values)


def _as_dict(code, a):
    value = a.get(0, default={})
    if isinstance(value, dict):
        return {**value, **a.named}
    found: dict = dict(a.named)
    for pair in elements(value) or ():
        parts = elements(pair)
        if parts is not None and len(parts) == 2:
            found[text_of(parts[0])] = parts[1]
    return found


def _enumerated(code, a):
    value = a.get(0)
    start = a.get(1, "start", 0)
    files = disk.files_in(value)
    if files is not None:
        return disk.derived(files, lambda one: [(ANY, one)], lambda one: (ANY, one))
    items = elements(value)
    return ANY if items is None or not isinstance(start, int) else [(at, one) for at, one in enumerate(items, start)]


def _zipped(code, a):
    columns = [elements(one) for one in a.given]
    return ANY if any(column is None for column in columns) else list(zip(*columns))


def _mapped(code, a):
    function, value = a.get(0), a.get(1)
    files = disk.files_in(value)
    if files is not None:
        if isinstance(function, Name) and function.dotted in ("str", "pathlib.Path", "os.path.abspath"):
            change = lambda one: code.call(function, [one], {})
            return disk.derived(files, lambda one: [change(one)], change)
        if isinstance(function, Function):
            from _ast import Name as NameNode
            from _ast import Store

            from swarm_hook_core.shell.programs.python.command import parsed

            code.scope.set("_f", function)
            disk.go_through(code, files, NameNode("_x", Store()), parsed("_f(_x)").body)
        return ANY
    items = elements(value)
    if items is None or len(a.given) > 2:
        code.let_go(a.given, {})
        return ANY
    return [code.call(function, [one], {}) for one in items]


def _filtered(code, a):
    function, items = a.get(0), _as_list(code, Arguments(a.given[1:], {}))
    if not isinstance(items, list):
        return items
    if function is None:
        return [one for one in items if truth(one) is not False]
    return [one for one in items if truth(code.call(function, [one], {})) is not False]


def _next(code, a):
    files = disk.files_in(a.get(0))
    if files is not None:
        return files.some(code)
    items = elements(a.get(0))
    return items[0] if items else ANY


def _first_or_last(code, a):
    value = a.get(0) if len(a.given) == 1 else list(a.given)
    files = disk.files_in(value)
    if files is not None:
        return files.some(code)
    items = elements(value)
    return choice(items) if items else ANY


def _range(code, a):
    if not a.given or not all(isinstance(one, int) for one in a.given) or (len(a.given) > 2 and a.given[2] == 0):
        return ANY
    found = range(*a.given[:3])
    return list(found) if len(found) <= MOST else ANY


def _length(code, a):
    value = a.get(0)
    known = isinstance(value, (list, tuple, dict)) or (isinstance(value, str) and is_known(value))
    return len(value) if known and value is not code.argv or isinstance(value, list) else ANY


def _as_text(code, a):
    value = a.get(0, default="")
    return spread(lambda one: ANY if isinstance(one, (list, dict, tuple)) else text_of(one), value)


def _as_number(code, a):
    value = a.get(0)
    try:
        return int(value) if isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 20) else ANY
    except (ValueError, OverflowError):
        return ANY


def _letter(code, a):
    value = a.get(0)
    return chr(value) if isinstance(value, int) and 0 < value < 0xD800 else ANY


def _quoted(code, a):
    value = a.get(0)
    return repr(value) if is_plain(value) else ANY


def _is_a(code, a):
    value, kind = a.get(0), a.get(1)
    if isinstance(kind, Name) and kind.dotted in ("str", "list", "dict", "tuple", "int") and is_plain(value):
        return type(value).__name__ == kind.dotted
    return ANY


def _every(code, a):
    answers = [truth(one) for one in elements(a.get(0)) or [ANY]]
    return False if False in answers else ANY if None in answers else True


def _any(code, a):
    answers = [truth(one) for one in elements(a.get(0)) or [ANY]]
    return True if True in answers else ANY if None in answers else False


def _line_in(code, a):
    if not isinstance(code.stdin, str):
        return ANY
    line, _, code.stdin = code.stdin.partition("\n")
    return line


def _left(code, a):
    code.leave()


def _json_read(code, a):
    source = a.get(0)
    if not isinstance(source, str) or not is_known(source):
        return ANY
    import json

    try:
        return json.loads(source)
    except (ValueError, RecursionError):
        return ANY


def _split_words(code, a):
    source = a.get(0)
    if not isinstance(source, str) or not is_known(source):
        return ANY
    import shlex

    try:
        return shlex.split(source)
    except ValueError:
        return ANY


def _globbed(code, a):
    pattern, base = a.get(0, "pathname", ANY), a.get(99, "root_dir")
    deep = truth(a.get(99, "recursive", False)) is not False
    if base is not None:
        return ANY
    return spread(lambda one: disk.globbed(code, text_of(one), "", False, deep), pattern)


def _folder_listed(code, a):
    where = a.get(0, "path", ".")
    return disk.listed(code, word_of(where), places=False)


def _scanned(code, a):
    where = a.get(0, "path", ".")
    files = disk.listed(code, word_of(where), places=True)
    return files


def _walked(code, a):
    return disk.walked(code, word_of(a.get(0, "top", ANY)))


def _environment(code, a):
    known = code.variable(text_of(a.get(0, "key")))
    default = a.get(1, "default", ANY)
    return known if known is not ANY else default


_SCRATCH_FILES = ("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile", "tempfile.SpooledTemporaryFile")
CALLS = {
    **dict.fromkeys(_SCRATCH_FILES, lambda code, a: Handle(SCRATCH, ANY)),
    "getattr": _got_attribute,
    "print": _printed,
    "pathlib.Path": _place,
    "pathlib.Path.home": lambda code, a: Place(code.home()),
    "pathlib.Path.cwd": lambda code, a: Place(code.folder or UNKNOWN),
    "os.getcwd": lambda code, a: code.folder or ANY,
    "os.fspath": lambda code, a: spread(lambda one: text_of(one), a.get(0)),
    "os.getenv": _environment,
    "os.environ.get": _environment,
    "os.listdir": _folder_listed,
    "os.scandir": _scanned,
    "os.walk": _walked,
    "glob.glob": _globbed,
    "list": _as_list,
    "tuple": _as_tuple,
    "set": _as_set,
    "frozenset": _as_set,
    "dict": _as_dict,
    "sorted": _sorted,
    "reversed": lambda code, a: _as_list(code, a) if not isinstance(a.get(0), list) else a.get(0)[::-1],
    "iter": _as_list,
    "enumerate": _enumerated,
    "zip": _zipped,
    "map": _mapped,
    "filter": _filtered,
    "next": _next,
    "min": _first_or_last,
    "max": _first_or_last,
    "range": _range,
    "len": _length,
    "str": _as_text,
    "int": _as_number,
    "chr": _letter,
    "repr": _quoted,
    "isinstance": _is_a,
    "all": _every,
    "any": _any,
    "input": _line_in,
    "exit": _left,
    "quit": _left,
    "sys.exit": _left,
    "os._exit": _left,
    "os.abort": _left,
    "json.loads": _json_read,
    "shlex.split": _split_words,
    "tempfile.mkdtemp": lambda code, a: SCRATCH,
    "tempfile.mktemp": lambda code, a: SCRATCH,
    "tempfile.mkstemp": lambda code, a: (3, SCRATCH),
    "tempfile.TemporaryDirectory": lambda code, a: SCRATCH,
    "tempfile.gettempdir": lambda code, a: os.environ.get("TMPDIR") or "/tmp",
    "sys.stdout.write": lambda code, a: says(code, text_of(a.get(0))),
    "asyncio.run": lambda code, a: a.get(0),
    "dict.fromkeys": lambda code, a: _as_list(code, a),
}

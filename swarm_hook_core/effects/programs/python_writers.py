"""What the functions and methods of Python's library do to files, and what the harmless ones give.

`call` and `call_method` are asked by ``python_code`` for everything that is not a function of the code itself.
What is in no table here writes nothing and gives `ANY`.
"""

import os

from swarm_hook_core.effects.model import UNKNOWN, absolute, is_known
from swarm_hook_core.effects.programs import python_disk
from swarm_hook_core.effects.programs.python_values import (
    ANY,
    MOST,
    Archive,
    Choice,
    Database,
    Function,
    Handle,
    Name,
    Place,
    Result,
    Unknown,
    alternatives,
    choice,
    elements,
    expanded,
    is_plain,
    path_function,
    path_of,
    place_method,
    spread,
    text_method,
    text_of,
    tidy,
    truth,
)

SCRATCH = "/tmp/swarm-nowhere"  # stands for what ``tempfile`` makes: no name that a lock could have
COMPUTED = "Python code that writes a computed path"
OTHER_CODE = "Python code that runs other code"


class Arguments:
    """Arguments of a call, by position or name."""

    __slots__ = ("given", "named")

    def __init__(self, given, named):
        self.given = given
        self.named = named

    def get(self, place: int, name: str = "", default=None):
        if name and name in self.named:
            return self.named[name]
        return self.given[place] if place < len(self.given) else default

    def has(self, place: int, name: str = "") -> bool:
        return place < len(self.given) or bool(name and name in self.named)


# -- names

_SAME = {
    "io.open": "open",
    "builtins.open": "open",
    "codecs.open": "open",
    "posixpath": "os.path",
    "pathlib.PosixPath": "pathlib.Path",
    "pathlib.PurePath": "pathlib.Path",
    "pathlib.PurePosixPath": "pathlib.Path",
    "glob.iglob": "glob.glob",
    "subprocess.check_call": "subprocess.run",
    "subprocess.call": "subprocess.run",
    "subprocess.Popen": "subprocess.run",
    "subprocess.getstatusoutput": "subprocess.getoutput",
    "os.popen": "os.system",
    "os.rmdir": "os.remove",
    "os.unlink": "os.remove",
    "json.loads": "json.loads",
    "fileinput.FileInput": "fileinput.input",
    "asyncio.create_subprocess_shell": "os.system",
    "asyncio.subprocess.create_subprocess_shell": "os.system",
}


def known_name(code, dotted: str):
    """The value of ``module.name``."""
    dotted = _SAME.get(dotted, dotted)
    if dotted == "sys.argv":
        return code.argv
    if dotted == "sys.stdin":
        return Handle("", ANY if code.stdin is None else code.stdin)
    if dotted in ("sys.stdout", "sys.stderr"):
        return Name(dotted)
    if dotted in ("os.sep", "os.path.sep"):
        return "/"
    if dotted in ("os.linesep", "os.curdir", "os.pardir", "os.devnull", "os.extsep", "os.name"):
        return getattr(os, dotted[3:])
    if dotted.startswith("os.O_"):
        return getattr(os, dotted[3:], ANY)
    if dotted == "sys.executable":
        return "python3"
    return Name(dotted)


def is_in(module: str, name: str) -> bool:
    """Whether ``from module import *`` gives `name`, as far as it matters here."""
    dotted = _SAME.get(f"{module}.{name}", f"{module}.{name}")
    return dotted in _CALLS or dotted in _PATHS or (module == "os" and name in ("path", "sep", "environ"))


def is_local(code, module: str) -> bool:
    """Whether `module` is code of the folder rather than of a library."""
    import sys

    first = module.partition(".")[0]
    if not first or first in sys.stdlib_module_names or first in ("__future__",) or not is_known(first):
        return False
    folders = [code.folder] if code.file is None else [os.path.dirname(code.file)]
    folders += [absolute(code.folder, folder) for folder in code.search]
    return any(
        folder is not None
        and (os.path.isfile(os.path.join(folder, first + ".py")) or os.path.isdir(os.path.join(folder, first)))
        for folder in folders
    )


# -- calls of functions

# What each of these arguments names is written: (place, name) ...
_PATHS = {
    "os.remove": ((0, "path"),),
    "os.truncate": ((0, "path"),),
    "os.removedirs": ((0, "name"),),
    "os.chmod": ((0, "path"),),
    "os.lchmod": ((0, "path"),),
    "os.chown": ((0, "path"),),
    "os.lchown": ((0, "path"),),
    "os.utime": ((0, "path"),),
    "os.setxattr": ((0, "path"),),
    "os.mkfifo": ((0, "path"),),
    "os.mknod": ((0, "path"),),
    "os.symlink": ((1, "dst"),),
    "os.link": ((1, "dst"),),
    "shutil.chown": ((0, "path"),),
    "shutil.copymode": ((1, "dst"),),
    "shutil.copystat": ((1, "dst"),),
    "shutil.copyfile": ((1, "dst"),),
    "urllib.request.urlretrieve": ((1, "filename"),),
    "logging.basicConfig": ((99, "filename"),),
    "logging.FileHandler": ((0, "filename"),),
    "logging.handlers.RotatingFileHandler": ((0, "filename"),),
    "logging.handlers.TimedRotatingFileHandler": ((0, "filename"),),
    "matplotlib.pyplot.savefig": ((0, "fname"),),
    "cv2.imwrite": ((0, "filename"),),
    "numpy.savetxt": ((0, "fname"),),
    "torch.save": ((1, "f"),),
    "joblib.dump": ((1, "filename"),),
}
_OPENERS = {  # opener -> where its mode is, and the mode without one
    "open": (1, "r"),
    "gzip.open": (1, "rb"),
    "bz2.open": (1, "rb"),
    "lzma.open": (1, "rb"),
    "gzip.GzipFile": (1, "rb"),
    "bz2.BZ2File": (1, "r"),
    "lzma.LZMAFile": (1, "r"),
    "wave.open": (1, "rb"),
    "os.fdopen": (1, "r"),
    "aiofiles.open": (1, "r"),
    "io.FileIO": (1, "r"),
}


def call(code, dotted: str, args: list, named: dict):
    """What calling library function `dotted` gives; its effects happen."""
    dotted = _SAME.get(dotted, dotted)
    a = Arguments(args, named)
    if dotted in _PATHS:
        for place, name in _PATHS[dotted]:
            if a.has(place, name):
                code.writes(a.get(place, name))
        return a.get(*_PATHS[dotted][0]) if dotted.startswith("shutil.") else Unknown(dotted)
    if dotted in _OPENERS:
        place, mode = _OPENERS[dotted]
        return opened(code, a.get(0, "file", a.get(0, "filename", UNKNOWN)), a.get(place, "mode", mode))
    function = _CALLS.get(dotted)
    if function is not None:
        return function(code, a)
    if dotted.startswith("os.path."):
        return _of_path(code, dotted[8:], args)
    if dotted.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
        return _spawned(code, dotted[3:], args)
    code.let_go(args, named)
    return Unknown(dotted)


def opened(code, file, mode):
    """``open(file, mode)``."""
    modes = alternatives(mode)
    if not all(isinstance(one, str) and is_known(one) for one in modes):
        if path_of(file) is not None:
            code.outlet.guess(COMPUTED)
    elif any(letter in one for one in modes for letter in "wax+"):
        code.writes(file)
        return Handle(path_of(file) or UNKNOWN, ANY)
    path = path_of(file) if not isinstance(file, Choice) else UNKNOWN
    return Handle(path or UNKNOWN, ANY if not path else python_disk.read(code, path))


def _of_path(code, name: str, args: list):
    if name in ("exists", "isfile", "isdir", "lexists", "islink"):
        return _asked(code, name, text_of(args[0]) if args else UNKNOWN)
    return spread(lambda *texts: path_function(name, list(texts), code.folder), *args)


def _asked(code, name: str, text: str):
    """An answer of the disk, to a replay only: what a command names is certain whatever is there now."""
    full = absolute(code.folder, text) if code.reads else None
    return ANY if full is None else getattr(os.path, name)(full)


def _open_flags(code, a):
    flags = a.get(1, "flags", ANY)
    if not isinstance(flags, int):
        code.outlet.guess(COMPUTED)
    elif flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
        code.writes(a.get(0, "path", ANY))
    return 3


def _make_folder(code, value) -> None:
    for one in alternatives(value):
        path = path_of(one)
        full = None if path is None else absolute(code.folder, path)
        if path is not None and (full is None or not os.path.isdir(full)):
            code.writes(one)


def _moved(code, source, target) -> None:
    """`source` becomes `target`: a folder with all that is in it."""
    for one in alternatives(source):
        full = absolute(code.folder, path_of(one) or UNKNOWN)
        if full is not None and os.path.isdir(full) and not os.path.islink(full):
            code.writes_tree(one)
            code.writes_tree(target, _copy_of(code, full, target))
            return
    code.writes(source)
    code.writes(target)


def _copy_of(code, full: str, target):
    """A predicate: what a copy of the folder at absolute `full` onto `target` writes."""
    to = absolute(code.folder, path_of(target) if not isinstance(target, Choice) else UNKNOWN)
    if to is None:
        return None
    return lambda path: os.path.lexists(os.path.join(full, os.path.relpath(path, to)))


def _into(code, source, target):
    """Where `source` lands when copied to `target`, which may be a folder."""

    def landed(one, other):
        full, name = absolute(code.folder, path_of(other) or UNKNOWN), path_of(one) or UNKNOWN
        if full is not None and os.path.isdir(full):
            base = os.path.basename(name.rstrip("/")) if is_known(name) else UNKNOWN
            return os.path.join(text_of(other), base)
        return text_of(other)

    return spread(landed, source, target)


def _copied(code, a):
    target = _into(code, a.get(0, "src", ANY), a.get(1, "dst", ANY))
    code.writes(target)
    return target


def _shutil_moved(code, a):
    source = a.get(0, "src", ANY)
    target = _into(code, source, a.get(1, "dst", ANY))
    _moved(code, source, target)
    return target


def _tree_copied(code, a):
    source, target = a.get(0, "src", ANY), a.get(1, "dst", ANY)
    full = absolute(code.folder, path_of(source) if not isinstance(source, Choice) else UNKNOWN)
    code.writes_tree(target, None if full is None else _copy_of(code, full, target))
    return target


def _archive_made(code, a):
    base, kind = a.get(0, "base_name", ANY), a.get(1, "format", ANY)
    suffix = {"zip": ".zip", "tar": ".tar", "gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz"}.get(text_of(kind))
    made = spread(lambda one: text_of(one) + (suffix or UNKNOWN), base)
    code.writes(made)
    return made


def _unsure(_path: str):
    return None


def _unpacked(code, a):
    code.writes_tree(a.get(1, "extract_dir", "."), _unsure)
    return None


def _archive(code, a):
    if isinstance(a.get(0, "file", a.get(0, "name", ANY)), Handle):
        return Archive()
    mode = a.get(1, "mode", "r")
    if not isinstance(mode, str) or mode[:1] in ("w", "a", "x"):
        code.writes(a.get(0, "file", a.get(0, "name", ANY)))
    return Archive()


def _chdir(code, a):
    where = a.get(0, "path", ANY)
    code.folder = absolute(code.folder, path_of(where) if isinstance(where, (str, Place)) else UNKNOWN)
    return Unknown("contextlib.chdir")


def _edited_in_place(code, a):
    files = a.get(0, "files", code.argv[1:] if isinstance(code.argv, list) else ANY)
    inplace = truth(a.get(1, "inplace", False))
    names = [files] if isinstance(files, (str, Place, Choice)) else elements(files)
    found = python_disk.files_in(files)
    if found is not None:
        names = [found.word(code)]
    if inplace is not False:
        for one in [ANY] if names is None else names:
            code.writes(one)
    return ANY


def _shelf(code, a):
    flag = a.get(1, "flag", "c")
    if flag != "r":
        for suffix in ("", ".db", ".dat", ".dir", ".bak"):
            code.writes(spread(lambda one, suffix=suffix: text_of(one) + suffix, a.get(0, "filename", ANY)))
    return ANY


def _suffixed(suffix: str):
    def saved(code, a):
        code.writes(
            spread(lambda one: text_of(one) + ("" if text_of(one).endswith(suffix) else suffix), a.get(0, "file", ANY))
        )
        return None

    return saved


def _connected(code, a):
    path = a.get(0, "database", ANY)
    if path in (":memory:", "") or (isinstance(path, str) and path.startswith("file:")):
        return ANY
    full = absolute(code.folder, path_of(path) if isinstance(path, (str, Place)) else UNKNOWN)
    if full is not None and not os.path.lexists(full):
        code.writes(path)  # an empty one is made
    return Database(path)


# -- other commands


def _run(code, a):
    """``subprocess.run`` and its like."""
    words = a.get(0, "args", ANY)
    folder = a.get(99, "cwd")
    folder = None if folder is None else path_of(folder) if not isinstance(folder, Choice) else UNKNOWN
    shell = truth(a.get(99, "shell", False))
    stdin = a.get(99, "input")
    stdin = stdin if isinstance(stdin, str) and is_known(stdin) else None
    return Result(_started(code, words, folder, stdin, shell is not False))


def _started(code, words, folder=None, stdin=None, shell=False):
    output: object = ANY
    for one in alternatives(words):
        if isinstance(one, (list, tuple)) and one:
            texts = [_word(part) for part in one]
            output = code.outlet.script(texts[0], folder, code) if shell else code.outlet.run(texts, stdin, folder, code)
        elif isinstance(one, (str, Place)):
            text = text_of(one)
            output = code.outlet.script(text, folder, code) if shell else code.outlet.run([text], stdin, folder, code)
        else:
            code.outlet.guess("a computed command")
    return output if not isinstance(words, Choice) else ANY


def _word(value) -> str:
    path = path_of(value) if not isinstance(value, Choice) else UNKNOWN
    return UNKNOWN if path is None else path


def _check_output(code, a):
    return _run(code, a).output


def _system(code, a):
    return Handle("", _started(code, a.get(0, "command", a.get(0, "cmd", ANY)), shell=True))


def _getoutput(code, a):
    output = _started(code, a.get(0, "cmd", ANY), shell=True)
    return output.rstrip("\n") if isinstance(output, str) else ANY


def _started_words(code, a):
    return Result(_started(code, list(a.given)))


def _spawned(code, name: str, args: list):
    args = args[1:] if name.startswith("spawn") else args  # the mode
    if "spawn" not in name and "exec" not in name or len(args) < 2:
        return ANY
    words = args[1] if name.startswith("posix") or "v" in name[4:] else args[1:]
    if isinstance(words, list) and words and name.endswith("e") and words is not args[1]:
        words = words[:-1]
    if isinstance(words, (list, tuple)) and words:
        words = [args[0], *words[1:]]
    _started(code, words)
    if name.startswith("exec"):
        code.leave()
    return ANY


def _pty_spawned(code, a):
    words = a.get(0, "argv", ANY)
    return _started(code, [words] if isinstance(words, str) else words)


# -- other code


def _executed(code, a):
    import ast

    source = a.get(0)
    if isinstance(source, Unknown) and source.dotted == "compile":
        source = ANY
    if not isinstance(source, str) or not is_known(source):
        code.outlet.guess(OTHER_CODE)
        return ANY
    try:
        tree = ast.parse(source.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ANY
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        return code.value(tree.body[0].value)
    code.block(tree.body)
    return None


def _imported(code, a):
    module = a.get(0, "name", ANY)
    if isinstance(module, str) and is_known(module):
        code.imports(module)
        return Name(module)
    code.outlet.guess(OTHER_CODE)
    return ANY


def _ran_module(code, a):
    code.outlet.guess(OTHER_CODE)
    return ANY


def _got_attribute(code, a):
    name = a.get(1)
    return code.attribute(a.get(0), name) if isinstance(name, str) and is_known(name) else ANY


# -- what gives values


def _printed(code, a):
    file = a.named.get("file")
    if file is None or (isinstance(file, Name) and file.dotted == "sys.stdout"):
        end, between = a.named.get("end", "\n"), a.named.get("sep", " ")
        end, between = "\n" if end is None else end, " " if between is None else between
        _says(code, text_of(between).join(map(_shown, a.given)) + text_of(end))
    return None


def _shown(value) -> str:
    if isinstance(value, (list, tuple, dict)) and is_plain(value):
        return str(value)
    return text_of(value)


def _says(code, text: str) -> None:
    if code.printed is None or code.doubt or not is_known(text) or SCRATCH in text or len(code.printed) > MOST:
        code.printed = None
    else:
        code.printed.append(text)


def _place(code, a):
    if not a.given:
        return Place(".")
    from swarm_hook_core.effects.programs.python_values import join

    return spread(lambda *parts: Place(tidy(join(*map(_word, parts)))), *a.given)


def _as_list(code, a):
    value = a.get(0, default=[])
    if python_disk.files_in(value) is not None:
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
    files = python_disk.files_in(value)
    if files is not None:
        return python_disk.derived(files, lambda one: [(ANY, one)], lambda one: (ANY, one))
    items = elements(value)
    return ANY if items is None or not isinstance(start, int) else [(at, one) for at, one in enumerate(items, start)]


def _zipped(code, a):
    columns = [elements(one) for one in a.given]
    return ANY if any(column is None for column in columns) else list(zip(*columns))


def _mapped(code, a):
    function, value = a.get(0), a.get(1)
    files = python_disk.files_in(value)
    if files is not None:
        if isinstance(function, Name) and function.dotted in ("str", "pathlib.Path", "os.path.abspath"):
            change = lambda one: code.call(function, [one], {})  # noqa: E731
            return python_disk.derived(files, lambda one: [change(one)], change)
        if isinstance(function, Function):
            import ast

            node = ast.parse("_f(_x)").body
            code.scope.set("_f", function)
            python_disk.go_through(code, files, ast.Name("_x", ast.Store()), node)
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
    files = python_disk.files_in(a.get(0))
    if files is not None:
        return files.some(code)
    items = elements(a.get(0))
    return items[0] if items else ANY


def _first_or_last(code, a):
    value = a.get(0) if len(a.given) == 1 else list(a.given)
    files = python_disk.files_in(value)
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
    return spread(lambda one: python_disk.globbed(code, text_of(one), "", False, deep), pattern)


def _folder_listed(code, a):
    where = a.get(0, "path", ".")
    return python_disk.listed(code, _word(where), places=False)


def _scanned(code, a):
    where = a.get(0, "path", ".")
    files = python_disk.listed(code, _word(where), places=True)
    return files


def _walked(code, a):
    return python_disk.walked(code, _word(a.get(0, "top", ANY)))


def _environment(code, a):
    known = code.variable(text_of(a.get(0, "key")))
    default = a.get(1, "default", ANY)
    return known if known is not ANY or not a.has(1, "default") else choice([ANY, default])


def _partial(code, a):
    return ANY


_SCRATCH_FILE = ("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile", "tempfile.SpooledTemporaryFile")

_CALLS = {
    "os.open": _open_flags,
    "os.mkdir": lambda code, a: _make_folder(code, a.get(0, "path", ANY)),
    "os.makedirs": lambda code, a: _make_folder(code, a.get(0, "name", ANY)),
    "os.rename": lambda code, a: _moved(code, a.get(0, "src", ANY), a.get(1, "dst", ANY)),
    "os.renames": lambda code, a: _moved(code, a.get(0, "old", ANY), a.get(1, "new", ANY)),
    "os.replace": lambda code, a: _moved(code, a.get(0, "src", ANY), a.get(1, "dst", ANY)),
    "os.chdir": _chdir,
    "contextlib.chdir": _chdir,
    "shutil.copy": _copied,
    "shutil.copy2": _copied,
    "shutil.move": _shutil_moved,
    "shutil.copytree": _tree_copied,
    "shutil.rmtree": lambda code, a: code.writes_tree(a.get(0, "path", ANY)),
    "shutil.make_archive": _archive_made,
    "shutil.unpack_archive": _unpacked,
    "zipfile.ZipFile": _archive,
    "zipfile.PyZipFile": _archive,
    "tarfile.open": _archive,
    "tarfile.TarFile": _archive,
    "tarfile.TarFile.open": _archive,
    "fileinput.input": _edited_in_place,
    "shelve.open": _shelf,
    "dbm.open": _shelf,
    "numpy.save": _suffixed(".npy"),
    "numpy.savez": _suffixed(".npz"),
    "numpy.savez_compressed": _suffixed(".npz"),
    "sqlite3.connect": _connected,
    "sqlite3.dbapi2.connect": _connected,
    "subprocess.run": _run,
    "subprocess.check_output": _check_output,
    "subprocess.getoutput": _getoutput,
    "os.system": _system,
    "asyncio.create_subprocess_exec": _started_words,
    "asyncio.subprocess.create_subprocess_exec": _started_words,
    "pty.spawn": _pty_spawned,
    "exec": _executed,
    "eval": _executed,
    "__import__": _imported,
    "importlib.import_module": _imported,
    "importlib.util.spec_from_file_location": _ran_module,
    "runpy.run_path": _ran_module,
    "runpy.run_module": _ran_module,
    "getattr": _got_attribute,
    "print": _printed,
    "pathlib.Path": _place,
    "pathlib.Path.home": lambda code, a: Place(expanded("~")),
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
    "shlex.quote": lambda code, a: ANY,
    "tempfile.mkdtemp": lambda code, a: SCRATCH,
    "tempfile.mktemp": lambda code, a: SCRATCH,
    "tempfile.mkstemp": lambda code, a: (3, SCRATCH),
    "tempfile.TemporaryDirectory": lambda code, a: SCRATCH,
    "tempfile.gettempdir": lambda code, a: os.environ.get("TMPDIR") or "/tmp",
    **{name: (lambda code, a: Handle(SCRATCH, ANY)) for name in _SCRATCH_FILE},
    "sys.stdout.write": lambda code, a: _says(code, text_of(a.get(0))),
    "sys.path.insert": lambda code, a: code.search.append(_word(a.get(1))),
    "sys.path.append": lambda code, a: code.search.append(_word(a.get(0))),
    "asyncio.run": lambda code, a: a.get(0),
    "dict.fromkeys": lambda code, a: _as_list(code, a),
    "functools.partial": _partial,
}

# -- methods

_WRITING = {"write_text": 1, "write_bytes": 1, "touch": 0, "unlink": 0, "rmdir": 0, "chmod": 1, "lchmod": 1}
_WRITING |= {"symlink_to": 1, "hardlink_to": 1, "link_to": 1}
_SAVING = frozenset("savefig to_csv to_json to_excel to_parquet to_pickle to_feather to_html to_hdf to_netcdf".split())
_CHANGES = frozenset("INSERT UPDATE DELETE CREATE DROP ALTER REPLACE VACUUM REINDEX ANALYZE ATTACH".split())


def call_method(code, owner, name: str, args: list, named: dict):
    """What calling method `name` of a value gives; its effects happen."""
    if isinstance(owner, Choice):
        return choice([call_method(code, one, name, args, named) for one in owner.values])
    a = Arguments(args, named)
    if isinstance(owner, Place):
        return _of_place(code, owner, name, a)
    if isinstance(owner, str):
        if is_known(owner) or name == "join":
            return spread(lambda *given: text_method(owner, name, list(given), named), *args)
        return ANY
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(owner, name, a)
    if isinstance(owner, Handle):
        return _of_handle(code, owner, name)
    if isinstance(owner, Archive):
        return _of_archive(code, name, a)
    if isinstance(owner, Database):
        return _of_database(code, owner, name, a)
    if isinstance(owner, Result) and name == "communicate":
        return (owner.output, ANY)
    if isinstance(owner, Unknown):
        return _of_unknown(code, owner, name, a)
    code.let_go(args, named)
    return ANY


def _of_place(code, owner, name: str, a):
    if name in _WRITING:
        code.writes(owner)
        return None
    if name == "open":
        return opened(code, owner, a.get(0, "mode", "r"))
    if name in ("rename", "replace"):
        _moved(code, owner, a.get(0, "target", ANY))
        return a.get(0, "target", ANY)
    if name in ("move", "copy"):
        (_moved if name == "move" else lambda code, _owner, to: code.writes(to))(code, owner, a.get(0, "target", ANY))
        return a.get(0, "target", ANY)
    if name in ("copy_into", "move_into"):
        code.guess_computed()
        return ANY
    if name == "mkdir":
        return _make_folder(code, owner)
    if name in ("read_text", "read_bytes"):
        return python_disk.read(code, owner.text) if name == "read_text" else ANY
    if name in ("exists", "is_file", "is_dir"):
        return _asked(code, {"is_file": "isfile", "is_dir": "isdir"}.get(name, name), owner.text)
    if name in ("glob", "rglob"):
        pattern = a.get(0, "pattern", ANY)
        deep = "**/" if name == "rglob" else ""
        return spread(lambda one: python_disk.globbed(code, deep + text_of(one), owner.text, True), pattern)
    if name == "iterdir":
        return python_disk.listed(code, owner.text, places=True)
    if name == "walk":
        return python_disk.walked(code, owner.text)
    if name == "match" and is_known(owner.text) and is_plain(a.get(0, default=ANY)):
        from pathlib import PurePath

        return PurePath(owner.text).match(a.get(0))
    found = spread(lambda *given: place_method(owner, name, list(given), code.folder), *a.given)
    return ANY if found is None else found


def _of_list(code, owner: list, name: str, a):
    if name in ("append", "add"):
        if len(owner) < MOST:
            owner.append(a.get(0, default=ANY))
        return None
    if name in ("extend", "update", "insert"):
        more = [a.get(1)] if name == "insert" else elements(a.get(0))
        files = python_disk.files_in(a.get(0))
        owner += [files.word(code)] if files is not None else [ANY] if more is None else more[:MOST]
        return None
    if name == "copy":
        return list(owner)
    if name == "pop":
        at = a.get(0, default=-1)
        known = isinstance(at, int) and -len(owner) <= at < len(owner)
        return owner.pop(at) if known and not code.doubt else owner[at] if known else ANY
    if name in ("sort", "reverse"):
        return None
    if name in ("remove", "clear"):
        return None
    return ANY


def _of_dict(owner: dict, name: str, a):
    if name == "items":
        return list(owner.items())
    if name == "values":
        return list(owner.values())
    if name in ("keys", "copy"):
        return list(owner) if name == "keys" else dict(owner)
    if name in ("get", "setdefault", "pop"):
        key = a.get(0)
        return owner.get(key, a.get(1)) if isinstance(key, (str, int)) and is_plain(key) else ANY
    if name == "update" and isinstance(a.get(0), dict):
        owner.update(a.get(0))
    return ANY


def _of_handle(code, owner, name: str):
    if name in ("read", "read_text", "decode"):
        return owner.text
    if name in ("readlines", "readline"):
        lines = elements(owner)
        return ANY if lines is None else lines if name == "readlines" else (lines or [""])[0]
    if name == "close" or name.startswith("write"):
        return None
    return ANY


def _of_archive(code, name: str, a):
    if name == "extractall":
        code.writes_tree(a.get(0, "path", "."), _unsure)
    elif name == "extract":
        where, member = a.get(1, "path", "."), a.get(0, "member", ANY)
        code.writes(spread(lambda one, other: os.path.join(text_of(one), text_of(other)), where, member))
    return ANY


def _of_database(code, owner, name: str, a):
    if name in ("cursor", "__enter__"):
        return owner
    if name in ("execute", "executemany", "executescript"):
        for sql in alternatives(a.get(0, "sql", ANY)):
            if not isinstance(sql, str) or not sql.strip() or not is_known(sql.strip()[0]):
                code.outlet.guess("Python code that runs computed SQL")
                continue
            statements = [part.split(None, 1)[0].upper() for part in sql.split(";") if part.strip()]
            if any(one in _CHANGES for one in statements) or ("PRAGMA" in statements and "=" in sql):
                code.writes(owner.path)
        return owner
    return ANY


def _of_unknown(code, owner, name: str, a):
    code.let_go(a.given, a.named)
    count = len(a.given) + len(a.named)
    if name in _WRITING and name not in ("chmod", "link_to") and count >= _WRITING[name]:
        if owner.dotted.startswith(("unittest.", "multiprocessing.")):
            return ANY
        code.guess_computed()
    elif name in ("rename", "replace") and len(a.given) == 1 and not a.named and not owner.dotted.startswith("datetime"):
        code.guess_computed()
        if isinstance(a.get(0), (Place, str)) and name == "rename" or isinstance(a.get(0), Place):
            code.writes(a.get(0))
    elif name == "open" and isinstance(a.get(0, "mode"), str) and a.get(0, "mode") in _MODES:
        code.guess_computed()
        return Handle(UNKNOWN, ANY)
    elif name in _SAVING and isinstance(a.get(0, "path_or_buf", a.get(0, "fname")), (str, Place)):
        code.writes(a.get(0, "path_or_buf", a.get(0, "fname")))
    elif name == "save" and a.given and isinstance(a.given[0], (str, Place)) and "." in text_of(a.given[0]):
        code.writes(a.given[0])
    elif name == "write" and owner.dotted.startswith("xml.etree") and isinstance(a.get(0), (str, Place)):
        code.writes(a.get(0))
    elif name in ("parse_args", "parse_known_args") and isinstance(code.argv, list):
        if any(word in ("-h", "--help", "--version") for word in code.argv[1:]):
            code.leave()
    elif name == "parse" or owner.dotted.startswith("xml.etree"):
        return owner
    return ANY


_MODES = frozenset(one + two for one in ("w", "a", "x", "r+", "w+", "a+", "wb", "ab", "xb", "r+b") for two in ("", "t"))

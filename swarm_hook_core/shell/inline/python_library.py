"""Python's library and other packages: their writing functions, and calls of functions by name.

`WRITERS` is the table to extend. A row has an action of ``python_library`` and its details: mostly the place of the
argument with the written path, and its keyword. A function in no table is judged by the words of its name
(`_WRITING_WORDS`): a possible writer is a guess.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    ANYTHING,
    GIVES,
    Arguments,
    Database,
    LibraryName,
    OpenFile,
    Path,
    Unknown,
    globbed,
    method_of_value,
    path_function,
    path_method,
    path_of,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, edit_or_replace, is_known

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.inline.python import Code

# The actions of Python's writing functions and methods, as rows of ``python_library`` name them.
#
# `METHODS` is the table to extend for methods. A method of an unknown object is judged by its name.

READERS = ("read", "load", "open", "parse", "imread")  # first letters of functions that read the file they are given
_OPEN_FILES = ("io.", "sys.")  # makers of open files
_CHANGE_A_DATABASE = frozenset("INSERT UPDATE DELETE CREATE DROP ALTER REPLACE VACUUM REINDEX ANALYZE ATTACH".split())
NOWHERE = 99  # the place of an argument that has a keyword alone


def rows(names: str, *row: int | str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), row)


# Objects and functions of these have methods of such names, but write nothing, or only an open file.
HARMLESS = ("unittest.", "multiprocessing.", "threading.", "datetime.", "re.", "asyncio.", "io.", "sys.", "os.")
# Methods of any object. `self`: the path of the object itself (`pathlib`); the number of arguments (with fewer it is
# another method); the fate of the file (see `change`). `argument`: the place of the argument that names the new file.
METHODS = {
    **rows("write_text write_bytes", "self", 1, REPLACE),
    **rows("symlink_to hardlink_to link_to chmod lchmod", "self", 1, EDIT),
    **rows("touch", "self", 0, EDIT),
    **rows("unlink rmdir", "self", 0, REMOVE),
    **rows("savefig to_csv to_json to_excel to_parquet to_pickle to_feather to_html to_hdf to_netcdf", "argument", 0),
    **rows("to_stata to_latex to_markdown to_xml to_file to_orc tofile write_image write_html", "argument", 0),
    **rows("write_pdf write_png write_csv write_parquet write_json sink_parquet sink_csv", "argument", 0),
    **rows("save savez savez_compressed savetxt savemat save_model save_weights save_pretrained", "argument", 0),
    **rows("imsave imwrite", "argument", 0),
    **rows("extractall", "extracts", 0),
    **rows("extract", "extracts", 1),
}


def _paths(value: Any) -> list[Any]:
    """Return the path that `value` names, as a list; a number is an open file, and has no path."""
    path = path_of(value)
    if path is None:
        return []
    return [path]


def _write(code: Code, a: Arguments, place: int, keyword: str, is_optional: bool = False, how: str = EDIT) -> None:
    for path in _paths(a.get(place, keyword, 0 if is_optional else ANY)):
        code.effects.write(path, how)


def _tree(code: Code, a: Arguments, place: int, keyword: str, how: str = EDIT) -> None:
    for path in _paths(a.get(place, keyword, ANY)):
        code.effects.tree(path, how=how)


def _folder(code: Code, a: Arguments, place: int, keyword: str) -> None:
    code.effects.make_folder(path_of(a.get(place, keyword, ANY)) or UNKNOWN)


def _two(a: Arguments, first: Any = "src", second: Any = "dst") -> tuple[Any, ...]:
    return tuple(path_of(one) or UNKNOWN for one in (a.get(0, first, ANY), a.get(1, second, ANY)))


def _move(code: Code, a: Arguments, first: Any = "src", second: Any = "dst") -> Any:
    source, target = _two(a, first, second)
    code.effects.move(source, code.effects.landing(source, target))
    return a.get(1, second, ANY)


def _copy(code: Code, a: Arguments) -> Any:
    code.effects.replace(code.effects.landing(*_two(a)))
    return a.get(1, "dst", ANY)


def _unpacked(code: Code, a: Arguments, place: int, keyword: str) -> None:
    code.effects.tree(path_of(a.get(place, keyword, ".")) or UNKNOWN, lambda _path: None, REPLACE)


def _opened(code: Code, a: Arguments, place: int, default: Any) -> OpenFile:
    return open_file(code, a.get(0, "file", a.get(0, "filename", a.get(0, "name", ANY))), a.get(place, "mode", default))


def open_file(code: Code, file: Any, mode: str) -> OpenFile:
    """``open(file, mode)``."""
    path = path_of(file)
    if path is None:
        return OpenFile(UNKNOWN)
    if not isinstance(mode, str) or not is_known(mode):
        code.effects.guess_path()
    elif not {"w", "a", "x", "+"}.isdisjoint(mode):
        code.effects.write(path, edit_or_replace("w" not in mode))
        return OpenFile(path)
    code.effects.reads(path)
    return OpenFile(path)


def _chdir(code: Code, a: Arguments) -> None:
    code.effects.change_folder(path_of(a.get(0, "path", ANY)) or UNKNOWN)


def _archive(code: Code, a: Arguments) -> None:
    mode = text_of(a.get(1, "mode", "r"))
    if mode[:1] != "r":
        _write_named(code, a.get(0, "file", a.get(0, "name")), True, edit_or_replace(mode[:1] != "w"))


def _guess(code: Code, a: Arguments, place: int = 0, keyword: str = "") -> None:
    if not keyword or truth(a.get(place, keyword, False)) is not False:
        code.effects.guess_path()


def _run(code: Code, a: Arguments, are_words: bool = False) -> None:
    if are_words:
        words = list(a.given)
    else:
        words = a.get(0, "args", ANY)
    given, source, folder = (a.get(NOWHERE, name) for name in ("input", "stdin", "cwd"))
    if isinstance(source, LibraryName) and source.dotted == "subprocess.DEVNULL":
        given = ""
    elif source is not None or (given is not None and not isinstance(given, str)):
        given = UNKNOWN
    in_shell = truth(a.get(NOWHERE, "shell", False)) is not False
    _start(code, words, in_shell, given, None if folder is None else text_of(folder))


def _start(
    code: Code,
    words: Any,
    in_shell: bool,
    given: str | None = None,
    folder: str | None = None,
) -> None:
    if isinstance(words, (list, tuple)) and words:
        parts = words
    else:
        parts = [words]
    if given is None:
        given = code.stdin
    if not isinstance(parts[0], (str, Path)):
        code.effects.guess("a computed command")
    elif in_shell:
        code.effects.script(text_of(parts[0]), given, folder)
    else:
        code.effects.run([path_of(part) or UNKNOWN for part in parts], given, folder)


ACTIONS: dict[str, Any] = {
    "write": _write,
    "replace": lambda code, a, place, keyword, is_optional=False: _write(code, a, place, keyword, is_optional, REPLACE),
    "remove": lambda code, a, place, keyword: _write(code, a, place, keyword, False, REMOVE),
    "tree": _tree,
    "remove tree": lambda code, a, place, keyword: _tree(code, a, place, keyword, REMOVE),
    "folder": _folder,
    "move": _move,
    "copy": _copy,
    "copy tree": lambda code, a: code.effects.copy_tree(*_two(a)),
    "unpacked": _unpacked,
    "open": _opened,
    "chdir": _chdir,
    "archive": _archive,
    "guess": _guess,
    "run": _run,
    "script": lambda code, a: _start(code, a.get(0, "cmd", a.get(0, "command", ANY)), True),
    "code": lambda code, a: code.effects.guess_code(),
    "project": lambda code, a: code.effects.runs_project(),
}

# ------------------------------------------------------------------ methods


def call_method(code: Any, owner: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Call method `name` of `owner`, with its effects, and return its value."""
    a = Arguments(args, keywords)
    if isinstance(owner, (str, list, dict, OpenFile)):
        return method_of_value(code, owner, name, a)
    if isinstance(owner, Path):
        return _of_path(code, owner, name, a)
    if isinstance(owner, Database):
        return _of_database(code, owner, name, a)
    code.hand_over([*args, *keywords.values()])
    made_by = ""
    if isinstance(owner, Unknown):
        made_by = owner.made_by
    if made_by.startswith("xml.etree") and name == "write":
        code.effects.guess_path()
    if made_by.startswith("xml.etree"):
        return owner
    if made_by.startswith(HARMLESS):
        return ANY
    return method_of_unknown(code, name, a)


_MOVES = {"copy": _copy, "copy_into": _copy, **dict.fromkeys(("move", "move_into", "rename", "replace"), _move)}


def _of_path(code: Code, owner: Any, name: str, a: Arguments) -> Any:
    if METHODS.get(name, "")[:1] == ("self",):
        return code.effects.write(owner.text, METHODS[name][2])
    if name == "open":
        return open_file(code, owner, a.get(0, "mode", "r"))
    if name in _MOVES:
        target = a.get(0, "target", a.get(0, "target_dir", ANY))
        _MOVES[name](code, Arguments([owner, target], {}))
        if name.endswith("into"):
            return ANY
        return target
    if name == "mkdir":
        return code.effects.make_folder(owner.text)
    if name in ("read_text", "read_bytes"):
        code.effects.reads(owner.text)
    if name in ("glob", "rglob", "iterdir"):
        return globbed(code, "**/" * (name == "rglob") + text_of(a.get(0, "pattern", "*")), owner.text, True)
    found = path_method(owner, name, a.given, code.effects.folder, code.home())
    if found is None:
        return ANY
    return found


def _of_database(code: Code, owner: Database, name: str, a: Arguments) -> Any:
    if name in ("execute", "executemany", "executescript"):
        sql = text_of(a.get(0, "sql", ANY))
        verbs = {part.split(None, 1)[0].upper() for part in sql.split(";") if part.strip()}
        if not all(map(is_known, verbs)):
            code.effects.guess("Python code that runs computed SQL")
        elif not _CHANGE_A_DATABASE.isdisjoint(verbs) or ("PRAGMA" in verbs and "=" in sql):
            code.effects.write(path_of(owner.path) or UNKNOWN)
    return owner


def method_of_unknown(code: Code, name: str, a: Arguments) -> Any:
    """Call a method of an unknown object: it is judged by its name."""
    values = [*a.given, *a.named.values()]
    kind, place, *_how = METHODS.get(name, ("", 0))
    is_renamed = name in ("rename", "replace") and len(values) == 1 and isinstance(values[0], (str, Path, Unknown))
    is_opened = name == "open" and any(map(_is_writing_mode, values))
    is_opened = is_opened or (name in ("dump", "write") and any(isinstance(one, Path) for one in values))
    if kind == "argument" and len(values) > place:
        how = edit_or_replace("mode" in a.named or "append" in a.named)
        _write_named(code, a.given[place] if len(a.given) > place else values[0], how=how)
    elif kind == "extracts":
        _unpacked(code, a, place, "path")
    elif is_renamed or is_opened or (kind == "self" and len(values) >= place):
        code.effects.guess_path()
    elif name.startswith(READERS):
        read(code, a)
    return ANY


def read(code: Code, a: Arguments) -> None:
    """The file that the first argument names, if it does, is read."""
    for path in _paths(a.given[0]) if a.given and isinstance(a.given[0], (str, Path)) else ():
        code.effects.reads(path)


def _write_named(code: Code, value: Any, is_exact: bool = False, how: str = EDIT) -> None:
    """Report a write if `value` names a file; unless `is_exact`, an ending may be added to the name."""
    no_name = value is None or isinstance(value, (OpenFile, list, tuple, dict, LibraryName, bool))
    if not no_name and not (isinstance(value, Unknown) and value.made_by.startswith(_OPEN_FILES)):
        for path in _paths(value):
            code.effects.write(path, how)
            if not is_exact and is_known(path) and "." not in os.path.basename(path):
                code.effects.guess_path()


def _is_writing_mode(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) < 5 and (value[0] in "wax" or (value[0] == "r" and "+" in value))


def may_be_path(value: Any) -> bool:
    is_file = isinstance(value, Unknown) and value.made_by.startswith(_OPEN_FILES)
    return isinstance(value, (str, Path, Unknown)) and not is_file


_SAME = {
    "io.open": "open",
    "builtins.open": "open",
    "posixpath": "os.path",
    "pathlib.PosixPath": "pathlib.Path",
    "pathlib.PurePath": "pathlib.Path",
    "pathlib.PurePosixPath": "pathlib.Path",
    "glob.iglob": "glob.glob",
    "tarfile.TarFile.open": "tarfile.open",
    "asyncio.subprocess.create_subprocess_exec": "asyncio.create_subprocess_exec",
    "asyncio.subprocess.create_subprocess_shell": "asyncio.create_subprocess_shell",
    "builtins.exec": "exec",
}
WRITERS = {
    **rows("os.remove os.unlink os.rmdir os.removedirs", "remove", 0, "path"),
    **rows("os.truncate pandas.ExcelWriter", "replace", 0, "path"),
    **rows("os.chmod os.lchmod os.chown", "write", 0, "path"),
    **rows("os.lchown os.utime os.setxattr os.removexattr os.mkfifo os.mknod os.chflags", "write", 0, "path"),
    **rows("shutil.chown dotenv.set_key dotenv.unset_key", "write", 0, "path"),
    **rows("os.symlink os.link shutil.copymode shutil.copystat", "write", 1, "dst"),
    **rows("shutil.copyfile", "replace", 1, "dst"),
    **rows("os.mkdir", "folder", 0, "path"),
    **rows("os.makedirs", "folder", 0, "name"),
    **rows("os.rename os.replace os.renames", "move", "src", "dst"),
    **rows("shutil.move", "move"),
    **rows("shutil.copy shutil.copy2", "copy"),
    **rows("shutil.copytree", "copy tree"),
    **rows("shutil.rmtree send2trash.send2trash", "remove tree", 0, "path"),
    **rows("venv.create", "tree", 0, "path"),
    **rows("shutil.unpack_archive", "unpacked", 1, "extract_dir"),
    **rows("os.open", "guess", 1, "flags"),
    **rows("os.chdir contextlib.chdir", "chdir"),
    # openers: where the mode is, and the mode without one
    **rows("open codecs.open tokenize.open aiofiles.open os.fdopen io.FileIO bz2.BZ2File", "open", 1, "r"),
    **rows("gzip.open bz2.open lzma.open gzip.GzipFile lzma.LZMAFile wave.open h5py.File", "open", 1, "r"),
    **rows("zipfile.ZipFile zipfile.PyZipFile tarfile.open tarfile.TarFile", "archive"),
    **rows("shelve.open dbm.open dbm.gnu.open dbm.ndbm.open dbm.dumb.open shutil.make_archive", "guess"),
    **rows("netCDF4.Dataset pandas.HDFStore numpy.memmap zipapp.create_archive", "guess"),
    **rows("fileinput.input fileinput.FileInput", "guess", 1, "inplace"),
    **rows("logging.basicConfig", "write", NOWHERE, "filename", True),
    **rows("py_compile.compile", "guess", 1, "cfile"),
    **rows("logging.FileHandler logging.handlers.RotatingFileHandler", "write", 0, "filename"),
    **rows("logging.handlers.TimedRotatingFileHandler logging.handlers.WatchedFileHandler", "write", 0, "filename"),
    **rows("urllib.request.urlretrieve", "replace", 1, "filename", True),
    **rows("torch.save joblib.dump", "replace", 1, "f"),
    # commands, and other code
    **rows("subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen", "run"),
    **rows("asyncio.create_subprocess_exec", "run", True),
    **rows("subprocess.getoutput subprocess.getstatusoutput os.system os.popen", "script"),
    **rows("asyncio.create_subprocess_shell", "script"),
    **rows("os.execv os.execve os.execvp os.execvpe os.spawnv os.spawnvp os.posix_spawn os.execl os.execlp", "code"),
    **rows("os.execle os.execlpe os.spawnl os.spawnlp os.spawnle os.spawnve os.posix_spawnp pty.spawn", "code"),
    **rows("exec eval", "code"),
    **rows("runpy.run_path runpy.run_module importlib.util.spec_from_file_location", "code"),
    **rows("ctypes.CDLL ctypes.PyDLL marshal.loads cProfile.run profile.run timeit.timeit", "code"),
    **rows("pytest.main unittest.main sys.path.insert sys.path.append", "project"),
}
_WRITING_WORDS = frozenset(
    "write save export copy move rename replace remove delete unlink archive extract unpack download retrieve".split()
)
# Functions of these have such words in their names, but write nothing, or only an open file.
_HARMLESS_FUNCTIONS = (*HARMLESS, "copy.", "dataclasses.", "httpx.", "numpy.", "requests.", "shutil.")
_BUILTINS = frozenset(
    "open print range len str int float bool list tuple dict set frozenset sorted reversed enumerate zip map filter min"
    " max sum any all isinstance getattr setattr hasattr exec eval compile input next iter repr abs chr ord format"
    " bytes __import__ exit quit type super callable id object".split()
)
# Holders of names that are only known when the code runs: anything may be taken from them.
HOLDERS = ("globals", "locals", "vars", "sys.modules", "__builtins__")


def named(code: Any, dotted: str) -> Any:
    """The value of library name `dotted`."""
    dotted = _SAME.get(dotted, dotted)
    if dotted == "sys.argv":
        return code.argv
    if dotted == "sys.stdin":
        return OpenFile("", ANY if code.stdin is None else code.stdin)
    if dotted in ("os.sep", "os.path.sep"):
        return "/"
    if dotted in ("os.linesep", "os.curdir", "os.pardir", "os.devnull", "os.extsep", "os.name"):
        return getattr(os, dotted[3:])
    if dotted.startswith("os.O_"):
        return getattr(os, dotted[3:], ANY)
    if dotted == "sys.executable":
        return "python3"
    return LibraryName(dotted)


def builtin(name: str) -> Any:
    """The value of a name that the code does not bind, or `ANY`."""
    if name in _BUILTINS or name in HOLDERS:
        return LibraryName(name)
    return ANY


def names_in(module: str) -> list[Any]:
    """Return the names that ``from module import *`` binds, as far as they matter here."""
    every = (dotted.rpartition(".") for dotted in (*WRITERS, *GIVES, "os.path", "os.sep", "os.environ"))
    return [name for owner, _, name in every if owner == module]


def is_writer(dotted: str) -> bool:
    """Return True if library function `dotted` writes, runs something, or is unknown."""
    dotted = _SAME.get(dotted, dotted)
    is_path_method = dotted.startswith("pathlib.Path.") and dotted[13:] in METHODS
    return WRITERS.get(dotted, ("project",))[0] != "project" or is_path_method or dotted.startswith(ANYTHING)


def call(code: Any, dotted: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Call library function `dotted`, with its effects, and return its value."""
    dotted = _SAME.get(dotted, dotted)
    a = Arguments(args, keywords)
    if dotted in WRITERS:
        action, *details = WRITERS[dotted]
        given = ACTIONS[action](code, a, *details)
        if given is None:
            return Unknown(dotted)
        return given
    if dotted in GIVES:
        code.hand_over(keywords.values())
        return GIVES[dotted](code, a)
    owner, _, name = dotted.rpartition(".")
    if owner == "os.path":
        return path_function(name, list(map(text_of, args)), code.effects.folder, code.home())
    if owner == "pathlib.Path" and args:
        return call_method(code, args[0], name, args[1:], keywords)
    if dotted.startswith(ANYTHING):
        code.effects.guess_code()
    code.hand_over([*args, *keywords.values()])
    if name.startswith(READERS):
        read(code, a)
    if owner and not dotted.startswith(HARMLESS):
        has_word = not _WRITING_WORDS.isdisjoint(name.split("_")) and not dotted.startswith(_HARMLESS_FUNCTIONS)
        if METHODS.get(name, ("",))[0] == "argument":
            method_of_unknown(code, name, a)
        elif has_word and any(map(may_be_path, a.given)):
            code.effects.guess_path()
    return Unknown(dotted)

"""What Python's library does, and some well-known packages: which functions and methods write, and what they give.

`WRITERS` and `METHODS` are the tables to extend. A row says an action of `ACTIONS` and its details: mostly the place
of the argument that names what is written, and its keyword. A function that is in no table writes nothing.
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.inline import python_disk
from swarm_hook_core.shell.inline.python_functions import ANYTHING, GIVES
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    MOST,
    Arguments,
    Database,
    DiskFiles,
    LibraryName,
    OpenFile,
    Path,
    Unknown,
    elements,
    is_plain,
    path_function,
    path_method,
    path_of,
    text_method,
    text_of,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known

_SAME = {
    "io.open": "open",
    "builtins.open": "open",
    "posixpath": "os.path",
    "pathlib.PosixPath": "pathlib.Path",
    "pathlib.PurePath": "pathlib.Path",
    "pathlib.PurePosixPath": "pathlib.Path",
    "glob.iglob": "glob.glob",
    "sqlite3.dbapi2.connect": "sqlite3.connect",
    "tarfile.TarFile.open": "tarfile.open",
    "asyncio.subprocess.create_subprocess_exec": "asyncio.create_subprocess_exec",
    "asyncio.subprocess.create_subprocess_shell": "asyncio.create_subprocess_shell",
    "builtins.exec": "exec",
    "builtins.eval": "eval",
}


def _rows(names: str, *row) -> dict:
    return dict.fromkeys(names.split(), row)


WRITERS = {
    **_rows("os.remove os.unlink os.rmdir os.truncate os.chmod os.lchmod os.chown os.lchown", "write", 0, "path"),
    **_rows("os.utime os.setxattr os.removexattr os.mkfifo os.mknod os.chflags shutil.chown", "write", 0, "path"),
    **_rows("os.removedirs", "write", 0, "name"),
    **_rows("os.symlink os.link shutil.copyfile shutil.copymode shutil.copystat", "write", 1, "dst"),
    **_rows("os.mkdir", "folder", 0, "path"),
    **_rows("os.makedirs", "folder", 0, "name"),
    **_rows("os.rename os.replace", "move", "src", "dst"),
    **_rows("os.renames", "move", "old", "new"),
    **_rows("shutil.move", "move into"),
    **_rows("shutil.copy shutil.copy2", "copy into"),
    **_rows("shutil.copytree", "copy tree"),
    **_rows("shutil.rmtree", "tree", 0, "path"),
    **_rows("shutil.unpack_archive", "unpacked", 1, "extract_dir"),
    **_rows("os.open", "opened by flags"),
    **_rows("os.chdir contextlib.chdir", "chdir"),
    # openers: where the mode is, and the mode without one
    **_rows("open codecs.open tokenize.open aiofiles.open os.fdopen io.FileIO bz2.BZ2File", "open", 1, "r"),
    **_rows("gzip.open bz2.open lzma.open gzip.GzipFile lzma.LZMAFile wave.open h5py.File", "open", 1, "r"),
    **_rows("netCDF4.Dataset pandas.HDFStore", "open", 1, "a"),
    **_rows("numpy.memmap", "open", 2, "r+"),
    **_rows("zipfile.ZipFile zipfile.PyZipFile tarfile.open tarfile.TarFile", "archive"),
    **_rows("sqlite3.connect", "database"),
    **_rows("shelve.open dbm.open dbm.gnu.open dbm.ndbm.open dbm.dumb.open shutil.make_archive", "guess"),
    **_rows("fileinput.input fileinput.FileInput", "guess", 1, "inplace"),
    **_rows("logging.basicConfig", "write", 99, "filename"),
    **_rows("logging.FileHandler logging.handlers.RotatingFileHandler", "write", 0, "filename"),
    **_rows("logging.handlers.TimedRotatingFileHandler logging.handlers.WatchedFileHandler", "write", 0, "filename"),
    **_rows("urllib.request.urlretrieve", "write", 1, "filename"),
    **_rows("readline.write_history_file", "write", 0, "filename"),
    **_rows("py_compile.compile", "write", 1, "cfile"),
    **_rows("zipapp.create_archive", "write", 1, "target"),
    **_rows("venv.create", "tree", 0, "env_dir"),
    **_rows("distutils.file_util.copy_file distutils.file_util.move_file", "write", 1, "dst"),
    **_rows("distutils.dir_util.copy_tree", "tree", 1, "dst"),
    **_rows("distutils.dir_util.remove_tree", "tree", 0, "directory"),
    # packages
    **_rows("numpy.save", "suffixed", ".npy"),
    **_rows("numpy.savez numpy.savez_compressed", "suffixed", ".npz"),
    **_rows("numpy.savetxt matplotlib.pyplot.savefig matplotlib.pyplot.imsave", "write", 0, "fname"),
    **_rows("cv2.imwrite scipy.io.wavfile.write", "write", 0, "filename"),
    **_rows("scipy.io.savemat soundfile.write imageio.imwrite", "write", 0, "file_name"),
    **_rows("torch.save", "write", 1, "f"),
    **_rows("nbformat.write", "write", 1, "fp"),
    **_rows("joblib.dump", "write", 1, "filename"),
    **_rows("pandas.ExcelWriter", "write", 0, "path"),
    **_rows("dotenv.set_key dotenv.unset_key", "write", 0, "dotenv_path"),
    **_rows("send2trash.send2trash", "tree", 0, "paths"),
    # commands, and other code
    **_rows("subprocess.run subprocess.call subprocess.check_call subprocess.Popen", "run"),
    **_rows("subprocess.check_output", "run", "output"),
    **_rows("subprocess.getoutput subprocess.getstatusoutput", "script", "output"),
    **_rows("os.system os.popen asyncio.create_subprocess_shell", "script"),
    **_rows("asyncio.create_subprocess_exec", "run all"),
    **_rows("os.execv os.execve os.execvp os.execvpe os.spawnv os.spawnvp os.posix_spawn os.execl os.execlp", "code"),
    **_rows("os.execle os.execlpe os.spawnl os.spawnlp os.spawnle os.spawnve os.posix_spawnp pty.spawn", "code"),
    **_rows("exec eval", "code as text"),
    **_rows("runpy.run_path runpy.run_module importlib.util.spec_from_file_location", "code"),
    **_rows("ctypes.CDLL ctypes.PyDLL marshal.loads cProfile.run profile.run timeit.timeit", "code"),
    **_rows("pytest.main unittest.main sys.path.insert sys.path.append", "project"),
}

# Of any object: what calling such a method writes. `self`: the path that it is called on, of `pathlib`; the number of
# arguments without which it is another method. Else the place of the argument that names what is written.
METHODS = {
    **_rows("write_text write_bytes symlink_to hardlink_to link_to chmod lchmod", "self", 1),
    **_rows("touch unlink rmdir", "self", 0),
    **_rows("savefig to_csv to_json to_excel to_parquet to_pickle to_feather to_html to_hdf to_netcdf", "argument", 0),
    **_rows("to_stata to_latex to_markdown to_xml to_file to_orc tofile write_image write_html", "argument", 0),
    **_rows("write_pdf write_png write_csv write_parquet write_json sink_parquet sink_csv", "argument", 0),
    **_rows("save imsave save_model save_weights save_pretrained", "argument", 0),
    **_rows("extractall", "extracts", 0),
    **_rows("extract", "extracts", 1),
}
_OF_LIBRARIES = ("unittest.", "multiprocessing.", "threading.", "datetime.", "re.", "asyncio.", "io.")
_CHANGE_A_DATABASE = frozenset("INSERT UPDATE DELETE CREATE DROP ALTER REPLACE VACUUM REINDEX ANALYZE ATTACH".split())
_WRITES_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_BUILTINS = frozenset(
    "open print range len str int float bool list tuple dict set frozenset sorted reversed enumerate zip map filter min"
    " max sum any all isinstance getattr setattr hasattr exec eval compile input next iter repr abs chr ord format"
    " bytes __import__ exit quit type super callable id object globals locals vars".split()
)
# What holds names that are only known when the code runs: anything may be taken from it.
_HOLDERS = ("globals", "locals", "vars", "sys.modules", "__builtins__")


def named(code, dotted: str):
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
    return "python3" if dotted == "sys.executable" else LibraryName(dotted)


def builtin(name: str):
    """The value of a name that the code does not bind, or `ANY`."""
    return LibraryName(name) if name in _BUILTINS or name in _HOLDERS else ANY


def is_in(module: str, name: str) -> bool:
    """Whether ``from module import *`` gives `name`, as far as it matters here."""
    dotted = _SAME.get(f"{module}.{name}", f"{module}.{name}")
    return dotted in WRITERS or dotted in GIVES or dotted in ("os.path", "os.sep", "os.environ")


def is_writer(dotted: str) -> bool:
    """Whether library function `dotted` writes, runs something, or is not known at all."""
    dotted = _SAME.get(dotted, dotted)
    is_path_method = dotted.startswith("pathlib.Path.") and dotted[13:] in METHODS
    return WRITERS.get(dotted, ("project",))[0] != "project" or is_path_method or dotted.startswith(ANYTHING)


def call(code, dotted: str, args: list, keywords: dict):
    """What calling library function `dotted` gives; its effects happen."""
    dotted = _SAME.get(dotted, dotted)
    a = Arguments(args, keywords)
    if dotted in WRITERS:
        action, *details = WRITERS[dotted]
        given = ACTIONS[action](code, a, *details)
        return Unknown(dotted) if given is None else given
    if dotted in GIVES:
        return GIVES[dotted](code, a)
    if dotted.startswith("os.path."):
        return _of_os_path(code, dotted[8:], args)
    if dotted.startswith("pathlib.Path.") and args:
        return call_method(code, args[0], dotted[13:], args[1:], keywords)
    if dotted.startswith(ANYTHING):
        code.effects.guess_code()
    code.hand_over([*args, *keywords.values()])
    return Unknown(dotted)


def _of_os_path(code, name: str, args: list):
    if name in ("exists", "isfile", "isdir", "lexists", "islink"):
        return python_disk.asked(code, name, text_of(args[0]) if args else UNKNOWN)
    return path_function(name, list(map(text_of, args)), code.effects.folder, code.home())


# ------------------------------------------------------------------ actions


def _paths(value) -> list:
    """The path that `value` names; a number is an open file, and names none."""
    path = path_of(value)
    return [] if path is None else [path]


def _write(code, a, place: int, keyword: str) -> None:
    value = a.get(place, keyword)
    if value is not None:
        for path in _paths(value):
            code.effects.write(path)


def _tree(code, a, place: int, keyword: str) -> None:
    for path in _paths(a.get(place, keyword, ANY)):
        code.effects.tree(path)


def _folder(code, a, place: int, keyword: str) -> None:
    for path in _paths(a.get(place, keyword, ANY)):
        code.effects.make_folder(path)


def _pairs(a, first: str, second: str) -> list:
    return [(one, other) for one in _paths(a.get(0, first, ANY)) for other in _paths(a.get(1, second, ANY))]


def _move(code, a, first: str, second: str) -> None:
    for source, target in _pairs(a, first, second):
        code.effects.move(source, target)


def _move_into(code, a):
    for source, target in _pairs(a, "src", "dst"):
        code.effects.move(source, code.effects.landing(source, target))
    return a.get(1, "dst", ANY)


def _copy_into(code, a):
    for source, target in _pairs(a, "src", "dst"):
        code.effects.write(code.effects.landing(source, target))
    return a.get(1, "dst", ANY)


def _copy_tree(code, a):
    for source, target in _pairs(a, "src", "dst"):
        code.effects.copy_tree(source, target)
    return a.get(1, "dst", ANY)


def _unpacked(code, a, place: int, keyword: str) -> None:
    for path in _paths(a.get(place, keyword, ".")):
        code.effects.tree(path, lambda _path: None)


def _opened(code, a, place: int, default: str):
    return open_file(code, a.get(0, "file", a.get(0, "filename", a.get(0, "name", ANY))), a.get(place, "mode", default))


def open_file(code, file, mode) -> OpenFile:
    """``open(file, mode)``."""
    path = path_of(file)
    if path is None:
        return OpenFile(UNKNOWN)
    if not isinstance(mode, str) or not is_known(mode):
        code.effects.guess_path()
    elif not {"w", "a", "x", "+"}.isdisjoint(mode):
        code.effects.write(path)
        return OpenFile(path)
    return OpenFile(path, code.text_of_file(path))


def _opened_by_flags(code, a):
    flags = a.get(1, "flags", ANY)
    if not isinstance(flags, int) or flags & _WRITES_FLAGS:
        for path in _paths(a.get(0, "path", ANY) if isinstance(flags, int) else ANY):
            code.effects.write(path)
    return 3


def _chdir(code, a):
    paths = _paths(a.get(0, "path", ANY))
    code.effects.change_folder(paths[0] if len(paths) == 1 else UNKNOWN)


def _archive(code, a) -> None:
    file, mode = a.get(0, "file", a.get(0, "name")), a.get(1, "mode", "r")
    if not isinstance(mode, str) or mode[:1] != "r":
        _write_named(code, file)


def _database(code, a):
    path = a.get(0, "database", ANY)
    if path in (":memory:", "") or (isinstance(path, str) and path.startswith("file:")):
        return None
    whole = absolute(code.effects.folder, path) if isinstance(path, str) else None
    if whole is not None and not os.path.lexists(whole):
        code.effects.write(path)  # an empty one is made
    return Database(path)


def _guess(code, a, place: int = 0, keyword: str = "") -> None:
    if not keyword or truth(a.get(place, keyword, False)) is not False:
        code.effects.guess_path()


def _suffixed(code, a, ending: str) -> None:
    for path in _paths(a.get(0, "file", ANY)):
        code.effects.write(path if path.endswith(ending) else path + ending)


def _run(code, a, gives: str = ""):
    words, shell = a.get(0, "args", ANY), truth(a.get(99, "shell", False)) is not False
    given, source, folder = a.get(99, "input"), a.get(99, "stdin"), a.get(99, "cwd")
    if isinstance(source, LibraryName) and source.dotted == "subprocess.DEVNULL":
        given = ""
    elif source is not None or (given is not None and not isinstance(given, str)):
        given = UNKNOWN
    output = started(code, words, shell, given, None if folder is None else text_of(folder))
    return output if gives else OpenFile("", output)


def started(code, words, shell: bool, given=None, folder=None):
    """What a command prints, or `ANY`."""
    code.is_print_known = False  # what the command prints goes to the same place, mostly
    parts = words if isinstance(words, (list, tuple)) and words else [words]
    given = code.stdin if given is None else given
    if not isinstance(parts[0], (str, Path)):
        code.effects.guess("a computed command")
        return ANY
    if shell:
        output = code.effects.script(text_of(parts[0]), given, folder)
    else:
        output = code.effects.run([path_of(part) or UNKNOWN for part in parts], given, folder)
    return ANY if output is None else output


def _run_all(code, a):
    return OpenFile("", started(code, list(a.given), False))


def _script(code, a, gives: str = ""):
    output = started(code, a.get(0, "cmd", a.get(0, "command", ANY)), True)
    if gives:
        return output.rstrip("\n") if isinstance(output, str) else ANY
    return OpenFile("", output)


def _code(code, a) -> None:
    code.effects.guess_code()


def _code_as_text(code, a):
    source = a.get(0, "source")
    if isinstance(source, str) and is_known(source):
        return code.execute(source)
    code.effects.guess_code()
    return ANY


def _project(code, a) -> None:
    code.effects.runs_project()


ACTIONS: dict = {
    "write": _write,
    "tree": _tree,
    "folder": _folder,
    "move": _move,
    "move into": _move_into,
    "copy into": _copy_into,
    "copy tree": _copy_tree,
    "unpacked": _unpacked,
    "open": _opened,
    "opened by flags": _opened_by_flags,
    "chdir": _chdir,
    "archive": _archive,
    "database": _database,
    "guess": _guess,
    "suffixed": _suffixed,
    "run": _run,
    "run all": _run_all,
    "script": _script,
    "code": _code,
    "code as text": _code_as_text,
    "project": _project,
}

# ------------------------------------------------------------------ methods


def call_method(code, owner, name: str, args: list, keywords: dict):
    """What calling method `name` of `owner` gives; its effects happen."""
    a = Arguments(args, keywords)
    if isinstance(owner, str):
        return text_method(owner, name, args, keywords)
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(code, owner, name, a)
    if isinstance(owner, OpenFile):
        return _of_file(owner, name)
    if isinstance(owner, Database):
        return _of_database(code, owner, name, a)
    if isinstance(owner, Path):
        return _of_path(code, owner, name, a)
    return _of_unknown(code, owner, name, a)


def _of_path(code, owner: Path, name: str, a):
    if METHODS.get(name, "")[:1] == ("self",):
        code.effects.write(owner.text)
        return None
    if name == "open":
        return open_file(code, owner, a.get(0, "mode", "r"))
    if name in ("rename", "replace", "move"):
        call(code, "os.rename", [owner, a.get(0, "target", ANY)], {})
        return a.get(0, "target", ANY)
    if name == "copy":
        call(code, "shutil.copyfile", [owner, a.get(0, "target", ANY)], {})
        return a.get(0, "target", ANY)
    if name in ("copy_into", "move_into"):
        call(code, "shutil.copy" if name == "copy_into" else "shutil.move", [owner, a.get(0, "target_dir", ANY)], {})
        return ANY
    if name == "mkdir":
        return code.effects.make_folder(owner.text)
    if name == "read_text":
        return code.text_of_file(owner.text)
    if name in ("exists", "is_file", "is_dir", "is_symlink"):
        return python_disk.asked(
            code, {"is_file": "isfile", "is_dir": "isdir", "is_symlink": "islink"}.get(name, name), owner.text
        )
    if name in ("glob", "rglob"):
        deep = "**/" if name == "rglob" else ""
        return python_disk.globbed(code, deep + text_of(a.get(0, "pattern", ANY)), owner.text, True)
    if name == "iterdir":
        return python_disk.entries(code, owner.text, True)
    if name == "walk":
        return python_disk.walked(code, owner.text)
    found = path_method(owner, name, a.given, code.effects.folder, code.home())
    return ANY if found is None else found


def _of_list(code, owner: list, name: str, a):
    if name in ("append", "add", "insert", "extend", "update") and len(owner) < MOST:
        value = a.get(1 if name == "insert" else 0, default=ANY)
        if name in ("append", "add", "insert"):
            owner.append(value)
        else:
            owner += [value.element] if isinstance(value, DiskFiles) else elements(value) or [ANY]
    elif name == "copy":
        return list(owner)
    elif name == "pop":
        at = a.get(0, default=-1)
        if isinstance(at, int) and -len(owner) <= at < len(owner):
            return owner[at] if code.effects.doubt else owner.pop(at)
        return ANY
    return None if name in ("append", "add", "insert", "extend", "update", "sort", "reverse", "remove") else ANY


def _of_dict(code, owner: dict, name: str, a):
    if name == "items":
        return list(owner.items())
    if name in ("values", "keys"):
        return list(owner.values() if name == "values" else owner)
    if name == "copy":
        return dict(owner)
    if name in ("get", "setdefault", "pop"):
        key = a.get(0)
        if isinstance(key, (str, int)) and is_plain(key):
            return owner.get(key, a.get(1))
        code.hand_over(owner.values())
        return ANY
    if name == "update" and isinstance(a.get(0), dict):
        owner.update(a.get(0))
    return ANY


def _of_file(owner: OpenFile, name: str):
    if name in ("read", "read_text", "decode"):
        return owner.text
    if name == "communicate":
        return (owner.text, ANY)
    lines = elements(owner)
    return lines if name == "readlines" and lines is not None else ANY


def _of_database(code, owner: Database, name: str, a):
    if name in ("execute", "executemany", "executescript"):
        sql = a.get(0, "sql", ANY)
        text = sql.strip() if isinstance(sql, str) else ""
        verbs = {part.split(None, 1)[0].upper() for part in text.split(";") if part.strip()}
        if not text or not is_known(text[0]):
            code.effects.guess_code("code that runs computed SQL")
        elif verbs & _CHANGE_A_DATABASE or ("PRAGMA" in verbs and "=" in text):
            code.effects.write(path_of(owner.path) or UNKNOWN)
    return owner if name in ("cursor", "__enter__", "execute", "executemany", "executescript") else ANY


def _of_unknown(code, owner, name: str, a):
    """A method of what nobody knows: it is judged by its name."""
    made_by = owner.made_by if isinstance(owner, Unknown) else ""
    values = [*a.given, *a.named.values()]
    code.hand_over(values)
    kind, place = METHODS.get(name, ("", 0))
    if made_by.startswith(_OF_LIBRARIES) and name != "write":
        return ANY
    if kind == "self" and len(values) >= place:
        code.effects.guess_path()
    elif kind == "argument" and len(values) > place:
        _write_named(code, a.given[place] if len(a.given) > place else values[0])
    elif kind == "extracts":
        _unpacked(code, a, place, "path")
    elif name in ("rename", "replace") and len(values) == 1 and isinstance(values[0], (str, Path, Unknown)):
        code.effects.guess_path()
    elif name == "open" and any(_is_writing_mode(one) for one in values):
        code.effects.guess_path()
        return OpenFile(UNKNOWN)
    elif name == "dump" and len(a.given) > 1 and isinstance(a.given[1], Path):  # ruamel.yaml
        _write_named(code, a.given[1])
    elif name == "write" and values and (made_by.startswith("xml.etree") or isinstance(values[0], Path)):
        _write_named(code, values[0])
    elif name in ("parse_args", "parse_known_args") and not _HELP.isdisjoint(elements(code.argv) or ()):
        code.leave()
    return owner if made_by.startswith("xml.etree") else ANY


def _write_named(code, value) -> None:
    """Where `value` names a file: it is written."""
    no_name = value is None or isinstance(value, (OpenFile, list, tuple, dict, LibraryName, bool))
    if not no_name and not (isinstance(value, Unknown) and value.made_by.startswith(("io.", "sys."))):
        for path in _paths(value):
            code.effects.write(path)


def _is_writing_mode(value) -> bool:
    return isinstance(value, str) and 0 < len(value) < 5 and (value[0] in "wax" or (value[0] == "r" and "+" in value))


_HELP = {"-h", "--help", "--version"}

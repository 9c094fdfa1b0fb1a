"""What Python's library does, and some well-known packages: which functions and methods write, and what they give.

`WRITERS` and `METHODS` are the tables to extend. A row says an action of `ACTIONS` and its details: mostly the place
of the argument that names what is written, and its keyword. A function that is in no table writes nothing.
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.inline.effects import SCRATCH
from swarm_hook_core.shell.inline.python_values import (
    ANY,
    MOST,
    Archive,
    Arguments,
    Choice,
    Database,
    DiskFiles,
    Finished,
    LibraryName,
    OpenFile,
    Path,
    SomeFiles,
    Unknown,
    alternatives,
    choice,
    elements,
    is_plain,
    join,
    path_function,
    path_method,
    path_of,
    spread,
    text_method,
    text_of,
    tidy,
    truth,
)
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known

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
    **_rows("shutil.make_archive", "packed"),
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
    **_rows("shelve.open dbm.open dbm.gnu.open dbm.ndbm.open dbm.dumb.open", "shelf"),
    **_rows("fileinput.input fileinput.FileInput", "edited in place"),
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
    **_rows("asyncio.create_subprocess_exec", "run words"),
    **_rows("pty.spawn", "run"),
    **_rows("exec eval", "code"),
    **_rows("runpy.run_path runpy.run_module importlib.util.spec_from_file_location ctypes.CDLL", "other code"),
    **_rows("ctypes.PyDLL marshal.loads cProfile.run profile.run timeit.timeit", "code"),
    **_rows("pytest.main unittest.main", "tests"),
}

# Of any object: what calling such a method writes. `self`: the path that it is called on, of `pathlib`; the number of
# arguments without which it is another method. Else the place of the argument that names what is written.
METHODS = {
    **_rows("write_text write_bytes symlink_to hardlink_to link_to chmod lchmod", "self", 1),
    **_rows("touch unlink rmdir", "self", 0),
    **_rows("savefig to_csv to_json to_excel to_parquet to_pickle to_feather to_html to_hdf to_netcdf", "argument", 0),
    **_rows("to_stata to_latex to_markdown to_xml to_file to_orc tofile write_image write_html", "argument", 0),
    **_rows("write_pdf write_png write_csv write_parquet write_json sink_parquet sink_csv", "argument", 0),
    **_rows("save imsave save_model save_weights", "argument", 0),
    **_rows("save_pretrained", "argument", 0),
}
_OF_LIBRARIES = ("unittest.", "multiprocessing.", "threading.", "datetime.", "re.", "asyncio.", "io.")
_CHANGE_A_DATABASE = frozenset("INSERT UPDATE DELETE CREATE DROP ALTER REPLACE VACUUM REINDEX ANALYZE ATTACH".split())
_ARCHIVE_ENDINGS = {"zip": ".zip", "tar": ".tar", "gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz"}
_WRITES_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST_LISTED = 64  # files that a loop is followed for where what it writes is only derived from them
_BUILTINS = frozenset(
    "open print range len str int float bool list tuple dict set frozenset sorted reversed enumerate zip map filter min"
    " max sum any all isinstance getattr setattr hasattr exec eval compile input next iter repr abs chr ord format"
    " bytes __import__ exit quit type super callable id object globals locals vars".split()
)
# What holds names that are only known when the code runs: anything may be taken from it.
_HOLDERS = ("globals", "locals", "vars", "sys.modules", "__builtins__")
ANYTHING = "?"  # the dotted name of what was taken from there


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
    return WRITERS.get(dotted, ("tests",))[0] != "tests" or is_path_method or dotted.startswith(ANYTHING)


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
    if dotted.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
        return _spawned(code, dotted[3:], args)
    if dotted.startswith("pathlib.Path.") and args:
        return call_method(code, args[0], dotted[13:], args[1:], keywords)
    if dotted.startswith(ANYTHING):
        code.effects.guess_code()
    code.hand_over([*args, *keywords.values()])
    return Unknown(dotted)


# ------------------------------------------------------------------ actions


def _paths(value) -> list:
    """The paths that `value` may name; a number is an open file, and names none."""
    return [path for path in map(path_of, alternatives(value)) if path is not None]


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


def _packed(code, a):
    ending = _ARCHIVE_ENDINGS.get(text_of(a.get(1, "format", ANY)), UNKNOWN)
    made = spread(lambda one: text_of(one) + ending, a.get(0, "base_name", ANY))
    for path in _paths(made):
        code.effects.write(path)
    return made


def _unpacked(code, a, place: int, keyword: str) -> None:
    for path in _paths(a.get(place, keyword, ".")):
        code.effects.tree(path, lambda _path: None)


def _opened(code, a, place: int, default: str):
    return open_file(code, a.get(0, "file", a.get(0, "filename", a.get(0, "name", ANY))), a.get(place, "mode", default))


def open_file(code, file, mode) -> OpenFile:
    """``open(file, mode)``."""
    paths = _paths(file)
    path = paths[0] if len(paths) == 1 else UNKNOWN
    modes = alternatives(mode)
    if not all(isinstance(one, str) and is_known(one) for one in modes):
        if paths:
            code.effects.guess_path()
    elif any(letter in one for one in modes for letter in "wax+"):
        for one in paths:
            code.effects.write(one)
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


def _archive(code, a):
    file, mode = a.get(0, "file", a.get(0, "name")), a.get(1, "mode", "r")
    if file is not None and not isinstance(file, OpenFile) and not _is_in_memory(file):
        if not isinstance(mode, str) or mode[:1] != "r":
            for path in _paths(file):
                code.effects.write(path)
    return Archive()


def _is_in_memory(value) -> bool:
    return isinstance(value, Unknown) and value.made_by.startswith(("io.", "sys."))


def _database(code, a):
    path = a.get(0, "database", ANY)
    if path in (":memory:", "") or (isinstance(path, str) and path.startswith("file:")):
        return None
    whole = absolute(code.effects.folder, path) if isinstance(path, str) else None
    if whole is not None and not os.path.lexists(whole):
        code.effects.write(path)  # an empty one is made
    return Database(path)


def _shelf(code, a) -> None:
    if a.get(1, "flag", "c") != "r":
        for path in _paths(a.get(0, "filename", a.get(0, "file", ANY))):
            for ending in ("", ".db", ".dat", ".dir", ".bak"):
                code.effects.write(path + ending)


def _edited_in_place(code, a) -> None:
    if truth(a.get(1, "inplace", False)) is not False:
        code.effects.guess_path()


def _suffixed(code, a, ending: str) -> None:
    for path in _paths(a.get(0, "file", ANY)):
        code.effects.write(path if path.endswith(ending) else path + ending)


def _run(code, a, gives: str = ""):
    words, shell = a.get(0, "args", a.get(0, "argv", ANY)), truth(a.get(99, "shell", False)) is not False
    given, source, folder = a.get(99, "input"), a.get(99, "stdin"), a.get(99, "cwd")
    if isinstance(source, LibraryName) and source.dotted == "subprocess.DEVNULL":
        given = ""
    elif source is not None or given is not None and not isinstance(given, str):
        given = UNKNOWN
    output = started(code, words, shell, given, None if folder is None else text_of(folder))
    return output if gives else Finished(output)


def started(code, words, shell=False, given=None, folder=None):
    """What a command prints, or `ANY`."""
    code.printed = None  # what it prints goes to the same place, mostly
    output = None
    for one in alternatives(words):
        parts = list(one) if isinstance(one, (list, tuple)) and one else [one]
        if not isinstance(parts[0], (str, Path)):
            code.effects.guess("a computed command")
        elif shell:
            output = code.effects.script(text_of(parts[0]), code.stdin if given is None else given, folder)
        else:
            texts = [path_of(part) or UNKNOWN for part in parts]
            output = code.effects.run(texts, code.stdin if given is None else given, folder)
    return ANY if output is None or isinstance(words, Choice) else output


def _script(code, a, gives: str = ""):
    output = started(code, a.get(0, "cmd", a.get(0, "command", ANY)), shell=True)
    if gives:
        return output.rstrip("\n") if isinstance(output, str) else ANY
    return OpenFile("", output)


def _run_words(code, a):
    return Finished(started(code, list(a.given)))


def _spawned(code, name: str, args: list):
    args = args[1:] if name.startswith("spawn") else args  # the mode
    if len(args) < 2:
        return ANY
    is_list = name.startswith("posix") or "v" in name[4:]
    words = elements(args[1]) if is_list else list(args[1:])
    if words and name.endswith("e") and not is_list:
        words = words[:-1]
    started(code, [args[0], *words[1:]] if words else ANY)
    if name.startswith("exec"):
        code.leave()
    return ANY


def _code(code, a):
    source = a.get(0, "source", a.get(0, "stmt"))
    if source is None or isinstance(source, str) and is_known(source):
        return code.execute(source or "")
    code.effects.guess_code()
    return ANY


def _other_code(code, a) -> None:
    code.effects.guess_code()


def _tests(code, a) -> None:
    code.effects.runs_project()


ACTIONS = {
    "write": _write,
    "tree": _tree,
    "folder": _folder,
    "move": _move,
    "move into": _move_into,
    "copy into": _copy_into,
    "copy tree": _copy_tree,
    "packed": _packed,
    "unpacked": _unpacked,
    "open": _opened,
    "opened by flags": _opened_by_flags,
    "chdir": _chdir,
    "archive": _archive,
    "database": _database,
    "shelf": _shelf,
    "edited in place": _edited_in_place,
    "suffixed": _suffixed,
    "run": _run,
    "run words": _run_words,
    "script": _script,
    "code": _code,
    "other code": _other_code,
    "tests": _tests,
}

# ------------------------------------------------------------------ methods


def call_method(code, owner, name: str, args: list, keywords: dict):
    """What calling method `name` of `owner` gives; its effects happen."""
    a = Arguments(args, keywords)
    if isinstance(owner, str):
        known = is_known(owner) or name == "join"
        return spread(lambda *given: text_method(owner, name, list(given), keywords), *args) if known else ANY
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(code, owner, name, a)
    if isinstance(owner, OpenFile):
        return _of_file(owner, name)
    if isinstance(owner, Finished):
        return (owner.output, ANY) if name == "communicate" else ANY
    if isinstance(owner, Database):
        return _of_database(code, owner, name, a)
    if isinstance(owner, Path):
        return _of_path(code, owner, name, a)
    if isinstance(owner, Archive) or name == "extractall":
        return _of_archive(code, name, a)
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
        return _asked(
            code, {"is_file": "isfile", "is_dir": "isdir", "is_symlink": "islink"}.get(name, name), owner.text
        )
    if name in ("glob", "rglob"):
        deep = "**/" if name == "rglob" else ""
        return spread(lambda one: _globbed(code, deep + text_of(one), owner.text, True), a.get(0, "pattern", ANY))
    if name == "iterdir":
        return _entries(code, owner.text, True)
    if name == "walk":
        return _walked(code, owner.text)
    found = spread(lambda *given: path_method(owner, name, list(given), code.effects.folder, code.home()), *a.given)
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
    if name in ("readlines", "readline"):
        lines = elements(owner)
        return ANY if lines is None else lines if name == "readlines" else (lines or [""])[0]
    return ANY


def _of_archive(code, name: str, a):
    if name == "extractall":
        _unpacked(code, a, 0, "path")
    elif name == "extract":
        where, member = a.get(1, "path", "."), a.get(0, "member", ANY)
        for path in _paths(spread(lambda one, other: join(text_of(one), text_of(other)), where, member)):
            code.effects.write(path)
    return ANY


def _of_database(code, owner: Database, name: str, a):
    if name in ("execute", "executemany", "executescript"):
        for sql in alternatives(a.get(0, "sql", ANY)):
            text = sql.strip() if isinstance(sql, str) else ""
            verbs = {part.split(None, 1)[0].upper() for part in text.split(";") if part.strip()}
            if not text or not is_known(text[0]):
                code.effects.guess_code("code that runs computed SQL")
            elif verbs & _CHANGE_A_DATABASE or ("PRAGMA" in verbs and "=" in text):
                for path in _paths(owner.path):
                    code.effects.write(path)
    return owner if name in ("cursor", "__enter__", "execute", "executemany", "executescript") else ANY


def _of_unknown(code, owner, name: str, a):
    """A method of what nobody knows: it is judged by its name."""
    made_by = owner.made_by if isinstance(owner, Unknown) else ""
    values = [*a.given, *a.named.values()]
    code.hand_over(values)
    kind, place = METHODS.get(name, ("", 0))
    first = a.given[0] if a.given else next(iter(a.named.values()), None)
    if made_by.startswith(_OF_LIBRARIES):
        pass
    elif kind == "self" and len(values) >= place:
        code.effects.guess_path()
    elif kind == "argument" and values and not isinstance(first, OpenFile) and not _is_in_memory(first):
        if isinstance(first, (str, Path, Choice)) or type(first) is Unknown and name != "save":
            _write_each(code, first)
        elif type(first) is Unknown and len(values) == 1 and not a.named:
            code.effects.guess_path()
    elif name in ("rename", "replace") and len(a.given) == 1 and not a.named:
        code.effects.guess_path()
        if isinstance(first, (Path, str)):
            code.effects.write(first.text if isinstance(first, Path) else first if name == "rename" else "")
    elif name == "open" and any(_is_writing_mode(one) for one in values):
        code.effects.guess_path()
        return OpenFile(UNKNOWN)
    elif name == "dump" and len(a.given) > 1 and isinstance(a.given[1], Path):  # ruamel.yaml
        code.effects.write(a.given[1].text)
    elif name == "write" and (made_by.startswith("xml.etree") or isinstance(first, Path)):
        _write_each(code, first)
    elif name in ("parse_args", "parse_known_args") and isinstance(code.argv, list):
        if any(word in ("-h", "--help", "--version") for word in code.argv[1:]):
            code.leave()
    return owner if made_by.startswith("xml.etree") else ANY


def _write_each(code, value) -> None:
    if not isinstance(value, OpenFile):
        for path in _paths(value):
            code.effects.write(path)


def _is_writing_mode(value) -> bool:
    return isinstance(value, str) and len(value) < 5 and value[:1] in "war"[: 2 + ("+" in value)] and value != ""


# ------------------------------------------- values that other code names files with


def _of_os_path(code, name: str, args: list):
    if name in ("exists", "isfile", "isdir", "lexists", "islink"):
        return _asked(code, name, text_of(args[0]) if args else UNKNOWN)
    folder, home = code.effects.folder, code.home()
    return spread(lambda *given: path_function(name, list(map(text_of, given)), folder, home), *args)


def _asked(code, name: str, path: str):
    """An answer of the disk, to a replay only: what a command names is certain whatever is there now."""
    whole = absolute(code.effects.folder, path) if code.only else None
    return ANY if whole is None else getattr(os.path, name)(whole)


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
    return spread(lambda *parts: Path(tidy(join(*map(text_of, parts)))), *(a.given or ["."]))


def _as_list(code, a):
    value = a.get(0, default=[])
    if isinstance(value, (DiskFiles, SomeFiles)):
        return value
    items = elements(value)
    return ANY if items is None else list(items)


def _sorted(code, a):
    value = _as_list(code, a)
    code.hand_over(a.named.values())
    if isinstance(value, list) and is_plain(value) and "key" not in a.named:
        try:
            return sorted(value, reverse=bool(a.named.get("reverse")))
        except TypeError:
            return value
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
        return DiskFiles(value.root, (ANY, value.element), value.listed)
    items = elements(value)
    if isinstance(items, SomeFiles):
        return SomeFiles([(ANY, one) for one in items])
    return ANY if items is None or not isinstance(start, int) else list(enumerate(items, start))


def _zipped(code, a):
    columns = [elements(one) for one in a.given]
    return ANY if None in columns else list(zip(*columns))


def _mapped(code, a):
    function, value = a.get(0), a.get(1)
    if isinstance(value, DiskFiles):
        return DiskFiles(
            value.root, code.in_loop(value, lambda: code.call(function, [value.element], {})), value.listed
        )
    items = elements(value)
    if items is None or len(a.given) > 2:
        code.hand_over(a.given)
        return ANY
    return type(items)([code.call(function, [one], {}) for one in items])


def _filtered(code, a):
    function, items = a.get(0), _as_list(code, Arguments(a.given[1:], {}))
    if not isinstance(items, list):
        code.hand_over([function])
        return items
    return type(items)(
        [one for one in items if truth(one if function is None else code.call(function, [one], {})) is not False]
    )


def _next(code, a):
    items = elements(a.get(0))
    return items[0] if items and not isinstance(items, SomeFiles) else ANY


def _one_of(code, a):
    code.hand_over(a.named.values())
    value = a.get(0) if len(a.given) == 1 else list(a.given)
    items = elements(value)
    return choice(items) if items and not isinstance(items, SomeFiles) else ANY


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
    return spread(lambda one: ANY if isinstance(one, (list, dict, tuple)) else text_of(one), a.get(0, default=""))


def _as_number(code, a):
    value = a.get(0)
    try:
        return int(value) if isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 20) else ANY
    except (ValueError, OverflowError):
        return ANY


def _character(code, a):
    value = a.get(0)
    return chr(value) if isinstance(value, int) and 0 < value < 0xD800 else ANY


def _is_a(code, a):
    value, kind = a.get(0), a.get(1)
    known = isinstance(kind, LibraryName) and kind.dotted in ("str", "list", "dict", "tuple", "int") and is_plain(value)
    return type(value).__name__ == kind.dotted if known else ANY


def _all_or_any(decides: bool):
    def answer(code, a):
        answers = [truth(one) for one in elements(a.get(0)) or [ANY]]
        return decides if decides in answers else ANY if None in answers else not decides

    return answer


def _line_read(code, a):
    if not isinstance(code.stdin, str):
        return ANY
    line, _, code.stdin = code.stdin.partition("\n")
    return line


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


def _words_split(code, a):
    source = a.get(0)
    if not isinstance(source, str) or not is_known(source):
        return ANY
    import shlex

    try:
        return shlex.split(source)
    except ValueError:
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


def _searched(place: int):
    return lambda code, a: code.search.append(text_of(a.get(place)))


def _quoted(code, a):
    return repr(a.get(0)) if is_plain(a.get(0)) else ANY


# ------------------------------------------------------- files that only the disk knows


def _glob(code, a):
    if a.get(99, "root_dir") is not None:
        return ANY
    deep = truth(a.get(99, "recursive", False)) is not False
    return spread(lambda one: _globbed(code, text_of(one), "", False, deep), a.get(0, "pathname", ANY))


def _globbed(code, pattern: str, folder: str, as_paths: bool, recursive: bool = True):
    """What a glob `pattern` seen from `folder` finds."""
    base = absolute(code.effects.folder, folder)
    if base is None or not is_known(pattern):
        return ANY
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/"):
        base, folder = "/", "/"
    while parts and not any(letter in parts[0] for letter in "*?["):
        folder = join(folder, parts[0])
        base = os.path.normpath(join(base, parts.pop(0)))
    if not parts:
        return [Path(tidy(folder)) if as_paths else folder]
    fits = _fitting(parts, recursive, as_paths)
    return _found(code, base, folder, fits, recursive and "**" in parts, Path if as_paths else str)


def _entries(code, folder: str, as_paths: bool, only_names: bool = False):
    """What lies right in `folder`."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    return _found(
        code, base, "" if only_names else folder, lambda inside: len(inside) == 1, False, Path if as_paths else str
    )


def _found(code, base: str, folder: str, fits, deep: bool, kind):
    """The files under absolute `base`, spelled `folder`, whose parts inside of it `fits`; each is a `kind`."""

    def spelled(inside: list):
        path = join(folder, *inside) if folder else "/".join(inside)
        return Path(tidy(path)) if kind is Path else path

    def candidates(path: str) -> list:
        start = base.rstrip("/") + "/"
        inside = path[len(start) :].split("/") if path.startswith(start) else []
        return [inside[:depth] for depth in range(1, len(inside) + 1) if fits(inside[:depth])]

    if code.only:
        return SomeFiles(map(spelled, candidates(code.only)))
    mark = code.effects.call.walk.mark(Found(base, lambda path: bool(candidates(path))))
    return DiskFiles(base, kind(mark), lambda: _listed(base, deep))


def _walked(code, folder: str):
    """``os.walk(folder)``: folder, names of folders, names of files."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    start = base.rstrip("/") + "/"
    if not code.only:
        mark = code.effects.call.walk.mark(Found(base, lambda path: path.startswith(start)))
        return DiskFiles(base, (UNKNOWN, [mark], [mark]), lambda: _listed(base, True))
    found, above = SomeFiles(), folder
    inside = code.only[len(start) :].split("/") if code.only.startswith(start) else []
    for place, name in enumerate(inside):
        is_file = place == len(inside) - 1
        found.append((above, [] if is_file else [name], [name] if is_file else []))
        above = join(above, name)
    return found


def _fitting(parts: list, recursive: bool, with_hidden: bool):
    """A function of path parts: whether they fit the pattern `parts`."""
    from fnmatch import fnmatchcase

    def fits(inside: list, at: int = 0, place: int = 0) -> bool:
        if at == len(parts):
            return place == len(inside)
        shown = place < len(inside) and (with_hidden or parts[at][:1] == "." or inside[place][:1] != ".")
        if parts[at] == "**" and recursive:
            return fits(inside, at + 1, place) or (shown and fits(inside, at, place + 1))
        return shown and fnmatchcase(inside[place], parts[at]) and fits(inside, at + 1, place + 1)

    return fits if len(parts) <= 12 else lambda inside: False


def _listed(base: str, deep: bool) -> list:
    """Files under `base` that are there now, one more than `MOST_LISTED` at most; caches are passed over."""
    found: list = []
    for above, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += [join(above, name) for name in sorted(names)]
        if len(found) > MOST_LISTED:
            break
        if not deep and above.count("/") - base.count("/") > 2:
            folders[:] = []
    return found[: MOST_LISTED + 1]


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
    "os.fspath": lambda code, a: spread(text_of, a.get(0)),
    "os.getenv": _variable,
    "os.environ.get": _variable,
    "os.listdir": lambda code, a: _entries(code, text_of(a.get(0, "path", ".")), False, True),
    "os.scandir": lambda code, a: _entries(code, text_of(a.get(0, "path", ".")), True),
    "os.walk": lambda code, a: _walked(code, text_of(a.get(0, "top", ANY))),
    "glob.glob": _glob,
    "list": _as_list,
    "iter": _as_list,
    "set": _as_list,
    "frozenset": _as_list,
    "dict.fromkeys": _as_list,
    "tuple": _as_list,
    "dict": _as_dict,
    "sorted": _sorted,
    "reversed": lambda code, a: _as_list(code, a)[::-1] if isinstance(a.get(0), (list, tuple)) else _as_list(code, a),
    "enumerate": _enumerated,
    "zip": _zipped,
    "map": _mapped,
    "filter": _filtered,
    "next": _next,
    "min": _one_of,
    "max": _one_of,
    "range": _range,
    "len": _length,
    "str": _as_text,
    "int": _as_number,
    "chr": _character,
    "repr": _quoted,
    "isinstance": _is_a,
    "all": _all_or_any(False),
    "any": _all_or_any(True),
    "input": _line_read,
    "json.loads": _json_read,
    "json.load": _json_read,
    "shlex.split": _words_split,
    "compile": lambda code, a: a.get(0, "source"),
    "__import__": _module,
    "importlib.import_module": _module,
    "asyncio.run": lambda code, a: a.get(0),
    "sys.path.insert": _searched(1),
    "sys.path.append": _searched(0),
    **dict.fromkeys(("exit", "quit", "sys.exit", "os._exit", "os.abort"), lambda code, a: code.leave()),
}

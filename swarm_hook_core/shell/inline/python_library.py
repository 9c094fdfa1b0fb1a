"""Python's library and other packages: their writing functions, and calls of functions by name.

`WRITERS` is the table to extend. A row has an action of ``python_actions`` and its details: mostly the place of the
argument with the written path, and its keyword. A function in no table is judged by the words of its name
(`_WRITING_WORDS`): a possible writer is a guess.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.shell.inline.python_actions import (
    ACTIONS,
    HARMLESS,
    METHODS,
    NOWHERE,
    READERS,
    call_method,
    may_be_path,
    method_of_unknown,
    read,
    rows,
)
from swarm_hook_core.shell.inline.python_functions import ANYTHING, GIVES, path_function
from swarm_hook_core.shell.inline.python_values import ANY, Arguments, LibraryName, OpenFile, Unknown, text_of

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

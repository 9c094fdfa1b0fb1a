"""Names of Python's library: what they stand for, and what calling them does.

What is in no table of ``writing``, ``running`` and ``given`` writes nothing and gives an `Unknown`.
"""

import os

from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known
from swarm_hook_core.shell.programs.python import given, running, writing
from swarm_hook_core.shell.programs.python.operations import path_function
from swarm_hook_core.shell.programs.python.values import ANY, Arguments, Handle, Name, Unknown, spread, text_of

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
    if module == "os" and name in ("path", "sep", "environ"):
        return True
    return _function(dotted) is not None or dotted in writing.PATHS or dotted in writing.OPENERS


def imported(code, module: str) -> None:
    """Import `module`: one of the project is its own code, one that the same command has made is code nobody knows."""
    first = module.partition(".")[0]
    if not first or not is_known(first) or _is_standard(first):
        return
    folders = [code.folder] if code.file is None else [os.path.dirname(code.file)]
    folders += [absolute(code.folder, folder) for folder in code.search]
    search = (code.outlet.variable("PYTHONPATH") or "").split(":")
    folders += [absolute(code.folder, folder or ".") for folder in search]
    for folder in folders:
        if folder is None:
            continue
        path = os.path.join(folder, first)
        if code.outlet.has_made(path + ".py") or code.outlet.has_made(os.path.join(path, "__init__.py")):
            code.outlet.guess("Python code that runs other code")
        elif os.path.isfile(path + ".py") or os.path.isdir(path):
            code.outlet.runs_project()


def _is_standard(module: str) -> bool:
    """Whether the standard library has `module`."""
    import sys

    if sys.version_info >= (3, 10):
        return module in sys.stdlib_module_names
    path = os.path.join(os.path.dirname(os.__file__), module)
    return module in sys.builtin_module_names or os.path.isfile(path + ".py") or os.path.isdir(path)


def call(code, dotted: str, args: list, named: dict):
    """What calling library function `dotted` gives; its effects happen."""
    dotted = _SAME.get(dotted, dotted)
    a = Arguments(args, named)
    if dotted in writing.PATHS:
        for place, name in writing.PATHS[dotted]:
            if a.has(place, name):
                code.writes(a.get(place, name))
        return a.get(*writing.PATHS[dotted][0]) if dotted.startswith("shutil.") else Unknown(dotted)
    if dotted in writing.OPENERS:
        place, mode = writing.OPENERS[dotted]
        return writing.opened(code, a.get(0, "file", a.get(0, "filename", UNKNOWN)), a.get(place, "mode", mode))
    function = _function(dotted)
    if function is not None:
        return function(code, a)
    if dotted.startswith("os.path."):
        return _of_path(code, dotted[8:], args)
    if dotted.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
        return running.spawned(code, dotted[3:], args)
    code.let_go(args, named)
    return Unknown(dotted)


def _of_path(code, name: str, args: list):
    if name in ("exists", "isfile", "isdir", "lexists", "islink"):
        return writing.asked(code, name, text_of(args[0]) if args else UNKNOWN)
    return spread(lambda *texts: path_function(name, list(texts), code.folder, code.home()), *args)


def _function(dotted: str):
    for module in (writing, running, given):
        if dotted in module.CALLS:
            return module.CALLS[dotted]
    return None

"""A cheap start of a hook: ``os`` as far as checks need it, and the hook core from one file, the *image*.

Most of an import's cost is the search (folders are listed, and each module is a file to find, open and read) and the
import system's own steps: `import_by` does without them. The image holds the bytecode of all modules that the plugin's
hooks have loaded so far. Like Python's own bytecode it lies in ``__pycache__``, serves one version of Python, and notes
each source's time and size: a source that differs is imported as usual. ``integrations/image.py`` writes it.

A hook imports this file by itself, as ``lean``: the package around it comes from the image.
"""

import gc
import sys
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

    Found = tuple[str, CodeType, list[str]]  # a module's source, its code, and the folder of a package

Module = type(sys)


class Variables(dict):  # type: ignore[type-arg]  # for the stubs it would be another class in Python 3.9
    """``os.environ`` for readers. The first change loads the whole of ``os``, and is made there and here."""


def _changing(name: str) -> "Callable[..., Any]":
    """Return the method `name` of `Variables`."""

    def change(self: Variables, *words: object, **more: object) -> object:
        from os import walk  # noqa: F401  # of the whole module alone

        real = sys.modules["os"].environ
        result = getattr(real, name)(*words, **more)
        dict.clear(self)
        dict.update(self, real)
        return result

    return change


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Variables, _name, _changing(_name))


def _lean_os() -> "ModuleType":
    """Return the commonest names of ``os`` as a module. Any other name loads the whole of it, and is taken from there.

    Loading it costs a tenth of an interpreter's start.
    """
    import posix

    lean = Module("os")

    def whole(name: str) -> object:
        if name.startswith(("__", "O_")):  # marks of another kind of module, flags of another platform
            raise AttributeError(name)
        if sys.modules.get("os") is lean:
            del sys.modules["os"]
        import os

        lean.__dict__.update(os.__dict__)
        lean.__dict__.pop("__getattr__", None)
        return getattr(os, name)

    own = dict(lean.__dict__)  # its marks
    lean.__dict__.update(posix.__dict__)  # whole: to choose names would take longer than to run most modules
    lean.__dict__.update(own, name="posix", error=OSError, linesep="\n", SEEK_SET=0, __getattr__=whole)
    sys.modules["os"], sys.modules["stat"] = lean, __import__("_stat")
    try:
        import posixpath
    finally:
        del sys.modules["stat"]
    for name in ("curdir", "pardir", "sep", "extsep", "pathsep", "defpath", "altsep", "devnull"):
        setattr(lean, name, getattr(posixpath, name))
    sys.modules["os.path"] = posixpath
    coding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

    def fsencode(path: "str | bytes") -> bytes:
        path = posix.fspath(path)
        return path.encode(coding, errors) if isinstance(path, str) else path

    def fsdecode(path: "str | bytes") -> str:
        path = posix.fspath(path)
        return path.decode(coding, errors) if isinstance(path, bytes) else path

    given = [(key.decode(coding, errors), value.decode(coding, errors)) for key, value in posix.environ.items()]
    lean.__dict__.update(path=posixpath, environ=Variables(given), fsencode=fsencode, fsdecode=fsdecode)
    return lean


if "os" not in sys.modules and "posix" in sys.builtin_module_names and sys.implementation.name == "cpython":
    gc.set_threshold(50_000)  # a check ends before there is much garbage; looking for it costs up to 1 ms
    try:
        os: "Any" = _lean_os()
    except (ImportError, AttributeError):  # another release of Python
        sys.modules.pop("os", None)
        import os
else:
    import os
# ``from __future__`` loads a module for a name that is never used.
sys.modules.setdefault("__future__", Module("lean")).annotations = None  # type: ignore[attr-defined]

PACKAGE = "swarm_hook_core"
MACHINERY = sys.modules.get("_frozen_importlib_external")  # missing in another interpreter than CPython: no image there
FORMAT = "swarm hooks 1 " + getattr(MACHINERY, "MAGIC_NUMBER", b"").hex()  # of this version's bytecode
COMPILED = ("_json", "_sqlite3", "binascii", "fcntl")
LONGEST_INDEX = 1 << 15  # bytes
Spec = type(sys.__spec__)  # ``importlib.machinery.ModuleSpec``
Code = type(_lean_os.__code__)


def import_by(found: "Callable[[str], Found | None]") -> None:
    """Import each module from what `found` returns for its name; None: as usual.

    Python's own steps around a module, with locks for threads, take longer than to run most modules of ours. They are
    for any module while there are threads, and for all in a release of Python that has other steps.
    """
    modules, machinery = sys.modules, sys.modules["_frozen_importlib"]
    usual = getattr(machinery, "_find_and_load", None)
    if usual is None:
        return
    threads = modules["_thread"]._count

    def find_and_load(name: str, import_: "Callable[[str], object]") -> object:
        ours = None
        if not threads():
            ours = found(name)
        if ours is None:
            spec = compiled(name)
            return machinery._load(spec) if spec else usual(name, import_)
        file, code, folders = ours
        parent, _, last = name.rpartition(".")
        if parent and parent not in modules:
            import_(parent)
            if name in modules:  # by its parent
                return modules[name]
        module = modules[name] = Module(name)
        module.__file__, module.__package__ = file, parent
        module.__spec__ = made = Spec(name, None, origin=file)
        # Each import statement looks for it, and an attribute that is missing costs more.
        made._initializing = False  # type: ignore[attr-defined]
        if folders:
            module.__path__ = made.submodule_search_locations = folders
            module.__package__ = name
        try:
            exec(code, module.__dict__)
        except BaseException:
            modules.pop(name, None)
            raise
        if parent:
            setattr(modules[parent], last, module)
        return module

    machinery._find_and_load = find_and_load  # type: ignore[attr-defined]


class Image:
    """Imports the hook core, and a hook's own modules, from the image of a plugin.

    root        the plugin's folder
    keys        of the hook's own modules, by their names: the path of a source below `root`, without its ending
    index       a line for each module: key, place in the file, length, time (ns) and size of its source, ``p`` for a
                package
    has_missed  True if a module had to be imported without the image
    """

    def __init__(self, root: str):
        self.root = root
        self.keys = {"launch": "integrations/launch"}
        self.path = f"{root}/integrations/__pycache__/hook.{sys.implementation.cache_tag}.image"
        self.index, self.handle = "", -1
        self.has_missed = False
        if MACHINERY is not None:
            import_by(self.find)
        try:
            self.handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            if not _is_own(os.fstat(self.handle)):
                return
            head, mark, index = os.pread(self.handle, LONGEST_INDEX, 0).partition(b"\0")[0].decode().partition("\n")
            if head == FORMAT and mark:
                self.index = "\n" + index
        except (OSError, ValueError, AttributeError):  # missing or broken; Windows has no such call
            pass

    def find(self, name: str) -> "Found | None":
        """Return what runs a module in the image; None for any other, and for one with another source by now."""
        key = self.keys.get(name) or (name.startswith(PACKAGE) and name.replace(".", "/"))
        if not key:
            return None
        place = self.index.find(f"\n{key}\t")
        if place >= 0:
            try:
                return self._read(*self.index[place + 1 : self.index.index("\n", place + 1)].split("\t"))
            except (OSError, ValueError, EOFError, TypeError):
                pass  # the source has changed or gone, or the image is torn
        self.has_missed = True
        return None

    def _read(self, key: str, start: str, length: str, time: str, size: str, kind: str) -> "Found":
        folder = f"{self.root}/{key}"
        file = folder + ".py"
        if kind:
            file = folder + "/__init__.py"
        found = os.stat(file)
        code = loads(os.pread(self.handle, int(length), int(start)))
        if found.st_mtime_ns != int(time) or found.st_size != int(size) or type(code) is not Code:
            raise ValueError(f"{file} is not as it was")
        return file, code, [folder] * bool(kind)


def _is_own(found: "os.stat_result") -> bool:
    """Return True if nobody but this user, or root, can have written the file.

    The image is code. A second name may be a link that another user has made to a file of this one.
    """
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022 and found.st_nlink == 1


def compiled(name: str) -> "ModuleSpec | None":
    """Return the spec of one of Python's own compiled modules, without a search of all folders before its own."""
    if name not in COMPILED:
        return None
    machinery, imp = sys.modules["_frozen_importlib_external"], sys.modules["_imp"]
    for folder in sys.path:
        if folder.endswith("/lib-dynload"):
            path = f"{folder}/{name}{imp.extension_suffixes()[0]}"
            if os.path.isfile(path):
                loader = machinery.ExtensionFileLoader(name, path)
                found: ModuleSpec | None = machinery.spec_from_file_location(name, path, loader=loader)
                return found
    return None


image: "Image | None" = None


def use_image() -> Image:
    """Import from the image of the plugin around this file from now on; return it."""
    global image
    if image is None:
        image = Image(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return image

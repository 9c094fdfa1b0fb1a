"""Functions of Python's library that write files."""

import os

from swarm_hook_core.shell.model import UNKNOWN, absolute, is_known
from swarm_hook_core.shell.programs.python import disk
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    Archive,
    Choice,
    Database,
    Handle,
    Place,
    Unknown,
    alternatives,
    elements,
    path_of,
    spread,
    text_of,
    truth,
)

COMPUTED = "Python code that writes a computed path"

PATHS = {
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
    "nbformat.write": ((1, "fp"),),
    "joblib.dump": ((1, "filename"),),
}

OPENERS = {  # opener -> where its mode is, and the mode without one
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
    return Handle(path or UNKNOWN, ANY if not path else disk.read(code, path))


def asked(code, name: str, text: str):
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


def make_folder(code, value) -> None:
    for one in alternatives(value):
        path = path_of(one)
        full = None if path is None else absolute(code.folder, path)
        if path is not None and (full is None or not os.path.isdir(full)):
            code.writes(one)


def moved(code, source, target) -> None:
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
    # A source that is not there yet is made by the code itself, who knows with what in it.
    missing = False if os.path.isdir(full) else None
    return lambda path: os.path.lexists(os.path.join(full, os.path.relpath(path, to))) or missing


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
    moved(code, source, target)
    return target


def _tree_copied(code, a):
    source, target = a.get(0, "src", ANY), a.get(1, "dst", ANY)
    full = absolute(code.folder, path_of(source) if not isinstance(source, Choice) else UNKNOWN)
    code.writes_tree(target, None if full is None else _copy_of(code, full, target))
    return target


_ARCHIVES = {"zip": ".zip", "tar": ".tar", "gztar": ".tar.gz", "bztar": ".tar.bz2", "xztar": ".tar.xz"}


def _archive_made(code, a):
    base, kind = a.get(0, "base_name", ANY), a.get(1, "format", ANY)
    suffix = _ARCHIVES.get(text_of(kind))
    made = spread(lambda one: text_of(one) + (suffix or UNKNOWN), base)
    code.writes(made)
    return made


def unsure(_path: str):
    return None


def _unpacked(code, a):
    code.writes_tree(a.get(1, "extract_dir", "."), unsure)
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
    found = disk.files_in(files)
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


CALLS = {
    "os.open": _open_flags,
    "os.mkdir": lambda code, a: make_folder(code, a.get(0, "path", ANY)),
    "os.makedirs": lambda code, a: make_folder(code, a.get(0, "name", ANY)),
    "os.rename": lambda code, a: moved(code, a.get(0, "src", ANY), a.get(1, "dst", ANY)),
    "os.renames": lambda code, a: moved(code, a.get(0, "old", ANY), a.get(1, "new", ANY)),
    "os.replace": lambda code, a: moved(code, a.get(0, "src", ANY), a.get(1, "dst", ANY)),
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
}

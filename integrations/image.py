"""Writes the image of a plugin's hooks (``lean``). Loaded after a hook that had to import a module without it."""

import os
import sys

from lean import FORMAT, LONGEST_INDEX, PACKAGE, Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    Entry = tuple[bytes, int, int, str]  # bytecode, time (ns) and size of the source, `p` for a package

HEADER = 16  # bytes before the bytecode in a file of Python's
UNCHECKED = 1  # its flags where `swarm-mcp install` has compiled it: it goes by nothing


def renew(image: Image) -> None:
    """Add the modules of this process to the image. Leave it as it is where bytecode is not wanted or cannot be had."""
    if sys.dont_write_bytecode or sys.pycache_prefix:
        return
    try:
        new = _loaded(image)
        if new:
            _write(image.path, {**_kept(image), **new})
    except Exception:  # a folder that cannot be written, a full disk: the next hook imports its modules as usual
        pass


def _loaded(image: Image) -> "dict[str, Entry]":
    """Return the modules that this process has imported without the image, by their keys."""
    found = {}
    for name, module in list(sys.modules.items()):
        cached = getattr(module, "__cached__", None)
        key = image.keys.get(name) or (name.startswith(PACKAGE) and name.replace(".", "/"))
        if not cached or not key:
            continue
        try:
            with open(cached, "rb") as file:
                data = file.read()
            source = os.stat(str(module.__file__))
        except OSError:
            continue  # Python could not write it
        if _is_of(data, source):
            kind = "p" * hasattr(module, "__path__")
            found[key] = (data[HEADER:], source.st_mtime_ns, source.st_size, kind)
    return found


def _is_of(data: bytes, source: os.stat_result) -> bool:
    """Return True if Python takes the bytecode file `data` for this source's."""
    flags = int.from_bytes(data[4:8], "little")
    if flags:
        return flags == UNCHECKED
    noted = int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:HEADER], "little")
    return noted == (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)


def _kept(image: Image) -> "dict[str, Entry]":
    """Return the modules in the image."""
    found = {}
    for line in image.index.split("\n")[1:-1]:
        key, start, length, time, size, kind = line.split("\t")
        found[key] = (os.pread(image.handle, int(length), int(start)), int(time), int(size), kind)
    return found


def _write(path: str, entries: "dict[str, Entry]") -> None:
    lines, start = [], LONGEST_INDEX
    for key, (code, time, size, kind) in entries.items():
        lines.append(f"{key}\t{start}\t{len(code)}\t{time}\t{size}\t{kind}\n")
        start += len(code)
    index = f"{FORMAT}\n{''.join(lines)}".encode()
    if len(index) >= LONGEST_INDEX:
        return
    scratch = f"{path}.{os.getpid()}"
    try:
        # No group may write it, for any umask (``lean._is_own``).
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(handle, "wb") as file:
            file.write(index.ljust(LONGEST_INDEX, b"\0"))
            file.writelines(entry[0] for entry in entries.values())
        os.replace(scratch, path)
    finally:
        if os.path.exists(scratch):
            os.remove(scratch)

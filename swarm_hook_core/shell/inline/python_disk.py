"""Files that only the disk knows: what ``glob``, ``Path.rglob``, ``os.listdir`` and ``os.walk`` give to Python code.

A loop over them goes over one element with a mark that stands for any (`DiskFiles`), or in a replay over the one file
that it is about (`SomeFiles`).
"""

import os

from swarm_hook_core.shell.inline.python_values import ANY, DiskFiles, Path, SomeFiles, join, text_of, tidy, truth
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known


def asked(code, name: str, path: str):
    """An answer of the disk, to a replay only: what a command names is certain whatever is there now."""
    whole = absolute(code.effects.folder, path) if code.only else None
    return ANY if whole is None else getattr(os.path, name)(whole)


def glob_found(code, a):
    if a.get(99, "root_dir") is not None:
        return ANY
    deep = truth(a.get(99, "recursive", False)) is not False
    return globbed(code, text_of(a.get(0, "pathname", ANY)), "", False, deep)


def globbed(code, pattern: str, folder: str, as_paths: bool, recursive: bool = True):
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
    return _found(code, base, folder, fits, Path if as_paths else str)


def entries(code, folder: str, as_paths: bool, only_names: bool = False):
    """What lies right in `folder`."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    spelled = "" if only_names else folder
    return _found(code, base, spelled, lambda inside: len(inside) == 1, Path if as_paths else str)


def _found(code, base: str, folder: str, fits, kind):
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
    return DiskFiles(base, kind(mark))


def walked(code, folder: str):
    """``os.walk(folder)``: folder, names of folders, names of files."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    start = base.rstrip("/") + "/"
    if not code.only:
        mark = code.effects.call.walk.mark(Found(base, lambda path: path.startswith(start)))
        return DiskFiles(base, (UNKNOWN, [mark], [mark]))
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

"""Paths of Python code: what ``os.path`` and ``pathlib`` make of them, and which files of the disk they find.

A loop over files of the disk (``glob``, ``Path.rglob``, ``os.listdir``, ``os.walk``) goes over one element with a mark
that stands for any (`DiskFiles`), or in a replay over the one file that it is about (`SomeFiles`).
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.inline.python_values import ANY, DiskFiles, Path, SomeFiles, text_of, tidy, truth
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known

LONGEST_READ = 64 * 1024  # bytes of a file that a replay reads


def at_home(text: str, home: str) -> str:
    """``os.path.expanduser``, with `home` for the user's own folder."""
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return os.path.expanduser(text) if text.startswith("~") and is_known(text) else text


def path_attribute(path: Path, name: str):
    """The attribute `name` of a path, or None where it has no such one (a method)."""
    if name not in ("parent", "parents", "parts", "name", "stem", "suffix"):
        return None
    text = path.text
    if not is_known(text):
        return ANY
    folder, base = os.path.split(text)
    if name == "parts":
        return tuple(["/"] * text.startswith("/") + [part for part in text.split("/") if part])
    if name in ("parent", "parents"):
        above = [folder]
        while above[-1] not in ("", "/"):
            above.append(os.path.dirname(above[-1]))
        found = [Path(one or ".") for one in above]
        return found[0] if name == "parent" else found
    stem, ending = os.path.splitext(base)
    return {"name": base, "stem": stem, "suffix": ending}[name]


def path_method(path: Path, name: str, args: list, folder, home: str):
    """What method `name` gives that only works on the path itself; None for any other."""
    text = path.text
    if name == "joinpath":
        return Path(tidy(os.path.join(text, *map(text_of, args))))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("absolute", "resolve"):
        known = is_known(text) and (folder is not None or text.startswith("/"))
        return Path(os.path.normpath(os.path.join(folder or "/", text)) if known else UNKNOWN)
    if name == "expanduser":
        return Path(at_home(text, home))
    if name not in ("with_suffix", "with_name", "with_stem", "relative_to"):
        return None
    given = text_of(args[0]) if args else UNKNOWN
    if not is_known(text) or not is_known(given):
        return Path(UNKNOWN)
    if name == "relative_to":
        return Path(os.path.relpath(text, given) if text.startswith("/") == given.startswith("/") else UNKNOWN)
    if name == "with_suffix":
        given = path_attribute(path, "stem") + given
    elif name == "with_stem":
        given += path_attribute(path, "suffix")
    return Path(os.path.join(os.path.dirname(text), given))


def path_function(name: str, texts: list, folder, home: str):
    """What ``os.path.<name>`` gives for texts."""
    if name == "join" and texts:
        return os.path.join(*texts)
    if not texts or not all(map(is_known, texts)):
        return ANY
    if name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
        return getattr(os.path, name)(texts[0])
    if name in ("abspath", "realpath"):
        return ANY if folder is None else os.path.normpath(os.path.join(folder, texts[0]))
    if name == "expanduser":
        return at_home(texts[0], home)
    if name == "relpath" and folder is not None:
        return os.path.relpath(os.path.join(folder, texts[0]), os.path.join(folder, *texts[1:2]))
    return ANY


# Files of the disk


def text_read(code, path: str):
    """What the file at `path` holds, to a replay only, or `ANY`."""
    whole = absolute(code.effects.folder, path) if code.only else None
    try:
        if whole is None or not os.path.isfile(whole) or os.path.getsize(whole) > LONGEST_READ:
            return ANY
        with open(whole, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ANY


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
        folder = os.path.join(folder, parts[0])
        base = os.path.normpath(os.path.join(base, parts.pop(0)))
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
        path = os.path.join(folder, *inside) if folder else "/".join(inside)
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
        above = os.path.join(above, name)
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

"""Files that only the disk knows: results of ``glob``, ``Path.rglob``, ``os.listdir``, ``os.walk``, and loops over
them.

Such a loop is walked once with an element that stands for any of the files (`DiskFiles`). If it writes, each locked
file is tested later: the whole code is followed again with this very file in place of the others (`SomeFiles`), and
with its text, so that ``if "x" in text`` has its answer.
"""

from __future__ import annotations

import os
import time
from fnmatch import fnmatchcase
from typing import Any

from swarm_hook_core import EDIT
from swarm_hook_core.shell.inline.effects import SCRATCH, CodeEffects, Exit
from swarm_hook_core.shell.inline.python_values import ANY, Arguments, DiskFiles, Path, SomeFiles, text_of, tidy, truth
from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.inline.python import Code


LONGEST_READ = 64 * 1024  # bytes of a file that a replay reads
SECONDS, ALL_SECONDS = 0.005, 0.02  # for the replay of one file, and of all of them


def text_read(code: Code, path: str) -> Any:
    """Return the text of the file at `path` in a replay, else `ANY`."""
    whole = None
    if code.only:
        whole = absolute(code.effects.folder, path)
    try:
        if whole is None or not os.path.isfile(whole) or os.path.getsize(whole) > LONGEST_READ:
            return ANY
        with open(whole, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):  # gone, unreadable or no text
        return ANY


def asked(code: Code, name: str, path: str) -> Any:
    """Return an answer of the disk in a replay, else `ANY`: outside of a replay a named write is certain anyway."""
    whole = None
    if code.only:
        whole = absolute(code.effects.folder, path)
    if whole is None:
        return ANY
    return getattr(os.path, name)(whole)


def glob_found(code: Code, a: Arguments) -> Any:
    if a.get(99, "root_dir") is not None:
        return ANY
    deep = truth(a.get(99, "recursive", False)) is not False
    return globbed(code, text_of(a.get(0, "pathname", ANY)), "", False, deep)


def globbed(code: Code, pattern: str, folder: str, as_paths: bool, recursive: bool = True) -> Any:
    """Return the files that a glob `pattern` seen from `folder` finds."""
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


def entries(code: Code, folder: str, as_paths: bool, only_names: bool = False) -> Any:
    """Return the entries of `folder`."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    spelled = folder
    if only_names:
        spelled = ""
    return _found(code, base, spelled, lambda inside: len(inside) == 1, Path if as_paths else str)


def _found(code: Code, base: str, folder: str, fits: Any, kind: Any) -> Any:
    """Return the files under absolute `base`, spelled `folder`, whose inner parts pass `fits`; each is a `kind`."""

    def spelled(inside: list[Any]) -> Any:
        if folder:
            path = os.path.join(folder, *inside)
        else:
            path = "/".join(inside)
        if kind is Path:
            return Path(tidy(path))
        return path

    def candidates(path: str) -> list[Any]:
        start = base.rstrip("/") + "/"
        inside = []
        if path.startswith(start):
            inside = path[len(start) :].split("/")
        return [inside[:depth] for depth in range(1, len(inside) + 1) if fits(inside[:depth])]

    if code.only:
        return SomeFiles(map(spelled, candidates(code.only)))
    mark = code.effects.call.walk.mark(Found(base, lambda path: bool(candidates(path))))
    return DiskFiles(base, kind(mark))


def walked(code: Code, folder: str) -> Any:
    """``os.walk(folder)``: folder, names of folders, names of files."""
    base = absolute(code.effects.folder, folder)
    if base is None:
        return ANY
    start = base.rstrip("/") + "/"
    if not code.only:
        mark = code.effects.call.walk.mark(Found(base, lambda path: path.startswith(start)))
        return DiskFiles(base, (UNKNOWN, [mark], [mark]))
    found, above = SomeFiles(), folder
    inside = []
    if code.only.startswith(start):
        inside = code.only[len(start) :].split("/")
    for place, name in enumerate(inside):
        is_file = place == len(inside) - 1
        found.append((above, [] if is_file else [name], [name] if is_file else []))
        above = os.path.join(above, name)
    return found


def _fitting(parts: list[Any], recursive: bool, with_hidden: bool) -> Any:
    """Return a function of path parts: True if they match the pattern `parts`."""

    def fits(inside: list[Any], at: int = 0, place: int = 0) -> bool:
        if at == len(parts):
            return place == len(inside)
        shown = place < len(inside) and (with_hidden or parts[at][:1] == "." or inside[place][:1] != ".")
        if parts[at] == "**" and recursive:
            return fits(inside, at + 1, place) or (shown and fits(inside, at, place + 1))
        return shown and fnmatchcase(inside[place], parts[at]) and fits(inside, at + 1, place + 1)

    if len(parts) <= 12:
        return fits
    return lambda inside: False


# Loops over them


class DiskLoop:
    """A loop that is walked once for all of `files`, and its writes of them."""

    def __init__(self, files: DiskFiles, folder: str | None) -> None:
        element = files.element[1][0] if isinstance(files.element, tuple) else files.element  # a tuple: `os.walk`
        self.mark = text_of(element)
        self.root = files.root
        self.folder = folder
        self.writes_them = False
        self.writes_others = False
        self.how = EDIT

    def meet(self, path: str, how: str) -> None:
        """A path that is not known is written; `how`: see `change`."""
        if how != EDIT:
            self.how = how
        before = None
        if path.endswith(self.mark):
            before = path[: -len(self.mark)]
        if before in ("", UNKNOWN + "/") or (before and absolute(self.folder, before) == self.root):
            self.writes_them = True
        else:
            self.writes_others = True


class ReplayEffects(CodeEffects):
    """The effects of the code on one file; `written`: absolute path -> True, or None if in doubt."""

    def __init__(self, effects: CodeEffects) -> None:
        super().__init__(effects.call, effects.language)
        self.written: dict[str, Any] = {}
        self.is_unclear = False

    def write(self, path: str, how: str = EDIT) -> None:
        whole = absolute(self.folder, path)
        if not path or path.startswith(SCRATCH):
            return
        if whole is None:
            self.is_unclear = True
        elif self.written.get(whole) is not True:
            self.written[whole] = not self.doubt or None

    def tree(self, path: str, admits: Any = None, how: str = EDIT) -> None:
        self.is_unclear = True

    def guess(self, why: str) -> None:
        self.is_unclear = True

    def run(self, words: list[Any], stdin: str | None = None, folder: str | None = None) -> None:
        pass

    def script(self, text: str, stdin: str | None = None, folder: str | None = None) -> None:
        pass

    def runs_project(self) -> None:
        pass


class Replays:
    """Replays of one piece of code. `again(effects, path, seconds)` follows it once more for the file `path` alone."""

    def __init__(self, again: Any, effects: CodeEffects) -> None:
        self.again = again
        self.effects = effects
        self.folder = effects.folder
        self.seconds = ALL_SECONDS

    def admits(self, path: str) -> bool | None:
        """Return True if the code writes the file at absolute `path`, None if unknown (see ``model.Tree``)."""
        effects = ReplayEffects(self.effects)
        effects.folder = self.folder
        if self.seconds <= 0:
            return None
        started = time.thread_time()
        self.again(effects, path, SECONDS)
        self.seconds -= time.thread_time() - started
        return effects.written.get(path, None if effects.is_unclear else False)


def gone_through(code: Code, files: DiskFiles, act: Any) -> Any:
    """Do `act`, one round for all of `files` at once, and report its writes of them. Return the result of `act`."""
    effects, loop = code.effects, DiskLoop(files, code.effects.folder)
    before, doubt, result = dict(code.names.held), effects.doubt, ANY
    effects.loops.append(loop)
    try:
        result = act()
    except Exit:  # the code ends inside the loop; the effects so far count
        pass
    finally:
        effects.loops.pop()
        effects.doubt = doubt
        code.names.held = code.merged([before, code.names.held])
    if effects.loops:  # the outer loop's replays go through this one, too
        effects.loops[-1].writes_them |= loop.writes_them
        effects.loops[-1].writes_others |= loop.writes_others
        if loop.how != EDIT:
            effects.loops[-1].how = loop.how
    elif loop.writes_them or loop.writes_others:
        if code.replays is not None:
            effects.tree(files.root, code.replays.admits, loop.how)
        if loop.writes_others:  # files with names made from the names of `files`
            effects.guess_path()
    return result

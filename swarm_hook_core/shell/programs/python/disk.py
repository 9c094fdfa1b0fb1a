"""Loops of Python code over files of the disk: ``glob``, ``Path.rglob``, ``os.listdir``, ``os.walk``.

What such a loop writes is asked of one locked file at a time: the loop's body is followed again with that very
file (`Replay`), reading what it reads, so that ``if "x" in text`` has its answer.
"""

import os
import time

from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known
from swarm_hook_core.shell.programs.python.operations import tidy
from swarm_hook_core.shell.programs.python.scope import Exit, Scope, TooLong
from swarm_hook_core.shell.programs.python.values import ANY, Place, truth

REPLAY_SECONDS = 0.005
REPLAYS_SECONDS = 0.02  # for all replays of one loop
ENUMERATED = 64  # files that a loop is followed for where what it writes is only derived from them
READ = 64 * 1024  # bytes of a file that a replay reads


class Files:
    """What ``glob`` and its like give: the files at and under absolute `root` that `candidates` makes elements of.

    `candidates(path)`: elements of the loop (values) that concern the file at absolute `path`.
    `listed()`: some paths that are there now, at most `ENUMERATED` + 1. `shape(mark)`: what an element looks like
    where `mark` stands for the file. `folder`: the folder as spelled in the code.
    """

    __slots__ = ("root", "candidates", "listed", "folder", "shape")

    def __init__(self, root, candidates, listed, folder, shape):
        self.root = root
        self.candidates = candidates
        self.listed = listed
        self.folder = folder
        self.shape = shape

    def word(self, code) -> str:
        """The mark that stands for all of them in a command."""
        return code.outlet.mark(Found(self.root, lambda path: bool(self.candidates(path))))

    def some(self, code):
        """One of them, nobody knows which."""
        return Place(code.outlet.mark(Found(self.root, lambda path: None if self.candidates(path) else False)))


class Replay:
    """An outlet for a run about the file at absolute `path`.

    `written`: absolute path -> whether that is sure (True) or in doubt (None).
    """

    def __init__(self, outer, path):
        self.mark = outer.mark
        self.variable = outer.variable
        self.has_made = outer.has_made
        self.runs_project = outer.runs_project
        self.path = path
        self.written: dict = {}
        self.unclear = False

    def write(self, path: str, code) -> None:
        full = absolute(code.folder, path)
        if full is None:
            self.unclear = True
        elif self.written.get(full) is not True:
            self.written[full] = None if code.is_doubtful() else True

    def tree(self, path: str, code, admits=None) -> None:
        self.unclear = True

    def guess(self, why: str) -> None:
        self.unclear = True

    def run(self, words, stdin, folder, code):
        return ANY

    def script(self, text, folder, code, stdin=None):
        return ANY


class Scout:
    """A first look into a loop: whether its body writes files that depend on the loop variable."""

    __slots__ = ("spellings", "is_direct", "is_derived")

    def __init__(self, mark, folder):
        self.spellings = (mark, tidy(os.path.join(folder, mark)), os.path.join(UNKNOWN, mark))
        self.is_direct = False
        self.is_derived = False

    def met(self, path: str) -> None:
        if tidy(path) in self.spellings:
            self.is_direct = True
        else:
            self.is_derived = True


def files_in(value):
    """`value` as files of the disk, or None."""
    return value if isinstance(value, Files) else None


def globbed(code, pattern: str, folder: str, places: bool, recursive: bool = True):
    """Files for a glob `pattern` seen from `folder` (texts); `places`: elements are paths of ``pathlib``."""
    base = absolute(code.folder, folder)
    if base is None or not is_known(pattern):
        return ANY
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/"):
        base, folder = "/", "/"
    while parts and not any(letter in parts[0] for letter in "*?["):
        folder = os.path.join(folder, parts[0])
        base = os.path.normpath(os.path.join(base, parts.pop(0)))
    if not parts:
        return [Place(tidy(folder)) if places else folder]
    fits = _fitting(parts, recursive, hidden=places)

    def candidates(path: str) -> list:
        if not _is_under(base, path):
            return []
        inside = [] if path == base else os.path.relpath(path, base).split("/")
        return [_element(folder, inside[:depth], places) for depth in range(1, len(inside) + 1) if fits(inside[:depth])]

    deep = recursive and "**" in parts
    return Files(base, candidates, lambda: _listed(base, deep), folder, Place if places else _itself)


def listed(code, folder: str, places: bool, names: bool = True):
    """Files for what lies right in `folder`: paths of ``pathlib``, or names."""
    base = absolute(code.folder, folder)
    if base is None:
        return ANY

    def candidates(path: str) -> list:
        if path == base or not _is_under(base, path):
            return []
        first = os.path.relpath(path, base).split("/")[0]
        return [Place(tidy(os.path.join(folder, first))) if places else first if names else os.path.join(folder, first)]

    return Files(base, candidates, lambda: _listed(base, False), folder, Place if places else _itself)


def walked(code, folder: str):
    """Files for ``os.walk(folder)``."""
    base = absolute(code.folder, folder)
    if base is None:
        return ANY

    def candidates(path: str) -> list:
        if path == base or not _is_under(base, path):
            return []
        inside = os.path.relpath(path, base).split("/")
        found, above = [], folder
        for place, name in enumerate(inside):
            last = place == len(inside) - 1
            found.append((above, [] if last else [name], [name] if last else []))
            above = os.path.join(above, name)
        return found

    return Files(base, candidates, lambda: _listed(base, True), folder, lambda mark: (UNKNOWN, [mark], [mark]))


def derived(files, change, shape):
    """Files whose elements are those of `change(element)`, a list; `shape(sample)`: the same without a choice."""

    def candidates(path: str) -> list:
        return [one for element in files.candidates(path) for one in change(element)]

    return Files(files.root, candidates, files.listed, files.folder, lambda mark: shape(files.shape(mark)))


def made_of(code, files, node):
    """What a comprehension over `files` gives."""
    generator, scope = node.generators[0], code.scope

    def change(element) -> list:
        inner = _replaying(code, scope)
        inner.scope = Scope({}, scope)
        inner.assign(generator.target, element)
        answers = [truth(inner.value(test)) for test in generator.ifs]
        return [] if False in answers else [inner.value(node.elt)]

    def shape(sample):
        outside, code.scope = code.scope, Scope({}, scope)
        try:
            code.assign(generator.target, sample)
            return code.value(node.elt)
        finally:
            code.scope = outside

    _follow(code, files, generator.target, None, node)
    return derived(files, change, shape)


def go_through(code, files, target, body):
    """A ``for`` over `files`: nothing leaves it early but what its body does in every case."""
    _follow(code, files, target, body, None)
    return None


def _follow(code, files, target, body, node) -> None:
    """Find what a loop's body (or a comprehension `node`) writes for each of `files`."""
    if code.reads:  # inside a replay: only what concerns its file
        for element in files.candidates(code.outlet.path):
            _lap(code, target, element, body, node)
        return
    mark = files.word(code)
    scout = Scout(mark, files.folder)
    if body is not None:
        code.forget(body)
    names, above, outer = dict(code.scope.names), code.scope.above, code.scope.outer
    code.scouts.append(scout)
    try:
        _lap(code, target, files.shape(mark), body, node)
    except Exit:
        pass
    finally:
        code.scouts.pop()
    if not scout.is_direct and not scout.is_derived:
        return
    doubtful = code.is_doubtful() and code.outlet.minds_doubt
    left = [REPLAYS_SECONDS]

    def replayed(path: str) -> Replay:
        outlet = Replay(code.outlet, path)
        if left[0] <= 0:
            outlet.unclear = True
            return outlet
        started = time.thread_time()
        inner = _replaying(code, Scope(dict(names), above, outer), outlet)
        for one in files.candidates(path):
            try:
                _lap(inner, target, one, body, node)
            except Exit:
                break
            except (TooLong, RecursionError):
                outlet.unclear = True
        left[0] -= time.thread_time() - started
        return outlet

    def admits(path: str):
        outlet = replayed(path)
        if path in outlet.written:
            return None if doubtful else outlet.written[path]
        return None if outlet.unclear else False

    code.outlet.tree(files.root, code, admits)
    if scout.is_derived:
        found = files.listed()
        unclear = len(found) > ENUMERATED
        for path in found[:ENUMERATED]:
            code.tick()
            outlet = replayed(path)
            unclear = unclear or outlet.unclear
            for other, sure in outlet.written.items():
                if other != path and sure and not doubtful:
                    code.outlet.write(other, code)
                elif other != path:
                    unclear = True
        if unclear or not found:
            code.outlet.guess("Python code that writes a computed path")


def _lap(code, target, element, body, node) -> None:
    doubt = code.doubt
    try:
        if body is not None:
            code.assign(target, element)
            code.block(body)
            return
        outside, code.scope = code.scope, Scope({}, code.scope)
        try:
            code.assign(target, element)
            if all([truth(code.value(test)) is not False for test in node.generators[0].ifs]):
                code.value(node.elt)
        finally:
            code.scope = outside
    finally:
        code.doubt = doubt


def _replaying(code, scope, outlet=None):
    """A run that looks at the disk, with the names of `scope`."""
    from swarm_hook_core.shell.programs.python.code import Code

    outlet = outlet or Replay(code.outlet, "")
    inner = Code(outlet, code.folder, code.argv, code.file, code.stdin, True, REPLAY_SECONDS)
    inner.scope = scope
    inner.stars = code.stars
    inner.marks = code.marks
    inner.depth = code.depth
    return inner


def _element(folder: str, inside: list, places: bool):
    text = os.path.join(folder, *inside) if folder not in ("", ".") or not places else "/".join(inside)
    if not places:
        return "/".join(inside) if folder == "" else text
    return Place(tidy(text))


def _fitting(parts: list, recursive: bool, hidden: bool):
    """A function of path parts: whether they fit the pattern `parts`."""
    from fnmatch import fnmatchcase

    def fits(inside: list, at: int = 0, place: int = 0) -> bool:
        if at == len(parts):
            return place == len(inside)
        if parts[at] == "**" and recursive:
            if fits(inside, at + 1, place):
                return True
            more = place < len(inside) and (hidden or not inside[place].startswith("."))
            return more and fits(inside, at, place + 1)
        if place == len(inside):
            return False
        name = inside[place]
        shown = hidden or parts[at].startswith(".") or not name.startswith(".")
        return shown and fnmatchcase(name, parts[at]) and fits(inside, at + 1, place + 1)

    if len(parts) > 12:
        return lambda inside: False
    return fits


def _listed(base: str, deep: bool) -> list:
    """Files under `base` that are there now; folders that hide (``.git``) and caches are passed over."""
    found: list = []
    for above, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += [os.path.join(above, name) for name in sorted(names)]
        if len(found) > ENUMERATED:
            break
        if not deep and above.count("/") - base.count("/") > 2:
            folders[:] = []
    return found[: ENUMERATED + 1]


def read(code, path: str):
    """The text of the file at `path`, where `code` may look at it and it is small, or `ANY`."""
    full = absolute(code.folder, path) if code.reads and is_known(path) else None
    try:
        if full is None or not os.path.isfile(full) or os.path.getsize(full) > READ:
            return ANY
        with open(full, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ANY


def _is_under(base: str, path: str) -> bool:
    return path == base or path.startswith(base.rstrip("/") + "/")


def _itself(mark):
    return mark

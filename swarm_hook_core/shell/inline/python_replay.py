"""Loops of Python code over files of the disk (``glob``, ``Path.rglob``, ``os.walk``).

Such a loop is gone through once with an element that stands for any of the files. If that writes, each locked file is
asked about later: the whole code is followed again with this very file in place of the others, reading what it reads,
so that ``if "x" in text`` has its answer.
"""

from __future__ import annotations

import time

from swarm_hook_core.shell.inline.effects import SCRATCH, CodeEffects
from swarm_hook_core.shell.inline.python_expressions import Exit
from swarm_hook_core.shell.inline.python_values import ANY, DiskFiles, text_of
from swarm_hook_core.shell.model import UNKNOWN, absolute

SECONDS, ALL_SECONDS = 0.005, 0.02  # for one file, and for all of them


class DiskLoop:
    """A loop over `files` that is gone through for all of them at once: what it writes of them."""

    def __init__(self, files: DiskFiles, folder):
        element = files.element[1][0] if isinstance(files.element, tuple) else files.element  # a tuple: `os.walk`
        self.mark = text_of(element)
        self.root = files.root
        self.folder = folder
        self.writes_them = False
        self.writes_others = False

    def meet(self, path: str) -> None:
        """A path that is not known is written."""
        before = path[: -len(self.mark)] if path.endswith(self.mark) else None
        if before in ("", UNKNOWN + "/") or (before and absolute(self.folder, before) == self.root):
            self.writes_them = True
        else:
            self.writes_others = True


class ReplayEffects(CodeEffects):
    """What the code does with one file; `written`: absolute path -> True, or None where in doubt."""

    def __init__(self, effects: CodeEffects):
        super().__init__(effects.call, effects.language)
        self.written: dict = {}
        self.is_unclear = False

    def write(self, path: str) -> None:
        whole = absolute(self.folder, path)
        if not path or path.startswith(SCRATCH):
            return
        if whole is None:
            self.is_unclear = True
        elif self.written.get(whole) is not True:
            self.written[whole] = None if self.doubt else True

    def tree(self, path: str, admits=None) -> None:
        self.is_unclear = True

    def guess(self, why: str) -> None:
        self.is_unclear = True

    def run(self, words: list, stdin=None, folder=None):
        return None

    def script(self, text: str, stdin=None, folder=None):
        return None

    def runs_project(self) -> None:
        pass


class Replays:
    """Replays of one piece of code. `again(effects, path, seconds)` follows it once more for the file `path` alone."""

    def __init__(self, again, effects: CodeEffects):
        self.again = again
        self.effects = effects
        self.folder = effects.folder
        self.seconds = ALL_SECONDS

    def admits(self, path: str):
        """Whether the code writes the file at absolute `path` (see ``model.Tree``)."""
        effects = ReplayEffects(self.effects)
        effects.folder = self.folder
        if self.seconds <= 0:
            return None
        started = time.thread_time()
        self.again(effects, path, SECONDS)
        self.seconds -= time.thread_time() - started
        return effects.written.get(path, None if effects.is_unclear else False)


def gone_through(code, files: DiskFiles, act):
    """Do `act`, a lap over all of `files` at once, and see to what it writes of them; what `act` gives."""
    effects, loop = code.effects, DiskLoop(files, code.effects.folder)
    before, doubt, result = dict(code.names.held), effects.doubt, ANY
    effects.loops.append(loop)
    try:
        result = act()
    except Exit:
        pass
    finally:
        effects.loops.pop()
        effects.doubt = doubt
        code.names.held = code.merged([before, code.names.held])
    if effects.loops:  # the outer loop's replays go through this one, too
        effects.loops[-1].writes_them |= loop.writes_them
        effects.loops[-1].writes_others |= loop.writes_others
    elif loop.writes_them or loop.writes_others:
        effects.tree(files.root, code.replays.admits)
        if loop.writes_others:  # files whose names are made of theirs
            effects.guess_path()
    return result

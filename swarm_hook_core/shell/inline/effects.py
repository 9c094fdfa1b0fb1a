"""Reports the effects of inline code to the shell reader's call that runs the code."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, Stream, absolute, is_known

SCRATCH = "/tmp/swarm-nowhere"  # stands for the code's own temporary files, which are not reported
OTHER_CODE = "code that runs other code"
TOO_LONG = "code that is too long to follow"


class TooLong(Exception):
    """There is more code than time, or than steps."""


class CodeEffects:
    """The effects of one piece of code. Paths are texts as the code spells them, with marks (see ``model``).

    call       the call that runs the code
    language   its name for people: ``Python``
    folder     the folder of relative paths, absolute, or None if unknown; `change_folder` moves it
    doubt      number of unknown conditions between the start of the code and here
    is_script  True for a script file: its possible effects are not reported, because it is watched anyhow
    """

    def __init__(self, call: Call, language: str, is_script: bool = False) -> None:
        self.call = call
        self.language = language
        self.folder = call.folder
        self.doubt = 0
        self.is_script = is_script
        self.reasons: set[str] = set()  # of the guesses made so far
        self.read: set[str] = set()  # the files that the code has read so far

    def _is_of_interest(self, path: str) -> bool:
        return bool(path) and not (self.is_script and self.doubt > 0) and not path.startswith(SCRATCH)

    def guess(self, why: str) -> None:
        """Report, once for each `why`, that the code may write unknown files."""
        if why not in self.reasons:
            self.reasons.add(why)
            self.call.guess(why)

    def guess_path(self) -> None:
        """The code writes a path that is not known."""
        self.guess(f"{self.language} code that writes a computed path")

    def guess_code(self, why: str = OTHER_CODE) -> None:
        self.guess(f"{self.language} {why}")

    def change_folder(self, path: str) -> None:
        """The code moves to the folder `path`."""
        self.folder = absolute(self.folder, path)

    def reads(self, path: str) -> None:
        """Note that the code reads the file `path`: if it replaces the file later, the new text is made from the
        old.
        """
        self.read.add(absolute(self.folder, path) or path)

    def write(self, path: str, how: str = EDIT) -> None:
        """The file `path` is written, made or removed; `how`: see `change`."""
        if how == REPLACE:
            how = self._made_of_it(path)
        if self._is_of_interest(path):
            if not self._is_resolved(path):
                self.guess_path()
            elif self.doubt and not is_known(path):  # of the files that are found, those that it writes are unknown
                self.call.walk.in_doubt(lambda _walk: self._here().write(path, how))
            else:
                self._here().write(path, how)

    def replace(self, path: str) -> None:
        """Report that the content of file `path` is replaced."""
        self.write(path, REPLACE)

    def tree(self, path: str, admits: Callable[[str], bool | None] | None = None, how: str = EDIT) -> None:
        """Report a write of all at and under `path`, or of the files that `admits` (``model.Tree``); `how`: see
        `change`.
        """
        if self._is_of_interest(path):
            if self._is_resolved(path):
                self._here().tree(path, admits, how)
            else:
                self.guess_path()

    def remove(self, path: str) -> None:
        """`path` is removed, with all that is in it."""
        self.change_all(path, REMOVE)

    def change_all(self, path: str, how: str = EDIT) -> None:
        """`path` is written, with all that is in it."""
        if self.is_folder(path):
            self.tree(path, how=how)
        else:
            self.write(path, how)

    def _made_of_it(self, path: str) -> str:
        if (absolute(self.folder, path) or path) in self.read:
            return EDIT
        return REPLACE

    def make_folder(self, path: str) -> None:
        """Report that `path` becomes a folder, unless it is one already."""
        whole = absolute(self.folder, path)
        if whole is None or not os.path.isdir(whole):
            self.write(path)

    def move(self, source: str, target: str) -> None:
        """`source` becomes `target`: a folder with all that is in it."""
        if self.is_folder(source):
            self.tree(source, how=REMOVE)
            self.copy_tree(source, target)
        else:
            self.write(source, REMOVE)
            self.write(target, REPLACE)

    def copy_tree(self, source: str, target: str) -> None:
        """A copy of the folder `source` is written over `target`."""
        whole, to = absolute(self.folder, source), absolute(self.folder, target)
        if whole is None or to is None:
            self.tree(target, how=REPLACE)
            return
        # A missing source is made by the code itself, with unknown content.
        missing = None
        if os.path.isdir(whole):
            missing = False

        def arrives(path: str) -> bool | None:
            return os.path.lexists(os.path.join(whole, os.path.relpath(path, to))) or missing

        self.tree(target, arrives, REPLACE)

    def landing(self, source: str, target: str) -> str:
        """Return the path of `source` after it was put at `target`; `target` may be a folder."""
        whole = absolute(self.folder, target)
        if whole is None or not os.path.isdir(whole):
            return target
        return os.path.join(target, os.path.basename(source.rstrip("/")) if is_known(source) else UNKNOWN)

    def run(self, words: list[Any], stdin: str | None = None, folder: str | None = None) -> None:
        """Run a command. `stdin`: the text it reads."""
        self._unseen(lambda call: call.run(words, _stream(stdin)), folder)

    def script(self, text: str, stdin: str | None = None, folder: str | None = None) -> None:
        """Run shell text; otherwise as `run`."""
        self._unseen(lambda call: call.script(text, (), _stream(stdin)), folder)

    def _unseen(self, work: Callable[..., Any], folder: str | None) -> None:
        """Do ``work(call)`` with its output hidden: the output goes to the code."""
        scope = self.call.walk.scope
        shown = scope.shown
        scope.shown = False
        try:
            if not self.is_script or not self.doubt:
                work(self._here(folder))
        finally:
            scope.shown = shown

    def runs_project(self) -> None:
        """Code of the project is run."""
        self.call.runs_project()

    def is_folder(self, path: str) -> bool:
        """Return True if a folder is at `path` now."""
        whole = absolute(self.folder, path)
        return whole is not None and os.path.isdir(whole) and not os.path.islink(whole)

    def _is_resolved(self, path: str) -> bool:
        """Return True if the meaning of `path` is known: one file, or files that the disk will tell."""
        return absolute(self.folder, path) is not None or self._here().found(path) is not None

    def _here(self, folder: str | None = None) -> Call:
        """The call, in `folder`, or in the one that the code has moved to."""
        if folder is None:
            where = self.folder
        else:
            where = absolute(self.folder, folder)
        call = self.call
        if where == call.folder:
            return call
        return Call(call.walk, call.name, call.words, where, call.stdin)


def _stream(text: str | None) -> Stream | None:
    if text is None:
        return None
    if not is_known(text):
        text = None
    return Stream(text)

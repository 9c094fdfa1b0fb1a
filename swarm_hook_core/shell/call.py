"""One simple command, as the programs see it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from swarm_hook_core import EDIT
from swarm_hook_core.shell.model import LONGEST_BY, Guess, Read, Stream, Tree, absolute, cited, is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits, Found, Span
    from swarm_hook_core.shell.walk import Walk


MANY = 100  # effects; beyond that many the clock is read for each


class Call:
    """A program with its arguments, and methods to report its effects.

    name     base name of the program: ``sed``
    words    its arguments, after quoting and expansion; an unknown part is `UNKNOWN`, a word for many files on the
             disk is the mark of a `Found` (`found`)
    folder   the folder it runs in, absolute; None if unknown
    stdin    the Stream that is piped or redirected into it, or None
    output   set by the program: the Stream that it prints, if known
    walk     the walk it was met on, for programs that run other commands
    """

    __slots__ = ("name", "words", "folder", "stdin", "output", "walk", "_by")

    def __init__(
        self, walk: Walk, name: str, words: list[str], folder: str | None, stdin: Stream | None = None
    ) -> None:
        self.walk = walk
        self.name = name
        self.words = words
        self.folder = folder
        self.stdin = stdin
        self.output: Stream | None = None
        self._by = ""

    @property
    def by(self) -> str:
        """The command, for people: one line, of at most `LONGEST_BY` characters."""
        if not self._by:  # it stands with each of the files that it writes
            words, length = [self.name], 0
            for word in self.words:
                words.append(self.walk.shown(word[: 4 * LONGEST_BY]))
                length += len(word)
                if length > 4 * LONGEST_BY:
                    break
            self._by = cited(" ".join(words))
        return self._by

    def write(self, path: str, how: str = EDIT, keeps_text: bool = False) -> None:
        """Report that it writes, makes or removes the file `path` (a word). ``/dev/...`` and an empty path are ignored.

        `how`: the fate of the text that is there, see `change`. `keeps_text`: the text stays as it is.
        """
        self._stay_in_time()
        self.walk.files.write(path, self.folder, self.by, how, keeps_text)

    def tree(self, path: str, admits: Admits | None = None, how: str = EDIT) -> None:
        """Report that it writes or removes at and under the folder `path` (a word): all, or as `admits` says
        (``model.Tree``).

        `how`: as in `write`, for each of the files.
        """
        if not path:
            return
        self._stay_in_time()
        root = absolute(self.folder, path)
        if root is not None:
            self.walk.effects.add(Tree(root, self.by, admits, how))
            return
        found = self.found(path)
        if found is None:
            self.guess("a computed path")
            return
        for one in found:  # a folder that was found goes with all that is in it
            self.walk.effects.add(Tree(one.root, self.by, _with_inside(one), how))

    def _stay_in_time(self) -> None:
        # Only of a command that names very many files: loading a family takes its time as well.
        if len(self.walk.effects.writes) + len(self.walk.effects.trees) > MANY:
            self.walk.spend(0)

    def guess(self, why: str, folder: str | None = None) -> None:
        """Report that it may write unnamed files: `why` in a few words, under `folder` (default: its own folder)."""
        if folder is None:
            where = self.folder
        else:
            where = absolute(self.folder, folder)
        self.walk.effects.add(Guess(why, where or "", self.by))

    def runs_project(self) -> None:
        """It runs the project's own code: tests, a build; a guess where the command says that this updates files."""
        from swarm_hook_core.shell.updaters import reason

        self.walk.effects.runs = True
        why = reason(self)
        if why:
            self.guess(why)

    def found(self, word: str) -> list[Found] | None:
        """Return the list of Founds that `word` as a whole stands for, or None."""
        return self.walk.found(word)

    def says(self, text: str | None = None, found: Found | list[Found] | None = None) -> None:
        """Set the Stream that it prints."""
        self.output = Stream(text, found)

    def shows(self, words: list[str], spans: Sequence[Span] = (), since: str = "") -> None:
        """Report that it prints the content of the files `words`; with no words, of its standard input.

        `spans`, `since`: the part it prints, as in ``model.Read``. If several files are cut together, the missing lines
        are unknown, so nothing is reported.
        """
        walk = self.walk
        if not walk.scope.shown or walk.doubts or (walk.scope.spans and (len(words) > 1 or since)):
            return
        if not words and self.stdin is not None and self.stdin.file:
            words = [self.stdin.file]
        for word in words:
            if word and word != "-" and is_known(word) and (self.folder or word[0] == "/"):
                walk.effects.add(Read(self.folder or "/", word, (*walk.scope.spans, *spans), since))

    def run(self, words: list[str], stdin: Stream | None = None, folder: str | None = None) -> None:
        """It runs the command `words` (name first), in `folder` (a word; default: where itself runs)."""
        where = self.folder
        if folder is not None:
            where = absolute(self.folder, folder)
        self.output = self.walk.run(words, stdin, where)

    def script(self, text: str, words: Sequence[str] = (), stdin: Stream | None = None) -> None:
        """It runs shell text with positional parameters `words` (``$0`` first)."""
        if is_known(text):
            self.output = self.walk.nested(text, self.folder, list(words), stdin)
        else:
            self.guess("a computed command")


def _with_inside(found: Found) -> Admits:
    """Return a predicate: a file was found, or lies in a folder that was found."""

    def admits(path: str) -> bool | None:
        answer = found.admits(path)
        while answer is not True and len(path) > len(found.root):
            path = os.path.dirname(path)
            above = found.admits(path)
            if above is not False:
                answer = above
        return answer

    return admits

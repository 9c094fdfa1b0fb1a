"""The parts of a commit: the changes of one author in each uncommitted file, and the changes of all others.

A place that the author changed alone goes into the commit. A place of others is left out. A place where the author may
have changed something together with others is an overlap: a commit of it might have the text of others.
"""

from __future__ import annotations

import os

from swarm_hook_core.traces import place_of, state_of
from swarm_hook_core.traces.versions.lines import Fold, Line, NoLines
from swarm_hook_core.traces.versions.steps import History
from swarm_hook_core.traces.versions.stored import journals_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm_hook_core.traces.versions.lines import Change
    from swarm_hook_core.traces.versions.steps import Author
    from swarm_mcp.changes.commit.git import Git

    IsOwn = Callable[[Author], bool]

GITLINK = "160000"


class Place:
    """A place in a file with the authors of the change there. `first`, `last`: numbers of its present lines.

    Both are 0 for a file that is taken as a whole. `last` is less than `first` where lines were only removed.
    """

    __slots__ = ("path", "first", "last", "authors", "why")

    def __init__(self, path: str, first: int, last: int, authors: Sequence[Author], why: str = ""):
        self.path = path
        self.first = first
        self.last = last
        self.authors = list(authors)
        self.why = why

    @property
    def words(self) -> str:
        """The place in words: ``a.txt lines 3 to 5``."""
        if self.why:
            return f"{self.path} ({self.why})"
        if self.last < self.first:
            return f"{self.path} after line {self.last}"
        if self.last == self.first:
            return f"{self.path} line {self.first}"
        return f"{self.path} lines {self.first} to {self.last}"


class Part:
    """The author's part of one file, by its path from the top.

    lines     number of added and of removed lines
    content   the content to commit; None: the file as it is in the work tree, or its removal
    state     of the file when it was read (``state_of``), to notice a later change
    """

    __slots__ = ("path", "added", "removed", "content", "state")

    def __init__(self, path: str, added: int, removed: int, content: bytes | None, state: str):
        self.path = path
        self.added = added
        self.removed = removed
        self.content = content
        self.state = state


class Parts:
    """The parts of all uncommitted files of one work tree, by author.

    own        Parts to commit
    left_out   Places of others
    overlaps   Places that may be the author's and others'
    """

    def __init__(self, git: Git, head: str, is_own: IsOwn):
        self._git = git
        self._head = head
        self._is_own = is_own
        self.own: list[Part] = []
        self.left_out: list[Place] = []
        self.overlaps: list[Place] = []

    def add(self, path: str, is_named: bool) -> None:
        """Sort the changes of the file at `path`, from the top. `is_named`: the author has asked for this very file."""
        absolute = os.path.join(self._git.top, path)
        if os.path.isdir(absolute) and not os.path.islink(absolute):
            self._add_gitlink(path, absolute, is_named)
            return
        state = state_of(absolute)
        try:
            fold = Fold(absolute)
        except NoLines as error:
            self._add_whole(path, absolute, state, is_named, str(error))
            return
        changes = fold.changes()
        if not changes:
            self._add_whole(path, absolute, state, is_named, "its mode, or its last line's end")
            return
        own = [change for change in changes if all(map(self._is_own, change.authors))]
        shared = [one for one in changes if one not in own and any(map(self._is_own, one.authors))]
        others = [one for one in changes if one not in own and one not in shared]
        places = [_place(path, change) for change in shared]
        if own or is_named or any(self._has_own_line(one) for one in shared):
            self.overlaps += places
        else:
            self.left_out += places  # perhaps a build's: the author has certainly written nothing here
        self.left_out += [_place(path, change) for change in others]
        if not own or (shared and is_named):
            return
        added = sum(len(change.added) for change in own)
        removed = sum(len(change.removed) for change in own)
        content = None
        if shared or others:
            content = composed(fold.head, own)
        self.own.append(Part(path, added, removed, content, state))

    def _has_own_line(self, change: Change) -> bool:
        lines = (*change.removed, *change.added)
        return any(line.author is not None and self._is_own(line.author) for line in lines)

    def _add_whole(self, path: str, absolute: str, state: str, is_named: bool, why: str) -> None:
        """Add a file without lines that could be told apart, if one author alone has changed it."""
        authors = self._writers(path, absolute)
        if authors and all(map(self._is_own, authors)):
            self.own.append(Part(path, 0, 0, None, state))
            return
        place = Place(path, 0, 0, authors, why)
        if is_named or any(one.session_id and self._is_own(one) for one in authors):
            self.overlaps.append(place)
        else:
            self.left_out.append(place)

    def _add_gitlink(self, path: str, absolute: str, is_named: bool) -> None:
        """Add a submodule's new commit if the author named it, and no other session has written in the submodule."""
        from swarm_hook_core.traces.journal import owner_of
        from swarm_hook_core.traces.versions.steps import Author

        owners = {owner_of(data) for data in journals_of(place_of(absolute)).values()}
        authors = [Author(*owner) for owner in owners if owner[1]]
        if is_named and all(map(self._is_own, authors)):
            self.own.append(Part(path, 0, 0, None, ""))
        elif is_named:
            self.overlaps.append(Place(path, 0, 0, authors, "a submodule"))
        else:
            self.left_out.append(Place(path, 0, 0, authors, "a submodule: name it to commit it"))

    def _writers(self, path: str, absolute: str) -> list[Author]:
        """Return all that may have changed the file since it was as committed."""
        real = os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))
        try:
            present = os.lstat(real)
            data = b"" if os.path.islink(real) else _read(real)
        except OSError:
            present, data = None, b""  # removed
        history = History(real, data, present)
        committed = ""
        if self._head:
            committed = self._git.line("rev-parse", "-q", "--verify", f"{self._head}:{path}")
        steps = history.steps()
        start = 0
        for at, moment in reversed(list(enumerate(history.moments[:-1]))):
            if self._is_content(path, moment.content() if moment.exists else None, committed):
                start = at
                break
        else:
            found = list(history.earlier())
            return _once([*found, *(author for step in steps for author in step.authors)])
        return _once([author for step in steps[start:] for author in step.authors])

    def _is_content(self, path: str, data: bytes | None, committed: str) -> bool:
        """Return True if `data`, of a work tree, is what git has as `committed`. None: no file."""
        if data is None or not committed:
            return data is None and not committed
        made = self._git.run(["hash-object", "--stdin", f"--path={path}"], data)
        return made.returncode == 0 and os.fsdecode(made.stdout).strip() == committed


def composed(committed: Sequence[bytes], own: Sequence[Change]) -> bytes:
    """Return the `committed` lines with the `own` changes, and with nothing else."""
    lines: list[bytes] = []
    at = 0
    for change in own:
        lines += committed[at : change.old]
        lines += _texts(change.added)
        at = change.old + len(change.removed)
    lines += committed[at:]
    whole = [_ended(line, lines[0]) for line in lines[:-1]]
    return b"".join([*whole, *lines[-1:]])


def _texts(lines: Sequence[Line]) -> list[bytes]:
    return [line.text for line in lines]


def _ended(line: bytes, first: bytes) -> bytes:
    """Return a line with an end, as the `first` one has it: it may have been the last of its file."""
    if line.endswith(b"\n"):
        return line
    if first.endswith(b"\r\n"):
        return line + b"\r\n"
    return line + b"\n"


def _place(path: str, change: Change) -> Place:
    return Place(path, change.new + 1, change.new + len(change.added), change.authors)


def _once(authors: Sequence[Author]) -> list[Author]:
    return list({(one.session, one.agent): one for one in authors}.values())


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()

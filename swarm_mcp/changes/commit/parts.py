"""The parts of a commit: the changes of one author in each uncommitted file, and the changes of all others.

A file is parted into the pieces that `swarm-mcp diff` shows. A piece that the author made alone goes into the commit, a
piece of others is left out. An overlap is a piece that several may have made, or pieces of several that are tied: a
commit of one side would put lines in an order that no one wrote.

    its mode, a binary file, a link, a file with a filter (git-lfs)     in the commit if the author alone has changed it
    a removed file                                                      the same: no file is removed in parts
    a submodule                                                         in the commit if it is named
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from swarm_hook_core.paths import FolderOf
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import Fold, NoLines
from swarm_hook_core.traces.versions.notes import PERSON, Author, Notes, joined
from swarm_hook_core.traces.versions.steps import IS_PROGRAM, History, Moment
from swarm_hook_core.watching.records import read
from swarm_mcp.changes.commit.apart import Git
from swarm_mcp.changes.dirty import LINK, NONE, PROGRAM, SUBMODULE, DirtyFile, object_id
from swarm_mcp.changes.owners import A_PERSON, session_in_words
from swarm_mcp.changes.patch import result_of
from swarm_mcp.changes.uncommitted import ChangedFile, Piece, pieces_of, tied
from swarm_mcp.domain import Session
from swarm_mcp.sessions.acting import NO_AGENTS
from swarm_mcp.store import Store

# The authors of changes that no line shows: a file's mode, a binary file, a link, a file behind a filter.
#
# Of a link no version is kept, and a new target takes nothing from the old one: its last writer is its author.


def mode_writers(file: DirtyFile, notes: Notes) -> Sequence[Author]:
    """Return all that may have given the file its present mode."""
    history = _history(file, notes)
    if history is None:
        return ()
    for step in reversed(history.steps()):
        if step.is_of_mode:
            return step.authors
    return history.earlier()


def writers_of(file: DirtyFile, git: Git, notes: Notes) -> Sequence[Author]:
    """Return all that may have changed the file since it was as committed."""
    history = _history(file, notes)
    if history is None:
        return ()
    if history.acts and LINK in (file.old_mode, file.new_mode):
        return _last_writers(history)
    steps = history.steps()
    for at in reversed(range(len(steps))):
        if _is_committed(history.moments[at], file, git):
            return joined(author for step in steps[at:] for author in step.authors)
    return joined([*history.earlier(), *(author for step in steps for author in step.authors)])


def _history(file: DirtyFile, notes: Notes) -> History | None:
    """Return the history of the file, a link itself included, or None if it cannot be read."""
    try:
        for _look in notes.rounds(os.path.dirname(file.path)):
            history = History(file.path, *_present(file.path), notes=notes)
        return history
    except OSError:
        return None  # it is unreadable, or its record


def _present(path: str) -> tuple[bytes, os.stat_result | None]:
    """Return ``(content, facts)``, without content for a link or a folder, without both for no file. Raises OSError."""
    try:
        with FolderOf(path) as (name, folder):
            found = os.lstat(name, dir_fd=folder)
            data = b""
            if stat.S_ISREG(found.st_mode):
                data = read(name, LIMIT_BYTES, folder)[1]
            return data, found
    except (FileNotFoundError, NotADirectoryError):
        return b"", None  # removed


def _last_writers(history: History) -> Sequence[Author]:
    """Return all that may have made, changed or removed a link last."""
    present = history.moments[-1]
    if not present.exists:
        return [history.acts[-1].author]  # a removal leaves no time
    acts = [act for act in history.acts if act.has_certainly_written_at(present.changed_ns or 0)]
    return joined(act.author for act in acts) or (PERSON,)


def _is_committed(moment: Moment, file: DirtyFile, git: Git) -> bool:
    """Return True if the moment's content is that of the last commit."""
    if not moment.exists or file.old_mode == NONE:
        return not moment.exists and file.old_mode == NONE
    if file.old_mode == LINK or bool(moment.mode & IS_PROGRAM) != (file.old_mode == PROGRAM):
        return False
    data = moment.content()
    if object_id(data, file.old_id) == file.old_id:
        return True
    made = git.run(["hash-object", "--stdin", f"--path={file.name}"], data)  # with its filter and line ends
    return made.returncode == 0 and os.fsdecode(made.stdout).strip() == file.old_id


IsOwn = Callable[[Author], bool]

A_MODE = "its mode"
EMPTY = "it is empty"
ENDS = "its line ends"
REMOVED = "removed"


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
    content   the content to commit, as git stores it; None: the file as it is in the work tree, or its removal
    mode      git's mode for `content`
    state     of the file when it was read (``state_of``), to notice a later change
    """

    __slots__ = ("path", "added", "removed", "content", "mode", "state")

    def __init__(
        self, path: str, state: str, pieces: Sequence[Piece] = (), content: bytes | None = None, mode: str = ""
    ):
        self.path = path
        self.added = sum(len(piece.added) for piece in pieces)
        self.removed = sum(len(piece.removed) for piece in pieces)
        self.content = content
        self.mode = mode
        self.state = state


class Group:
    """Pieces of one file that can only be committed together."""

    def __init__(self, pieces: Sequence[Piece], is_own: IsOwn):
        self.pieces = list(pieces)
        self.authors = joined(author for piece in pieces for author in piece.authors)
        self.is_own = all(map(is_own, self.authors))
        self.is_others = not any(map(is_own, self.authors))
        self.has_own_lines = any(all(map(is_own, piece.authors)) for piece in pieces)


def place_of(pieces: Sequence[Piece], file: DirtyFile) -> Place:
    """Return the place of these pieces of a file, that lie side by side."""
    authors = joined(author for piece in pieces for author in piece.authors)
    if file.new_mode == NONE:
        return Place(file.name, 0, 0, authors, REMOVED)
    first, last = pieces[0], pieces[-1]
    return Place(file.name, first.new + 1, last.new + len(last.added), authors)


class Parts:
    """The parts of all uncommitted files of one work tree, by author.

    own        Parts to commit
    left_out   Places of others
    overlaps   Places that may be the author's, or not
    """

    def __init__(self, git: Git, is_own: IsOwn):
        self._git = git
        self._is_own = is_own
        self._notes = Notes()
        self.own: list[Part] = []
        self.left_out: list[Place] = []
        self.overlaps: list[Place] = []

    def add(self, file: DirtyFile, state: str, is_named: bool) -> None:
        """Sort the changes of a file. `state`: as it began; `is_named`: the author has asked for this very file."""
        is_folder = os.path.isdir(file.path) and not os.path.islink(file.path)
        if is_folder or SUBMODULE in (file.old_mode, file.new_mode):
            self._add_submodule(file, state, is_named)
            return
        pieces, reason = self._parted(file)
        if reason:
            self._add_whole(file, state, is_named, reason)
        else:
            self._add_pieces(file, state, is_named, pieces)

    # ------------------------------------------------------------------------------------------- lines

    def _parted(self, file: DirtyFile) -> tuple[list[Piece], str]:
        """Return ``(pieces, "")``, or ``([], reason)`` if the file is taken as a whole."""
        if file.reason:
            return [], file.reason
        try:
            fold = Fold(file.path, file.head, notes=self._notes)
        except (NoLines, OSError) as error:
            return [], str(error)
        pieces = pieces_of(fold, file.converts)
        if pieces and not fold.changes():
            return [], ENDS
        if not pieces and NONE in (file.old_mode, file.new_mode):
            return [], EMPTY
        return pieces, ""

    def _add_pieces(self, file: DirtyFile, state: str, is_named: bool, pieces: list[Piece]) -> None:
        groups = [Group(some, self._is_own) for some in tied(pieces)]
        has_others = any(group.is_others for group in groups)
        is_removed = file.new_mode == NONE  # perhaps moved, with lines of others in it
        if is_removed and not all(group.is_own for group in groups):
            groups = [Group(pieces, self._is_own)]
        own = [group for group in groups if group.is_own]
        shared = [group for group in groups if not group.is_own and not group.is_others]
        others = [place_of(group.pieces, file) for group in groups if group.is_others]
        mode = self._mode(file, is_named, bool(own))
        places = [place_of(group.pieces, file) for group in shared]
        if own or is_named or (is_removed and has_others) or any(group.has_own_lines for group in shared):
            self.overlaps += places
        else:
            self.left_out += places  # perhaps a build's: the author has certainly written nothing here
        self.left_out += others
        has_own_mode = NONE not in (file.old_mode, mode) and mode != file.old_mode
        if (shared and is_named) or not (own or has_own_mode):
            return
        chosen = [piece for group in own for piece in group.pieces]
        content = None
        if shared or others or mode != file.new_mode:
            content = result_of(ChangedFile(file, pieces, "", ()), chosen)
        self.own.append(Part(file.name, state, chosen, content, mode))

    def _mode(self, file: DirtyFile, is_named: bool, has_own: bool) -> str:
        """Return the mode for the commit: the present one if the author may commit it, else that of the last commit."""
        if NONE in (file.old_mode, file.new_mode) or file.old_mode == file.new_mode:
            return file.new_mode
        authors = mode_writers(file, self._notes)
        if authors and all(map(self._is_own, authors)):
            return file.new_mode
        place = Place(file.name, 0, 0, authors, A_MODE)
        if any(map(self._is_own, authors)) and (has_own or is_named):
            self.overlaps.append(place)
        else:
            self.left_out.append(place)
        return file.old_mode

    # ------------------------------------------------------------------------------------------- whole files

    def _add_whole(self, file: DirtyFile, state: str, is_named: bool, why: str) -> None:
        """Add a file without lines that could be told apart, if one author alone has changed it."""
        authors = writers_of(file, self._git, self._notes)
        if authors and all(map(self._is_own, authors)):
            self.own.append(Part(file.name, state))
            return
        place = Place(file.name, 0, 0, authors, why)
        if is_named or any(one.session_id and self._is_own(one) for one in authors):
            self.overlaps.append(place)
        else:
            self.left_out.append(place)

    def _add_submodule(self, file: DirtyFile, state: str, is_named: bool) -> None:
        """Add a submodule's new commit if the author named it, and no other session has written in the submodule."""
        name = file.name.rstrip("/")
        owners = {one.owner for one in self._notes.of(file.path.rstrip("/")).journals.values()}
        authors = [Author(*owner) for owner in owners if owner[1]]
        if not is_named:
            self.left_out.append(Place(name, 0, 0, authors, "a submodule: name it to commit it"))
        elif all(map(self._is_own, authors)):
            self.own.append(Part(name, ""))
        else:
            self.overlaps.append(Place(name, 0, 0, authors, "a submodule"))


# The author of a commit, and the names of all other authors.


class Authorship:
    """The changes of `session`; those of a person for None, or for the session of a person's shell."""

    def __init__(self, store: Store, session: Session | None):
        self._store = store
        self._key: tuple[str, str] | None = None
        self._session = session
        self._names: dict[tuple[str, str], str] = {}
        if session is not None and session.runtime not in NO_AGENTS:
            self._key = session.runtime or "", session.session_id or ""

    def is_own(self, author: Author) -> bool:
        if self._key is None:
            return author.is_person
        return author.session == self._key

    def named(self, authors: Sequence[Author]) -> str:
        """Return the authors in words: ``you, codex 5f0c and a person``."""
        names = list(dict.fromkeys(map(self._name, authors))) or ["an unknown author"]
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    def _name(self, author: Author) -> str:
        if self.is_own(author):
            return "you"
        if author.is_person:
            return A_PERSON
        if author.session not in self._names:
            self._names[author.session] = session_in_words(self._store, author.session, self._session)
        return self._names[author.session]

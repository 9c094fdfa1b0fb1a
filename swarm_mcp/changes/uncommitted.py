"""The uncommitted changes of a work tree, each with all authors that may have made it."""

from __future__ import annotations

from typing import NamedTuple

from swarm_hook_core.paths import own_path
from swarm_hook_core.traces.versions.acts import PERSON
from swarm_hook_core.traces.versions.lines import Fold, NoLines
from swarm_hook_core.traces.versions.notes import Notes
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.changes.dirty import NONE, DirtyFile, dirty_files
from swarm_mcp.changes.pieces import Piece, as_stored, joined, pieces_of, with_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from swarm_hook_core.traces.versions.acts import Author

    Session = tuple[str, str]


class ChangedFile:
    """One file that differs from the last commit.

    file       git's facts
    pieces     its changed lines, in order; empty for a file without lines
    reason     why it has no lines to tell apart; else empty
    writers    all sessions that may have written it
    """

    __slots__ = ("file", "pieces", "reason", "writers")

    def __init__(self, file: DirtyFile, pieces: list[Piece], reason: str, writers: tuple[Author, ...]):
        self.file = file
        self.pieces = pieces
        self.reason = reason
        self.writers = writers

    @property
    def has_new_mode(self) -> bool:
        modes = (self.file.old_mode, self.file.new_mode)
        return NONE not in modes and modes[0] != modes[1]

    @property
    def whole_authors(self) -> tuple[Author, ...]:
        """All that may have made a change that no line shows: a mode, an empty file, a file without lines."""
        if self.writers and (self.has_new_mode or self.reason):
            return (*self.writers, PERSON)
        return self.writers or (PERSON,)

    @property
    def authors(self) -> tuple[Author, ...]:
        """All that may have taken part in the change."""
        found = [author for piece in self.pieces for author in piece.authors]
        if self.has_new_mode or not self.pieces:
            found += self.whole_authors
        return joined(found)

    def is_by(self, sessions: Collection[Session]) -> bool:
        """Return True if one of these sessions may have taken part."""
        return any(author.session in sessions for author in self.authors)


class OwnedLine(NamedTuple):
    """One line of the present file.

    authors   all that may have written it, empty for a committed line
    at_head   index of a committed line in the last commit; None for an uncommitted one
    """

    text: bytes
    authors: tuple[Author, ...]
    at_head: int | None


def uncommitted(top: str, names: Sequence[str] = (), notes: Notes | None = None) -> list[ChangedFile]:
    """Return the uncommitted changes in the work tree `top`, by name.

    `names`: only these files and folders, relative to `top`; `notes`: those of a larger question. Raises SwarmError.
    """
    notes = notes or Notes()
    return [one for file in dirty_files(top, names) if (one := changed(file, notes)) is not None]


def changed(file: DirtyFile, notes: Notes | None = None) -> ChangedFile | None:
    """Return the change of one file, or None if it is as in the last commit. `notes`: of a question about many."""
    if file.reason:
        return ChangedFile(file, [], file.reason, _writers(file.path, notes))
    try:
        fold = Fold(file.path, file.head, notes=notes)
    except NoLines as error:
        return ChangedFile(file, [], str(error), _writers(file.path, notes))
    except OSError as error:
        return ChangedFile(file, [], f"unreadable: {error.strerror or error}", ())
    one = ChangedFile(file, pieces_of(fold, file.converts), "", fold.writers)
    if one.pieces or file.old_mode != file.new_mode:
        return one
    return None  # only its times are younger


def owned_lines(file: DirtyFile) -> list[OwnedLine]:
    """Return the lines of the present file, each with its authors. Raises NoLines, OSError."""
    fold = Fold(file.path, file.head)
    lines, found = fold.lines(), []
    old = new = 0
    for change in with_end(fold):
        for at in range(change.old - old):
            line = lines[new + at]
            if as_stored(line.text, file.converts) == fold.head[old + at]:
                found.append(OwnedLine(line.text, (), old + at))
            else:
                found.append(OwnedLine(line.text, line.ended_by, None))
        found += [OwnedLine(line.text, line.authors, None) for line in change.added]
        old, new = change.old + len(change.removed), change.new + len(change.added)
    return found


def _writers(path: str, notes: Notes | None) -> tuple[Author, ...]:
    """Return all sessions that may have written the file at `path`, a link itself included."""
    try:
        return History(own_path(path.rstrip("/")), b"", None, notes=notes).writers()
    except OSError:
        return ()  # its folder cannot be read

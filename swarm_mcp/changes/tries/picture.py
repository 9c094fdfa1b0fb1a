"""The uncommitted changes of a work tree at one moment, and the content of a choice of their authors.

Authors are chosen by *group*: the sessions that may have made one change. A change that one session has certainly made
has a group of one. A doubtful change has a group of its own with all possible makers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from swarm_hook_core.traces import state_of
from swarm_hook_core.traces.versions.notes import Author, Notes, joined
from swarm_mcp.changes.commit.apart import NO_FILE, Git, split
from swarm_mcp.changes.commit.parts import Place, mode_writers, place_of, writers_of
from swarm_mcp.changes.dirty import SUBMODULE
from swarm_mcp.changes.patch import result_of
from swarm_mcp.changes.uncommitted import ChangedFile, Piece, chosen, tied, uncommitted
from swarm_mcp.errors import Refused

Session = tuple[str, str]
Group = frozenset[Session]
Wanted = Callable[[Group], bool]

MOMENTS = 3  # pictures that are taken anew because a file changed meanwhile
PRESENT, GONE, STORED = "present", "gone", "stored"


class Content(NamedTuple):
    """The content of one file in a try.

    kind    PRESENT: as in the checkout; GONE: no such file; STORED: `data` as git stores it, or the object `name`
    mode    git's mode of a stored file
    """

    kind: str
    mode: str = ""
    data: bytes | None = None
    name: str = ""


class Chosen(NamedTuple):
    """The content of a choice of groups.

    files     ``{path from the top: Content}`` of all files with uncommitted changes
    unplaced  Places with wanted lines that have no order beside unwanted ones: they are left out
    """

    files: dict[str, Content]
    unplaced: list[Place]


class Picture:
    """The uncommitted changes of the work tree `top` at one moment. Raises SwarmError.

    head     the last commit
    changed  the ChangedFiles
    states   ``{path: state}`` of their files before they were read
    groups   all groups with the names of the files that they changed
    authors  ``{group: Authors}``
    """

    def __init__(self, top: str):
        self.top = top
        self._git = Git(top)
        self._notes = Notes()
        for _moment in range(MOMENTS):
            self.head, self._listed = self._git.head(), self._dirty()
            before = {name: self._state(name) for name in self._listed}
            self.changed = uncommitted(top, (), self._notes)
            names = [one.file.name for one in self.changed]
            self.states = {name: before.get(name) or self._state(name) for name in names}
            if not self.changed_since(()):
                break
            self._notes = Notes()
        if not self.head:
            raise Refused("there is no commit yet to try anything on")
        self.groups: dict[Group, list[str]] = {}
        self.authors: dict[Group, tuple[Author, ...]] = {}
        self._whole: dict[str, Group] = {}
        for one in self.changed:
            self._learn(one)

    def changed_since(self, placed: Iterable[str]) -> list[str]:
        """Return the paths of files that have changed in the checkout since then.

        `placed`: files of which the try has a content of its own: a change of theirs does not matter.
        """
        if self._git.head() != self.head:
            return ["HEAD"]
        ours, found = set(placed), self._dirty() ^ self._listed
        found |= {name for name, state in self.states.items() if self._state(name) != state}
        return sorted(found - ours)

    def _dirty(self) -> set[str]:
        """Return the paths of the uncommitted files, as git lists them."""
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
        return {part[3:] for part in split(self._git.with_more({"GIT_OPTIONAL_LOCKS": "0"}).ask(*words))}

    def _state(self, name: str) -> str:
        return state_of(os.path.join(self.top, name.rstrip("/")))

    # ------------------------------------------------------------------------------------------ groups

    def _learn(self, one: ChangedFile) -> None:
        name = one.file.name
        for piece in one.pieces:
            self._add(piece.sessions, piece.authors, name)
        if one.reason or one.has_new_mode or not one.pieces:
            authors: Sequence[Author] = ()
            if one.reason:
                authors = writers_of(one.file, self._git, self._notes)
            elif one.has_new_mode:
                authors = mode_writers(one.file, self._notes)
            authors = tuple(authors) or one.whole_authors
            self._whole[name] = frozenset(author.session for author in authors)
            self._add(self._whole[name], authors, name)

    def _add(self, group: Group, authors: Iterable[Author], name: str) -> None:
        files = self.groups.setdefault(group, [])
        if name not in files:
            files.append(name)
        self.authors[group] = joined([*self.authors.get(group, ()), *authors])

    # ------------------------------------------------------------------------------------------ contents

    def content(self, wanted: Wanted, only: Callable[[str, int], bool] | None = None) -> Chosen:
        """Return the content of the wanted groups.

        `only`: function of a path and the number of one of its pieces: False leaves a wanted piece out.
        """
        files: dict[str, Content] = {}
        unplaced: list[Place] = []
        for one in self.changed:
            files[one.file.name] = self._content(one, wanted, only, unplaced)
        return Chosen(files, unplaced)

    def of_commit(self, made: str) -> Chosen:
        """Return the content of the commit `made` on `head`: without the uncommitted changes that are not in it."""
        files = {one.file.name: self._content(one, lambda _group: False, None, []) for one in self.changed}
        for name, (_old, (mode, made_id)) in self._git.between(self.head, made).items():
            if mode == NO_FILE:
                files[name] = Content(GONE)
            elif mode != SUBMODULE:
                files[name] = Content(STORED, mode, None, made_id)
        return Chosen(files, [])

    def _content(
        self, one: ChangedFile, wanted: Wanted, only: Callable[[str, int], bool] | None, unplaced: list[Place]
    ) -> Content:
        file = one.file
        name, committed = file.name, Content(STORED, file.old_mode, None, file.old_id)
        present = Content(PRESENT)
        if not file.new_mode:
            present = Content(GONE)
        if not file.old_mode:
            committed = Content(GONE)
        has_whole = name in self._whole and wanted(self._whole[name])
        if SUBMODULE in (file.old_mode, file.new_mode) or name.endswith("/"):
            return present
        if one.reason and has_whole:
            return present
        if one.reason:
            return committed
        numbers = {id(piece): number for number, piece in enumerate(one.pieces)}

        def is_wanted(piece: Piece) -> bool:
            return wanted(piece.sessions) and (only is None or only(name, numbers[id(piece)]))

        pieces, parted = chosen(one.pieces, is_wanted)
        unplaced += [place_of(some, file) for some in parted]
        is_all = len(pieces) == len(one.pieces)
        is_same_mode = has_whole or not one.has_new_mode
        if is_all and (pieces or has_whole) and is_same_mode:
            return present
        if not pieces and not (has_whole and one.has_new_mode):
            return committed
        mode = file.old_mode or file.new_mode
        if has_whole and one.has_new_mode:
            mode = file.new_mode
        return Content(STORED, mode, result_of(one, pieces))


def groups_of(pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
    """Return the numbers of a file's pieces, those that can only be chosen together in one tuple."""
    found, at = [], 0
    for some in tied(pieces):
        found.append(tuple(range(at, at + len(some))))
        at += len(some)
    return found

"""The uncommitted changes of a work tree, each with all authors that may have made it, in pieces or by file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby

from swarm_hook_core.paths import own_path
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.versions.lines import Change, Element, Fold, Hunk, Line, NoLines
from swarm_hook_core.traces.versions.notes import PERSON, Author, Notes, joined
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import MOST, Edit, edits
from swarm_mcp.changes.dirty import NONE, DirtyFile, dirty_files, relative_names
from swarm_mcp.changes.owners import A_PERSON, Owners
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

# The pieces of a changed file: the smallest parts of a change with the same possible authors.
#
# The content of a choice of authors is the last commit's with their pieces, in order. `diff`, `commit` and an undo of a
# person's lines have it. A line of one author has no order beside a line that another had removed before it came: such
# pieces are tied. They are chosen together or left out together, and named if only one of them is wanted.

Authors = tuple[Author, ...]


class Piece:
    """A run of lines of the last commit, and the lines in their place.

    old, new         index of the first line there, in the commit and in the present file
    removed, added   the lines, as git stores them
    authors          all that may have made this piece, at least one; the tuple ``("", "")`` is a person's session
    is_tied          True if its lines have no order beside those of the piece before it
    """

    __slots__ = ("old", "new", "removed", "added", "authors", "is_tied")

    def __init__(
        self, old: int, new: int, removed: list[bytes], added: list[bytes], authors: Authors, is_tied: bool = False
    ):
        self.is_tied = is_tied
        self.old = old
        self.new = new
        self.removed = removed
        self.added = added
        self.authors = authors

    @property
    def sessions(self) -> frozenset[Session]:
        return frozenset(author.session for author in self.authors)

    @property
    def is_ambiguous(self) -> bool:
        """True if nothing tells several possible authors apart."""
        return len(self.sessions) > 1


def pieces_of(fold: Fold, converts: bool) -> list[Piece]:
    """Return the pieces of a file, in order. `converts`: git turns CRLF of the work tree into LF."""
    lines, found, order = fold.lines(), [], Order(fold)
    old = new = 0
    region = _Region(order)
    for change in with_end(fold):
        for at in range(change.old - old):
            line, head = lines[new + at], fold.head[old + at]
            if as_stored(line.text, converts) != head:
                ended = Change(old + at, new + at, [Line(head, line.ended_by)], [Line(line.text, line.ended_by)])
                region.add(ended, converts, [[fold.alive[new + at]]])
            elif order.is_moved(old + at, new + at):
                moved = Change(old + at, new + at, [fold.removed_line(old + at)], [fold.added_line(new + at)])
                region.add(moved, converts)
            elif not region.is_empty:
                found += region.pieces()
                region = _Region(order)
        region.add(change, converts)
        old, new = change.old + len(change.removed), change.new + len(change.added)
    return found + region.pieces()


def tied(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return the pieces in groups that can only be chosen together."""
    found: list[list[Piece]] = []
    for piece in pieces:
        if piece.is_tied:
            found[-1].append(piece)
        else:
            found.append([piece])
    return found


def chosen(pieces: Iterable[Piece], is_wanted: Callable[[Piece], bool]) -> tuple[list[Piece], list[list[Piece]]]:
    """Return the wanted pieces, and groups that only some of them are in.

    Such a group has no place without the others' pieces.
    """
    found: list[Piece] = []
    parted: list[list[Piece]] = []
    for group in tied(pieces):
        wanted = [piece for piece in group if is_wanted(piece)]
        if len(wanted) == len(group):
            found += group
        elif wanted:
            parted.append(group)
    return found, parted


def with_end(fold: Fold) -> list[Change]:
    """Return the changes of a file, and an empty one at its end."""
    changes = fold.changes()
    grown = sum(len(one.added) - len(one.removed) for one in changes)
    return [*changes, Change(len(fold.head), len(fold.head) + grown, [], [])]


def as_stored(text: bytes, converts: bool) -> bytes:
    """Return a line as git stores it."""
    if converts and text.endswith(b"\r\n"):
        return text[:-2] + b"\n"
    return text


class _Row:
    """A line of the commit, or of the present file: `text` as git stores it."""

    __slots__ = ("text", "is_added", "authors", "lines", "is_tied")

    def __init__(self, text: bytes, is_added: bool, authors: Authors, lines: list[Element]):
        self.text = text
        self.is_added = is_added
        self.authors = authors
        self.lines = lines  # the same in an Order; several if nothing tells them apart
        self.is_tied = False  # to the row before

    @property
    def sessions(self) -> frozenset[Session]:
        return frozenset(author.session for author in self.authors)


class _Region:
    """Changed lines without an unchanged one between them."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.removed: list[_Row] = []
        self.added: list[_Row] = []
        self.old = self.new = 0

    @property
    def is_empty(self) -> bool:
        return not self.removed and not self.added

    def add(self, change: Change, converts: bool, same: list[list[Element]] | None = None) -> None:
        """Add a change. `same`: for each removed line the present one with another text of it."""
        if self.is_empty:
            self.old, self.new = change.old, change.new
        fold, end = self._order.fold, change.old + len(change.removed)
        before = same or [fold.removed_as(index) for index in range(change.old, end)]
        self.removed += [_Row(line.text, False, line.authors, some) for line, some in zip(change.removed, before)]
        for line, one in zip(change.added, fold.alive[change.new :]):
            self.added.append(_Row(as_stored(line.text, converts), True, line.authors, [one]))

    def pieces(self) -> list[Piece]:
        """Return the pieces: runs of lines with the same sessions, in the order of all lines."""
        rows, found = [*self.removed, *self.added], []
        old, new = self.old, self.new
        if self.removed and self.added and len({row.sessions for row in rows}) > 1:
            rows = self._order.merged(self.removed, self.added)
        for _sessions, run in groupby(rows, key=lambda row: row.sessions):
            some = list(run)
            gone = [row.text for row in some if not row.is_added]
            come = [row.text for row in some if row.is_added]
            authors = joined(author for row in some for author in row.authors)
            found.append(Piece(old, new, gone, come, authors, some[0].is_tied))
            old, new = old + len(gone), new + len(come)
        return found


NO_HUNK = Hunk(None, [], [])


class Order:
    """The order of a file's present lines, and of those of its last commit.

    Contents tell it: two lines that were there together have an order, and a line takes over that of the ones that it
    has replaced. A line that came where another had been removed before has no order beside that, nor has one that came
    in the place of a line that had replaced it.
    """

    def __init__(self, fold: Fold):
        self.fold = fold
        self._before: dict[Element, set[Element]] = {}  # a line -> those that were right before it
        self._behind: dict[Element, set[Element]] = {}
        self._hunks: dict[Element, Hunk] = {}  # a line -> the change that brought it in the place of others
        self._returned: set[Element] = set()
        self._next: dict[Element | None, Element | None] = {}  # of the present lines; None is before the first one
        self._lines: list[Element] = []
        self._numbers: dict[Element, int] = {}

    def _learn(self) -> None:
        """Learn the order when it is first asked for: most changes have one author."""
        if self._next:
            return
        self._follow(Hunk(None, [], self.fold.first))
        for hunk in self.fold.hunks:
            self._follow(hunk)
        self._lines = self._sorted()
        self._numbers = {one: number for number, one in enumerate(self._lines)}

    def is_moved(self, old: int, new: int) -> bool:
        """Return True if a line of the commit, with these indices, was taken out and put behind or before others."""
        one = self.fold.alive[new]
        before = self.fold.removed_as(old)
        if one.head is not None or len(before) != 1 or before[0] not in self.fold.removed[self.fold.before_steps :]:
            return False
        return before[0].head == old and self._has_between(before[0], one)

    def merged(self, removed: list[_Row], added: list[_Row]) -> list[_Row]:
        """Return the rows of one change in order. Those without an order are tied."""
        self._learn()
        apart = [*removed, *added]
        if not all(len(row.lines) == 1 and row.lines[0] in self._numbers for row in apart):
            return _tied(apart)
        rows = sorted(apart, key=lambda row: self._numbers[row.lines[0]])
        if sorted(rows, key=lambda row: row.is_added) != apart:
            return _tied(apart)  # a line that was moved
        places = {row.lines[0]: place for place, row in enumerate(rows)}
        part = self._lines[self._numbers[rows[0].lines[0]] : self._numbers[rows[-1].lines[0]] + 1]
        before = _reached(part, self._before, places)
        behind = _reached(part[::-1], self._behind, places)
        gone = sum(1 << place for place, row in enumerate(rows) if not row.is_added)
        ends = [0] * len(rows)  # of a row: the last one that is tied to it
        own: dict[int, int] = {}  # of a change: the rows in whose place its lines came
        for place, row in enumerate(rows):
            if not row.is_added:
                continue
            one = row.lines[0]
            hunk = self._hunks.get(one, NO_HUNK)
            if id(hunk) not in own:
                own[id(hunk)] = sum(1 << places[line] for line in hunk.removed if line in places)
            unknown = gone & ~before[one] & ~behind[one] & ~own[id(hunk)]
            if unknown:
                first = min(place, (unknown & -unknown).bit_length() - 1)
                ends[first] = max(ends[first], place, unknown.bit_length() - 1)
        last = -1
        for place, row in enumerate(rows):
            row.is_tied = place <= last
            last = max(last, ends[place])
        return rows

    def _has_between(self, one: Element, other: Element) -> bool:
        """Return True if a present line, or one of the commit, is between these two for certain."""
        self._learn()
        if one not in self._numbers or other not in self._numbers:
            return False
        first, last = sorted((self._numbers[one], self._numbers[other]))
        part = self._lines[first : last + 1]
        behind, before = (
            _reached(some, edges, {some[0]: 0}) for some, edges in ((part, self._before), (part[::-1], self._behind))
        )
        return any(behind[line] and before[line] and (line in self._next or line.head is not None) for line in part)

    def _follow(self, hunk: Hunk) -> None:
        """Go on by one change."""
        removed, added, right = hunk.removed, hunk.added, self._next.get(hunk.left)
        for one in removed:
            right = self._next.pop(one, None)
        present = [hunk.left, *added, right]
        self._next.update(zip(present, present[1:]))
        for one in added:
            if one in self._before:
                self._forget(one)
            elif removed:
                self._hunks[one] = hunk
            self._before[one], self._behind[one] = set(), set()
        for one, other in zip(added, added[1:]):
            self._note(one, other)
        if not added:
            if hunk.left is not None and right is not None:
                self._note(hunk.left, right)
            return
        if removed:
            for one in self._before[removed[0]]:
                self._note(one, added[0])
            for one in self._behind[removed[-1]]:
                self._note(added[-1], one)
        for one in self._in_place_of(hunk.left, -1):
            self._note(one, added[0])
        for one in self._in_place_of(right, 0):
            self._note(added[-1], one)

    def _note(self, one: Element, other: Element) -> None:
        """Note that the first line is before the other one."""
        if one is not other:
            self._before[other].add(one)
            self._behind[one].add(other)

    def _forget(self, one: Element) -> None:
        """Forget the place of a line that comes back, perhaps at another one."""
        self._returned.add(one)
        self._hunks.pop(one, None)
        for before in self._before[one]:
            self._behind[before].discard(one)
        for behind in self._behind[one]:
            self._before[behind].discard(one)

    def _in_place_of(self, one: Element | None, at: int) -> Iterator[Element]:
        """Yield a line, and those in whose place it came as the first one (`at` 0) or the last one (-1)."""
        while one is not None:
            yield one
            hunk = self._hunks.get(one, NO_HUNK)
            if not hunk.removed or hunk.added[at] is not one:
                return
            one = hunk.removed[at]

    def _sorted(self) -> list[Element]:
        """Return all lines in one order, those of a change behind the ones in whose place they came.

        Where two have none, the later one is the first. Lines that were moved to and fro are left out, and those
        behind them.
        """
        lines = [*self._before]
        numbers = {one: -number for number, one in enumerate(lines)}
        left = {one: len(before) for one, before in self._before.items()}
        instead: dict[Element, list[Element]] = {}
        first: dict[int, Element] = {}  # of each change: it is behind the last line that the change removed
        for one, hunk in self._hunks.items():
            gone = [line for line in hunk.removed[-1:] if line not in self._returned]
            if first.setdefault(id(hunk), one) is one and gone:
                instead.setdefault(gone[0], []).append(one)
                left[one] += 1
        found, free = [], [numbers[one] for one in lines if not left[one]]
        heapify(free)
        while free:
            one = lines[-heappop(free)]
            found.append(one)
            for other in (*self._behind[one], *instead.get(one, ())):
                left[other] -= 1
                if not left[other]:
                    heappush(free, numbers[other])
        return found


def _reached(
    lines: Sequence[Element], edges: Mapping[Element, Collection[Element]], places: Mapping[Element, int]
) -> dict[Element, int]:  # fmt: skip
    """Return for each of the `lines` those of `places` that the edges lead to from it, as a number with their bits."""
    found: dict[Element, int] = {}
    for one in lines:
        found[one] = 0
        for other in edges[one]:
            if other in found:
                found[one] |= found[other] | (other in places) << places.get(other, 0)
    return found


def _tied(rows: list[_Row]) -> list[_Row]:
    for row in rows[1:]:
        row.is_tied = True
    return rows


Session = tuple[str, str]


class ChangedFile:
    """One file that differs from the last commit.

    file       git's facts
    pieces     its changed lines, in order; empty for a file without lines
    reason     why it has no lines to tell apart; else empty
    writers    all sessions that may have written it
    rewritten  ``[(author of an uncommitted line, the author who has put another in its place)]``
    """

    __slots__ = ("file", "pieces", "reason", "writers", "rewritten")

    def __init__(
        self,
        file: DirtyFile,
        pieces: list[Piece],
        reason: str,
        writers: tuple[Author, ...],
        rewritten: Sequence[tuple[Author, Author]] = (),
    ):
        self.file = file
        self.pieces = pieces
        self.reason = reason
        self.writers = writers
        self.rewritten = rewritten

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
    one = ChangedFile(file, pieces_of(fold, file.converts), "", fold.writers, _rewritten(fold))
    if one.pieces or file.old_mode != file.new_mode:
        return one
    return None  # only its times are younger


def _rewritten(fold: Fold) -> list[tuple[Author, Author]]:
    """Return the pairs of ChangedFile.rewritten, of lines that each have one author."""
    found, alive = [], set(fold.alive)
    for hunk in fold.hunks:
        by = {author.session: author for line in hunk.added for author in line.authors}
        for line in hunk.removed:
            if line.head is None and line not in alive and len(line.authors) == 1 and len(by) == 1:
                author = line.authors[0]
                found += [(author, other) for session, other in by.items() if session != author.session]
    return found


def owned_lines(file: DirtyFile) -> list[Line]:
    """Return the lines of the present file, those with another end by its authors. Raises NoLines, OSError."""
    fold = Fold(file.path, file.head)
    fold.changes()  # they may give a line more authors
    found = []
    for line in fold.lines():
        if line.head is not None and as_stored(line.text, file.converts) != fold.head[line.head]:
            line = Line(line.text, line.ended_by)
        found.append(line)
    return found


def _writers(path: str, notes: Notes | None) -> tuple[Author, ...]:
    """Return all sessions that may have written the file at `path`, a link itself included."""
    try:
        return History(own_path(path.rstrip("/")), b"", None, notes=notes).writers()
    except OSError:
        return ()  # its folder cannot be read


# The files with uncommitted changes of sessions and of a person, for lists (`uncommitted_files`).

SECONDS = 1.0  # for the lines of all files


def uncommitted_files(store: Store, scope: str, people: People) -> list[Edit]:
    """Return the uncommitted changes in a scope by sessions and by a person, the newest first. Raises nothing."""
    found = [*edits(store, scope, people), *_of_those_away(store, scope, MOST, Owners(store, people))]
    return sorted(found, key=lambda one: -one.at)


def _of_those_away(store: Store, scope: str, limit: int, owners: Owners) -> list[Edit]:
    """Return the uncommitted changes of a person and of ended sessions below the folder `scope`, the newest first.

    A person's `instance_id` is empty, that of an ended session is the client's id for it; the time is the file's. Files
    that a session may have changed as well are perhaps a person's. About `limit` changes, and as many as can be read in
    time; none outside of a repository, or without an answer of git.
    """
    tree = tree_over(os.path.realpath(scope))
    if tree is None:
        return []
    try:
        files = dirty_files(tree.top, relative_names(tree.top, [scope]))
    except SwarmError:
        return []  # git does not answer
    found: list[Edit] = []
    end, notes = time.monotonic() + SECONDS, Notes()
    away: dict[tuple[str, str], bool] = {}  # by session: it has ended
    for at, file in sorted(((_changed_at(file.path), file) for file in files), key=lambda one: -one[0]):
        if len(found) >= limit or time.monotonic() > end:
            break
        one = changed(file, notes)
        if one is None:
            continue
        if any(author.is_person for author in one.authors):
            found.append(Edit(file.path, "", _persons_name(one), at, "-"))
        for session in sorted({author.session for author in one.authors if not author.is_person}):
            if session not in away:
                row = owners.row(session)
                away[session] = row is None or not store.instances.live(row.id)
            if away[session]:
                found.append(Edit(file.path, session[1], owners.name(Author(*session)), at, "-", True))
    return found


def _persons_name(one: ChangedFile) -> str:
    """Return the words for a person as an author of the file."""
    parts = [piece.authors for piece in one.pieces] or [one.whole_authors]
    if any(len(authors) == 1 and authors[0].is_person for authors in parts):
        return A_PERSON
    return f"perhaps {A_PERSON}"


def _changed_at(path: str) -> int:
    """Return the time of the file's last change in Unix seconds; of a removed one, that of its folder."""
    for one in (path, os.path.dirname(path)):
        try:
            return int(os.lstat(one).st_mtime)
        except OSError:
            continue  # removed
    return 0

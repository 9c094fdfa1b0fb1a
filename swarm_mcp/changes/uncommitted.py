"""The uncommitted changes of a work tree, each with all authors that may have made it, in pieces or by file."""

from __future__ import annotations

import os
import time
from itertools import groupby
from typing import NamedTuple

from swarm_hook_core.paths import own_path
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.versions.acts import PERSON, Author
from swarm_hook_core.traces.versions.lines import Change, Fold, Line, NoLines
from swarm_hook_core.traces.versions.notes import Notes
from swarm_hook_core.traces.versions.steps import History
from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import MOST, Edit, edits
from swarm_mcp.changes.dirty import NONE, DirtyFile, dirty_files, relative_names
from swarm_mcp.changes.owners import A_PERSON, Owners
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from swarm_hook_core.traces.versions.lines import Element, Hunk

# The pieces of a changed file: the smallest parts of a change with the same possible authors.
#
# The content of a choice of authors is the last commit's with their pieces, in order. `diff`, `commit` and an undo of a
# person's lines have it. A line of one author has no order beside a line that another had removed before it came: such
# pieces are tied. They are chosen together or left out together, and named if only one of them is wanted.

if TYPE_CHECKING:
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
    lines, found, order = fold.lines(), [], _LazyOrder(fold)
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


def spliced(lines: Sequence[bytes], changes: Iterable[tuple[int, int, Sequence[bytes]]]) -> bytes:
    """Return a content with other lines in some places. Each line but the last has a line end.

    changes  ``[(index, number of lines there, the lines instead)]``, in order
    """
    found, at = list[bytes](), 0
    for index, count, instead in changes:
        found += [*lines[at:index], *instead]
        at = index + count
    found += lines[at:]
    found[:-1] = [text if text.endswith(b"\n") else text + b"\n" for text in found[:-1]]
    return b"".join(found)


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


def joined(authors: Iterable[Author]) -> Authors:
    """Return one Author for each session and agent, of its last call."""
    found: dict[tuple[str, ...], Author] = {}
    for author in authors:
        key = (*author.session, author.agent)
        if key not in found or found[key].at_ns < author.at_ns:
            found[key] = author
    return tuple(found.values())


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

    def __init__(self, order: _LazyOrder) -> None:
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
            rows = self._order.get().merged(self.removed, self.added)
        for _sessions, run in groupby(rows, key=lambda row: row.sessions):
            some = list(run)
            gone = [row.text for row in some if not row.is_added]
            come = [row.text for row in some if row.is_added]
            authors = joined(author for row in some for author in row.authors)
            found.append(Piece(old, new, gone, come, authors, some[0].is_tied))
            old, new = old + len(gone), new + len(come)
        return found


class _LazyOrder:
    """The order of a file's lines, made when it is first asked for: most changes have one author."""

    def __init__(self, fold: Fold):
        self.fold = fold
        self._known: Order | None = None

    def get(self) -> Order:
        if self._known is None:
            self._known = Order(self.fold)
        return self._known

    def is_moved(self, old: int, new: int) -> bool:
        """Return True if a line of the commit, with these indices, was taken out and put behind or before others."""
        one = self.fold.alive[new]
        before = self.fold.removed_as(old)
        if one.head is not None or len(before) != 1 or before[0] not in self.fold.removed[self.fold.before_steps :]:
            return False
        return before[0].head == old and self.get().has_between(before[0], one)


class Order:
    """The order of a file's present lines, and of those of its last commit.

    Contents tell it: two lines that were there together have an order, and a line takes over that of the ones that it
    has replaced. A line that came where another had been removed before has no order beside that.
    """

    def __init__(self, fold: Fold):
        self._lines = [*fold.first]
        self._committed = set(fold.compared(fold.head))
        self._fold = fold
        self._gone: set[Element] = set()  # removed ones
        self._instead: dict[Element, list[Element]] = {}  # a removed line -> the lines that came in its place
        self._of: dict[Element, set[Element]] = {}  # a line -> removed ones that it has replaced
        self._unknown: dict[Element, set[Element]] = {}  # a line -> removed ones that it has no order with
        for hunk in fold.hunks:
            self._follow(hunk)
        self._places = {one: place for place, one in enumerate(self._lines)}

    def merged(self, removed: list[_Row], added: list[_Row]) -> list[_Row]:
        """Return the rows of one change in order. Those without an order are tied."""
        apart = [*removed, *added]
        if not all(len(row.lines) == 1 and row.lines[0] in self._places for row in apart):
            return _tied(apart, 0, len(apart) - 1)
        rows = sorted(apart, key=lambda row: (self._places[row.lines[0]], row.is_added))
        if [row for row in rows if not row.is_added] + [row for row in rows if row.is_added] != apart:
            return _tied(apart, 0, len(apart) - 1)  # a line that was moved
        index = {row.lines[0]: at for at, row in enumerate(rows) if not row.is_added}
        spans: dict[int, list[int]] = {}  # of a set of lines without order: their rows
        ends = [0] * len(rows)  # of a row: the last one that is tied to it
        for at, row in enumerate(rows):
            unknown = self._unknown.get(row.lines[0])
            if row.is_added and unknown:
                if id(unknown) not in spans:
                    spans[id(unknown)] = [index[one] for one in unknown if one in index]
                if some := spans[id(unknown)]:
                    first = min(at, *some)
                    ends[first] = max(ends[first], at, *some)
        last = -1
        for at, row in enumerate(rows):
            row.is_tied = at <= last
            last = max(last, ends[at])
        return rows

    def has_between(self, one: Element, other: Element) -> bool:
        """Return True if a present line, or one of the commit, is between these two for certain."""
        if one in self._unknown.get(other, ()) or one not in self._places:
            return False
        first, last = sorted((self._places[one], self._places[other]))
        return last > first + 1

    def _follow(self, hunk: Hunk) -> None:
        """Go on by one change."""
        own, first = set(hunk.removed), self._place_behind(hunk.left)
        end = first
        while end < len(self._lines) and (self._lines[end] in self._gone or self._lines[end] in own):
            end += 1
        gap, right = self._lines[first:end], None
        if end < len(self._lines):
            right = self._lines[end]
        self._gone |= own
        self._instead.update((one, hunk.added) for one in hunk.removed)
        new = set(hunk.added).difference(gap)
        if new:
            come = set(hunk.added)
            gone = [one for one in gap if one not in come]
            before, unknown = self._beside(gone, hunk, right)
            self._of.update(dict.fromkeys(new, own | _all_of(self._of, hunk.removed)))
            last = hunk.left
            for one in gone:
                if one in before or one in own:
                    last = one
            self._insert(hunk.added, new, last, unknown)
        self._gone -= set(hunk.added)
        dropped = {one for one in own if self._fold.compared([one.text])[0] not in self._committed}
        if dropped:
            self._lines = [one for one in self._lines if one not in dropped]

    def _place_behind(self, one: Element | None) -> int:
        if one is None:
            return 0
        return self._lines.index(one) + 1

    def _insert(self, added: list[Element], new: set[Element], last: Element | None, unknown: set[Element]) -> None:
        """Put the new ones of the added lines behind the line `last`, and before those that have come back."""
        if len(new) == len(added) and new.isdisjoint(self._lines):
            place = self._place_behind(last)
            self._lines[place:place] = added
            self._unknown.update(dict.fromkeys(added, unknown))
            return
        for at, one in enumerate(added):  # some have come back
            if one in new:
                if one in self._lines:
                    self._lines.remove(one)
                later = [self._lines.index(other) for other in added[at + 1 :] if other not in new]
                self._lines.insert(min([self._place_behind(last), *later]), one)
                self._unknown[one] = unknown
            last = one

    def _beside(self, gone: list[Element], hunk: Hunk, right: Element | None) -> tuple[set[Element], set[Element]]:
        """Return the removed lines that are before the new ones of a hunk, and those that have no order with them.

        gone   all that were removed there, those of the hunk included
        right  the line behind them
        """
        own = set(hunk.removed)
        others = [one for one in gone if one not in own]
        unknown = _all_of(self._unknown, hunk.removed) | _all_of(self._of, hunk.removed)
        if not own:
            unknown |= self._around(hunk.left, right)
        before: set[Element] = set()
        behind: set[Element] = set()
        if own:
            places = {one: place for place, one in enumerate(gone)}
            for one in others:
                if one not in unknown and places[one] < places[hunk.removed[0]]:
                    before.add(one)
                elif one not in unknown and places[one] > places[hunk.removed[-1]]:
                    behind.add(one)
        else:
            before = self._replaced_by(hunk.left, others, -1) - unknown
            behind = self._replaced_by(right, others, 0) - unknown
        self._spread(before, behind, others[::-1])
        self._spread(behind, before, others)
        return before, unknown | (set(others) - before - behind)

    def _spread(self, known: set[Element], others: set[Element], lines: list[Element]) -> None:
        """Add those of the lines to `known` that have an order with an earlier one of it."""
        passed: list[Element] = []
        for one in lines:
            if one in known:
                passed.append(one)
            elif one not in others and any(self._is_known(one, line) for line in passed):
                known.add(one)

    def _around(self, left: Element | None, right: Element | None) -> set[Element]:
        """Return the removed lines that might be on either side of a line that comes between these two."""
        if left is None or right is None:
            both = set()
        else:
            both = _all_of(self._of, [left]) | _all_of(self._unknown, [left])
            both &= _all_of(self._of, [right]) | _all_of(self._unknown, [right])
        for one, is_left in ((left, True), (right, False)):
            if one is not None and self._unknown.get(one):
                place = self._lines.index(one)
                some = (other for other in self._unknown[one] if other in self._lines)
                both |= {other for other in some if (self._lines.index(other) < place) is is_left}
        return both

    def _is_known(self, one: Element, other: Element) -> bool:
        """Return True if two removed lines have an order."""
        sets = (self._unknown.get(one), self._of.get(one)), (self._unknown.get(other), self._of.get(other))
        return not any(line in found for line, both in zip((other, one), sets) for found in both if found)

    def _replaced_by(self, line: Element | None, removed: Iterable[Element], at: int) -> set[Element]:
        """Return those of the removed lines that this line has replaced, as the first one (`at` 0) or the last (-1)."""
        if line is None:
            return set()
        ends: dict[int, bool] = {}
        some = [one for one in removed if one in self._of.get(line, ())]
        for one in some:
            lines = self._instead[one]
            if id(lines) not in ends:
                ends[id(lines)] = self._present(lines)[at] is line
        return {one for one in some if ends[id(self._instead[one])]}

    def _present(self, lines: list[Element]) -> list[Element]:
        """Return the lines, with those that have replaced removed ones of them, and so on."""
        found: dict[Element, None] = {}
        left, known = lines[::-1], set()
        while left:
            one = left.pop()
            instead = self._instead.get(one, [])
            if not instead or one not in self._gone:
                found[one] = None
            elif id(instead) not in known:
                known.add(id(instead))
                left += instead[::-1]
        return list(found)


def _tied(rows: list[_Row], first: int, last: int) -> list[_Row]:
    for row in rows[first + 1 : last + 1]:
        row.is_tied = True
    return rows


def _all_of(sets: dict[Element, set[Element]], lines: Iterable[Element]) -> set[Element]:
    """Return all that the sets of these lines have; lines of one hunk share theirs."""
    return set().union(*{id(found): found for one in lines if (found := sets.get(one))}.values())


if TYPE_CHECKING:
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

"""The pieces of a changed file: the smallest parts of a change with the same possible authors."""

from __future__ import annotations

from itertools import groupby

from swarm_hook_core.traces.equal_lines import equal_parts
from swarm_hook_core.traces.versions.lines import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm_hook_core.traces.versions.acts import Author
    from swarm_hook_core.traces.versions.lines import Fold, Line

    Authors = tuple[Author, ...]
    Session = tuple[str, str]
    Numbered = tuple[bytes, Authors]  # a line as git has it, and its authors


class Piece:
    """A run of lines of the last commit, and the lines in their place.

    old, new         index of the first line there, in the commit and in the present file
    removed, added   the lines, as git stores them
    authors          all that may have made this piece, at least one; the tuple ``("", "")`` is a person's session
    """

    __slots__ = ("old", "new", "removed", "added", "authors")

    def __init__(self, old: int, new: int, removed: list[bytes], added: list[bytes], authors: Authors):
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
    lines, found = fold.lines(), []
    old = new = 0
    region = _Region()
    for change in with_end(fold):
        for at in range(change.old - old):
            line = lines[new + at]
            text = as_stored(line.text, converts)
            if text != fold.head[old + at]:
                region.add(old + at, new + at, [(fold.head[old + at], line.ended_by)], [(text, line.ended_by)])
            elif not region.is_empty:
                found += region.pieces()
                region = _Region()
        region.add(change.old, change.new, _numbered(change.removed), _numbered(change.added, converts))
        old, new = change.old + len(change.removed), change.new + len(change.added)
    return found + region.pieces()


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


def _numbered(lines: Sequence[Line], converts: bool = False) -> list[Numbered]:
    return [(as_stored(line.text, converts), line.authors) for line in lines]


class _Region:
    """Changed lines without an unchanged one between them."""

    def __init__(self) -> None:
        self.old = self.new = 0
        self.removed: list[Numbered] = []
        self.added: list[Numbered] = []

    @property
    def is_empty(self) -> bool:
        return not self.removed and not self.added

    def add(self, old: int, new: int, removed: list[Numbered], added: list[Numbered]) -> None:
        if self.is_empty:
            self.old, self.new = old, new
        self.removed += removed
        self.added += added

    def pieces(self) -> list[Piece]:
        """Return the pieces: runs of lines with the same sessions, removed ones with the added ones in their place."""
        removed, added = _runs(self.removed), _runs(self.added)
        keys = [key for key, _run in removed], [key for key, _run in added]
        found: list[Piece] = []
        old, new, at_old, at_new = self.old, self.new, 0, 0
        matches = equal_parts(*keys, exact_up_to=len(keys[1])) or []
        pairs = [(left + at, right + at) for left, right, size in matches for at in range(size)]
        for left, right in [*pairs, (len(removed), len(added))]:
            single: list[tuple[list[Numbered], list[Numbered]]] = [(run, []) for _key, run in removed[at_old:left]] + [
                ([], run) for _key, run in added[at_new:right]
            ]
            if left < len(removed):
                single.append((removed[left][1], added[right][1]))
            for gone, come in single:
                authors = joined(author for _text, some in (*gone, *come) for author in some)
                found.append(Piece(old, new, [text for text, _some in gone], [text for text, _some in come], authors))
                old, new = old + len(gone), new + len(come)
            at_old, at_new = left + 1, right + 1
        return found


def _runs(lines: list[Numbered]) -> list[tuple[frozenset[Session], list[Numbered]]]:
    grouped = groupby(lines, key=lambda line: frozenset(author.session for author in line[1]))
    return [(key, list(run)) for key, run in grouped]

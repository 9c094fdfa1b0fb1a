"""The lines of a file, and the authors of each: a fold over the steps of the file (``steps``).

The fold begins at the last version that equals the last commit, or at the first one. Each step's difference marks its
new lines, and the committed lines that it removed, with the step's authors. The difference of a step is small, so that
lines keep their owner while they move.

A line counts as committed if the last commit has it at that place, whoever wrote it. Line ends alone are no change
where the commit has no CRLF: git converts them. A file that a step brought whole, while the same session had the same
content under another name, was moved: its lines keep their authors.

    a missing file        no lines; its committed lines are removed
    no commit yet         every line has authors
    a link, a folder, over 1 MiB, binary content, a git-lfs pointer in the commit,
    a filter in git's attributes, a commit without contents (partial clone)          NoLines
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from swarm_hook_core.git_repository import NoAnswer, Refused, committed_text, is_as_committed
from swarm_hook_core.paths import FolderOf
from swarm_hook_core.traces import UNDO
from swarm_hook_core.traces.changed_lines import equal_parts, split_lines
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.layout import Sources, words_of
from swarm_hook_core.traces.versions.notes import PERSON, Author, Notes
from swarm_hook_core.traces.versions.steps import History, Moment, Step, contents_since
from swarm_hook_core.watching.records import read

Authors = tuple[Author, ...]

SECONDS = 2.0  # for git's answer
POPULAR = 2000  # lines: in longer texts difflib leaves out frequent ones, to be fast
BINARY = 8000  # bytes that are searched for NUL, as git does
MOVED_NS = 10**9  # the two names of a moved file are noted within one call

_LFS = b"version https://git-lfs.github.com/spec/"


class NoLines(Exception):
    """The file has no lines that could be told apart; the message says why."""


class Line:
    """One line of the present file, with its line end.

    authors   all that may have written it, empty for a committed line
    ended_by  of a committed line with another line end than in the commit: all that may have changed its end
    head      index of a committed line in the last commit, else None
    """

    __slots__ = ("text", "authors", "ended_by", "head")

    def __init__(self, text: bytes, authors: Authors, ended_by: Authors = (), head: int | None = None):
        self.text = text
        self.authors = authors
        self.ended_by = ended_by
        self.head = head

    @property
    def is_committed(self) -> bool:
        return not self.authors

    @property
    def author(self) -> Author | None:
        """The one author; None for a committed line, or for several possible authors."""
        return self.authors[0] if len(self.authors) == 1 else None


class Change(NamedTuple):
    """One place where the file differs from the last commit.

    old, new      index of the first line there, in the commit and in the present file
    removed       lines of the commit, `authors` of each: all that may have removed it
    added         lines of the present file
    """

    old: int
    new: int
    removed: list[Line]
    added: list[Line]

    @property
    def authors(self) -> list[Author]:
        """All that may have taken part, without repeats."""
        return list(dict.fromkeys(author for line in (*self.removed, *self.added) for author in line.authors))


class Element:
    """A line during the fold, of a version or removed since.

    head        its index in the last commit, or None
    was_removed_by  of a line that an undo has brought back: all that may have removed it before
    laid_from   the committed lines of which it is another layout
    layouts     number of the present lines that are another layout of this one
    laid_of     lines that have become this one by their new layout
    laid_by     all that may have given it that
    """

    __slots__ = (
        "text", "authors", "head", "removed_by", "ended_by", "was_removed_by", "laid_from", "layouts", "laid_of",
        "laid_by",
    )  # fmt: skip

    def __init__(self, text: bytes, authors: Authors, head: int | None = None):
        self.text = text
        self.authors = authors
        self.head = head
        self.removed_by: Authors = ()
        self.ended_by: Authors = ()  # all that may have changed its line end last
        self.was_removed_by: Authors = ()
        self.laid_from: list[Element] = []
        self.layouts = 0
        self.laid_of: list[Element] = []
        self.laid_by: Authors = ()


class Hunk(NamedTuple):
    """One place that a step changed: the lines there, and the line before them at that time, None for the first."""

    left: Element | None
    removed: list[Element]
    added: list[Element]


class Fold:
    """The fold over the steps of one file. Raises NoLines, OSError.

    path        absolute, links resolved
    committed   its content in the last commit, empty if it has none; None: git is asked
    until_ns    as of that time, for a file that was moved away then
    notes       of a question about many files

    head        the lines of the last commit
    writers     all sessions that may have written the file
    first       the lines that the fold begins with
    hunks       the places that the steps changed, in order
    """

    def __init__(
        self, path: str, committed: bytes | None = None, until_ns: int = 0, notes: Notes | None = None
    ):  # fmt: skip
        self.path = path
        self._notes = notes or Notes()
        for _look in self._notes.rounds(os.path.dirname(path)):
            data, present = _present(path)
            history = History(path, data * (not until_ns), present, until_ns, self._notes)
        if committed is None:
            committed = _committed(self.path, SECONDS)
        # Raise NoLines if a file with this content in the last commit has no lines
        if b"\0" in committed[:BINARY]:
            raise NoLines("binary in the last commit")
        if committed.startswith(_LFS):
            raise NoLines("a git-lfs pointer in the last commit")
        self.ignores_ends = bool(committed) and b"\r\n" not in committed
        self.head = split_lines(committed)
        self.removed: list[Element] = []  # in the order of their removal
        self.alive: list[Element] = []
        self.hunks: list[Hunk] = []
        self._known_lines: list[Line] = []
        self._known_changes: list[Change] | None = None
        self.writers = history.writers()
        self._follow(history)

    def lines(self) -> list[Line]:
        """Return the present lines."""
        if not self._known_lines:
            committed = {new: old for old, new in self._pairs}
            self._known_lines = [
                Line(one.text, (), one.ended_by or one.authors or (PERSON,), committed[index])
                if index in committed
                else Line(one.text, one.authors or (PERSON,))
                for index, one in enumerate(self.alive)
            ]
        return self._known_lines

    def changes(self) -> list[Change]:
        """Return the places where the present lines differ from the commit."""
        if self._known_changes is None:
            found, old, new, lines = [], 0, 0, self.lines()
            for old_end, new_end in [*self._pairs, (len(self.head), len(lines))]:
                if old < old_end or new < new_end:
                    removed = [self.removed_line(index) for index in range(old, old_end)]
                    found.append(Change(old, new, removed, lines[new:new_end]))
                    self._tie_layouts(found[-1])
                old, new = old_end + 1, new_end + 1
            self._known_changes = found
        return self._known_changes

    def _tie_layouts(self, change: Change) -> None:
        """Give the removal of a line that was committed before it was laid out anew, and its new layout, one owner."""
        before = {
            one: line
            for index, line in enumerate(change.removed, change.old)
            for one in self.removed_as(index)
            if one.head is None
        }
        for line, one in zip(change.added, self.alive[change.new :]):
            for old in one.laid_of:
                if old in before:
                    line.authors = before[old].authors = _merged(before[old].authors, one.laid_by)

    # ------------------------------------------------------------------------------------------- the fold

    def _follow(self, history: History) -> None:
        steps, moments = history.steps(), history.moments
        self.alive = [Element(text, (), index) for index, text in enumerate(self.head)]
        # Not right before or after an undo: lines that come back with the undo of that keep their authors.
        heads = (at for at in reversed(range(len(moments))) if self._is_head(moments[at]))
        first = next((at for at in heads if moments[at].tool != UNDO), None)
        if first is not None:
            texts = split_lines(moments[first].content())
            self.alive = [Element(text, (), index) for index, text in enumerate(texts)]
            for one, text in zip(self.alive, self.head):
                if one.text != text:
                    one.ended_by = history.earlier()
        self.first = self.alive
        if first is None and moments:
            first = 0
            self._step(split_lines(moments[0].content()), history.earlier())
            # A line that came with a later commit may have come, and gone, in one of the steps.
            later = dict.fromkeys(author for step in steps for author in step.authors)
            older = self._older_than(moments[0].at_ns)
            for one in self.removed:
                if one.head not in older:
                    one.removed_by = _merged(one.removed_by, tuple(later))
        self.before_steps = len(self.removed)
        for step in steps[first:]:
            content = split_lines(step.after.content())
            moved = None
            if content and not step.before.exists:
                moved = self._moved_from(step, content)
            if moved is not None:
                self.hunks.append(Hunk(None, [], moved))
                self.alive = moved
            if step.is_layout:
                self._lay_out(content, step.authors)
            elif moved is None or step.source:
                self._step(content, step.authors, step.is_undo or step.is_left, step.moves)

    def _step(self, content: list[bytes], authors: Authors, is_undo: bool = False, moves: bool = False) -> None:
        """Go on to the next `content`. Its new lines may be by any of these authors.

        `is_undo`: a line that was removed before comes back, with its own authors. `moves`: so does one that was moved.
        """
        alive: list[Element] = []
        gone: list[Element] = []  # one that is moved does not come back with its new place
        present = [one.text for one in self.alive]
        if present == content:
            return  # mostly: a look after a write
        parts = _equal_parts(self.compared(present), self.compared(content))
        moved: dict[bytes, Authors] = {}
        if moves:
            moved = self._words_without(parts)
        old = new = 0
        for old_start, new_start, size in [*parts, (len(self.alive), len(content), 0)]:
            removed = self.alive[old:old_start]
            added: list[Element] = []
            for one in removed:
                self._remove(one, authors)
            gone += removed
            for text in content[new:new_start]:
                if writers := moved.pop(words_of(text), ()):
                    added.append(Element(text, writers))
                elif is_undo:
                    added.append(self._returned(text, authors))
                else:
                    added.append(Element(text, authors))
            if removed or added:
                self.hunks.append(Hunk(next(reversed(alive), None), removed, added))
            alive += added
            old, new = old_start + size, new_start + size
            kept = self.alive[old_start:old]
            for one, text in zip(kept, content[new_start:new]):
                if one.text != text:  # another line end
                    one.text, one.ended_by = text, authors
            alive += kept
        self.alive = alive
        self.removed += gone

    @staticmethod
    def _remove(one: Element, authors: Authors) -> None:
        """Note the authors of a line's removal. The undo of an undo gives a removal back to its own authors."""
        if one.was_removed_by and all(author.tool == UNDO for author in authors):
            authors = one.was_removed_by
        one.removed_by = authors
        for before in one.laid_from:  # until now it had only been laid out anew
            before.layouts -= 1
            if before.layouts:
                before.removed_by = _merged(before.removed_by, authors)
            else:
                before.removed_by = authors

    def _words_without(self, parts: list[tuple[int, int, int]]) -> dict[bytes, Authors]:
        """Return ``{words: authors}`` of the present lines outside of these equal parts that are not committed."""
        kept = {index for start, _new, size in parts for index in range(start, start + size)}
        found = ((words_of(one.text), one.authors) for index, one in enumerate(self.alive) if index not in kept)
        return {words: authors for words, authors in found if words}

    def _lay_out(self, content: list[bytes], authors: Authors) -> None:
        """Go on to the next `content`, which has the words of the present lines in another layout.

        A line keeps the authors of its words. Where these are committed, the new layout is by any of the `authors`.
        """
        alive: list[Element] = []
        sources, kept = Sources([one.text for one in self.alive]), set()
        all_taken = []
        for text in content:
            taken = sources.take(text)
            all_taken.append(taken)
            found = [self.alive[index] for index in taken]
            if len(found) == 1 and self.compared([found[0].text]) == self.compared([text]):
                if found[0].text != text:  # another line end
                    found[0].text, found[0].ended_by = text, authors
                kept.add(taken[0])
                alive.append(found[0])
                continue
            writers = dict.fromkeys(author for one in found for author in one.authors)
            alive.append(Element(text, tuple(writers) or authors))
            alive[-1].laid_of = [old for one in found for old in (one, *one.laid_of)]
            alive[-1].laid_by = _merged(authors, *(one.laid_by for one in found))
            alive[-1].laid_from = [one for old in found for one in (old.laid_from or [old]) if one.head is not None]
            for one in alive[-1].laid_from:
                one.layouts += 1
        for index, one in enumerate(self.alive):
            if index not in kept:
                one.removed_by = authors
                self.removed.append(one)
                for before in one.laid_from:
                    before.layouts -= 1
        self._note_layout(alive, all_taken)
        self.alive = alive

    def _note_layout(self, alive: list[Element], taken: list[list[int]]) -> None:
        """Note the hunks of a new layout with the lines `alive`. `taken`: the indices of their sources."""
        hunk, left, old = Hunk(None, [], []), None, 0
        for one, sources in zip(alive, taken):
            end = max([old, *(index + 1 for index in sources)])
            removed, added = self.alive[old:end], [one]
            if one in removed:  # as it was
                removed.remove(one)
                added = []
            if added and hunk.added and sources and sources[0] < old:  # broken off the same line
                hunk.removed.extend(removed)
                hunk.added.append(one)
            else:
                hunk = Hunk(left, removed, added)
                self.hunks.append(hunk)
            left, old = one, end
        self.hunks.append(Hunk(left, self.alive[old:], []))

    def _returned(self, text: bytes, authors: Authors) -> Element:
        """Return the line with this text that was removed last, or a new one."""
        for one in reversed(self.removed):
            if one.text == text:
                self.removed.remove(one)
                one.was_removed_by, one.removed_by = one.removed_by, ()
                for before in one.laid_from:
                    before.layouts += 1
                    before.removed_by = one.authors
                return one
        return Element(text, authors)

    def _is_head(self, moment: Moment) -> bool:
        if not self.head or not moment.exists:
            return False
        return self.compared(split_lines(moment.content())) == self.compared(self.head)

    def _moved_from(self, step: Step, content: list[bytes]) -> list[Element] | None:
        """Return the lines of a file that this step has brought from another name, or None.

        Those are the lines before the changes that a patch may have made at the same time.
        """
        data, at_ns, notes = b"".join(content), step.before.at_ns, self._notes.of(os.path.dirname(self.path))
        for path, version in notes.kept_between(step.before.journal, at_ns - MOVED_NS, at_ns + MOVED_NS):
            is_patched = path == step.source  # perhaps with changes
            if path == self.path or version.is_lost or not (is_patched or version.size == len(data)):
                continue
            if os.path.lexists(path) or not (is_patched or version.content() == data):
                continue
            source = Fold(path, until_ns=version.at_ns, notes=self._notes).alive
            if b"".join(one.text for one in source) == version.content():
                return [Element(one.text, one.authors or step.authors) for one in source]
        return None

    # ------------------------------------------------------------------------------------------- the commit

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """``[(index in the commit, index in the present file)]`` of the committed lines, in order."""
        known = [(one.head, index) for index, one in enumerate(self.alive) if one.head is not None]
        heads = [head for head, _index in known]
        parts = _equal_parts(sorted(heads), heads)  # undos may have brought lines back at other places
        fixed = [known[at + number] for _sorted, at, size in parts for number in range(size)]
        found, old, new = [], 0, 0
        for old_end, new_end in [*fixed, (len(self.head), len(self.alive))]:
            if old < old_end and new < new_end:  # perhaps lines that were committed after a session had written them
                gap_old = self.compared(self.head[old:old_end])
                gap_new = self.compared([one.text for one in self.alive[new:new_end]])
                for old_start, new_start, size in _equal_parts(gap_old, gap_new):
                    found += [(old + old_start + index, new + new_start + index) for index in range(size)]
            found.append((old_end, new_end))
            old, new = old_end + 1, new_end + 1
        return found[:-1]

    def compared(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines as they are compared with the commit: without ends, if git converts them."""
        return [line.rstrip(b"\r\n") for line in lines] if self.ignores_ends else lines

    def _older_than(self, at_ns: int) -> set[int]:
        """Return the indices of the lines of the last commit that all commits of HEAD had since that time."""
        contents = contents_since(self.path, at_ns)
        if contents is None:
            return set()
        found, head = set(range(len(self.head))), self.compared(self.head)
        for content in contents:
            parts = _equal_parts(head, self.compared(split_lines(content)))
            found &= {index for start, _other, size in parts for index in range(start, start + size)}
        return found

    def removed_line(self, index: int) -> Line:
        """Return the committed line with this index, by all that may have removed it."""
        authors = _merged(*(one.removed_by for one in self.removed_as(index)))
        return Line(self.head[index], authors or (PERSON,))

    def added_line(self, index: int) -> Line:
        """Return the present line with this index, by all that may have written it."""
        return Line(self.alive[index].text, self.alive[index].authors or (PERSON,))

    def removed_as(self, index: int) -> list[Element]:
        """Return the removed lines that may be the committed one with this index.

        It may have come, been committed and gone since the first version: then it is an equal line of the steps.
        """
        same = self._removed_texts.get(self.compared([self.head[index]])[0], [])
        own = [one for one in same if one.head == index]
        later = own or [one for one in same if one.head is None]
        return later or [one for one in self.removed if one.head == index]

    @cached_property
    def _removed_texts(self) -> dict[bytes, list[Element]]:
        """The lines that the steps removed, by their text as it is compared. Asked once the fold is over."""
        found: dict[bytes, list[Element]] = {}
        for one in self.removed[self.before_steps :]:
            found.setdefault(self.compared([one.text])[0], []).append(one)
        return found


def _merged(*authors: Authors) -> Authors:
    return tuple(dict.fromkeys(one for some in authors for one in some))


def _equal_parts(old: Sequence[object], new: Sequence[object]) -> list[tuple[int, int, int]]:
    return equal_parts(old, new, exact_up_to=POPULAR) or []


def _present(path: str) -> tuple[bytes, os.stat_result | None]:
    """Return ``(content, state)`` of the file; ``(b"", None)`` if it is missing. Raises NoLines, OSError."""
    try:
        with FolderOf(path) as (name, folder):
            found = os.lstat(name, dir_fd=folder)
            if not stat.S_ISREG(found.st_mode):
                raise NoLines("not a plain file")
            if found.st_size > LIMIT_BYTES:
                raise NoLines(f"larger than {LIMIT_BYTES // 1024} KiB")
            data = read(name, LIMIT_BYTES, folder)[1]
    except (FileNotFoundError, NotADirectoryError):
        return b"", None  # removed, or never made
    if b"\0" in data[:BINARY]:
        raise NoLines("binary")
    return data, found


def _committed(path: str, seconds: float) -> bytes:
    """Return the file's content in the last commit, empty if it has none. Raises NoLines, OSError."""
    try:
        end = time.monotonic() + seconds
        if not is_as_committed(path, seconds):
            raise NoLines("git has a filter change its content, or the commit's content is not in this clone")
        text = committed_text(path, end - time.monotonic())
    except Refused:
        return b""  # not in the last commit, no commit yet, or no repository
    except NoAnswer as error:
        raise OSError(f"git does not answer: {error}") from None
    data: bytes = text.encode("utf-8", "surrogateescape")
    return data

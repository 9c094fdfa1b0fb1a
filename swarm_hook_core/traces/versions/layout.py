"""Changes of layout: the same words and digits in the same order, spaced, quoted or broken into lines in another way.

A formatter makes them after a call, and so does a client that saves a file with other line ends or without its byte
order mark. A file that a call has named belongs to its session in that respect until the session's next call
(``steps``). The words keep their authors: a person's line that was laid out anew is still the person's.

A changed operator is no layout, nor is a moved line. In lines that a call has just brought, only letters and digits
count.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from swarm_hook_core.traces.equal_lines import equal_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    Lines = Counter[bytes]

EXACT_UP_TO = 2000  # lines that are compared exactly
MARK = b"\xef\xbb\xbf"  # the byte order mark
_SPACES = b" \t\r\n\f\v"
_SPACING = _SPACES + b"'\",;()"  # formatters put in and take out round brackets, too
_SIGNS = bytes(sign for sign in range(128) if not chr(sign).isalnum())
_SPACED = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))


def words_of(line: bytes) -> bytes:
    """Return the line without spaces, quotes, commas, semicolons, round brackets, its end and a byte order mark."""
    return line.replace(MARK, b"").translate(None, _SPACING)


def letters_of(line: bytes) -> bytes:
    """Return the letters and digits of the line."""
    return line.replace(MARK, b"").translate(None, _SIGNS)


def laid_out(old: Sequence[bytes], new: Sequence[bytes], own: Lines | None = None) -> list[bytes]:
    """Return the lines `old` with those changes towards `new` that are changes of layout.

    own  the lines that calls have just brought: only these may be laid out anew; None: all lines
    """
    if old == new:  # mostly: a look after a write
        return [*old]
    made: list[bytes] = []
    at_old = at_new = 0
    parts = equal_parts(_words(old), _words(new), exact_up_to=EXACT_UP_TO) or []
    for old_start, new_start, size in [*parts, (len(old), len(new), 0)]:
        around = old[max(at_old - 1, 0) : old_start + 1]
        for one, other in _parted(old[at_old:old_start], new[at_new:new_start]):
            made += (one, other)[_is_layout(one, other, own, around)]
        for line, as_found in zip(old[old_start : old_start + size], new[new_start : new_start + size]):
            made.append((line, as_found)[own is None or own[line] > 0])
        at_old, at_new = old_start + size, new_start + size
    return made


def _parted(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[Sequence[bytes], Sequence[bytes]]]:
    """Return ``[(lines of old, lines of new)]``: the beginning with the same words, the rest, and such an end."""
    begin_old, begin_new = _alike(_words(old), _words(new))
    rest = ([words[::-1] for words in _words(lines)[::-1]] for lines in (old[begin_old:], new[begin_new:]))
    end_old, end_new = _alike(*rest)
    last_old, last_new = len(old) - end_old, len(new) - end_new
    return [
        (old[:begin_old], new[:begin_new]),
        (old[begin_old:last_old], new[begin_new:last_new]),
        (old[last_old:], new[last_new:]),
    ]


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """Return the numbers of lines at the beginning that have the same words. `old`, `new`: the words of each line."""
    ends_old, ends_new = list(accumulate(map(len, old))), list(accumulate(map(len, new)))
    same = len(os.path.commonprefix([b"".join(old), b"".join(new)]))
    end = max((end for end in {*ends_old} & {*ends_new} if end <= same), default=0)
    return bisect_right(ends_old, end), bisect_right(ends_new, end)


def _is_layout(old: Sequence[bytes], new: Sequence[bytes], own: Lines | None, around: Sequence[bytes]) -> bool:
    """Return True if the change of these lines is one of layout.

    `around`: the lines, and those beside them: a blank line is put in or taken out beside them.
    """
    if own is None:
        return b"".join(_words(old)) == b"".join(_words(new))
    if b"".join(map(letters_of, old)) != b"".join(map(letters_of, new)):
        return False
    if any(line.strip() for line in old):
        return all(own[line] for line in old if line.strip())
    return any(own[line] for line in around if line.strip())


def brings_words(old: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Return True if `new` has a word more often than `old`. Lines that were moved, merged or removed bring none."""
    return old != new and any(_counted(b"".join(new)) - _counted(b"".join(old)))


class Words:
    """The words of a content that calls change one after the other, beside those of the content `after` them all."""

    def __init__(self, before: bytes, after: bytes):
        self._present = _counted(before)
        self._after = _counted(after)

    def are_found(self, brought: Lines, removed: Lines) -> bool:
        """Go on by a call that has brought and removed these lines. Return True if `after` shows all that."""
        new, old = (_counted(b"".join(lines.elements())) for lines in (brought, removed))
        changes = {word: new[word] - old[word] for word in {*new, *old} if new[word] != old[word]}
        found = bool(changes)
        for word, change in changes.items():
            self._present[word] += change
            more = self._after[word] - self._present[word]
            found = found and (more == 0 or (more > 0) == (change > 0))
        return found


def _counted(text: bytes) -> Lines:
    return Counter(text.translate(_SPACED).split())


def _words(lines: Sequence[bytes]) -> list[bytes]:
    return [words_of(line) for line in lines]


class Sources:
    """The lines `old` from which the lines of a new layout come, by the place of their letters.

    ``take(line)`` is called for each new line, in order. It returns the indices of the old lines with its letters; of a
    line without any, that of the line with its signs at that place, or else of the line before.
    """

    def __init__(self, old: Sequence[bytes]):
        self._old = old
        self._spans: list[tuple[int, int]] = []  # of the letters of each old line
        end = 0
        for line in old:
            self._spans.append((end, end + len(letters_of(line))))
            end = self._spans[-1][1]
        self._next = 0  # index of the first old line that may still be taken
        self._last = -1  # index of the line that was taken last
        self._at = 0  # letters of the new lines so far

    def take(self, line: bytes) -> list[int]:
        start, self._at = self._at, self._at + len(letters_of(line))
        if start == self._at:
            signs = line.translate(None, _SPACES)
            for index in range(self._next, len(self._old)):
                begin, end = self._spans[index]
                if begin > self._at or begin < end:
                    break
                if self._old[index].translate(None, _SPACES) == signs:
                    self._next = index + 1
                    return [index]
            if signs and self._last >= 0:
                return [self._last]  # they were broken off that line
            return []
        found = []
        for index in range(self._next, len(self._old)):
            begin, end = self._spans[index]
            if begin >= self._at:
                break
            if begin < end and end > start:
                found.append(index)
        if found:
            self._last = found[-1]
            self._next = found[-1] + (self._spans[found[-1]][1] <= self._at)
        return found


def lines_kept(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return ``[(index in old, index in new, 1)]`` of the lines with one line in their place in a new layout."""
    sources = Sources(old)
    taken = [sources.take(line) for line in new]
    times = Counter(index for found in taken for index in found)
    return [(found[0], at, 1) for at, found in enumerate(taken) if len(found) == 1 and times[found[0]] == 1]

"""Steps of a file parted: by changes of layout, and by what the inputs of write tools explain.

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
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from swarm_hook_core.traces.changed_lines import equal_parts, split_lines

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


# One step of a file, parted by what the inputs of write tools explain.
#
# Between two known contents of a file there are calls with known inputs. Each is replayed on the content before it. The
# lines that an input brings, and those that it removes, are its call's, whenever the write was made. What is left over
# between the last replayed content and the one that was found is another's.
#
# A call may have failed, or its user may have refused it: its lines are not there. If nothing of it is there, and all
# that it would remove still is, it counts as never made. If what it would remove is gone but nothing that it would
# bring is there, another one may have removed it: then both are authors.
#
# A client may run a formatter after a call. A change that only lays out anew the lines that a call has just brought is
# that call's. Another change beside such a one may be the formatter's or a person's.

# the possible contents after a call, by the content before it
Replay = Callable[["bytes | None"], "list[bytes | None]"]
Calls = Sequence[tuple[Any, Replay, bool]]
Made = list[tuple[int, "bytes | None"]]

MOST_CALLS = 60  # of one step that are parted; of more, the first ones count as one
MOST_TESTED = 40  # calls that are left out in turn, to see if they were made


class Part:
    """A content that one call has left.

    call      the caller's own value for the call; of several, the last one
    content   None: no file
    is_sure   False if another author may have removed what the call would have removed
    is_layout True if it only lays out the lines before it anew
    others    calls that may have left it just as well
    """

    __slots__ = ("call", "content", "is_sure", "is_layout", "others")

    def __init__(self, call: Any, content: bytes | None, is_layout: bool = False):
        self.others: list[Any] = []
        self.is_layout = is_layout
        self.call = call
        self.content = content
        self.is_sure = True


class Explained:
    """The step from `before` to `after` (None: no file), parted by what calls explain.

    `calls`: ``[(value, replay, may be made later)]`` in the order of time.

    parts      the contents that calls have left, in order; the last one is `after` if nothing is left over
    fitting    calls that were replayed, or changed nothing: their writes are over
    unfitting  calls with an input that did not fit: they may have made what is left over, or have failed
    formatted  True if a formatter has changed lines of the calls
    """

    def __init__(self, before: bytes | None, after: bytes | None, calls: Calls):
        self.fitting: list[Any] = []
        self.unfitting: list[Any] = []
        self.formatted = False
        self._before, self._after = before, after
        made = self._replayed(calls, is_noted=True)
        if self._last(made) != after and not _is_laid_out(before, self._last(made), after):
            made = self._without_unmade(made, calls)
        self.parts = [Part(calls[index][0], content) for index, content in made]
        self.fitting += [calls[index][0] for index, _content in made]
        last = self._last(made)
        if self.unfitting:
            for part, (index, _content) in zip(self.parts[:MOST_TESTED], made):
                if self._last(self._replayed(calls, without=index)) == last:
                    part.others = list(self.unfitting)
        if last != after and made:
            base, is_same = before, _is_laid_out(before, last, after)
            words = Words(before or b"", after or b"")
            for part, (index, content) in zip(self.parts, made):
                is_evident = _is_evident(base, content, after, words)
                part.is_sure = is_same or is_evident or self._is_needed(made, calls, index)
                base = content
            self._add_formatted()
        # The last parts. The first of them has the lines of all earlier ones: any of their calls may be its own.
        few = self.parts[-MOST_CALLS:]
        for part in self.parts[:-MOST_CALLS]:
            few[0].others += [part.call, *part.others]
            few[0].is_sure = few[0].is_sure and part.is_sure
        self.parts = few

    def _last(self, made: Made) -> bytes | None:
        if not made:
            return self._before
        return made[-1][1]

    def _replayed(self, calls: Calls, without: int = -1, is_noted: bool = False) -> Made:
        """Return ``[(index of the call, content after it)]`` of the calls that change something.

        `without`: index of a call to leave out. `is_noted`: note the others that fit, and those that do not.
        """
        made: Made = []
        content = self._before
        for index, (call, replay, _is_open) in enumerate(calls):
            options = [content]
            if index != without:
                options = replay(content)
            if not options:
                if is_noted:
                    self.unfitting.append(call)
                continue
            best = options[0]
            if self._after in options:
                best = self._after
            elif len(options) > 1:
                wanted = _counted_lines(self._after)
                best = min(options, key=lambda option: _distance(_counted_lines(option), wanted))
            if best != content:
                made.append((index, best))
                content = best
            elif is_noted:
                self.fitting.append(call)
        return made

    def _without_unmade(self, made: Made, calls: Calls) -> Made:
        """Return `made` without the calls that were never made, as far as the content that was found tells."""
        kept = list(calls)
        wanted, base, unmade = _counted_lines(self._after), self._before, []
        words = Words(self._before or b"", self._after or b"")
        for index, content in made:
            old, new = _counted_lines(base), _counted_lines(content)
            brought, removed = new - old, old - new
            is_there = words.are_found(brought, removed) or _is_shown(brought, old, wanted)
            if not is_there and _are_kept(removed, old, wanted):
                unmade.append(index)
            base = content
        for index in unmade[:MOST_TESTED]:
            if self._is_needed(made, kept, index):
                continue
            call, _replay, is_open = kept[index]
            kept[index] = (call, lambda content: [content], is_open)
            if not is_open:
                self.fitting.append(call)
            made = self._replayed(kept)
        return made

    def _is_needed(self, made: Made, calls: Calls, index: int) -> bool:
        """Return True if the content that was found is farther away without this call: a later one may rest upon it.

        So it is also without a look at the layout, which a formatter may have changed in all lines.
        """
        if len(made) > MOST_TESTED:
            return False
        contents = (self._last(self._replayed(calls, without=index)), self._last(made), self._after)
        farther, nearer, wanted = map(_counted_lines, contents)
        if _distance(farther, wanted) <= _distance(nearer, wanted):
            return False
        return _distance(_lettered(farther), _lettered(wanted)) > _distance(_lettered(nearer), _lettered(wanted))

    def _add_formatted(self) -> None:
        """Add a part with the changes of the calls' own lines that a formatter may have made, if there are any."""
        last = self.parts[-1]
        if last.content is None or self._after is None:
            return
        own, base = Counter[bytes](), self._before
        for part in self.parts:
            own |= _counted_lines(part.content) - _counted_lines(base)
            base = part.content
        made = b"".join(laid_out(split_lines(last.content), split_lines(self._after), own))
        if made != last.content:
            self.formatted = True
            self.parts.append(Part(last.call, made, is_layout=True))


def _is_laid_out(before: bytes | None, content: bytes | None, after: bytes | None) -> bool:
    """Return True if `after` is `content` in another layout, and both have other words than `before`."""
    if content is None or after is None or words_of(content) != words_of(after):
        return False
    return words_of(content) != words_of(before or b"")


def _is_evident(base: bytes | None, content: bytes | None, after: bytes | None, words: Words) -> bool:
    """Return True if a line that the call has brought is there; of a call that only removes, if all that is gone."""
    old, new, wanted = _counted_lines(base), _counted_lines(content), _counted_lines(after)
    brought, removed = new - old, old - new
    if words.are_found(brought, removed) or _is_shown(brought, old, wanted):
        return True
    return not brought and all(wanted[line] < old[line] for line in removed) and not _are_kept(removed, old, wanted)


def _is_shown(brought: Lines, old: Lines, wanted: Lines) -> bool:
    """Return True if one of these lines is there more often than before, perhaps in another layout."""
    if any(wanted[line] > old[line] for line in brought):
        return True
    before, after = _lettered(old), _lettered(wanted)
    return any(after[letters] > before[letters] for letters in _lettered(brought))


def _are_kept(removed: Lines, old: Lines, wanted: Lines) -> bool:
    """Return True if all of these lines are there as often as before, perhaps in another layout."""
    if all(wanted[line] >= old[line] for line in removed):
        return True
    before, after, gone = _lettered(old), _lettered(wanted), _lettered(removed)
    return bool(gone) and all(after[letters] >= before[letters] for letters in gone)


def _lettered(lines: Lines) -> Lines:
    """Return the lines by their letters and digits alone, without those that have none."""
    found: Lines = Counter()
    for line, count in lines.items():
        found[letters_of(line)] += count
    del found[b""]
    return found


def _counted_lines(content: bytes | None) -> Lines:
    return Counter(split_lines(content or b""))


def _distance(one: Lines, other: Lines) -> int:
    return sum(((one - other) + (other - one)).values())

"""The weave of a file: all lines that it has had, in one order, each with the steps that brought and removed it.

Taking back a set of steps is leaving them out: a line is in the result if the last of the other steps that brought or
removed it brought it. Lines of other steps stay as they are, byte for byte.

Lines are compared without their ends, so that a converted file, or a missing newline at its end, changes no line's
owner. A line in a new layout is the same line, with another text. A binary content is one line.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

from swarm_hook_core.traces.changed_lines import equal_parts, split_lines
from swarm_hook_core.traces.versions.layout import lines_kept, words_of

BASE = -1  # the step of lines that were there at first
EXACT = 2000  # lines; in longer texts difflib leaves out frequent ones, to be fast


class Element:
    """A line of the weave.

    key        the present text without its end
    lives      ``[(step, True if the step brought the line)]``, in order
    texts      ``[(step, text with its end)]``
    committed  the line in the last commit, without its end, if that has it
    replaced   the hunk that removed a missing line last, unless it was an undo
    """

    __slots__ = ("key", "lives", "texts", "committed", "replaced", "place")

    def __init__(self, key: bytes, text: bytes, step: int):
        self.key = key
        self.lives = [(step, True)]
        self.texts = [(step, text)]
        self.committed: bytes | None = None
        self.replaced: Hunk | None = None
        self.place = 0  # index in the weave, once it is complete

    @property
    def is_alive(self) -> bool:
        return self.lives[-1][1]

    @property
    def born(self) -> int:
        return self.lives[0][0]

    @property
    def is_committed(self) -> bool:
        return self.committed is not None

    def lives_without(self, steps: Collection[int]) -> bool:
        """Return True if the line is there when these steps are left out. A line that is committed stays."""
        others = (brought for step, brought in reversed(self.lives) if step not in steps)
        return next(others, self.is_committed)

    def text_without(self, steps: Collection[int]) -> bytes:
        """Return the text, with layout and line end of the last other step. A layout that is committed stays."""
        first = self.texts[0][1]
        layout = self.committed
        if layout == _without_end(first):
            layout = None
        others = (text for step, text in reversed(self.texts) if step not in steps or _without_end(text) == layout)
        return next(others, first)


class Hunk:
    """One place that a step changed: the lines removed and added there, and the neighbours at that time.

    Lines that the step laid out anew count as added.
    """

    __slots__ = ("step", "removed", "added", "left", "right")

    def __init__(self, step: int, removed: list[Element], added: list[Element], around: tuple[Element | None, ...]):
        self.step = step
        self.removed = removed
        self.added = added
        self.left, self.right = around

    @property
    def changed(self) -> list[Element]:
        return [*self.removed, *self.added]


class Conflict:
    """Lines of another step that stand in the way: `lines` counts from 1 in the present file; it may be empty."""

    __slots__ = ("step", "lines")

    def __init__(self, step: int, lines: list[int]):
        self.step = step
        self.lines = lines


class Weave:
    """The weave of a file with this first `content`. `is_binary`: contents are not split into lines."""

    def __init__(self, content: bytes, is_binary: bool):
        self.is_binary = is_binary
        self.elements = [Element(self._key(text), text, BASE) for text in self._split(content)]
        self.hunks: list[Hunk] = []
        self._layouts: set[int] = set()  # steps that only laid lines out anew
        self._laid_out: set[bytes] = set()  # words of lines that have several layouts
        self._undos: dict[int, int | None] = {}  # step of an undo -> the undo that it takes back, or None

    # ------------------------------------------------------------------------------------------ building

    def follow(self, step: int, content: bytes, is_layout: bool = False, is_undo: bool = False) -> None:
        """Go on to the `content` after `step`.

        `is_layout`: it has the same words in another layout. `is_undo`: removed lines come back.
        """
        alive, texts, new = self._alive(), self._split(content), []
        if is_layout:
            self._layouts.add(step)
            parts = lines_kept([one.texts[-1][1] for one in alive], texts)
        else:
            parts = equal_parts([one.key for one in alive], list(map(self._key, texts)), exact_up_to=EXACT) or []
        old_end = new_end = 0
        for old, at, size in [*parts, (len(alive), len(texts), 0)]:
            removed = alive[old_end:old]
            added = [Element(self._key(text), text, step) for text in texts[new_end:at]]
            if removed or added:
                around = (alive[old_end - 1] if old_end else None, alive[old] if old < len(alive) else None)
                before = removed[-1] if removed else around[0]
                if is_undo:
                    new += self._return(step, added, around, before)
                else:
                    new.append((before, added))
                self.hunks.append(Hunk(step, removed, added, around))
            for one in removed:
                one.lives.append((step, False))
                one.replaced = self.hunks[-1]
            for one, text in zip(alive[old : old + size], texts[at : at + size]):
                if one.key != self._key(text):
                    self._lay_out(step, one, alive[max(old - 1, 0)])
                self._set_text(step, one, text)
            old_end, new_end = old + size, at + size
        self._insert(new)

    def _return(
        self, step: int, added: list[Element], around: Sequence[Element | None], before: Element | None
    ) -> list[tuple[Element | None, list[Element]]]:
        """Put lines that were removed between two lines in the place of equal ones in `added`.

        Return the others, in runs, each with the line before them in the weave. `before`: that of all, without these.
        """
        first, end = 0, len(self.elements)
        if around[0]:
            first = self.elements.index(around[0]) + 1
        if around[1]:
            end = self.elements.index(around[1], first)
        gone = [(place, one) for place, one in enumerate(self.elements[first:end], first) if not one.is_alive]
        parts = equal_parts([one.key for _place, one in gone], [one.key for one in added], exact_up_to=EXACT) or []
        runs: list[tuple[Element | None, list[Element]]] = []
        at = 0
        for old, new, size in parts:
            if not at:
                before = self.elements[gone[old][0] - 1] if gone[old][0] else None
            runs.append((before, added[at:new]))
            for (_place, one), other in zip(gone[old : old + size], added[new : new + size]):
                one.lives.append((step, True))
                one.replaced = None
                self._set_text(step, one, other.texts[0][1])
            added[new : new + size] = [one for _place, one in gone[old : old + size]]
            before, at = added[new + size - 1], new + size
        return [*runs, (before, added[at:])]

    def _lay_out(self, step: int, one: Element, before: Element) -> None:
        """Note that the step gives this line, behind the line `before`, another layout. Neighbours make one hunk."""
        self._laid_out.add(words_of(one.key))
        last = self.hunks[-1].added[-1:] if self.hunks else []
        if last != [before] or self.hunks[-1].step != step:
            self.hunks.append(Hunk(step, [], [], (None, None)))
        self.hunks[-1].added.append(one)

    def _set_text(self, step: int, one: Element, text: bytes) -> None:
        if one.texts[-1][1] != text:
            one.texts.append((step, text))
            one.key = self._key(text)

    def follow_undo(self, step: int, content: bytes, taken_back: Collection[int]) -> None:
        """Go on to the `content` after `step`, an undo of the steps `taken_back`."""
        steps = set(taken_back)
        target = next(iter(steps)) if len(steps) == 1 and steps <= set(self._undos) else None
        without = self.all_without(steps)
        if self.content_without(steps) == content:
            self._follow_exactly(step, without)
        else:  # a part of them
            self.follow(step, content, is_undo=True)
        self._undos[step] = target

    def _follow_exactly(self, step: int, without: Collection[int]) -> None:
        """Note for each line that leaving out the steps `without` changes it. Neighbours make one hunk."""
        hunk = Hunk(step, [], [], (None, None))
        for one in self.elements:
            lives, is_changed = one.lives_without(without), self._is_changed(one, (), without)
            if not is_changed and lives and (hunk.removed or hunk.added):
                self.hunks.append(hunk)
                hunk = Hunk(step, [], [], (None, None))
            if is_changed:
                (hunk.added if lives else hunk.removed).append(one)
            if lives:
                self._set_text(step, one, one.text_without(without))
            if lives != one.is_alive:
                one.lives.append((step, lives))
                one.replaced = None
        if hunk.removed or hunk.added:
            self.hunks.append(hunk)

    def commit(self, head: bytes) -> None:
        """Mark the lines of the last commit, with content `head`, in any layout.

        Present lines are looked at before others; or those that were there at first, if more are found so.
        """
        keys = list(map(self._key, self._split(head)))
        names = self._names(keys)
        alive, dead = self._alive(), [one for one in self.elements if not one.is_alive]
        base, later = [one for one in self.elements if one.born == BASE], [one for one in alive if one.born != BASE]
        gone = [one for one in dead if one.born != BASE]
        self._numbers()
        found: list[tuple[int, int]] = []  # (index in the commit, place in the weave)
        orders = [(alive, [one for one in dead if one.born == BASE], gone), (base, later, gone)]
        if keys == [self._key(one.texts[0][1]) for one in base]:
            orders = [(base, [], [])]  # nothing was committed since
        for order in orders:
            pairs: list[tuple[int, int]] = []
            for some in order:
                pairs = sorted(pairs + self._paired(pairs, names, some))
            found = max(found, pairs, key=len)
        for index, place in found:
            self.elements[place].committed = keys[index]

    def _paired(self, known: list[tuple[int, int]], names: list[bytes], some: list[Element]) -> list[tuple[int, int]]:
        """Return the pairs between `known` ones of committed lines and the places of `some` lines."""
        found, places = [], [one.place for one in some]
        old = begin = 0
        for old_end, place in [*known, (len(names), len(self.elements))]:
            end = bisect_left(places, place)
            between = self._names(one.key for one in some[begin:end])
            for start, at, size in equal_parts(names[old:old_end], between, exact_up_to=EXACT) or []:
                found += [(old + start + index, places[begin + at + index]) for index in range(size)]
            old, begin = old_end + 1, bisect_right(places, place)
        return found

    def _names(self, keys: Iterable[bytes]) -> list[bytes]:
        """Return the lines for a comparison: those that have several layouts by their words."""
        found = []
        for key in keys:
            words = words_of(key)
            if words not in self._laid_out:
                words = b""
            found.append(words or key)
        return found

    # ------------------------------------------------------------------------------------------ asking

    def content_without(self, steps: Collection[int], kept: Collection[Element] = ()) -> bytes:
        """Return the content with these steps left out. The lines `kept` stay as they are."""
        steps, texts = self.all_without(steps), []
        for one in self.elements:
            if one in kept:
                if one.is_alive:
                    texts.append(one.texts[-1][1])
            elif one.lives_without(steps):
                texts.append(one.text_without(steps))
        if not self.is_binary:
            texts[:-1] = [text if text.endswith(b"\n") else text + b"\n" for text in texts[:-1]]
        return b"".join(texts)

    def settled(self, steps: Collection[int]) -> set[Element]:
        """Return the lines that these steps removed, as far as the last commit has that change: it stays."""
        found: set[Element] = set()
        for hunk in self._hunks_of(steps):
            added = [one for one in hunk.added if one.is_alive and one.born == hunk.step]
            if added and all(one.is_committed for one in added):
                found |= {one for one in hunk.removed if not one.is_committed}
        return found

    def conflicts(self, steps: Collection[int], kept: Collection[Element]) -> list[tuple[Hunk, Conflict]]:
        """Return the hunks of these steps that cannot be taken back alone, each with another step in its way.

        One of these steps is in the way with lines that are committed: others have no certain place beside them.
        """
        found, numbers, without = [], self._numbers(), self.all_without(steps)
        for hunk in self._hunks_of(steps):
            changed = [one for one in hunk.changed if one not in kept and self._is_changed(one, (), without)]
            changed += [one for one in hunk.added if one not in kept and self._is_laid_out_by_others(one, without)]
            if changed:
                found += [(hunk, conflict) for conflict in self._in_the_way(hunk, changed, without, numbers)]
        return found

    def _is_changed(self, one: Element, before: Collection[int], after: Collection[int]) -> bool:
        """Return True if the line differs between leaving out these steps and those."""
        if not one.lives_without(after):
            return one.lives_without(before)
        texts = one.text_without(before), one.text_without(after)
        return not one.lives_without(before) or self._key(texts[0]) != self._key(texts[1])

    def _is_laid_out_by_others(self, one: Element, steps: Collection[int]) -> bool:
        """Return True if another step has broken the line into several, or joined it with others: they have its words.

        steps  those that are left out
        """
        step, brought = one.lives[-1]
        return not brought and step in self._layouts and step not in steps and one.born in steps

    def lines_of(self, step: int, steps: Collection[int]) -> list[int] | None:
        """Return the lines of the present file that taking back `step` besides `steps` would change; None if nothing
        would change, empty if it would only bring lines back.
        """
        before, after = self.all_without(steps), self.all_without({*steps, step})
        numbers = self._numbers()
        changed = [
            one
            for hunk in self._hunks_of({step} - before)
            for one in hunk.changed
            if self._is_changed(one, before, after)
        ]
        if not changed:
            return None
        return sorted(numbers[one] for one in changed if one in numbers)

    def alive_by_others(self, steps: Collection[int]) -> list[Conflict]:
        """Return the present lines that other steps brought."""
        by_step: dict[int, list[int]] = {}
        without = self.all_without(steps)
        for one, number in self._numbers().items():
            if one.lives_without(without) and one.born not in without:
                by_step.setdefault(one.born, []).append(number)
        return [Conflict(step, lines) for step, lines in by_step.items()]

    def _in_the_way(
        self, hunk: Hunk, changed: list[Element], steps: Collection[int], numbers: dict[Element, int]
    ) -> list[Conflict]:
        found: dict[int, list[int]] = {}
        returning = [one for one in changed if not one.is_alive and one.lives_without(steps)]
        instead = self._instead([hunk])
        if returning:
            found.update((other.step, []) for other in instead if other.step not in steps)
        for other in [hunk, *instead, *self._around(hunk.step, returning)]:
            stay = [one for one in other.added if one.born == other.step and one.lives_without(steps)]
            if stay and (returning or other.step not in steps):  # those of these steps are committed
                found.setdefault(other.step, []).extend(numbers[one] for one in stay if one in numbers)
        first, last = self._range(hunk, changed)
        for one in self.elements[first:last]:
            is_own = one.born in steps
            if one in numbers and one.born > hunk.step and one.lives_without(steps) and (returning or not is_own):
                found.setdefault(one.born, []).append(numbers[one])
        return [Conflict(step, sorted(set(lines))) for step, lines in found.items()]

    def _instead(self, hunks: Sequence[Hunk]) -> list[Hunk]:
        """Return the hunks that have replaced lines of these, and in turn lines of those."""
        found: list[Hunk] = []
        left = list(hunks)
        while left:
            for one in left.pop().added:
                if one.replaced and one.replaced not in found and one.replaced.step not in self._undos:
                    found.append(one.replaced)
                    left.append(one.replaced)
        return found

    def _around(self, step: int, returning: Sequence[Element]) -> list[Hunk]:
        """Return the hunks after `step` with a change on both sides of one of the lines that it removed: that has no
        place beside their new lines.
        """
        found = []
        for hunk in (one for one in self.hunks if one.step > step):
            first, last = -1, len(self.elements)
            if hunk.removed:
                first, last = hunk.removed[0].place, hunk.removed[-1].place
            else:
                first, last = (one.place if one else end for one, end in ((hunk.left, -1), (hunk.right, last)))
            if any(first < one.place < last and one not in hunk.changed for one in returning):
                found.append(hunk)
        return [*found, *self._instead(found)]

    def _range(self, hunk: Hunk, changed: list[Element]) -> tuple[int, int]:
        """Return the part of the weave where another's line cannot be told apart from the hunk's own."""
        if not hunk.added and hunk.step not in self._undos:
            first = hunk.left.place + 1 if hunk.left else 0
            return first, hunk.right.place if hunk.right else len(self.elements)
        places = [one.place for one in (*changed, *hunk.added)]
        return min(places), max(places)

    def _hunks_of(self, steps: Collection[int]) -> list[Hunk]:
        return [hunk for hunk in self.hunks if hunk.step in steps]

    def all_without(self, steps: Collection[int]) -> set[int]:
        """Return the `steps`, with the undos among the others that cancel each other."""
        found = set(steps)
        for step in sorted(self._undos, reverse=True):
            target = self._undos[step]
            if step not in found and target is not None:
                found |= {step, target}
        return found

    def _numbers(self) -> dict[Element, int]:
        """Return ``{line: its number in the present file}``; number the weave."""
        for place, one in enumerate(self.elements):
            one.place = place
        return {one: number for number, one in enumerate(self._alive(), 1)}

    def _alive(self) -> list[Element]:
        return [one for one in self.elements if one.is_alive]

    def _insert(self, new: list[tuple[Element | None, list[Element]]]) -> None:
        after = {id(before): added for before, added in new if added}
        elements = list(after.get(id(None), ()))
        for one in self.elements:
            elements.append(one)
            elements += after.get(id(one), ())
        self.elements = elements

    def _split(self, content: bytes) -> list[bytes]:
        if self.is_binary:
            return [content] * bool(content)
        return split_lines(content)

    def _key(self, text: bytes) -> bytes:
        if self.is_binary:
            return text
        return _without_end(text)


def _without_end(text: bytes) -> bytes:
    return text.rstrip(b"\r\n")

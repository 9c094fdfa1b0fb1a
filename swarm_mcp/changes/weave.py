"""The weave of a file: all lines that it has had, in one order, each with the steps that brought and removed it.

Taking back a set of steps is leaving them out: a line is in the result if the last of the other steps that brought or
removed it brought it. Lines of other steps stay as they are, byte for byte.

Lines are compared without their ends, so that a converted file, or a missing newline at its end, changes no line's
owner. A binary content is one line.
"""

from __future__ import annotations

from swarm_hook_core.traces.equal_lines import equal_parts, split_lines
from swarm_hook_core.traces.versions.layout import words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

BASE = -1  # the step of lines that were there at first
EXACT = 2000  # lines; in longer texts difflib leaves out frequent ones, to be fast


class Element:
    """A line of the weave.

    lives         ``[(step, True if the step brought the line)]``, in order
    texts         ``[(step, text with its end)]``
    is_committed  True if the last commit has the line
    """

    __slots__ = ("key", "lives", "texts", "is_committed", "place")

    def __init__(self, key: bytes, text: bytes, step: int):
        self.key = key
        self.lives = [(step, True)]
        self.texts = [(step, text)]
        self.is_committed = False
        self.place = 0  # index in the weave, once it is complete

    @property
    def is_alive(self) -> bool:
        return self.lives[-1][1]

    @property
    def born(self) -> int:
        return self.lives[0][0]

    @property
    def words(self) -> bytes:
        """Return the line without its layout."""
        return words_of(self.texts[-1][1])

    def lives_without(self, steps: Collection[int]) -> bool:
        """Return True if the line is there when these steps are left out."""
        return next((brought for step, brought in reversed(self.lives) if step not in steps), False)

    def text_without(self, steps: Collection[int]) -> bytes:
        """Return the text, with the line end of the last other step."""
        return next((text for step, text in reversed(self.texts) if step not in steps), self.texts[0][1])


class Hunk:
    """One place that a step changed: the lines removed and added there, and the neighbours at that time."""

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
        self._undos: dict[int, int | None] = {}  # step of an undo -> the undo that it takes back, or None

    # ------------------------------------------------------------------------------------------ building

    def follow(self, step: int, content: bytes) -> None:
        """Go on to the `content` after `step`."""
        alive, texts, new = self._alive(), self._split(content), []
        parts = equal_parts([one.key for one in alive], list(map(self._key, texts)), exact_up_to=EXACT) or []
        old_end = new_end = 0
        for old, at, size in [*parts, (len(alive), len(texts), 0)]:
            removed = alive[old_end:old]
            added = [Element(self._key(text), text, step) for text in texts[new_end:at]]
            if removed or added:
                around = (alive[old_end - 1] if old_end else None, alive[old] if old < len(alive) else None)
                self.hunks.append(Hunk(step, removed, added, around))
                new.append((removed[-1] if removed else around[0], added))
            for one in removed:
                one.lives.append((step, False))
            for one, text in zip(alive[old : old + size], texts[at : at + size]):
                if one.texts[-1][1] != text:
                    one.texts.append((step, text))
            old_end, new_end = old + size, at + size
        self._insert(new)

    def follow_undo(self, step: int, content: bytes, taken_back: Collection[int]) -> None:
        """Go on to the `content` after `step`, an undo of the steps `taken_back`."""
        steps = set(taken_back)
        target = next(iter(steps)) if len(steps) == 1 and steps <= set(self._undos) else None
        without = self.all_without(steps)
        if self.content_without(steps) == content:
            self._follow_exactly(step, without)
        else:  # a part of them
            self.follow(step, content)
        self._undos[step] = target

    def _follow_exactly(self, step: int, without: Collection[int]) -> None:
        """Note for each line that leaving out the steps `without` changes it. Neighbours make one hunk."""
        hunk = Hunk(step, [], [], (None, None))
        for one in self.elements:
            lives, text = one.lives_without(without), one.text_without(without)
            if lives == one.is_alive and lives and (hunk.removed or hunk.added):
                self.hunks.append(hunk)
                hunk = Hunk(step, [], [], (None, None))
            if lives != one.is_alive:
                (hunk.added if lives else hunk.removed).append(one)
                one.lives.append((step, lives))
            if lives and one.texts[-1][1] != text:
                one.texts.append((step, text))
        if hunk.removed or hunk.added:
            self.hunks.append(hunk)

    def commit(self, head: bytes) -> None:
        """Mark the lines of the last commit, with content `head`."""
        wanted = [self._key(text) for text in self._split(head)]
        base = [one for one in self.elements if one.born == BASE]
        pairs = equal_parts(wanted, [one.key for one in base], exact_up_to=EXACT) or []
        old_end = place = 0
        for old, at, size in [*pairs, (len(wanted), len(base), 0)]:
            stop = len(self.elements)
            if at < len(base):
                stop = self.elements.index(base[at], place)
            between = [one for one in self.elements[place:stop] if one.born != BASE and one.is_alive]
            gap = equal_parts(wanted[old_end:old], [one.key for one in between], exact_up_to=EXACT) or []
            for _old, first, count in gap:
                for one in between[first : first + count]:
                    one.is_committed = True
            for one in base[at : at + size]:
                one.is_committed = True
            if size:
                place = self.elements.index(base[at + size - 1], stop) + 1
            old_end = old + size

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
        """Return the lines that these steps changed, as far as the last commit has that change: it stays."""
        found: set[Element] = set()
        for hunk in self._hunks_of(steps):
            added = [one for one in hunk.added if one.is_alive and one.born == hunk.step]
            found |= {one for one in added if one.is_committed}
            if added and all(one.is_committed for one in added):
                found |= {one for one in hunk.removed if not one.is_committed}
            laid_out = {one.words for one in added if one.is_committed} - {b""}
            found |= {one for one in hunk.removed if not one.is_committed and one.words in laid_out}
        return found

    def conflicts(self, steps: Collection[int], kept: Collection[Element]) -> list[tuple[Hunk, Conflict]]:
        """Return the hunks of these steps that cannot be taken back alone, each with another step in its way."""
        found, numbers, without = [], self._numbers(), self.all_without(steps)
        for hunk in self._hunks_of(steps):
            changed = [one for one in hunk.changed if one not in kept and one.lives_without(without) != one.is_alive]
            if changed:
                found += [(hunk, conflict) for conflict in self._in_the_way(hunk, changed, without, numbers)]
        return found

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
            if not (one.is_committed and one.born == step) and one.lives_without(before) != one.lives_without(after)
        ]
        if not changed:
            return None
        return sorted(numbers[one] for one in changed if one in numbers)

    def alive_by_others(self, steps: Collection[int]) -> list[Conflict]:
        """Return the present lines that other steps brought."""
        by_step: dict[int, list[int]] = {}
        without = self.all_without(steps)
        for one, number in self._numbers().items():
            if one.lives_without(without):
                by_step.setdefault(one.born, []).append(number)
        return [Conflict(step, lines) for step, lines in by_step.items()]

    def _in_the_way(
        self, hunk: Hunk, changed: list[Element], steps: Collection[int], numbers: dict[Element, int]
    ) -> list[Conflict]:
        found = {}
        returns = any(not one.is_alive for one in changed)
        for one in hunk.added:
            step, brought = one.lives[-1]
            if brought or step in steps or step in self._undos:
                continue
            lines = self._lines_instead(one, step, numbers)
            if returns or lines:
                found[step] = lines
        first, last = self._range(hunk, changed)
        for one in self.elements[first:last]:
            if one in numbers and one.born > hunk.step and one.lives_without(steps):
                found.setdefault(one.born, []).append(numbers[one])
        return [Conflict(step, sorted(set(lines))) for step, lines in found.items()]

    def _lines_instead(self, gone: Element, step: int, numbers: dict[Element, int]) -> list[int]:
        """Return the present lines that `step` put in the place of the line `gone`."""
        hunks = (hunk for hunk in self.hunks if hunk.step == step and gone in hunk.removed)
        return [numbers[one] for hunk in hunks for one in hunk.added if one in numbers]

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
        after = {id(before): added for before, added in new}
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
        return text.rstrip(b"\r\n")

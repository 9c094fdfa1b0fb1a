"""Edits of three authors in one file, with an independent model: the content with a choice of them, if it has one.

The model knows the place of each line. A *slot* is a place: its text in the last commit, and the texts of the authors that
have rewritten or removed it. A line that comes where others were removed has a place among these by chance: nothing in the
contents tells it.
"""

from __future__ import annotations

import random
from collections.abc import Collection

WAYS = (
    "adds", "adds", "adds", "adds two", "rewrites", "rewrites", "rewrites two", "indents", "removes", "removes", "moves",
)  # fmt: skip


class Slot:
    """One place. `head`: its text in the last commit, if it was there. `texts`: ``[(author, text)]``, without a text for
    a removal.
    """

    def __init__(self, head: str | None) -> None:
        self.head = head
        self.texts: list[tuple[int, str | None]] = []

    @property
    def text(self) -> str | None:
        return self.texts[-1][1] if self.texts else self.head


class Edits:
    """A file that three authors have edited, by a seed.

    contents  all that the file has had, the last commit's first
    authors   that of each step
    """

    def __init__(self, seed: int, steps: int = 7) -> None:
        self.choose = random.Random(seed)
        self.count = 0
        self.moved: set[str] = set()
        self.slots = [Slot(self._new()) for _ in range(self.choose.randint(2, 6))]
        self.contents, self.authors = [self.text()], list[int]()
        for _ in range(self.choose.randint(2, steps)):
            self._step(self.choose.randrange(3), self.choose.choice(WAYS))

    def _new(self) -> str:
        self.count += 1
        return f"line {self.count}\n"

    def text(self) -> str:
        return "".join(slot.text or "" for slot in self.slots)

    def _present(self) -> list[int]:
        return [at for at, slot in enumerate(self.slots) if slot.text is not None]

    def _step(self, who: int, way: str) -> None:
        present = self._present()
        if way in ("adds", "adds two") or not present:
            self._add(who, [self._new() for _ in range(1 + (way == "adds two"))])
        else:
            at = self.choose.randrange(len(present))
            some = [self.slots[index] for index in present[at : at + 1 + ("two" in way)]]
            if way == "moves":
                text = str(some[0].text)
                far = [other for other in range(len(present)) if abs(other - at) > 2]
                if far and text not in self.moved:  # not back to where it was
                    self.moved.add(text)
                    some[0].texts.append((who, None))
                    self._add(who, [text], self.choose.choice(far))
            for slot in some * (way != "moves"):
                text = {"indents": f"  {slot.text}", "removes": None}.get(way, self._new())
                slot.texts.append((who, text))
        if self.text() != self.contents[-1]:
            self.contents.append(self.text())
            self.authors.append(who)

    def _add(self, who: int, texts: list[str], at: int = -1) -> None:
        """Put lines in between two present ones: the removed lines there are before or behind them, by chance."""
        present = [-1, *self._present(), len(self.slots)]
        if at < 0:
            at = self.choose.randrange(len(present) - 1)
        place = self.choose.randint(present[at] + 1, present[at + 1])
        for text in reversed(texts):
            self.slots.insert(place, Slot(None))
            self.slots[place].texts.append((who, text))

    def with_only(self, authors: Collection[int]) -> str | None:
        """Return the last commit with the changes of these authors, unless they have only half of a committed line."""
        found = []
        for slot in self.slots:
            if slot.head is None:
                owners, before = {author for author, _text in slot.texts[-1:]}, None
            else:
                owners, before = {author for author, _text in self.changes_of(slot)}, slot.head
            wanted = owners & set(authors)
            if wanted and wanted != owners:
                return None
            found.append(slot.text if wanted else before)
        return "".join(text or "" for text in found)

    @staticmethod
    def changes_of(slot: Slot) -> list[tuple[int, str | None]]:
        """Return the author of the committed line's removal, and that of the line in its place."""
        if slot.text is None or slot.text == slot.head:
            return slot.texts[:1]
        return [slot.texts[0], slot.texts[-1]] if slot.texts else []

    def without(self, who: int) -> str | None:
        """Return the present content without an author's changes, unless another one has changed such a line since."""
        found = []
        for slot in self.slots:
            authors = [author for author, _text in slot.texts]
            others = [text for author, text in slot.texts if author != who]
            if who in authors and slot.texts[-1][0] != who and (slot.head or authors[0] != who):
                return None
            found.append(([slot.head] + others)[-1])
        return "".join(text or "" for text in found)

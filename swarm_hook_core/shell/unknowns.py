"""Marks: placeholders in a word for names that only the disk, or only a run, can tell."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarm_hook_core.shell.model import UNKNOWN, Found, absolute, is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.model import Admits


MOST_CHOICES = 16  # texts that a variable may hold after branches, before it counts as unknown


class Names:
    """A mark's meaning: these texts. `all_of`: each of them in turn (a loop); otherwise an unknown one of them."""

    __slots__ = ("texts", "all_of")

    def __init__(self, texts: list[str], all_of: bool) -> None:
        self.texts = texts
        self.all_of = all_of


class Unknowns:
    """The marks given out so far, with their meanings."""

    def __init__(self) -> None:
        self.meanings: dict[str, Names | list[Found]] = {}  # mark -> list of Found, or Names

    def found(self, word: str, folder: str | None) -> list[Found] | None:
        """Return the Founds that `word`, seen from `folder`, as a whole stands for; None if unknown.

        It may be a mark, or a mark between known texts.
        """
        if "\0" not in word:
            return None
        before, _, rest = word.partition("\0")
        name, _, after = rest.partition("\0")
        meaning = self.meanings.get("\0" + name + "\0")
        if meaning is None or "\0" in after:
            return None
        if isinstance(meaning, Names):
            spelled = [before + text + after for text in meaning.texts if before + text + after]
            paths = [path for path in (absolute(folder, one) for one in spelled) if path is not None]
            if len(paths) < len(spelled) or not paths:
                return None
            return [Found(os.path.commonpath(paths), _one_of(frozenset(paths), meaning.all_of or None))]
        if not before and not after:
            return meaning
        if before and not before.endswith("/"):
            return None
        if before:  # `build/$f`: the folder that the names are relative to is unknown
            start = absolute(folder, before)
            if start is None:
                return None
            return [Found(start, lambda _path: None)]
        return [Found(one.root, _with_end(one.admits, after)) for one in meaning]

    def mark(self, found: Found | list[Found]) -> str:
        """A new mark that stands for `found`: a Found, or a list of them."""
        return self._marked(found if isinstance(found, list) else [found])

    def shown(self, word: str) -> str:
        """`word` for people: its marks made readable."""
        if "\0" not in word:
            return word
        return "".join(part if place % 2 == 0 else "…" for place, part in enumerate(word.split("\0")))

    def has_found(self, text: str) -> bool:
        """Return True if a mark in `text` stands for names."""
        return "\0" in text and any(place % 2 and part != "?" for place, part in enumerate(text.split("\0")))

    def renamed(
        self, text: str, change: Callable[[str], str], operator: str, argument: str, otherwise: str = UNKNOWN
    ) -> str:
        """A mark for the names of `text` after ``${name<operator><argument>}``, where `change(name)` does that to one;
        `otherwise` where they cannot be told."""
        meaning = self.meanings.get(text)
        if isinstance(meaning, Names):
            return self._marked(Names([change(one) for one in meaning.texts], meaning.all_of))
        if isinstance(meaning, list) and operator in ("%", "%%") and not set("*?[\\'\"$`").intersection(argument):
            return self.mark([Found(one.root, _without_end(one.admits, argument)) for one in meaning])
        return otherwise

    def each_of(self, texts: list[str]) -> str:
        """A mark that stands for each of `texts` in turn."""
        return self._marked(Names(list(texts), all_of=True))

    def some_of(self, texts: list[str]) -> str:
        """Return a mark for an unknown subset of `texts`."""
        return self._marked(Names(list(texts), all_of=False))

    def one_of(self, texts: list[str]) -> str:
        """Return a text that stands for an unknown one of `texts`."""
        flat: list[Any] = []
        for text in texts:
            meaning = self.meanings.get(text)
            if isinstance(meaning, Names):
                flat += meaning.texts
            else:
                flat.append(text)
        flat = list(dict.fromkeys(flat))
        if len(flat) > MOST_CHOICES or not all(map(is_known, flat)):
            return UNKNOWN
        return self._marked(Names(flat, all_of=False))

    def _marked(self, meaning: Names | list[Found]) -> str:
        mark = f"\0{len(self.meanings)}\0"
        self.meanings[mark] = meaning
        return mark


def _one_of(paths: frozenset[str], answer: bool | None) -> Admits:
    return lambda path: answer if path in paths else False


def _with_end(admits: Admits, end: str) -> Admits:
    """Of names with `end` put behind them."""
    return lambda path: path.endswith(end) and admits(path[: -len(end)])


def _without_end(admits: Admits, end: str) -> Admits:
    """Of names with `end` taken away."""
    return lambda path: admits(path + end)

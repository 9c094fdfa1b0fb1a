"""Answers ``test``, ``[`` and ``[[`` without running anything, if possible."""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core import wildcards
from swarm_hook_core.shell.model import absolute, is_known
from swarm_hook_core.shell.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.walk import Walk


MOST_WORDS = 60
_NUMERIC = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
_COMPARED = frozenset([*_NUMERIC, "=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"])
_OF_FILES = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-s": lambda path: os.path.exists(path) and os.path.getsize(path) > 0,
    "-L": os.path.islink,
    "-h": os.path.islink,
}


def answer(walk: Walk, scope: Scope, words: list[str], patterns: dict[int, str] | None = None) -> bool | None:
    """Return True, False, or None if unknown, for the condition `words` (``]`` is gone).

    `patterns`: place in `words` -> the shell pattern on the right side of ``==``, in ``[[``.
    """
    if not words or len(words) > MOST_WORDS:
        if words:
            return None
        return False
    condition = _Condition(walk, scope, words, patterns)
    result = condition.either()
    if condition.at >= len(words):
        return result
    return None


class _Condition:
    def __init__(self, walk: Walk, scope: Scope, words: list[str], patterns: dict[int, str] | None) -> None:
        self.walk = walk
        self.scope = scope
        self.words = words
        self.patterns = patterns
        self.at = 0

    def peek(self) -> str:
        if self.at < len(self.words):
            return self.words[self.at]
        return ""

    def joined(self, operators: tuple[str, str], part: Callable[[], bool | None], decides: bool) -> bool | None:
        """`part`s between `operators`; one that is `decides` decides it all."""
        result = part()
        while self.peek() in operators:
            self.at += 1
            both = (result, part())
            if decides in both:
                result = decides
            elif None in both:
                result = None
            else:
                result = not decides
        return result

    def either(self) -> bool | None:
        return self.joined(("-o", "||"), self.both, True)

    def both(self) -> bool | None:
        return self.joined(("-a", "&&"), self.one, False)

    def one(self) -> bool | None:
        left = len(self.words) - self.at
        word = self.peek()
        if left >= 3 and self.words[self.at + 1] in _COMPARED:
            self.at += 3
            return self.compared(word, self.words[self.at - 2], self.at - 1)
        self.at += 1
        if word == "!" and left > 1:
            result = self.one()
            if result is None:
                return None
            return not result
        if word == "(":
            result = self.either()
            self.at += 1
            return result
        if left >= 2 and len(word) == 2 and word[0] == "-" and word[1].isalpha():
            self.at += 1
            return self.unary(word, self.words[self.at - 1])
        if is_known(word):
            return bool(word)
        return None

    def unary(self, operator: str, word: str) -> bool | None:
        if operator in ("-z", "-n"):
            if is_known(word):
                return (not word) == (operator == "-z")
            return None
        path = None
        if word:
            path = absolute(self.scope.folder, word)
        effects = self.walk.effects
        if path is None or operator not in _OF_FILES or effects.writes or effects.trees or effects.guesses:
            return None  # an earlier command may have made or removed it
        return _OF_FILES[operator](path)

    def compared(self, left: str, operator: str, place: int) -> bool | None:
        right = self.words[place]
        if not is_known(left) or not is_known(right):
            return None
        if operator in ("=", "==", "!="):
            if self.patterns is not None and place not in self.patterns:
                return None
            if self.patterns is None:
                same = left == right
            else:
                same = wildcards.match(left, self.patterns[place], True)
            return same == (operator != "!=")
        try:
            return _NUMERIC[operator](int(left), int(right))
        except (KeyError, ValueError):  # no number, or an operator that is not followed
            return None

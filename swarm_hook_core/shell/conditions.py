"""What ``test``, ``[`` and ``[[`` answer, where that can be told without running anything."""

import os

from swarm_hook_core.shell import globs
from swarm_hook_core.shell.model import absolute, is_known

_NUMERIC = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
MOST_WORDS = 60


def answer(walk, scope, words: list[str], patterns=None):
    """True, False, or None where it cannot be told, of the condition `words` (``]`` is gone).

    `patterns`: place in `words` -> the shell pattern that a right side of ``==`` is, in ``[[``.
    """
    if len(words) > MOST_WORDS:
        return None
    return _Condition(walk, scope, words, patterns).all()


class _Condition:
    def __init__(self, walk, scope, words, patterns):
        self.walk = walk
        self.scope = scope
        self.words = words
        self.patterns = patterns
        self.at = 0

    def all(self):
        if not self.words:
            return False
        result = self.either()
        return result if self.at >= len(self.words) else None

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def either(self):
        result = self.both()
        while self.peek() in ("-o", "||"):
            self.at += 1
            other = self.both()
            result = True if True in (result, other) else None if None in (result, other) else False
        return result

    def both(self):
        result = self.one()
        while self.peek() in ("-a", "&&"):
            self.at += 1
            other = self.one()
            result = False if False in (result, other) else None if None in (result, other) else True
        return result

    def one(self):
        left = len(self.words) - self.at
        word = self.peek()
        if left >= 3 and self.words[self.at + 1] in _COMPARED:
            self.at += 3
            return self.compared(word, self.words[self.at - 2], self.at - 1)
        if word == "!" and left > 1:
            self.at += 1
            result = self.one()
            return None if result is None else not result
        if word == "(":
            self.at += 1
            result = self.either()
            self.at += 1
            return result
        if left >= 2 and len(word) == 2 and word[0] == "-" and word[1].isalpha():
            self.at += 2
            return self.unary(word, self.words[self.at - 1])
        self.at += 1
        return bool(word) if is_known(word) else None

    def unary(self, operator: str, word: str):
        if operator in ("-z", "-n"):
            return (not word) == (operator == "-z") if is_known(word) else None
        path = absolute(self.scope.folder, word) if word else None
        if path is None or self.walk.effects.writes or self.walk.effects.trees or self.walk.effects.guesses:
            return None  # what ran before may have made or removed it
        if operator in _OF_FILES:
            return _OF_FILES[operator](path)
        return None

    def compared(self, left: str, operator: str, place: int):
        right = self.words[place]
        if not is_known(left) or not is_known(right):
            return None
        if operator in ("=", "==", "!="):
            if self.patterns is None:
                same = left == right
            elif place in self.patterns:
                same = globs.match(left, self.patterns[place], True)
            else:
                return None
            return same == (operator != "!=")
        if operator in _NUMERIC:
            try:
                return _NUMERIC[operator](int(left), int(right))
            except ValueError:
                return None
        return None


_COMPARED = frozenset([*_NUMERIC, "=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"])
_OF_FILES = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-s": lambda path: os.path.exists(path) and os.path.getsize(path) > 0,
    "-L": os.path.islink,
    "-h": os.path.islink,
}

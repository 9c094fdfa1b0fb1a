"""Expands a word: braces, quotes, expansions, splitting, patterns.

`fields` returns the arguments that a word becomes, `value` the one text of an assignment or a redirection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from swarm_hook_core import wildcards
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.parameters import expanded
from swarm_hook_core.shell.parser import document_of
from swarm_hook_core.shell.syntax import Array, Calculation, Double, Literal, Node, Parameter, Substitution, Word
from swarm_hook_core.shell.word_reader import NAME_LETTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.shell.scope import Scope
    from swarm_hook_core.shell.walk import Walk


LONGEST_VALUE = 128 * 1024  # characters; a longer value is unknown
MOST_FIELDS = 512  # of one word with braces
FIELDS_A_LOOK = 200  # at the clock
MOST_BRACE_LETTERS = 100_000  # of all fields of such a word
MOST_BRACE_STEPS = 12_000  # characters between braces that are looked at, over and over
_BLANK = " \t\n"
_SPECIAL = frozenset("\\'\"$`*?[{~<>(")


def fields(walk: Walk, scope: Scope, word: Word) -> list[str]:
    """Return the arguments that `word` becomes: zero, one, or many."""
    if not _SPECIAL.intersection(word.raw):
        return [word.raw]
    found: list[str] = []
    signs: frozenset[str] = frozenset()
    if "noglob" not in scope.options:
        signs = wildcards.SIGNS
    for parts in braces(word.parts) if "{" in word.raw else [word.parts]:
        out = _Fields(scope.separators())
        Expansion(walk, scope, out).put(with_home(scope, parts))
        for number, pieces in enumerate(out.finish(), 1):
            if not number % FIELDS_A_LOOK:
                walk.spend(0)
            text = "".join(piece for piece, _magic in pieces)
            if any(magic and any(sign in piece for sign in signs) for piece, magic in pieces) and is_known(text):
                wanted = _as_pattern(pieces)
                if wildcards.is_magic(wanted):
                    found += walk.listed(scope, wanted) or [wildcards.literal(wanted)]
                    continue
            found.append(text if len(text) <= LONGEST_VALUE else UNKNOWN)
    return found


def value(walk: Walk, scope: Scope, word: Word) -> str:
    """The text that `word` becomes where nothing is split or matched against the disk."""
    if not _SPECIAL.intersection(word.raw):
        return word.raw
    return _text(walk, scope, with_home(scope, word.parts))


def pattern(walk: Walk, scope: Scope, word: Word) -> str:
    """Return `word` as a shell pattern: quoted parts are escaped."""
    out = _Fields()
    Expansion(walk, scope, out).put(word.parts)
    return "".join(map(_as_pattern, out.finish()[:1]))


def document(walk: Walk, scope: Scope, body: str) -> str:
    """Return the text of a here-document with an unquoted delimiter."""
    return _text(walk, scope, document_of(body), quoted=True)


def number(walk: Walk, scope: Scope, word: Word) -> str:
    """The number that the arithmetic `word` amounts to, or UNKNOWN."""
    return walk.computed(scope, _text(walk, scope, word.parts))


def _text(walk: Walk, scope: Scope, parts: list[str | Node], quoted: bool = False) -> str:
    out = _Fields()
    Expansion(walk, scope, out).put(parts, quoted)
    return out.text()


def with_home(scope: Scope, parts: list[str | Node]) -> list[str | Node]:
    """`parts` with a leading ``~`` (or one behind ``name=``) replaced by the folder."""
    first = None
    if parts:
        first = parts[0]
    if not isinstance(first, str):
        return parts
    before, tilde, rest = first.partition("~")
    user, slash, inside = rest.partition("/")
    if not tilde or (before and not (before[-1] == "=" and before[:-1].isidentifier())) or (parts[1:] and not slash):
        return parts
    home: Any = UNKNOWN
    if user in ("+", "-"):
        if user == "+":
            home = scope.folder
        else:
            home = scope.previous
    elif not user:
        home = scope.variable("HOME")
    elif all(letter in NAME_LETTERS or letter in "-." for letter in user):
        home = os.path.expanduser("~" + user)
    else:
        return parts
    if not isinstance(home, str) or home == first:
        home = UNKNOWN
    return [before, Literal(home), slash + inside, *parts[1:]]


class Expansion:
    """Parts of words, as they stand for texts in `scope`, put into `out`."""

    __slots__ = ("walk", "scope", "out", "whole", "vanished")

    def __init__(self, walk: Walk, scope: Scope, out: _Fields) -> None:
        self.walk = walk
        self.scope = scope
        self.out = out
        self.whole = "zsh" in scope.options and "shwordsplit" not in scope.options  # variables are not split
        self.vanished = False  # the last double quotes held a list of nothing

    def put(self, parts: Sequence[str | Node], quoted: bool = False, splits: bool = False) -> None:
        """Put the texts of `parts`. `quoted`: they are in double quotes; `splits`: text in them is split, too."""
        out, walk, scope = self.out, self.walk, self.scope
        for part in parts:
            if isinstance(part, str):
                if splits:
                    out.put_split(part)
                else:
                    out.put(part, not quoted)
            elif isinstance(part, Literal):
                out.put(part.text)
            elif isinstance(part, Double):
                self.vanished = False
                self.put(part.parts, quoted=True)
                if not self.vanished:  # `"$@"` of nothing is no field, `""` is one
                    out.put("")
            elif isinstance(part, Parameter):
                self.put_parameter(part, quoted)
            elif isinstance(part, Calculation):
                self.add(number(walk, scope, part.word), quoted)
            elif isinstance(part, Substitution) and part.kind == "$":
                self.add(walk.substituted(scope, part.script), quoted)
            elif isinstance(part, Substitution):
                out.put(walk.process(scope, part.script, writes=part.kind == ">"))
            elif isinstance(part, Array):
                out.put("(" + " ".join(word.raw for word in part.words) + ")")

    def put_parameter(self, part: Parameter, quoted: bool) -> None:
        found = expanded(self, part)
        if isinstance(found, Word):  # of ``${x:-word}``
            parts = found.parts
            if not quoted:
                parts = with_home(self.scope, parts)
            self.put(parts, quoted, splits=not quoted)
        elif quoted and isinstance(found, list) and "@" not in (part.name, part.index and part.index.raw):
            self.add(" ".join(found), quoted)
        else:
            self.add(found, quoted, whole=self.whole and part.flag != "=")

    def add(self, found: list[str] | str, quoted: bool, whole: bool = False) -> None:
        """Put `found`: a text, or a list for ``$@``. `whole`: it is not split if unquoted."""
        if isinstance(found, list):
            texts = found
            if whole and not quoted:
                texts = [text for text in found if text]
            self.out.put_list(texts, quoted or whole)
            self.vanished = quoted and not found
        elif quoted or (whole and found):
            self.out.put(found)
        elif not whole:
            self.out.put_split(found)

    # Methods for parameters

    def value(self, word: Word) -> str:
        return value(self.walk, self.scope, word)

    def pattern(self, word: Word) -> str:
        return pattern(self.walk, self.scope, word)

    def number(self, word: Word) -> str:
        return number(self.walk, self.scope, word)


class _Fields:
    """Fields being built: each a list of (text, True if pattern letters in it count).

    `separators`: letters at which unquoted text is split; None: it is not split.
    """

    __slots__ = ("separators", "done", "open")

    def __init__(self, separators: str | None = None) -> None:
        self.separators = separators
        self.done: list[list[tuple[str, bool]]] = []
        self.open: list[tuple[str, bool]] | None = None

    def put(self, text: str, magic: bool = False) -> None:
        if self.open is None:
            self.open = []
        if text:
            self.open.append((text, magic))

    def next(self) -> None:
        if self.open is not None:
            self.done.append(self.open)
            self.open = None

    def put_split(self, text: str) -> None:
        """An unquoted expansion."""
        piece, separators = "", self.separators or ""
        if not any(one in text for one in separators):
            piece, text = text, ""
        for letter in text:
            if letter not in separators:
                piece += letter
                continue
            if piece:
                self.put(piece, True)
                piece = ""
            elif letter not in _BLANK and self.open is None:
                self.put("")
            self.next()
        if piece:
            self.put(piece, True)

    def put_list(self, texts: list[str], quoted: bool) -> None:
        """Put the texts of ``$@`` or ``${a[@]}``."""
        for place, text in enumerate(texts):
            if place:
                if self.separators is None:
                    self.put(" ")
                else:
                    self.next()
            if quoted:
                self.put(text)
            else:
                self.put_split(text)

    def finish(self) -> list[list[tuple[str, bool]]]:
        self.next()
        return self.done

    def text(self) -> str:
        """All as one text; UNKNOWN where it is too long."""
        text = ""
        if self.open is not None:
            text = "".join(piece for piece, _magic in self.finish()[0])
        if len(text) <= LONGEST_VALUE:
            return text
        return UNKNOWN


def _as_pattern(pieces: list[tuple[str, bool]]) -> str:
    return "".join(text if magic else wildcards.escaped(text) for text, magic in pieces)


# Braces


def braces(parts: list[str | Node]) -> list[list[str | Node]]:
    """The parts of a word with ``{a,b}`` and ``{1..3}`` in its text multiplied out, at most `MOST_FIELDS` of them."""
    items = [item for part in parts for item in (part if isinstance(part, str) else (part,))]
    if "{" in items:
        return [_joined(one) for one in _expanded(items)]
    return [parts]


def text_braces(text: str) -> list[str]:
    """The same of a text."""
    return ["".join(one) for one in _expanded(list(text))]


def _expanded(items: list[Any]) -> list[list[Any]]:
    done: list[list[Any]] = []
    left = [MOST_BRACE_STEPS]
    waiting = [(items, 0)]
    most = min(MOST_FIELDS, MOST_BRACE_LETTERS // (len(items) or 1))
    while waiting and len(done) + len(waiting) < most:
        items, start = waiting.pop()
        group = _first_group(items, start, left)
        if group is None:
            done.append(items)
            continue
        first, close, choices = group
        waiting += [(items[:first] + choice + items[close:], first) for choice in reversed(choices)]
    return done + [items for items, _start in reversed(waiting)]


def _joined(items: list[Any]) -> list[str | Node]:
    """`items` with the letters that stand side by side put together; `$x{a,b}` is `$xa $xb`."""
    parts: list[str | Node] = []
    for item in items:
        before = None
        if parts:
            before = parts[-1]
        if isinstance(item, str) and isinstance(before, str):
            parts[-1] = before + item
        elif (
            isinstance(before, Parameter) and before.flag == "$" and item in NAME_LETTERS and before.name.isidentifier()
        ):
            parts[-1] = Parameter("$", before.name + item, None, "", before.argument, None)
        else:
            parts.append(item)
    return parts


def _first_group(items: list[Any], at: int, left: list[int]) -> tuple[int, int, list[list[Any]]] | None:
    """Return (place of ``{``, place behind ``}``, alternatives) of the first brace expansion from `at` on, or None."""
    while left[0] > 0 and "{" in items[at:]:
        at = items.index("{", at)
        found = _alternatives(items, at + 1, left)
        if found:
            return at, *found
        at += 1
    return None


def _alternatives(items: list[Any], at: int, left: list[int]) -> tuple[int, list[list[Any]]] | None:
    """Return (place behind ``}``, alternatives) of the group whose inside starts at `at`, or None."""
    first, deep, commas = at, 0, []
    while at < len(items) and left[0] > 0:
        left[0] -= 1
        item = items[at]
        if item == "{":
            deep += 1
        elif item == "," and not deep:
            commas.append(at)
        elif item == "}":
            if not deep:
                break
            deep -= 1
        at += 1
    else:
        return None
    if commas:
        cuts = [first - 1, *commas, at]
        return at + 1, [items[start + 1 : end] for start, end in zip(cuts, cuts[1:])]
    inside = items[first:at]
    listed = None
    if all(isinstance(item, str) for item in inside):
        listed = _sequence("".join(inside))
    if listed:
        return (at + 1, [list(one) for one in listed])
    return None


def _sequence(text: str) -> list[str] | None:
    """Return the members of ``1..3`` or ``a..e..2``, or None; at most `MOST_FIELDS`."""
    parts = text.split("..")
    if len(parts) not in (2, 3) or any(len(part) > 9 for part in parts):
        return None
    left, right, step = parts[0], parts[1], parts[2] if len(parts) == 3 else "1"
    if not _is_number(step):
        return None
    by = abs(int(step)) or 1
    if _is_number(left) and _is_number(right):
        low, high = int(left), int(right)
        padded = any(one.lstrip("-").startswith("0") and len(one) > 1 for one in (left, right))
        width = 0
        if padded:
            width = max(len(left), len(right))
        if low <= high:
            numbers = range(low, high + 1, by)
        else:
            numbers = range(low, high - 1, -by)
        return [str(number).zfill(width) for number in numbers[:MOST_FIELDS]]
    if len(left) == len(right) == 1 and left.isascii() and right.isascii() and left.isalpha() and right.isalpha():
        low, high = ord(left), ord(right)
        return [chr(number) for number in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]
    return None


def _is_number(text: str) -> bool:
    return text[text.startswith("-") :].isdecimal() and text.isascii()

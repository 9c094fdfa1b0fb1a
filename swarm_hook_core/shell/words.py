"""Expands a word: braces, quotes, ``${...}``, splitting, patterns.

`fields` returns the arguments that a word becomes, `value` the one text of an assignment or a redirection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

from swarm_hook_core import wildcards
from swarm_hook_core.shell.lexer import NAME_LETTERS
from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.parser import document_of
from swarm_hook_core.shell.syntax import Array, Calculation, Double, Literal, Node, Parameter, Substitution, Word

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.variables import Scope
    from swarm_hook_core.shell.walk import Walk

# Expands ``${...}``.

Value = Union[str, list[str], Word]


LONGEST_MATCHED = 512  # characters of a value that is matched against a pattern at every place
LONGEST_REPLACED = 128  # characters of a value that a pattern is looked for in


def expanded(expansion: Expansion, part: Parameter) -> Value:
    """Return the meaning of `part`: a text; a list for ``${a[@]}`` and the like; or the Word that replaces it."""
    return _Expanded(expansion, part).result()


class _Expanded:
    def __init__(self, expansion: Expansion, part: Parameter) -> None:
        self.words = expansion
        self.walk = expansion.walk
        self.scope = expansion.scope
        self.part = part

    def result(self) -> Value:
        part, name, index, operator = self.part, self.part.name, self.part.index, self.part.operator
        if not name:
            return UNKNOWN
        if part.flag == "#":
            if not operator:
                return self.length()
            return UNKNOWN
        if part.flag == "!":
            return self.indirect()
        current = self.current()
        # Not set here: a profile may set it (see `Scope.parameter`), but no element of an array.
        plain = current
        if current is None and index is None:
            plain = self.scope.parameter(name)
        if plain is None:
            plain = ""
        if not operator:
            return plain
        if operator[-1] in "-=+?":
            return self.defaulted(current)
        if not isinstance(plain, list):
            return self.changed(plain)
        if operator == ":":
            if name in "@*":
                plain = [self.scope.words[0], *plain]
            return self.slice(plain)
        return [self.changed(one) for one in plain]

    def current(self) -> str | list[str] | None:
        """Return the variable or its element: a text, a list, or None if it is not set."""
        name, index = self.part.name, self.part.index
        if index is None:
            return self.scope.parameter(name, missing=None)
        current = self.scope.variable(name)
        if index.raw in ("@", "*"):
            if isinstance(current, dict):
                return list(current.values())
            if isinstance(current, list):
                return current
            if current is None:
                return []
            return [current]
        if isinstance(current, dict):
            key = self.words.value(index)
            if is_known(key):
                return current.get(key)
            return UNKNOWN
        number = self.words.number(index)
        if not is_known(number):
            return UNKNOWN
        if isinstance(current, list):
            listed = current
        elif current is None:
            listed = []
        else:
            listed = [current]
        place = int(number) - ("zsh" in self.scope.options and int(number) > 0)  # there the first element is 1
        if -len(listed) <= place < len(listed):
            return listed[place]
        return None

    def length(self) -> str:
        current = self.current() or ""
        if isinstance(current, list):
            known = all(map(is_known, current))
        else:
            known = is_known(current)
        if known:
            return str(len(current))
        return UNKNOWN

    def indirect(self) -> Value:
        part = self.part
        if part.index is not None and part.index.raw in ("@", "*") and not part.operator:
            current = self.scope.variable(part.name)
            if isinstance(current, dict):
                return list(current)
            return [str(place) for place in range(len(current or ()))]
        target = self.current()
        if part.operator or not isinstance(target, str) or not is_known(target):
            return UNKNOWN
        return self.scope.parameter(target, missing="") or ""

    def defaulted(self, current: str | list[str] | None) -> Value:
        operator, argument = self.part.operator, self.part.argument
        kind = operator[-1]
        if current is None or (operator.startswith(":") and current in ("", [])):
            return self.instead(kind)
        if kind == "+":
            return argument
        if kind != "?" and isinstance(current, str) and self.walk.has_found(current):  # some may be empty
            instead = self.words.value(argument)
            return self.walk.renamed(current, lambda one: one or instead, "", "", otherwise=current)
        return current

    def instead(self, kind: str) -> Value:
        """Return the value of an empty variable."""
        argument = self.part.argument
        if kind == "+":
            return ""
        if kind == "?":
            return UNKNOWN
        if kind == "=":
            text = self.words.value(argument)
            self.scope.variables[self.part.name] = text
            return text
        return argument

    def slice(self, current: list[str]) -> list[str]:
        part = self.part
        first = self.words.number(part.argument)
        length = ""
        if part.other:
            length = self.words.number(part.other)
        if not is_known(first + length):
            return [UNKNOWN]
        kept = current[int(first) :]
        if length:
            return kept[: int(length)]
        return kept

    def changed(self, text: str) -> str:
        """`text` with a part removed or replaced. A mark in it is a letter like others, as long as it stays whole."""
        operator, argument = self.part.operator, self.part.argument
        if self.walk.has_found(text):
            return self.walk.renamed(text, self.changed, operator, argument.raw)
        if operator in ("#", "##", "%", "%%"):
            return _trimmed(text, self.words.pattern(argument), operator)
        if operator[0] == "/":
            replacement = ""
            if self.part.other:
                replacement = self.words.value(self.part.other)
            return _replaced(text, self.words.pattern(argument), replacement, operator)
        if operator in ("^", "^^", ",", ",,") and not argument.raw:
            if operator[0] == "^":
                change = str.upper
            else:
                change = str.lower
            if len(operator) == 2:
                return change(text)
            return change(text[:1]) + text[1:]
        if operator == ":" and is_known(text):
            return "".join(self.slice(list(text)))
        return UNKNOWN


def _trimmed(text: str, wanted: str, operator: str) -> str:
    if not wildcards.is_magic(wanted):
        wanted = wildcards.literal(wanted)
        if operator[0] == "#":
            return text.removeprefix(wanted)
        return text.removesuffix(wanted)
    if len(text) > LONGEST_MATCHED:
        return UNKNOWN
    items = wildcards.compiled(wanted, True)
    places = range(len(text) + 1)
    for place in reversed(places) if operator in ("##", "%") else places:
        cut, kept = text[:place], text[place:]
        if operator[0] == "%":
            cut, kept = kept, cut
        if wildcards.matches(cut, items):
            return kept
    return text


def _replaced(text: str, wanted: str, replacement: str, operator: str) -> str:
    if not wanted:
        return text
    if not wildcards.is_magic(wanted):
        wanted = wildcards.literal(wanted)
        if operator == "/#":
            if text.startswith(wanted):
                return replacement + text[len(wanted) :]
            return text
        if operator == "/%":
            if text.endswith(wanted):
                return text[: -len(wanted)] + replacement
            return text
        return text.replace(wanted, replacement, -1 if operator == "//" else 1)
    if len(text) > LONGEST_REPLACED:
        return UNKNOWN
    items, out, at = wildcards.compiled(wanted, True), [], 0
    while at < len(text) and not (operator == "/#" and at):
        ends = range(len(text), at if operator != "/%" else len(text) - 1, -1)
        end = next((end for end in ends if wildcards.matches(text[at:end], items)), None)
        if end is None:
            out.append(text[at])
            at += 1
            continue
        out.append(replacement)
        at = end
        if operator != "//":
            break
    return "".join(out) + text[at:]


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

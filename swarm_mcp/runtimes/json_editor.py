"""JSON changed as text: one value put in or taken out, every other byte left as it is.

Key order, layout, spelling of numbers and unknown keys of others stay. Comments and commas behind a last value stay
too, where the text may have them (JSONC, as editors read their settings).
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

Place = tuple[str | int, ...]  # keys and indexes from the outermost value inwards
_BLANKS = " \t\r\n"
_BLOCK, _LINE = "\0", "\1"  # in the place of each character of a comment
_COMMENTS = _BLOCK + _LINE
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?<=[^\[{,: \t\r\n\0\1])[ \t\r\n\0\1]*,(?=[ \t\r\n\0\1]*[\]}])', re.DOTALL
)


class Item(NamedTuple):
    """A member of an object, or (without a `key`) an element of an array: where it, and its value, begin and end."""

    key: str | None
    start: int
    value: int
    end: int


def object_of(value: object) -> dict[Any, Any]:
    """Return `value` if it is a JSON object, or an empty one."""
    if isinstance(value, dict):
        return value
    return {}


def list_of(value: object) -> list[Any]:
    """Return `value` if it is a JSON array, or an empty one."""
    if isinstance(value, list):
        return value
    return []


def text_of(value: object) -> str:
    """Return `value` if it is a text, or an empty one."""
    if isinstance(value, str):
        return value
    return ""


class Inside(NamedTuple):
    """The content of an object or array: its items, and the positions of its brackets."""

    items: list[Item]
    start: int
    end: int


class JsonText:
    """One JSON text, parsed into `tree`.

    A method that returns another text has parsed that as well: it differs from this one by the requested change alone.
    A change that cannot be made is a ValueError. Its text goes on from the name of the file.
    """

    def __init__(self, text: str, strict: bool = False):
        """Raise ValueError where `text` is not JSON; `strict`: without comments, and commas behind a last value."""
        self.text = text
        self._strict = strict
        try:
            if any(mark in text for mark in _COMMENTS):
                raise ValueError("it has control characters")
            self._marked = self._plain = text
            if not strict:
                self._marked = _STRING_OR_COMMENT.sub(_mark, text)
                plain = _STRING_OR_LAST_COMMA.sub(_without_last_comma, self._marked)
                self._plain = plain.replace(_BLOCK, " ").replace(_LINE, " ")
            self.tree: Any = json.loads(self._plain, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not valid JSON ({error})") from None
        self._decode = json.JSONDecoder().raw_decode

    def text_with(self, place: Place, value: object, is_element: bool = False) -> str:
        """Return the text with `value` at `place`: it replaces a value there, or is added as the last.

        With `is_element`, it becomes the last element of the array at `place`. Missing objects (and that array) on the
        way are made.
        """
        known, expected = self.known_of(place), json.loads(self._plain)
        if known < len(place):
            if is_element:
                added: object = [value]
            else:
                added = value
            for missing in reversed(place[known + 1 :]):
                added = {missing: added}
            text = self._added(self._inside(place[:known]), str(place[known]), added)
            _at(expected, place[:known])[place[known]] = added
        elif is_element:
            if not isinstance(_at(expected, place), list):
                raise ValueError(f"has no array under {place[-1]!r}")
            text = self._added(self._inside(place), None, value)
            _at(expected, place).append(value)
        else:
            around = self._inside(place[:-1])
            item, lead = _item(around, place[-1]), self._lead(around.items[0].start)
            text = self.text[: item.value] + self._laid_out(value, lead) + self.text[item.end :]
            _at(expected, place[:-1])[place[-1]] = value
        return self._checked(text, expected)

    def known_of(self, place: Place) -> int:
        """Return how many parts of `place` are there. Raises ValueError where one that holds others is no object."""
        inner = self.tree
        for depth, part in enumerate(place):
            if not isinstance(inner, dict):
                where = "does not hold a JSON object"
                if depth:
                    where = f"has no object under {place[depth - 1]!r}"
                raise ValueError(where)
            if part not in inner:
                return depth
            inner = inner[part]
        return len(place)

    def text_without(self, place: Place, tail: str = "") -> str:
        """Return the text without the item at `place`, its comma, and the blanks before it.

        `tail`: blanks that have come into an empty object or array with its first item, and go with its last.
        """
        around, marked, text = self._inside(place[:-1]), self._marked, self.text
        item = _item(around, place[-1])
        start, comma = len(marked[: item.start].rstrip(_BLANKS)), _past(marked, item.end)
        if marked[comma] != ",":
            comma = len(marked[: item.start].rstrip(_BLANKS + _COMMENTS)) - 1
        rest = text[item.end :]
        if comma > start:
            rest = text[item.end : comma] + text[comma + 1 :]
        if marked[start - 1] == _LINE and rest.lstrip(" \t")[0] not in "\r\n":
            start = item.start  # or the rest would become part of the comment
        if comma < start and marked[comma] == ",":
            text, start = text[:comma] + text[comma + 1 :], start - 1
        text = text[:start] + rest
        if len(around.items) == 1 and text.startswith(tail, start):
            text = text[:start] + text[start + len(tail) :]
        expected = json.loads(self._plain)
        del _at(expected, place[:-1])[place[-1]]
        return self._checked(text, expected)

    def is_empty(self, place: Place) -> bool:
        """Return True if the object or array at `place` holds neither items nor comments."""
        found = self._inside(place)
        return not self._marked[found.start + 1 : found.end].strip(_BLANKS)

    def tail_of_first(self, place: Place) -> str:
        """Return the blanks that `text_with` puts behind the first item in `place`; empty where it has items."""
        found = self._inside(place)
        if found.items:
            return ""
        return self._tail(found, self._spot(found)[0])

    # ---------------------------------------------------------------- innards

    def _checked(self, text: str, expected: object) -> str:
        """Return `text` if it is JSON of the same kind, and holds the `expected` value in that order."""
        try:
            found = JsonText(text, self._strict or self._plain == self.text)
            if json.dumps(found.tree) == json.dumps(expected):
                return text
        except (ValueError, RecursionError):  # refused below
            pass
        raise ValueError("could not be edited safely")

    def _inside(self, place: Place) -> Inside:
        """Return the content of the object or array at `place`."""
        found = self._inside_at(_past(self._plain, 0))
        for part in place:
            found = self._inside_at(_item(found, part).value)
        return found

    def _inside_at(self, start: int) -> Inside:
        plain, found = self._plain, []
        closing = {"{": "}", "[": "]"}.get(plain[start])
        if closing is None:
            raise ValueError("has another kind of value where an object or array should be")
        at = _past(plain, start + 1)
        while plain[at] != closing:
            begin, key = at, None
            if closing == "}":
                key, at = self._decode(plain, at)
                at = _past(plain, _past(plain, at) + 1)  # past the colon
            value = at
            _, end = self._decode(plain, at)
            found.append(Item(key, begin, value, end))
            at = _past(plain, end)
            if plain[at] == ",":
                at = _past(plain, at + 1)
        return Inside(found, start, at)

    def _added(self, around: Inside, key: str | None, value: object) -> str:
        text = self.text
        spot, has_comma, lead = self._spot(around)
        if not around.items:
            return text[:spot] + lead + self._item_text(key, value, lead) + self._tail(around, spot) + text[spot:]
        added = lead + self._item_text(key, value, lead)
        if has_comma:
            return text[:spot] + added + "," + text[spot:]
        last = around.items[-1].end
        return text[:last] + "," + text[last:spot] + added + text[spot:]

    def _spot(self, around: Inside) -> tuple[int, bool, str]:
        """Return the position for another item, True if a comma is behind the last value, and the blanks before the
        item.
        """
        marked, has_comma = self._marked, False
        if around.items:
            last = around.items[-1]
            spot, lead = last.end, self._lead(last.start) or " "
            comma = _past(marked, spot)
            if marked[comma] == ",":
                spot, has_comma = comma + 1, True
        else:
            spot = len(marked[: around.end].rstrip(_BLANKS))  # behind the last comment
            lead = self._newline() + self._indent_of(around.start) + self._unit()
        # A comment behind the last value in its line goes with that value.
        ends = len(marked[: _past(marked, spot, " \t" + _COMMENTS)].rstrip(" \t"))
        if around.items and ends > spot:
            spot = ends
        if marked[spot - 1] == _LINE and "\n" not in lead:
            lead = self._newline() + self._indent_of(spot)
        return spot, has_comma, lead

    def _tail(self, empty: Inside, spot: int) -> str:
        """The blanks behind a first item that is put at `spot`: its closing bracket begins a line."""
        if "\n" in self.text[spot : empty.end]:
            return ""
        return self._newline() + self._indent_of(empty.start)

    def _lead(self, start: int) -> str:
        """The blanks before the item that begins at `start`, without empty lines."""
        blanks = self.text[len(self._marked[:start].rstrip(_BLANKS)) : start]
        if "\n" in blanks:
            return self._newline() + blanks.rpartition("\n")[2]
        return blanks

    def _item_text(self, key: str | None, value: object, lead: str) -> str:
        if key is None:
            name = ""
        else:
            name = f"{json.dumps(key, ensure_ascii=False)}: "
        return name + self._laid_out(value, lead)

    def _laid_out(self, value: object, lead: str) -> str:
        """Return `value` laid out like the items around it, as `lead` (the blanks before one) shows."""
        if "\n" not in lead:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, indent=self._unit(), ensure_ascii=False)
        return text.replace("\n", self._newline() + lead.rpartition("\n")[2])

    def _newline(self) -> str:
        if "\r\n" in self.text:
            return "\r\n"
        return "\n"

    def _indent_of(self, at: int) -> str:
        """The blanks that begin the line of `at`."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _unit(self) -> str:
        """Return the indentation of one level of this text, or two blanks if it shows none."""
        outermost = self._inside(())
        lead = ""
        if outermost.items:
            lead = self._lead(outermost.items[0].start)
        if "\n" in lead and lead.rpartition("\n")[2]:
            return lead.rpartition("\n")[2]
        return "  "


def _mark(found: re.Match[str]) -> str:
    word = found[0]
    if word[0] == '"':
        return word
    return (_LINE if word[1] == "/" else _BLOCK) * len(word)


def _without_last_comma(found: re.Match[str]) -> str:
    if found[0][0] == '"':
        return found[0]
    return found[0][:-1] + " "


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _past(text: str, at: int, skipped: str = _BLANKS + _COMMENTS) -> int:
    while text[at] in skipped:
        at += 1
    return at


def _item(around: Inside, part: str | int) -> Item:
    if isinstance(part, int):
        return around.items[part]
    found = [item for item in around.items if item.key == part]
    if len(found) != 1:
        raise ValueError(f"has {part!r} {'more than once' if found else 'nowhere'}")
    return found[0]


def _at(tree: Any, place: Place) -> Any:
    for part in place:
        tree = tree[part]
    return tree

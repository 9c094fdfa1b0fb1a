"""Shell patterns: matched against a text, and the names on the disk that one stands for, within bounds."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


MAGIC = frozenset("*?[")
SIGNS = MAGIC | {"("}  # of a pattern, ``+(a|b)`` of extglob included
MOST_NAMES = 256  # results that are listed one by one
MOST_DEEP = 3  # `**` in a pattern that a path is compared with
MOST_ENTRIES = 4000  # entries of folders that are looked at
MOST_TRIES = 2000  # steps of matching one text against a pattern with ``@(a|b)``
LONGEST_NAME = 255  # characters of a file's name, for callers that generate names
LETTERS_A_STEP = 200  # of patterns, that are compared with names
DEEPEST = 6  # groups within groups
_CLASSES = {
    "alpha": str.isalpha,
    "digit": str.isdecimal,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "punct": lambda letter: letter.isprintable() and not letter.isalnum() and letter != " ",
    "xdigit": lambda letter: letter in "0123456789abcdefABCDEF",
}


def is_magic(pattern: str, extended: bool = False) -> bool:
    """Return True if `pattern` has an unescaped ``*``, ``?`` or ``[``, or, with `extended`, ``@(`` and the like."""
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] in MAGIC or (extended and pattern[at] in "@!+" and pattern.startswith("(", at + 1)):
            return True
        at += 1
    return False


def escaped(text: str) -> str:
    """A pattern that matches `text` only."""
    return "".join("\\" + letter if letter in "*?[]\\(" else letter for letter in text)


def literal(pattern: str) -> str:
    """`pattern` without its escapes."""
    if "\\" not in pattern:
        return pattern
    out, at = [], 0
    while at < len(pattern):
        at += pattern[at] == "\\"
        out.append(pattern[at : at + 1])
        at += 1
    return "".join(out)


def match(text: str, pattern: str, extended: bool = False) -> bool:
    """Return True if the whole of `text` matches shell `pattern`. ``/`` is an ordinary letter."""
    return matches(text, compiled(pattern, extended))


def compiled(pattern: str, extended: bool = False, depth: int = 0) -> list[Any]:
    """Return `pattern` as a list: a letter is itself, ``...`` any text, a function one letter, a tuple a group.

    `extended`: read ``@(a|b)`` and the like, as a shell with extglob (without extglob they are an error).
    """
    items: list[Any] = []
    at, end = 0, len(pattern)
    while at < end:
        letter = pattern[at]
        at += 1
        grouped = extended and letter in "?*+@!" and depth < DEEPEST and pattern.startswith("(", at)
        if grouped and (group := _alternatives(pattern, at)):
            items.append((letter, [compiled(one, True, depth + 1) for one in group[0]]))
            at = group[1]
        elif letter == "\\" and at < end:
            items.append(pattern[at])
            at += 1
        elif letter == "*":
            if not items or items[-1] is not ...:
                items.append(...)
        elif letter == "?":
            items.append(_any_letter)
        elif letter == "[" and (letters := _letters(pattern, at)):
            items.append(letters[0])
            at = letters[1]
        else:
            items.append(letter)
    return items


def _any_letter(_letter: str) -> bool:
    return True


def _alternatives(pattern: str, at: int) -> tuple[list[str], int] | None:
    """Return (alternatives, place behind ``)``) of the group whose parenthesis opens at `at`, or None."""
    parts, deep, first = [], 0, at + 1
    while at < len(pattern):
        letter = pattern[at]
        deep += {"(": 1, ")": -1}.get(letter, 0)
        if deep == 0 or (letter == "|" and deep == 1):
            parts.append(pattern[first:at])
            first = at + 1
        at += 1 + (letter == "\\")
        if deep == 0:
            return parts, at
    return None


def _letters(pattern: str, at: int) -> tuple[Callable[..., Any], int] | None:
    """Return (function of a letter, place behind ``]``) of the class behind a ``[``, or None."""
    if pattern.find("]", at) < 0:
        return None
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members: set[str] = set()
    ranges: list[Any] = []
    classes: list[Any] = []
    first = at
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and at > first:
            return (lambda one: _is_among(one, members, ranges, classes) != negated), at + 1
        if letter == "[" and pattern.startswith("[:", at):
            name, mark, _ = pattern[at + 2 :].partition(":]")
            if mark and name in _CLASSES:
                classes.append(_CLASSES[name])
                at += len(name) + 4
                continue
        if letter == "\\" and at + 1 < len(pattern):
            at += 1
            letter = pattern[at]
        if pattern.startswith("-", at + 1) and pattern[at + 2 : at + 3] not in ("", "]"):
            ranges.append((letter, pattern[at + 2]))
            at += 3
        else:
            members.add(letter)
            at += 1
    return None


def _is_among(letter: str, members: set[str], ranges: list[Any], classes: list[Any]) -> bool:
    return (
        letter in members
        or any(low <= letter <= high for low, high in ranges)
        or any(belongs(letter) for belongs in classes)
    )


def _takes(item: Callable[..., Any] | str, letter: str) -> bool:
    if isinstance(item, str):
        return item == letter
    return item(letter)


def matches(text: str, items: list[Any]) -> bool:
    """Return True if the whole of `text` matches `compiled` items."""
    if any(isinstance(item, tuple) for item in items):
        return len(text) in _ends(text, 0, items, [MOST_TRIES])
    return _matches_plainly(text, items)


def _matches_plainly(text: str, items: list[Any]) -> bool:
    """The same of items without groups."""
    at, item, star, kept = 0, 0, -1, 0
    count, end = len(items), len(text)
    while at < end:
        if item < count and items[item] is ...:
            star, kept = item, at
            item += 1
        elif item < count and _takes(items[item], text[at]):
            at += 1
            item += 1
        elif star >= 0:
            kept += 1
            at, item = kept, star + 1
        else:
            return False
    while item < count and items[item] is ...:
        item += 1
    return item == count


def _ends(text: str, at: int, items: list[Any], left: list[Any]) -> set[str]:
    """Return the places up to which `items` can take `text` from `at` on; `left`: steps left."""
    places = {at}
    for item in items:
        following: set[str] = set()
        for place in places:
            left[0] -= 1
            if left[0] < 0:
                return set()
            if item is ...:
                following.update(range(place, len(text) + 1))
            elif isinstance(item, tuple):
                following |= _group_ends(text, place, item, left)
            elif place < len(text) and _takes(item, text[place]):
                following.add(place + 1)
        places = following
    return places


def _group_ends(text: str, at: int, group: tuple[Any, ...], left: list[Any]) -> set[str]:
    kind, choices = group

    def after(place: int) -> set[str]:
        return {end for choice in choices for end in _ends(text, place, choice, left)}

    found = after(at)
    if kind == "!":
        return set(range(at, len(text) + 1)) - found
    waiting = []
    if kind in "*+":
        waiting = list(found)
    while waiting:
        more = after(waiting.pop()) - found
        found |= more
        waiting += more
    if kind in "?*":
        found.add(at)
    return found


class _TooMany(Exception):
    """More than can be listed."""


def expand(pattern: str, folder: str | None, options: set[str], spend: Callable[..., Any]) -> list[str] | None:
    """Return the names that `pattern` stands for in `folder`, sorted; None if there are too many to list.

    `options`: ``dotglob``, ``globstar``. `spend(steps)` is called with the work done.
    """
    if folder is None and not pattern.startswith("/"):
        return None
    parts = pattern.split("/")
    if sum(part == "**" for part in parts) > 2:
        return None
    try:
        return sorted(_Search(folder or "/", options, spend).names(parts))
    except _TooMany:
        return None


class _Search:
    def __init__(self, folder: str | None, options: set[str], spend: Callable[..., Any]) -> None:
        self.folder = folder
        self.options = options
        self.spend = spend
        self.looked = 0  # entries of folders

    def names(self, parts: list[Any]) -> list[Any]:
        found, magic = [""], False
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if part == "**" and "globstar" in self.options:
                below = [path for base in found for path in self.below(base, files=last)]
                found, magic = below if last else found + below, True
            elif is_magic(part, True):
                items = compiled(part, True)
                hidden = part.startswith((".", "\\.")) or "dotglob" in self.options
                found = [base + name for base in found for name in self.entries(base, items, hidden)]
                magic = True
            else:
                found = [base + literal(part) for base in found]
                if magic:
                    found = [path for path in found if os.path.lexists(os.path.join(self.folder, path))]
            if len(found) > MOST_NAMES:
                raise _TooMany
            if not last:
                found = [path if path[-1:] == "/" or (not path and part == "**") else path + "/" for path in found]
        return found

    def look(self, entries: int) -> None:
        self.looked += entries + 1
        self.spend(entries // 8)
        if self.looked > MOST_ENTRIES:
            raise _TooMany

    def entries(self, base: str, items: list[Any], hidden: bool) -> list[str]:
        names = names_in(os.path.join(self.folder, base))
        self.look(len(names))
        grouped = any(isinstance(item, tuple) for item in items)
        if not grouped and sum(item is not ... for item in items) > LONGEST_NAME:
            return []
        self.spend(len(names) * len(items) // LETTERS_A_STEP)
        fits = _matches_plainly
        if grouped:
            fits = matches
        return [name for name in names if (hidden or not name.startswith(".")) and fits(name, items)]

    def below(self, base: str, files: bool) -> list[str]:
        """Paths of folders (of files too, where `files`) under `base`, without hidden ones."""
        found, waiting = [], [base]
        while waiting:
            at = waiting.pop()
            try:
                entries = [one for one in os.scandir(os.path.join(self.folder, at)) if not one.name.startswith(".")]
            except (OSError, ValueError):
                continue
            self.look(len(entries))
            for entry in entries:
                path = at + ("" if not at or at.endswith("/") else "/") + entry.name
                inside = entry.is_dir(follow_symlinks=False)
                waiting += [path] * inside
                found += [path] * (inside or files)
        return found


def names_in(folder: str) -> list[str]:
    """Return the names of the entries of `folder`; [] if it cannot be read."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def admits(pattern: str, folder: str | None, options: set[str] | tuple[str]) -> Callable[[str], bool | None]:
    """Return a predicate of absolute paths: `pattern`, seen from `folder`, would list them (see ``model.Tree``)."""
    parts: list[Any] = []
    for part in pattern.split("/"):
        if part != "**" or "globstar" not in options:
            parts.append(compiled(part, True))
        elif parts[-1:] != [...]:
            parts.append(...)
    unsure = parts.count(...) > MOST_DEEP
    base = "/"
    if not pattern.startswith("/"):
        base = folder.rstrip("/") + "/"
    wanted = parts
    if pattern.startswith("/"):
        wanted = parts[1:]

    def admit(path: str) -> bool | None:
        if unsure:
            return None
        return path.startswith(base) and _are_admitted(path[len(base) :].split("/"), wanted)

    return admit


def _are_admitted(names: list[str], wanted: list[Any]) -> bool:
    if not wanted:
        return not names
    if wanted[0] is ...:
        return len(wanted) == 1 or any(_are_admitted(names[skip:], wanted[1:]) for skip in range(len(names) + 1))
    return bool(names) and matches(names[0], wanted[0]) and _are_admitted(names[1:], wanted[1:])

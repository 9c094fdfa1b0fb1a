r"""Patterns with wildcards in two dialects, one matcher for both, and the files that a locked pattern covers.

- git's (gitignore(5)), for one name of a path: `name_items`. `parsed` puts names together.
- the shell's, for any text: `compiled`. A slash is a letter like others; ``@(a|b)`` and the like are groups, if
  `extended`; an unreadable ``[`` or ``\`` stands for itself.

A pattern is read into items, one after the other: a letter, a tuple of ranges of code points, a function of a letter,
`STAR` or a `_Group`. Git's items are ranges and `STAR` alone, so that two patterns can be compared letter by letter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from swarm_hook_core.paths import NO_CASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held

Ranges = tuple[tuple[int, int], ...]

LONGEST_NAME = 255  # characters: no file system has longer names, so longer ones are not compared with wildcards
MAGIC = frozenset("*?[")
SIGNS = MAGIC | {"("}  # of a pattern, ``+(a|b)`` of extglob included
MOST_TRIES = 2000  # steps of matching one text against a pattern with ``@(a|b)``
DEEPEST = 6  # groups within groups

STAR = None  # any number of letters

_LAST = 0x10FFFF
_SLASH = ord("/")
_ANY = ((0, _LAST),)
_ANY_BUT_SLASH = ((1, _SLASH - 1), (_SLASH + 1, _LAST))
_GIT_CLASSES = {
    "alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x01\x1f\x7f\x7f", "digit": "09", "graph": "!~",
    "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}  # fmt: skip
_SHELL_CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "digit": str.isdecimal,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "punct": lambda letter: letter.isprintable() and not letter.isalnum() and letter != " ",
    "xdigit": lambda letter: letter in "0123456789abcdefABCDEF",
}


class PatternUnreadable(ValueError):
    """Not a pattern of git's; the message says why, in a few words."""


class _Group:
    """``@(a|b)`` and the like: its sign, and the items of each choice."""

    __slots__ = ("sign", "choices")

    def __init__(self, sign: str, choices: list[list[Any]]) -> None:
        self.sign = sign
        self.choices = choices


# Reading


def _items(text: str, git: bool, fold: bool = False, extended: bool = False, depth: int = 0) -> list[Any]:
    items: list[Any] = []
    at, end = 0, len(text)
    while at < end:
        letter = text[at]
        at += 1
        grouped = extended and letter in "?*+@!" and depth < DEEPEST and text.startswith("(", at)
        if grouped and (group := _alternatives(text, at)):
            items.append(_Group(letter, [_items(one, git, fold, True, depth + 1) for one in group[0]]))
            at = group[1]
        elif letter == "*":
            if not items or items[-1] is not STAR:
                items.append(STAR)
        elif letter == "?":
            items.append(_ANY_BUT_SLASH if git else _ANY)
        elif letter == "[" and (found := _class(text, at, git, fold)):
            items.append(found[0])
            at = found[1]
        else:
            if letter == "\\" and at < end:
                letter = text[at]
                at += 1
            elif letter == "\\" and git:
                raise PatternUnreadable("ends in a backslash")
            items.append(((ord(letter), ord(letter)),) if git else letter)
    return items


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


def _class(text: str, at: int, git: bool, fold: bool) -> tuple[Any, int] | None:
    """Return (item, place behind ``]``) of the class whose ``[`` stands before `at`; None if it is not closed.

    Git's raises PatternUnreadable then.
    """
    if text.find("]", at) < 0 and not git:  # many that are not closed must not be read to the end each
        return None
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[tuple[int, int]] = []
    tests: list[Callable[[str], bool]] = []
    first = at
    while at < len(text):
        if text[at] == "]" and at > first:
            return _class_item(ranges, tests, negated, git), at + 1
        name = closed = ""
        if text.startswith("[:", at):
            name, closed, _ = text[at + 2 :].partition(":]")
        if closed:
            if git:
                ranges += _class_ranges(name, fold)
            elif name in _SHELL_CLASSES:
                tests.append(_SHELL_CLASSES[name])
            if git or name in _SHELL_CLASSES:
                at += len(name) + 4
                continue
        low, at = _letter(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _letter(text, at + 1)
        if low <= high:
            ranges.append((ord(low), ord(high)))
    if git:
        raise PatternUnreadable("has a [ that is not closed")
    return None


def _letter(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1


def _class_ranges(name: str, fold: bool) -> Iterable[tuple[int, int]]:
    if name not in _GIT_CLASSES:
        raise PatternUnreadable(f"has the unknown class [:{name}:]")
    if fold and name == "upper":  # git takes letters of either case if case does not count
        name = "lower"
    bounds = [ord(letter) for letter in _GIT_CLASSES[name]]
    return zip(bounds[::2], bounds[1::2])


def _class_item(
    ranges: list[tuple[int, int]], tests: list[Callable[[str], bool]], negated: bool, git: bool
) -> Ranges | Callable[[str], bool]:
    if tests:
        return lambda letter: (_has(ranges, ord(letter)) or any(test(letter) for test in tests)) != negated
    if git and negated:
        return _complement([*ranges, (_SLASH, _SLASH)], 1)
    if negated:
        return _complement(ranges, 0)
    if git:
        return _intersection(_tidy(ranges), _ANY_BUT_SLASH)
    return tuple(ranges)


def _tidy(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _complement(ranges: list[tuple[int, int]], low: int) -> Ranges:
    """Return the ranges from code point `low` on that are not among `ranges`."""
    found = []
    for first, last in _tidy(ranges):
        if first > low:
            found.append((low, first - 1))
        low = last + 1
    if low <= _LAST:
        found.append((low, _LAST))
    return tuple(found)


def _intersection(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> Ranges:
    return tuple((max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right if max(a[0], b[0]) <= min(a[1], b[1]))


def name_items(text: str, fold: bool = False) -> list[Any]:
    """Return the items of a name in a pattern of git's. With `fold` letter case does not count.

    Raises PatternUnreadable.
    """
    return _items(text, True, fold)


def compiled(pattern: str, extended: bool = False) -> list[Any]:
    """Return the items of a shell pattern."""
    return _items(pattern, False, extended=extended)


# Matching


def _has(ranges: Sequence[tuple[int, int]], code: int) -> bool:
    for low, high in ranges:  # noqa: SIM110 - the innermost loop of all; a generator takes twice as long
        if low <= code <= high:
            return True
    return False


def _takes(item: Any, letter: str) -> bool:
    kind = item.__class__
    if kind is str:
        return bool(item == letter)
    if kind is tuple:
        return _has(item, ord(letter))
    return bool(item(letter))


def matches(text: str, items: list[Any]) -> bool:
    """Return True if the whole of `text` matches `items`."""
    for item in items:
        if item.__class__ is _Group:
            return len(text) in _ends(text, 0, items, [MOST_TRIES])
    return matches_plainly(text, items)


def has_groups(items: list[Any]) -> bool:
    """Return True if a pattern has ``@(a|b)`` or the like."""
    return any(item.__class__ is _Group for item in items)


def matches_plainly(text: str, items: list[Any]) -> bool:
    """Match `items` without groups. It backtracks to at most one star, as every wildcard matcher does."""
    at = place = 0
    star, mark = -1, 0
    count, length = len(items), len(text)
    while at < length:
        if place < count and items[place] is STAR:
            star, mark = place, at
            place += 1
        elif place < count and _takes(items[place], text[at]):
            place += 1
            at += 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(item is STAR for item in items[place:])


def _ends(text: str, at: int, items: list[Any], left: list[int]) -> set[int]:
    """Return the places up to which `items` can take `text` from `at` on; `left`: steps left."""
    places = {at}
    for item in items:
        following: set[int] = set()
        for place in places:
            left[0] -= 1
            if left[0] < 0:
                return set()
            if item is STAR:
                following.update(range(place, len(text) + 1))
            elif item.__class__ is _Group:
                following |= _group_ends(text, place, item, left)
            elif place < len(text) and _takes(item, text[place]):
                following.add(place + 1)
        places = following
    return places


def _group_ends(text: str, at: int, group: _Group, left: list[int]) -> set[int]:
    def after(place: int) -> set[int]:
        return {end for choice in group.choices for end in _ends(text, place, choice, left)}

    found = after(at)
    if group.sign == "!":
        return set(range(at, len(text) + 1)) - found
    waiting = []
    if group.sign in "*+":
        waiting = list(found)
    while waiting:
        more = after(waiting.pop()) - found
        found |= more
        waiting += more
    if group.sign in "?*":
        found.add(at)
    return found


# Texts of the shell's dialect


def is_magic(pattern: str) -> bool:
    """Return True if `pattern` has an unescaped ``*``, ``?``, ``[``, ``@(``, ``!(`` or ``+(``."""
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] in MAGIC or (pattern[at] in "@!+" and pattern.startswith("(", at + 1)):
            return True
        at += 1
    return False


def escaped(text: str) -> str:
    """Return a shell pattern that matches `text` only."""
    return "".join("\\" * (letter in "*?[]\\(") + letter for letter in text)


def literal(pattern: str) -> str:
    """Return a shell pattern without its escapes."""
    if "\\" not in pattern:
        return pattern
    out, at = [], 0
    while at < len(pattern):
        at += pattern[at] == "\\"
        out.append(pattern[at : at + 1])
        at += 1
    return "".join(out)


def match(text: str, pattern: str, extended: bool = False) -> bool:
    """Return True if the whole of `text` matches a shell pattern."""
    return matches(text, compiled(pattern, extended))


# Patterns of paths as git writes them (gitignore(5)): does one cover a path, and could two cover the same path?
#
# ``*`` and ``?`` match anything but a slash, ``[a-z]`` and ``[!a-z]`` one letter, ``**`` between slashes any number of
# folders; a pattern without a slash but at its end counts at every depth. A pattern covers the paths it matches; one
# that ends in a slash covers everything in the folders it matches. Negated patterns (``!x``) are not allowed here.

Segments = Sequence[Any]  # as `parsed` returns them

LONGEST = 512  # characters: comparing two patterns takes as many steps as their lengths multiplied
DEEP = None  # between segments: any number of them


def is_pattern(text: str) -> bool:
    """Return True if `text` has any of the letters that make a path a pattern."""
    return any(letter in text for letter in MAGIC)


def literal_prefix(pattern: str) -> str:
    """The folder, relative to where the pattern counts from, that everything it covers is in; empty for all."""
    if "/" not in pattern.rstrip("/"):
        return ""
    plain: list[str] = []
    for part in pattern.lstrip("/").split("/")[:-1]:
        if is_pattern(part) or "\\" in part:
            break
        if part not in ("", "."):
            plain.append(part)
    return "/".join(plain)


def parsed(pattern: str, fold: bool = False) -> list[Any]:
    """Return the pattern for `covers` and `overlap`. With `fold` letter case does not count. Raises PatternUnreadable.

    A list of segments: `DEEP`, a name, or a list of letters (as ranges) and `STAR`.
    """
    if len(pattern) > LONGEST:
        raise PatternUnreadable(f"longer than {LONGEST} characters")
    text = pattern
    if fold:
        text = folded(pattern)
    if not text.strip("/") or text.startswith("!") or "\0" in text:
        raise PatternUnreadable("names nothing" if not text.strip("/") else "is not one that covers files")
    anchored = "/" in text.rstrip("/")
    segments: list[Any] = []
    if not anchored:
        segments = [DEEP]
    for part in text.strip("/").split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            raise PatternUnreadable("leads out of where it counts from")
        if len(part) > 1 and not part.strip("*"):
            if not segments or segments[-1] is not DEEP:
                segments.append(DEEP)
        else:
            segments.append(_segment(part, fold))
    if not segments or segments == [DEEP] and text.strip("/.") == "":
        raise PatternUnreadable("names nothing")
    if text.endswith("/"):  # folders: of `src/**/` those in src
        if segments[-1] is DEEP:
            segments.append([STAR])
        segments.append(DEEP)
    if segments[-1] is DEEP:
        segments.append([STAR])  # `src/**` and `src/` mean the files in src, not src itself
    return segments


def _segment(name: str, fold: bool) -> Any:
    if is_pattern(name) or "\\" in name:
        return name_items(name, fold)
    return name


def folded(text: str) -> str:
    """`text` as keys without letter case have it."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    return normalize("NFC", text).casefold()


def of_path(path: str, fold: bool = False, deep: bool = False) -> list[Any]:
    """A path as a pattern; with `deep` that and all that is or may be under it."""
    text = path
    if fold:
        text = folded(path)
    return [part for part in text.split("/") if part] + [DEEP] * deep


def covers(segments: Segments, path: str) -> bool:
    """Return True if a parsed pattern covers relative `path`."""
    parts = [part for part in path.split("/") if part]
    last = segments[-1]
    if not parts or (last is not DEEP and not _fits(last, parts[-1])):
        return False
    places = beginning(segments)
    for part in parts:
        places = step(segments, places, part)
        if not places:
            return False
    return len(segments) in places


def beginning(segments: Segments) -> set[int]:
    """Return the places in a parsed pattern before the first name of a path, for `step`."""
    return _through(segments, (0,))


def step(segments: Segments, places: Iterable[int], name: str) -> set[int]:
    """Return the places after one more name of the path: covered if ``len(segments)`` is among them, lost if empty."""
    after = set()
    for place in places:
        if place < len(segments):
            if segments[place] is DEEP:
                after.add(place)
            elif _fits(segments[place], name):
                after.add(place + 1)
    if after:
        return _through(segments, after)
    return after


def overlap(left: Segments, right: Segments) -> bool:
    """Return True if some path could be covered by both parsed patterns."""
    return _meet(left, right, _segments_meet)


def _through(segments: Segments, places: Iterable[int]) -> set[int]:
    """Return these places, and those after the deep parts there, since a deep part may be empty."""
    found = set()
    for place in places:
        found.add(place)
        while place < len(segments) and segments[place] is DEEP:
            place += 1
            found.add(place)
    return found


def _fits(segment: Any, text: str) -> bool:
    """Return True if a segment matches the name `text`."""
    if segment.__class__ is str:
        return bool(segment == text)
    if len(text) > LONGEST_NAME:
        return bool(segment == [STAR])
    return matches_plainly(text, segment)


def _segments_meet(left: Any, right: Any) -> bool:
    if left.__class__ is str:
        return _fits(right, left)
    if right.__class__ is str:
        return _fits(left, right)
    return _meet(left, right, _have_common)


def _have_common(left: Any, right: Any) -> bool:
    return any(a[0] <= b[1] and b[0] <= a[1] for a in left for b in right)


def _meet(left: Sequence[Any], right: Sequence[Any], single: Callable[[Any, Any], bool]) -> bool:
    """Return True if two sequences can match the same: None in them is any number of parts, `single` compares two."""
    begin, i, j = 0, len(left), len(right)
    # The parts before the first None, and after the last, have one counterpart each: mostly that settles it.
    while begin < i and begin < j and left[begin] is not None and right[begin] is not None:
        if not single(left[begin], right[begin]):
            return False
        begin += 1
    while i > begin and j > begin and left[i - 1] is not None and right[j - 1] is not None:
        if not single(left[i - 1], right[j - 1]):
            return False
        i, j = i - 1, j - 1
    return _found_way(left[begin:i], right[begin:j], single)


def _found_way(left: Sequence[Any], right: Sequence[Any], single: Callable[[Any, Any], bool]) -> bool:
    seen = {(0, 0)}
    pending = [(0, 0)]
    while pending:
        i, j = pending.pop()
        has_left, has_right = i < len(left), j < len(right)
        if not has_left and not has_right:
            return True
        many_left = has_left and left[i] is None
        many_right = has_right and right[j] is None
        steps = []
        if many_left or (many_right and has_left):
            steps.append((i + 1, j))
        if many_right or (many_left and has_right):
            steps.append((i, j + 1))
        if not steps and has_left and has_right and single(left[i], right[j]):
            steps.append((i + 1, j + 1))
        for step in steps:
            if step not in seen:
                seen.add(step)
                pending.append(step)
    return False


# Finds the files on the disk that a locked pattern covers, within bounds of time and number.

ENTRIES = 20_000  # of folders, that are looked at for one question
SEARCH_SECONDS = 0.15


class Cover:
    """The files that the pattern of a Held lock covers.

    `segments` as in `parsed`, None if the pattern is unreadable; `folder`, the key of the folder that
    contains all it covers; `base`, the folder it counts from; `fold`, True if letter case does not count.
    """

    __slots__ = ("held", "segments", "base", "folder", "fold")

    def __init__(self, held: Held) -> None:
        self.held = held
        self.base = ""
        if isinstance(held.base, str):
            self.base = held.base
        self.fold = self.base.startswith(NO_CASE)
        pattern = ""
        if isinstance(held.pattern, str):
            pattern = held.pattern
        try:
            self.segments = None
            if self.base:
                self.segments = parsed(pattern, self.fold)
        except PatternUnreadable:
            self.segments = None
        prefix = literal_prefix(folded(pattern) if self.fold else pattern)
        if prefix:
            self.folder = f"{self.base.rstrip('/')}/{prefix}"
        else:
            self.folder = self.base

    def has(self, key: str) -> bool:
        """Return True if it covers the path with this key."""
        start = self.base.rstrip("/") + "/"
        if self.segments is None or not key.startswith(start):
            return False
        return covers(self.segments, key[len(start) :])

    def places_at(self, key: str) -> set[int]:
        """Return the places in the pattern reached in the folder with this key (`step`); empty if nothing
        below can match.
        """
        if self.segments is None:
            return set()
        start = self.base.rstrip("/") + "/"
        if key != self.base and not key.startswith(start):
            return set()
        rest = key[len(start) :]
        places = beginning(self.segments)
        for name in rest.split("/"):
            if name:
                places = step(self.segments, places, name)
        return places - {len(self.segments)}

    def leads_to(self, key: str) -> bool:
        """Return True if something below the folder with this key may be covered."""
        if self.segments is None:
            return False
        return self.folder == key or self.folder.startswith(key.rstrip("/") + "/") or bool(self.places_at(key))


def covered_below(starts: Iterable[tuple[Cover, str, set[int]]], seconds: float) -> Iterator[tuple[str, Cover]]:
    """Yield ``(path, cover)`` of each existing file or folder that a pattern covers, in no order.

    `starts`: ``(cover, folder, places)``: a ``Cover``, the folder to begin in, and the places in the pattern there. A
    cover that was not searched to the end is yielded once more, with an empty path. Links are not followed, and the
    contents of ``.git`` are left out.
    """
    end, seen = time.monotonic() + seconds, 0
    together: dict[str, Any] = {}
    for cover, folder, places in starts:
        together.setdefault(folder, []).append((cover, places))
    waiting = list(together.items())
    while waiting:
        folder, there = waiting.pop()
        try:
            entries = os.scandir(folder)
        except (OSError, ValueError):  # gone or unreadable: nothing in it is covered
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > ENTRIES or (seen % 32 == 1 and time.monotonic() > end):
                    left = {id(cover): cover for _, some in [(folder, there), *waiting] for cover, _ in some}
                    yield from (("", cover) for cover in left.values())
                    return
                deeper = []
                for cover, places in there:
                    after = step(cover.segments, places, folded(entry.name) if cover.fold else entry.name)
                    if after:
                        if len(cover.segments) in after:
                            yield entry.path, cover
                        deeper.append((cover, after))
                if deeper and entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, deeper))


def start_of(cover: Cover, root: str, keys: Iterable[str]) -> tuple[Cover, str, set[int]] | None:
    """Return the start for `covered_below` of the files that `cover` has below the folder `root` with these `keys`.

    None if it has nothing there.
    """
    for key in keys:
        places = cover.places_at(key)
        if places:
            return cover, root, places
        if cover.folder.startswith(key.rstrip("/") + "/"):
            return cover, root + cover.folder[len(key.rstrip("/")) :], cover.places_at(cover.folder)
    return None

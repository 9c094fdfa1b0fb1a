"""Patterns of paths as git writes them (gitignore(5)): does one cover a path, and could two cover the same path?

``*`` and ``?`` match anything but a slash, ``[a-z]`` and ``[!a-z]`` one letter, ``**`` between slashes any number of
folders; a pattern without a slash but at its end counts at every depth. A pattern covers the paths it matches; one that
ends in a slash covers everything in the folders it matches. Negated patterns (``!x``) are not allowed here. Letters are
ranges of code points, so that two patterns can be compared letter by letter.
"""

from __future__ import annotations

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from typing import Any


LONGEST = 512  # characters: comparing two patterns takes as many steps as their lengths multiplied
MAGIC = "*?["
LONGEST_NAME = 255  # characters: no file system has longer names, so longer ones are not compared with wildcards
_CLASSES = {
    "alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x01\x1f\x7f\x7f", "digit": "09", "graph": "!~",
    "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}  # fmt: skip
_LAST = 0x10FFFF
_SLASH = ord("/")
_ANY = ((1, _SLASH - 1), (_SLASH + 1, _LAST))
_STAR = None  # in a segment: any number of letters
DEEP = None  # between segments: any number of them


class PatternUnreadable(ValueError):
    """Not a pattern; the message says why, in a few words."""


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

    A list of segments: `DEEP`, a name, or a list of letters (as ranges) and `_STAR`.
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
            segments.append([_STAR])
        segments.append(DEEP)
    if segments[-1] is DEEP:
        segments.append([_STAR])  # `src/**` and `src/` mean the files in src, not src itself
    return segments


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


def covers(segments: list[Any], path: str) -> bool:
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


def beginning(segments: list[Any]) -> set[str]:
    """Return the places in a parsed pattern before the first name of a path, for `step`."""
    return _through(segments, (0,))


def step(segments: list[Any], places: set[int], name: str) -> set[str]:
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


def overlap(left: list[int], right: int) -> bool:
    """Return True if some path could be covered by both parsed patterns."""
    return _meet(left, right, DEEP, _segments_meet)


def _through(segments: list[Any], places: set[int] | tuple[int]) -> set[str]:
    """Return these places, and those after the deep parts there, since a deep part may be empty."""
    found = set()
    for place in places:
        found.add(place)
        while place < len(segments) and segments[place] is DEEP:
            place += 1
            found.add(place)
    return found


def _segment(text: str, fold: bool) -> list[tuple[tuple[Any, ...]] | None] | str:
    if not is_pattern(text) and "\\" not in text:
        return text
    found: list[Any] = []
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "*":
            if not found or found[-1] is not _STAR:
                found.append(_STAR)
        elif letter == "?":
            found.append(_ANY)
        elif letter == "[":
            ranges, at = _class(text, at, fold)
            found.append(ranges)
        else:
            if letter == "\\":
                if at == len(text):
                    raise PatternUnreadable("ends in a backslash")
                letter = text[at]
                at += 1
            found.append(((ord(letter), ord(letter)),))
    return found


def _class(text: str, at: int, fold: bool) -> Any:
    """Return the ranges of the class whose ``[`` stands before `at`, and its end."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[Any] = []
    first = True
    while at < len(text) and (first or text[at] != "]"):
        first = False
        if text.startswith("[:", at) and ":]" in text[at:]:
            name, _, _ = text[at + 2 :].partition(":]")
            if name not in _CLASSES:
                raise PatternUnreadable(f"has the unknown class [:{name}:]")
            # git takes letters of either case for these where case does not count.
            bounds = _CLASSES["lower" if fold and name == "upper" else name]
            ranges += [(ord(bounds[i]), ord(bounds[i + 1])) for i in range(0, len(bounds), 2)]
            at += len(name) + 4
            continue
        low, at = _letter(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _letter(text, at + 1)
        if low <= high:
            ranges.append((ord(low), ord(high)))
    if at >= len(text):
        raise PatternUnreadable("has a [ that is not closed")
    ranges = _tidy(ranges)
    return (_complement(ranges) if negated else _intersection(ranges, _ANY)), at + 1


def _letter(text: str, at: int) -> Any:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1


def _tidy(ranges: list[tuple[int, int | None]]) -> list[Any]:
    found: list[Any] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _complement(ranges: list[tuple[int, int | None]]) -> tuple[Any, ...]:
    found, low = [], 1
    for first, last in _tidy([*ranges, (_SLASH, _SLASH)]):
        if first > low:
            found.append((low, first - 1))
        low = last + 1
    return tuple(found + ([(low, _LAST)] if low <= _LAST else []))


def _intersection(left: list[int], right: int) -> tuple[Any, ...]:
    return tuple((max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right if max(a[0], b[0]) <= min(a[1], b[1]))


def _fits(segment: list[tuple[tuple[Any, ...]] | None] | str, text: str) -> bool:
    """Return True if a segment matches `text`. It backtracks to at most one star, as every wildcard matcher does."""
    if segment.__class__ is str:
        return segment == text
    if len(text) > LONGEST_NAME:
        return segment == [_STAR]
    at = place = 0
    star, mark = -1, 0
    count, length = len(segment), len(text)
    while at < length:
        ranges = ()
        if place < count:
            ranges = segment[place]
        if ranges is _STAR:
            star, mark = place, at
            place += 1
        elif _has(ranges, ord(text[at])):
            place += 1
            at += 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(part is _STAR for part in segment[place:])


def _has(ranges: tuple[tuple[int, int]], code: int) -> bool:
    for low, high in ranges:  # noqa: SIM110 - the innermost loop of all; a generator takes twice as long
        if low <= code <= high:
            return True
    return False


def _segments_meet(left: list[int], right: int) -> bool:
    if left.__class__ is str:
        if right.__class__ is str:
            return left == right
        return _fits(right, left)
    if right.__class__ is str:
        return _fits(left, right)
    return _meet(left, right, _STAR, _have_common)


def _have_common(left: list[int], right: int) -> bool:
    return any(a[0] <= b[1] and b[0] <= a[1] for a in left for b in right)


def _meet(left: list[int], right: int, many: bool, single: Any) -> bool:
    """Return True if two sequences can match the same: `many` in them is any number of parts, `single` compares two."""
    begin, i, j = 0, len(left), len(right)
    # The parts before the first `many`, and after the last, have one counterpart each: mostly that settles it.
    while begin < i and begin < j and left[begin] is not many and right[begin] is not many:
        if not single(left[begin], right[begin]):
            return False
        begin += 1
    while i > begin and j > begin and left[i - 1] is not many and right[j - 1] is not many:
        if not single(left[i - 1], right[j - 1]):
            return False
        i, j = i - 1, j - 1
    return _found_way(left[begin:i], right[begin:j], many, single)


def _found_way(left: list[int], right: int, many: bool, single: Any) -> bool:
    seen = {(0, 0)}
    pending = [(0, 0)]
    while pending:
        i, j = pending.pop()
        if i == len(left) and j == len(right):
            return True
        steps = []
        a = ...
        if i < len(left):
            a = left[i]
        b = ...
        if j < len(right):
            b = right[j]
        if a is many:
            steps.append((i + 1, j))
            if b is not ... and b is not many:
                steps.append((i, j + 1))
        if b is many:
            steps.append((i, j + 1))
            if a is not ... and a is not many:
                steps.append((i + 1, j))
        if a is not many and b is not many and a is not ... and b is not ... and single(a, b):
            steps.append((i + 1, j + 1))
        for step in steps:
            if step not in seen:
                seen.add(step)
                pending.append(step)
    return False

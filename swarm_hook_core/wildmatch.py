"""Patterns of paths as git writes them (gitignore(5)): does one cover a path, and could two cover the same path?

``*`` and ``?`` match anything but a slash, ``[a-z]`` and ``[!a-z]`` one letter, ``**`` between slashes any number of
folders; a pattern without a slash but at its end counts at every depth. A pattern covers the paths it matches; one that
ends in a slash covers everything in the folders it matches. Negated patterns (``!x``) are not allowed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core.wildcards import LONGEST_NAME, MAGIC, STAR, matches_plainly, name_items
from swarm_hook_core.wildcards import PatternUnreadable as PatternUnreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
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

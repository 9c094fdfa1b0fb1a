"""Patterns of paths as git writes them (gitignore(5)): whether one covers a path, and whether two could cover the same.

``*`` and ``?`` stand for anything but a slash, ``[a-z]`` and ``[!a-z]`` for one letter, ``**`` between slashes for
any number of folders; a pattern without a slash but at its end counts at every depth. A pattern covers the paths
that it fits; one that ends in a slash, all that is in the folders it fits. Negated ones (``!x``) are not patterns here.

Letters are ranges of code points, so that two patterns can be compared letter by letter.
"""

LONGEST = 512  # characters: comparing two patterns takes as many steps as their lengths multiplied
MAGIC = "*?["
_CLASSES = {
    "alpha": "AZaz", "digit": "09", "alnum": "AZaz09", "upper": "AZ", "lower": "az", "space": "\t\r  ",
    "blank": "\t\t  ", "punct": "!/:@[`{~", "xdigit": "09AFaf", "word": "AZaz09__",
}  # fmt: skip
_LAST = 0x10FFFF
_SLASH = ord("/")
_ANY = ((1, _SLASH - 1), (_SLASH + 1, _LAST))
_STAR = ()  # in a segment: any number of letters
DEEP = None  # between segments: any number of them


class PatternUnreadable(ValueError):
    """Not a pattern; the message says why, in a few words."""


def is_pattern(text: str) -> bool:
    """Whether `text` has any of the letters that make a path a pattern."""
    return any(letter in text for letter in MAGIC)


def literal_prefix(pattern: str) -> str:
    """The folder, relative to where the pattern counts from, that everything it covers is in; empty for all."""
    if "/" not in pattern.rstrip("/"):
        return ""
    parts = pattern.lstrip("/").split("/")
    plain: list[str] = []
    for part in parts[:-1]:
        if is_pattern(part) or "\\" in part:
            break
        plain.append(part)
    return "/".join(plain)


def parsed(pattern: str, fold: bool = False):
    """What `covers` and `overlap` take. With `fold` letter case does not count. Raises PatternUnreadable."""
    if len(pattern) > LONGEST:
        raise PatternUnreadable(f"longer than {LONGEST} characters")
    text = pattern.casefold() if fold else pattern
    if not text.strip("/") or text.startswith("!") or "\0" in text:
        raise PatternUnreadable("names nothing" if not text.strip("/") else "is not one that covers files")
    anchored = "/" in text.rstrip("/")
    segments: list = [] if anchored else [DEEP]
    for part in text.strip("/").split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            raise PatternUnreadable("leads out of where it counts from")
        if part == "**":
            if not segments or segments[-1] is not DEEP:
                segments.append(DEEP)
        else:
            segments.append(_segment(part))
    if text.endswith("/") and segments[-1] is not DEEP:
        segments.append(DEEP)
    if segments[-1] is DEEP:
        segments.append([_STAR])  # `src/**` and `src/` are what is in src, not src
    return segments


def of_path(path: str, fold: bool = False, deep: bool = False):
    """A path as a pattern; with `deep` that and all that is or may be under it."""
    text = path.casefold() if fold else path
    return [[((ord(c), ord(c)),) for c in part] for part in text.split("/") if part] + ([DEEP] if deep else [])


def covers(segments, path: str) -> bool:
    """Whether a parsed pattern covers relative `path`."""
    parts = [part for part in path.split("/") if part]
    reached = {0}
    for part in parts:
        after = set()
        for place in _through(segments, reached):
            if place < len(segments):
                if segments[place] is DEEP:
                    after.add(place)
                elif _fits(segments[place], part):
                    after.add(place + 1)
        if not after:
            return False
        reached = after
    return len(segments) in _through(segments, reached)


def overlap(left, right) -> bool:
    """Whether there could be a path that both parsed patterns cover."""
    return _meet(left, right, DEEP, _segments_meet)


def _through(segments, places) -> set:
    """These places, and those after the deep parts there, which may be empty."""
    found = set()
    for place in places:
        found.add(place)
        while place < len(segments) and segments[place] is DEEP:
            place += 1
            found.add(place)
    return found


def _segment(text: str) -> list:
    found: list = []
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
            ranges, at = _class(text, at)
            found.append(ranges)
        else:
            if letter == "\\":
                if at == len(text):
                    raise PatternUnreadable("ends in a backslash")
                letter = text[at]
                at += 1
            found.append(((ord(letter), ord(letter)),))
    return found


def _class(text: str, at: int):
    """The ranges of the class whose ``[`` stands before `at`, and where it ends."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    ranges: list = []
    first = True
    while at < len(text) and (first or text[at] != "]"):
        first = False
        if text.startswith("[:", at) and ":]" in text[at:]:
            name, _, _ = text[at + 2 :].partition(":]")
            if name not in _CLASSES:
                raise PatternUnreadable(f"has the unknown class [:{name}:]")
            bounds = _CLASSES[name]
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


def _letter(text: str, at: int):
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1


def _tidy(ranges) -> list:
    found: list = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _complement(ranges) -> tuple:
    found, low = [], 1
    for first, last in _tidy([*ranges, (_SLASH, _SLASH)]):
        if first > low:
            found.append((low, first - 1))
        low = last + 1
    return tuple(found + ([(low, _LAST)] if low <= _LAST else []))


def _intersection(left, right) -> tuple:
    return tuple(
        (max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right if max(a[0], b[0]) <= min(a[1], b[1])
    )


def _fits(segment, text: str) -> bool:
    """Whether a segment stands for `text`: one star is gone back to at most, as in every wildcard matcher."""
    at = place = 0
    star, mark = -1, 0
    while at < len(text):
        if place < len(segment) and segment[place] is _STAR:
            star, mark = place, at
            place += 1
        elif place < len(segment) and _has(segment[place], ord(text[at])):
            place += 1
            at += 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(part is _STAR for part in segment[place:])


def _has(ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _segments_meet(left, right) -> bool:
    return _meet(left, right, _STAR, lambda a, b: bool(_intersection(a, b)))


def _meet(left, right, many, single) -> bool:
    """Whether two sequences can stand for the same: `many` in them is any number of parts, `single` compares two."""
    seen = {(0, 0)}
    pending = [(0, 0)]
    while pending:
        i, j = pending.pop()
        if i == len(left) and j == len(right):
            return True
        steps = []
        a = left[i] if i < len(left) else ...
        b = right[j] if j < len(right) else ...
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

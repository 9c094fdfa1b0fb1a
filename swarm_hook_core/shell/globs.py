"""Shell patterns, matched against a text."""

MAGIC = frozenset("*?[")
SIGNS = MAGIC | {"("}  # of a pattern, ``+(a|b)`` of extglob included
MOST_TRIES = 2000  # steps of matching one text against a pattern with ``@(a|b)``
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
    """Whether `pattern` has an unescaped ``*``, ``?`` or ``[``, or ``@(`` and the like where `extended`."""
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
    """Whether the whole of `text` matches shell `pattern`, in which ``/`` is a letter like others."""
    return matches(text, compiled(pattern, extended))


def compiled(pattern: str, extended: bool = False, depth: int = 0) -> list:
    """`pattern` as a list of what matches: a letter, ``...`` anything, a function one letter, a tuple a group.

    `extended`: whether ``@(a|b)`` and the like mean something, as in a shell (with extglob; without, it is an error).
    """
    items: list = []
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


def _alternatives(pattern: str, at: int):
    """(alternatives, place behind ``)``) of the group whose parenthesis opens at `at`, or None."""
    parts, deep, first = [], 0, at + 1
    while at < len(pattern):
        letter = pattern[at]
        deep += {"(": 1, ")": -1}.get(letter, 0)
        if deep == 0 or (letter == "|" and deep == 1):
            parts.append(pattern[first:at])
            first = at + 1
        at += 2 if letter == "\\" else 1
        if deep == 0:
            return parts, at
    return None


def _letters(pattern: str, at: int):
    """(function of a letter, place behind ``]``) of what stands behind ``[``, or None."""
    if pattern.find("]", at) < 0:
        return None
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members: set = set()
    ranges: list = []
    classes: list = []
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


def _is_among(letter: str, members, ranges, classes) -> bool:
    return (
        letter in members
        or any(low <= letter <= high for low, high in ranges)
        or any(belongs(letter) for belongs in classes)
    )


def _takes(item, letter: str) -> bool:
    return item == letter if isinstance(item, str) else item(letter)


def matches(text: str, items: list) -> bool:
    """Whether the whole of `text` matches `compiled` items."""
    if any(isinstance(item, tuple) for item in items):
        return len(text) in _ends(text, 0, items, [MOST_TRIES])
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
    return all(one is ... for one in items[item:])


def _ends(text: str, at: int, items: list, left: list) -> set:
    """Places up to which `items` can take `text` from `at` on; `left`: steps that it may take."""
    places = {at}
    for item in items:
        following: set = set()
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


def _group_ends(text: str, at: int, group: tuple, left: list) -> set:
    kind, choices = group

    def after(place: int) -> set:
        return {end for choice in choices for end in _ends(text, place, choice, left)}

    found = after(at)
    if kind == "!":
        return set(range(at, len(text) + 1)) - found
    waiting = list(found) if kind in "*+" else []
    while waiting:
        more = after(waiting.pop()) - found
        found |= more
        waiting += more
    return found | ({at} if kind in "?*" else set())

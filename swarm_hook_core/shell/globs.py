"""Shell patterns: matched against a text, and expanded against the disk within bounds."""

import os

MAGIC = frozenset("*?[")
SIGNS = MAGIC | {"("}  # of a pattern, ``+(a|b)`` of extglob included
MOST_NAMES = 256  # results that are listed one by one
MOST_TRIES = 2000  # steps of matching one text against a pattern with ``@(a|b)``
DEEPEST = 6  # groups within groups
MOST_ENTRIES = 4000  # entries of folders that are looked at


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


def compiled(pattern: str, extended: bool = False, depth: int = 0) -> list:
    """`pattern` as a list of: a letter, ``None`` for ``?``, ``...`` for ``*``, a tuple for ``[]``, a list for ``@()``.

    `extended`: whether ``@(a|b)`` and the like mean something, as in a shell (with extglob; without, it is an error).
    """
    items: list = []
    at, end = 0, len(pattern)
    while at < end:
        letter = pattern[at]
        at += 1
        grouped = extended and letter in "?*+@!" and depth < DEEPEST and pattern.startswith("(", at)
        if grouped and (close := _closing(pattern, at)) > 0:
            items.append([letter, [compiled(one, True, depth + 1) for one in _split(pattern[at + 1 : close])]])
            at = close + 1
        elif letter == "\\" and at < end:
            items.append(pattern[at])
            at += 1
        elif letter == "*":
            if not items or items[-1] is not ...:
                items.append(...)
        elif letter == "?":
            items.append(None)
        elif letter == "[":
            group = _group(pattern, at)
            if group is None:
                items.append("[")
            else:
                items.append(group[0])
                at = group[1]
        else:
            items.append(letter)
    return items


def matches(text: str, items: list) -> bool:
    """Whether the whole of `text` matches `compiled` items."""
    if any(isinstance(item, list) for item in items):
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
    while item < count and items[item] is ...:
        item += 1
    return item == count


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
            elif isinstance(item, list):
                following |= _extended_ends(text, place, item, left)
            elif place < len(text) and _takes(item, text[place]):
                following.add(place + 1)
        places = following
    return places


def _extended_ends(text: str, at: int, item: list, left: list) -> set:
    kind, choices = item
    once = {end for choice in choices for end in _ends(text, at, choice, left)}
    if kind == "@":
        return once
    if kind == "?":
        return once | {at}
    if kind == "!":
        return {end for end in range(at, len(text) + 1) if end not in once}
    found, waiting = set(once), list(once)
    while waiting:
        start = waiting.pop()
        more = {end for choice in choices for end in _ends(text, start, choice, left)} - found
        found |= more
        waiting += more
    return found | ({at} if kind == "*" else set())


def _closing(pattern: str, at: int) -> int:
    """Where the parenthesis at `at` is closed, or -1."""
    deep = 0
    while at < len(pattern):
        at += pattern[at] == "\\"
        deep += {"(": 1, ")": -1}.get(pattern[at : at + 1], 0)
        if not deep:
            return at
        at += 1
    return -1


def _split(inner: str) -> list[str]:
    """The alternatives between ``|``."""
    parts, first, at, deep = [], 0, 0, 0
    while at < len(inner):
        letter = inner[at]
        at += 2 if letter == "\\" else 1
        deep += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "|" and not deep:
            parts.append(inner[first : at - 1])
            first = at
    return [*parts, inner[first:]]


def match(text: str, pattern: str, extended: bool = False) -> bool:
    """Whether the whole of `text` matches shell `pattern`, in which ``/`` is a letter like others."""
    return matches(text, compiled(pattern, extended))


def expand(pattern: str, folder, options, spend):
    """The names that `pattern` stands for in `folder`, sorted; [] for none; None for more than are listed.

    `options`: ``dotglob``, ``globstar``. `spend(steps)` is called with the work done.
    """
    if folder is None and not pattern.startswith("/"):
        return None
    parts = pattern.split("/")
    if sum(part == "**" for part in parts) > 2:
        return None
    found, looked = [""], 0
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        following: list = []
        if part == "**" and "globstar" in options:
            for base in found:
                listed = _below(folder, base, MOST_ENTRIES - looked, last, spend)
                if listed is None:
                    return None
                looked += len(listed)
                following += listed if last else [base, *listed]
        elif is_magic(part, True):
            items = compiled(part, True)
            hidden = part.startswith((".", "\\.")) or "dotglob" in options
            for base in found:
                names = names_in(os.path.join(folder or "/", base))
                looked += len(names) + 1
                spend(len(names) // 8)
                following += [
                    base + name for name in names if (hidden or not name.startswith(".")) and matches(name, items)
                ]
                if looked > MOST_ENTRIES:
                    return None
        else:
            name = literal(part)
            following = [base + name for base in found]
            if place and is_magic("/".join(parts[:place]), True):
                following = [path for path in following if os.path.lexists(os.path.join(folder or "/", path))]
        if len(following) > MOST_NAMES:
            return None
        found = following if last else [_as_folder(path, part) for path in following]
        if not found:
            return []
    return sorted(found)


def _as_folder(path: str, part: str) -> str:
    return path if path.endswith("/") or (not path and part == "**") else path + "/"


def names_in(folder: str) -> list[str]:
    """Names of the entries of `folder`; none where it cannot be read."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def _below(folder, base, limit, files, spend):
    """Paths of folders (of files too, where `files`) under `base`, without hidden ones; None past `limit`."""
    found, waiting = [], [base]
    while waiting:
        at = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(folder or "/", at)))
        except (OSError, ValueError):
            continue
        spend(1 + len(entries) // 8)
        if len(entries) + len(found) > limit:
            return None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = at + ("" if not at or at.endswith("/") else "/") + entry.name
            inside = entry.is_dir(follow_symlinks=False)
            if inside:
                waiting.append(path)
            if inside or files:
                found.append(path)
    return found


def admits(pattern: str, folder, options):
    """A predicate of absolute paths: whether `pattern`, seen from `folder`, would list them (see ``model.Tree``)."""
    deep = "globstar" in options
    parts = [... if part == "**" and deep else compiled(part, True) for part in pattern.split("/")]
    base = "/" if pattern.startswith("/") else folder

    def admit(path: str) -> bool:
        if not path.startswith(base.rstrip("/") + "/"):
            return False
        names = path[len(base.rstrip("/")) + 1 :].split("/")
        wanted = parts[1:] if pattern.startswith("/") else parts
        return _admitted(names, wanted)

    return admit


def _admitted(names, wanted) -> bool:
    if not wanted:
        return not names
    if wanted[0] is ...:
        return any(_admitted(names[skip:], wanted[1:]) for skip in range(len(names) + 1)) or len(wanted) == 1
    return bool(names) and matches(names[0], wanted[0]) and _admitted(names[1:], wanted[1:])


def _takes(item, letter: str) -> bool:
    if item is None:
        return True
    if isinstance(item, str):
        return item == letter
    negated, members, ranges, classes = item
    inside = letter in members or any(low <= letter <= high for low, high in ranges)
    inside = inside or any(_CLASSES[name](letter) for name in classes)
    return inside != negated


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


def _group(pattern: str, at: int):
    """((negated, members, ranges, classes), place behind ``]``) of what stands behind ``[``, or None."""
    if pattern.find("]", at) < 0:
        return None
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members, ranges, classes, first = set(), [], [], True
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and not first:
            return (negated, members, ranges, classes), at + 1
        first = False
        if letter == "[" and pattern.startswith("[:", at):
            name, mark, _ = pattern[at + 2 :].partition(":]")
            if mark and name in _CLASSES:
                classes.append(name)
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

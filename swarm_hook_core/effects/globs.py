"""Shell patterns: matched against a text, and expanded against the disk within bounds."""

import os

MAGIC = frozenset("*?[")
MOST_NAMES = 256  # results that are listed one by one
MOST_ENTRIES = 6000  # entries of folders that are looked at


def is_magic(pattern: str) -> bool:
    """Whether `pattern` has an unescaped ``*``, ``?`` or ``[``."""
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] in MAGIC:
            return True
        at += 1
    return False


def escaped(text: str) -> str:
    """A pattern that matches `text` only."""
    return "".join("\\" + letter if letter in "*?[]\\" else letter for letter in text)


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


def compiled(pattern: str) -> list:
    """`pattern` as a list of: a letter, ``None`` for ``?``, ``...`` for ``*``, (negated, members, ranges) for ``[]``."""
    items: list = []
    at, end = 0, len(pattern)
    while at < end:
        letter = pattern[at]
        at += 1
        if letter == "\\" and at < end:
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


def match(text: str, pattern: str) -> bool:
    """Whether the whole of `text` matches shell `pattern`, in which ``/`` is a letter like others."""
    return matches(text, compiled(pattern))


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
                listed = _below(folder, base, MOST_ENTRIES - looked, files=last)
                if listed is None:
                    return None
                looked += len(listed)
                following += listed if last else [base, *listed]
        elif is_magic(part):
            items = compiled(part)
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
            if place and is_magic("/".join(parts[:place])):
                following = [path for path in following if os.path.lexists(os.path.join(folder or "/", path))]
        if len(following) > MOST_NAMES:
            return None
        found = following if last else [path + "/" for path in following if not path.endswith("/") or not path]
        if not found:
            return []
    return sorted(found)


def names_in(folder: str) -> list[str]:
    """Names of the entries of `folder`; none where it cannot be read."""
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def _below(folder, base, limit, files):
    """Paths of folders (of files too, where `files`) under `base`, without hidden ones; None past `limit`."""
    found, waiting = [], [base]
    while waiting:
        at = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(folder or "/", at)))
        except (OSError, ValueError):
            continue
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
    parts = [compiled(part) if part != "**" or "globstar" not in options else ... for part in pattern.split("/")]
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

"""Unified diffs: which files a patch is about."""

import os

LONGEST = 4 * 1024 * 1024  # characters of a patch that are read


def files_in(text: str, strip=None, directory: str = "", prefix: str = ""):
    """The files of patch `text`: (path, whether it is relative to the top of the work tree) in order, each once.

    Names of ``diff --git`` are relative to the top, those of plain diffs to where the patch is applied. `strip`:
    leading parts that are taken off (None: not given); `directory`: put before; `prefix`: the folder where the patch
    is applied, relative to the top, which a plain diff's names may begin with.
    """
    found: dict = {}
    of_git, before = False, ""
    removed = added = 0
    for line in text[:LONGEST].replace("\r\n", "\n").split("\n"):
        if removed or added:  # inside a hunk, "--- x" is a line that goes
            if line.startswith("-"):
                removed -= 1
            elif line.startswith("+"):
                added -= 1
            elif not line.startswith("\\"):
                removed, added = removed - 1, added - 1
            removed, added = max(removed, 0), max(added, 0)
        elif line.startswith("@@ -"):
            removed, added = _sizes(line)
        elif line.startswith("diff --git "):
            of_git = True
            _note(found, _same_names(line[11:]), 1 if strip is None else strip, directory, True)
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            _note(found, [unquoted(line.split(" ", 2)[2])], 0, directory, True)
        elif line.startswith("--- "):
            before = _name(line)
        elif line.startswith("+++ ") and before:
            names = [name for name in (before, _name(line)) if name != "/dev/null"]
            if strip is None and not of_git:
                strip = _guessed(names, prefix)
            _note(found, names, 1 if strip is None else strip, directory, of_git)
            before = ""
        elif line.startswith("Index: "):
            of_git = False
    return list(found)


def _name(line: str) -> str:
    return unquoted(line[4:].split("\t")[0].rstrip())


def _guessed(names, prefix: str):
    """How many parts git takes off the names of a plain diff where nobody says it, or None for the usual one."""
    guesses: set = set()
    for name in names:
        start = prefix + "/"
        if "/" not in name:
            guesses.add(0)
        elif prefix and name.startswith(start):
            guesses.add(start.count("/"))
        elif prefix and name.partition("/")[2].startswith(start):
            guesses.add(start.count("/") + 1)
        else:
            guesses.add(None)
    return guesses.pop() if len(guesses) == 1 else None


def unquoted(name: str) -> str:
    """A name as git prints it, without the quotes and backslashes that it puts around odd ones."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    plain = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, '"': 34, "\\": 92}
    out, at, inner = bytearray(), 0, name[1:-1]
    while at < len(inner):
        letter = inner[at]
        if letter == "\\" and inner[at + 1 : at + 4].isdigit() and len(inner[at + 1 : at + 4]) == 3:
            out.append(int(inner[at + 1 : at + 4], 8) & 255)
            at += 4
        elif letter == "\\" and inner[at + 1 : at + 2] in plain:
            out.append(plain[inner[at + 1]])
            at += 2
        else:
            out += os.fsencode(letter)
            at += 1
    return os.fsdecode(bytes(out))


def _sizes(line: str):
    """(old, new) number of lines of the hunk that ``@@ -1,2 +3,4 @@`` begins."""
    sizes = []
    for part in line.split(" ")[1:3]:
        number = part.partition(",")[2] or "1"
        sizes.append(int(number) if number.isdigit() else 0)
    return (*sizes, 0, 0)[:2]


def _same_names(rest: str) -> list:
    """The name in ``a/x b/x``, where both are one file; renames say theirs on lines of their own."""
    if rest.startswith('"'):
        first = rest[: rest.find('" ', 1) + 1]
        return [unquoted(first)] if first else []
    half = len(rest) // 2
    left, right = rest[:half], rest[half + 1 :]
    if rest[half : half + 1] == " " and left.partition("/")[2] == right.partition("/")[2]:
        return [left]
    return []


def _note(found: dict, names, strip: int, directory: str, of_top: bool) -> None:
    for name in names:
        parts = name.split("/")
        if len(parts) > strip:
            path = "/".join(parts[strip:])
            found[(os.path.join(directory, path) if directory else path, of_top)] = None

"""Unified diffs: which files a patch is about."""

import os

LONGEST = 4 * 1024 * 1024  # characters of a patch that are read


def files_in(text: str, strip: int = 1, directory: str = ""):
    """The files of patch `text`: (path, whether it is relative to the top of the work tree) in order, each once.

    Names of ``diff --git`` are relative to the top, those of plain diffs to where the patch is applied. `strip`:
    leading parts that are taken off; `directory`: put before.
    """
    found: dict = {}
    of_git, removed = False, 0
    added = 0
    for line in text[:LONGEST].splitlines():
        if removed or added:  # inside a hunk, "--- x" is a line that goes
            if line.startswith("-"):
                removed -= 1
            elif line.startswith("+"):
                added -= 1
            elif not line.startswith("\\"):
                removed, added = removed - 1, added - 1
            removed, added = max(removed, 0), max(added, 0)
            continue
        if line.startswith("@@ -"):
            removed, added = _sizes(line)
            continue
        if line.startswith("diff --git "):
            of_git = True
            names = _same_names(line[11:])
            _note(found, names, strip, directory, True)
        elif line.startswith(("rename from ", "rename to ", "copy to ")):
            _note(found, [unquoted(line.split(" ", 2)[2])], 0, directory, True)
        elif line.startswith(("--- ", "+++ ")):
            name = unquoted(line[4:].split("\t")[0].rstrip())
            _note(found, [] if name == "/dev/null" else [name], strip, directory, of_git)
        elif line.startswith("Index: "):
            of_git = False
    return list(found)


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

"""Edits as one text of sections, with a header for each file: one of the forms of oh-my-pi's edits."""

from swarm_hook_core import EDIT, REMOVE, REPLACE

_HEX = frozenset("0123456789abcdefABCDEF")


def changes_in_sections(text: str) -> "dict[str, str]":
    """Return ``{path: how}`` of the files of a text; empty for another kind of text.

    New text that looks like a header names a file more.
    """
    changes: dict[str, str] = {}
    current = ""
    for line in text.lstrip("\ufeff").split("\n"):
        words = line.strip()
        named = _header(words)
        if named:
            current = _plain(named)
            changes.setdefault(current, EDIT)
        elif current and words == "REM":
            changes[current] = REMOVE
        elif current and words.startswith("MV "):
            changes.update({current: REMOVE, _plain(words[3:]): REPLACE})
    return changes


def _header(line: str) -> str:
    """Return the file that a line names: ``[a.md#1A2B]``, in other forms ``¶a.md`` or ``<SM:EDIT path="a.md">``."""
    if line.startswith("[") and line.endswith("]"):
        return line[1:-1]
    if line.startswith("\u00b6"):
        return line.lstrip("\u00b6")
    if line.startswith("<SM:EDIT "):
        given = line.partition(" path=")[2]
        return given[: given.find(given[:1], 1) + 1]  # with its quotes
    return ""


def _plain(path: str) -> str:
    """The path of a header, without the tag of its content and without quotes."""
    path = path.strip()
    if path[-5:-4] == "#" and _HEX.issuperset(path[-4:]):
        path = path[:-5]
    if len(path) > 1 and path[0] in "\"'" and path[0] == path[-1]:
        return path[1:-1]
    return path

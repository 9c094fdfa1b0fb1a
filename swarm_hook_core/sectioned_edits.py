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
        # The file that a line names: ``[a.md#1A2B]``, in other forms ``¶a.md`` or ``<SM:EDIT path="a.md">``
        if words.startswith("[") and words.endswith("]"):
            named = words[1:-1]
        elif words.startswith("\u00b6"):
            named = words.lstrip("\u00b6")
        elif words.startswith("<SM:EDIT "):
            given = words.partition(" path=")[2]
            named = given[: given.find(given[:1], 1) + 1]  # with its quotes
        else:
            named = ""
        if named:
            current = _plain(named)
            changes.setdefault(current, EDIT)
        elif current and words == "REM":
            changes[current] = REMOVE
        elif current and words.startswith("MV "):
            changes.update({current: REMOVE, _plain(words[3:]): REPLACE})
    return changes


def _plain(path: str) -> str:
    """The path of a header, without the tag of its content and without quotes."""
    path = path.strip()
    if path[-5:-4] == "#" and _HEX.issuperset(path[-4:]):
        path = path[:-5]
    if len(path) > 1 and path[0] in "\"'" and path[0] == path[-1]:
        return path[1:-1]
    return path

"""Reads apply_patch envelopes in a laxer grammar than Codex's (see ``patch``), as other clients do.

Seen in OpenCode 1.18, Cline 3.0 and Copilot CLI 1.0.102: blanks around the path do not count, nor do, in Copilot, those
before a header; unknown lines are passed over. If a client refuses a patch, or skips a header (behind the end, amid a
file's text), this names a path too many, never one too few.
"""

from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.patch import PatchUnreadable

_MOVE = "*** Move to:"
_HOWS = {"*** Add File:": REPLACE, "*** Update File:": EDIT, "*** Delete File:": REMOVE, _MOVE: REPLACE}
# The characters that JavaScript trims. Python's own strip() would take \x1c..\x1f and \x85 off a file name, and leave
# \ufeff.
_BLANKS = (
    " \t\n\x0b\x0c\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000\ufeff"
)


def changes_by_headers(text: str) -> "list[tuple[str, str]]":
    """Return ``(path, how)`` of each file in a header, in order; `how`: `EDIT`, ....

    Raises PatchUnreadable for a text without headers.
    """
    changes: dict[str, Any] = {}
    updated = ""
    for line in text.split("\n"):
        header, colon, path = line.partition(":")
        header, path = header.lstrip(_BLANKS + "\x85") + colon, path.strip(_BLANKS)
        if header not in _HOWS or not path or "\0" in path:
            continue
        if header == _MOVE and updated:
            changes[updated] = REMOVE  # after the new file is written: of one moved onto itself nothing is left
        if header != _MOVE or path != updated:
            changes[path] = _HOWS[header]
        updated = path
    if not changes:
        raise PatchUnreadable("no header in the patch names a file")
    return list(changes.items())

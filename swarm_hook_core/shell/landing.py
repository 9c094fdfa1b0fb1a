"""Where a copied or moved file lands: at its destination, or inside of it. Words may have marks (``model``).

folder  absolute path of the folder that the words are seen from; None if unknown
"""

from __future__ import annotations

import os

from swarm_hook_core.shell.model import absolute, is_known


def seen(folder: str | None, word: str) -> str | None:
    """Return the absolute path of `word`, or None if it has marks or the folder is unknown."""
    if word:
        return absolute(folder, word)
    return None


def is_folder(folder: str | None, word: str) -> bool:
    """Return True if `word` names a folder on the disk."""
    path = seen(folder, word)
    return path is not None and os.path.isdir(path)


def is_file(folder: str | None, word: str) -> bool:
    """Return True if `word` names something on the disk that is no folder."""
    path = seen(folder, word)
    return path is not None and os.path.lexists(path) and not os.path.isdir(path)


def base(word: str) -> str:
    """The last name in `word`, as cp and mv find it: slashes at the end do not count."""
    return os.path.basename(word.rstrip("/")) or word


def targets(folder: str | None, source: str, dest: str, inside: bool | None = None) -> list[str]:
    """Return the words that a program would write if it puts `source` at or into `dest`.

    `inside`: True if `dest` is a folder that it goes into, False if `dest` is the new name, None if the disk decides. A
    `dest` that does not exist may be made by the same command line: then both words are returned.
    """
    if dest:
        within = dest.rstrip("/") + "/" + base(source)
    else:
        within = base(source)
    if base(source) in (".", ".."):
        within = dest
    if inside is None:
        if dest.endswith("/") or is_folder(folder, dest):
            inside = True
        elif is_file(folder, dest) or not is_known(dest):
            inside = False
        else:
            if within != dest:
                return [dest, within]
            return [dest]
    if inside:
        return [within]
    return [dest]

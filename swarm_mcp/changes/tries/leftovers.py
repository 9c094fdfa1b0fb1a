"""What tries keep on the disk: in words, and its end after seven days."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from swarm_hook_core.untrusted_text import command
from swarm_mcp.changes.tries.folder import remove, size_of, tries_dir

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


AGE_SECONDS = 7 * 86400


class Kept(NamedTuple):
    """A folder of a try.

    top      the work tree
    bytes    the size of the files in it
    path     the folder
    command  the command whose written files it keeps (``--keep``); empty: it has files that git ignores
    """

    top: str
    bytes: int
    path: str
    command: str


def kept(top: str = "") -> list[Kept]:
    """Return all folders on this machine, or those of the work tree `top`."""
    found = []
    for base in (tries_dir(), tries_dir(in_memory=True)):
        for place in _names(base):
            for name in _names(os.path.join(base, place)):
                path = os.path.join(base, place, name)
                with contextlib.suppress(OSError):  # it is no try's
                    found.append(_read(path))
    return [one for one in found if top in ("", one.top)]


def _read(path: str) -> Kept:
    """Raises OSError for a folder that is no try's."""
    top, argv = _text(os.path.join(path, "top")), ""
    if os.path.basename(path).startswith("kept-"):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # a torn record
            record = json.loads(_text(os.path.join(path, "try.json")))
            argv = " ".join(record["argv"]) * bool(record["files"])
    try:
        size = int(_text(os.path.join(path, "bytes")))
    except (OSError, ValueError):
        size = size_of(path)  # its first try has not ended yet, or its files do not change
    return Kept(top, size, path, argv)


def in_words(rows: Sequence[Kept]) -> str:
    """Return what tries keep in words; empty for nothing, and for less than a MiB of ignored files."""
    argvs = [one.command for one in rows if one.command]
    found = [f"the files that {command(argv)} wrote are kept (`swarm-mcp try --diff`)" for argv in argvs]
    size = sum(one.bytes for one in rows if not one.command) >> 20
    if size:
        found.append(f"ignored files of tries take {size} MiB (for seven days)")
    return "; ".join(found)


def of_scope(scope: str) -> str:
    """Return the same of one work tree."""
    return in_words(kept(scope))


def prune(now: float) -> None:
    """Remove the folders without a try for seven days, and those of work trees that are gone."""
    for one in kept():
        with contextlib.suppress(OSError), open(os.path.join(one.path, "lock"), "r+b") as lock:
            old = now - os.stat(os.path.join(one.path, "top")).st_mtime > AGE_SECONDS or not os.path.isdir(one.top)
            if fcntl is not None and old:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(one.path)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []  # nothing was tried yet

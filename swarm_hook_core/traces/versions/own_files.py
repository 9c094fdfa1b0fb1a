"""The files of a session right before an unread command: so its changes are told from a person's.

Nothing tells beforehand the files that such a command writes. Each file with a version of this session is kept once
more if it has changed since its newest version. An entry ``kept`` with the command's time says that the content of all
these files is known as it was then. Of a file without a version it is not: a person may have changed it before.
"""

from __future__ import annotations

import os

from swarm_hook_core.traces import AFTER, CUT, LATER, LOOK, LOST, MERGED
from swarm_hook_core.traces.versions import CONTENT
from swarm_hook_core.traces.versions.names import read_name, split_name

MOST_NAMES = 200  # versions of the session that are looked through: 0.2 ms
MOST_FILES = 64  # files of these, with up to two looks at the disk each: the whole stays under 0.5 ms
MOST_COPIES = 20  # files that are kept before one command
TICK_NS = 20_000_000  # the kernel's file times lag behind the clock by up to a tick
_TIMED = (LATER, LOOK, AFTER)  # marks with a time and nothing more behind them


def changed_since_kept(folder: str) -> list[str] | None:
    """Return the paths of the files that have changed since their newest version in `folder`.

    `folder`: the versions of one session in one place. None if they are too many, or if a version's name is too long
    to hold the path of its file. Raises OSError.
    """
    names = os.listdir(folder)
    if len(names) > MOST_NAMES:
        return None
    newest: dict[str, tuple[int, str]] = {}  # name of the first version -> time and name of the newest; 0 of the first
    for name in names:
        first, at_ns = _first_and_time(name)
        if at_ns >= newest.get(first, (0, ""))[0]:
            newest[first] = at_ns, name
    newest.pop("", None)
    if len(newest) > MOST_FILES:
        return None
    found = []
    for first, (at_ns, name) in newest.items():
        path = first.replace("%2F", "/")
        if "%" in path:
            path = read_name(first)[0]
        if path[:1] != "/" and not os.path.isabs(path):
            if CUT in first:
                return None
            continue
        copy = f"{folder}/{name}"
        if _differs(path, at_ns or os.lstat(copy).st_mtime_ns, copy):
            found.append(path)
    if len(found) > MOST_COPIES:
        return None
    return found


def _first_and_time(name: str) -> tuple[str, int]:
    """Return the name of the first version of the file, and the version's time, 0 for the first one.

    The name is empty for a content that was never the file's, or was kept for `swarm-mcp restore` alone.
    """
    at = name.rfind("%")
    mark, rest = name[at : at + 2], name[at + 2 :]
    if mark in _TIMED and rest.isdigit():
        return name[:at], int(rest)
    if mark == "%2":  # the last slash of the path: most names are first versions
        return name, 0
    first, mark, at_ns = split_name(name)
    if mark in (LOST, MERGED):
        return "", 0
    return first, at_ns


def _differs(path: str, at_ns: int, copy: str) -> bool:
    """Return True if the file at `path` may differ from its `copy` of that time."""
    try:
        return os.lstat(path).st_ctime_ns > at_ns - TICK_NS
    except OSError:
        return bool(os.lstat(copy).st_mode & CONTENT)  # the file is missing

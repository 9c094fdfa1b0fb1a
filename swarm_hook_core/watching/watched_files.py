"""The files compared for a lock: those that it covers when a call begins, and those that have appeared later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from swarm_hook_core.paths import NO_CASE, key_of
from swarm_hook_core.watching.snapshot import glance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held
    from swarm_hook_core.pattern_match import Cover

# of `.git`; the other files change by reading alone
_REPOSITORY = ("HEAD", "packed-refs", "config", "refs", "hooks", "info")
ENTRIES_SEEN = 2000  # entries of a locked folder's tree, before it counts as too large
FILES_IN_FOLDER = 200  # files of a locked folder, in order of names
PATTERN_SECONDS = 0.05  # for all patterns of one call


def files_of(
    locks: Sequence[Held], room: int, is_file: Callable[[str], bool] = lambda path: False
) -> Iterator[tuple[Held, str, str, list[str], bool]]:
    """Yield ``(lock, place, its key, files, True if complete)`` for each of `locks` (Held), files in order of names.

    At most `room` files in all. `place`: the folder of the files, or the file itself. ``is_file(path)`` is True if that
    is known to be a plain file.
    """
    patterns = [lock for lock in locks if lock.pattern]
    covered = {}
    if patterns:
        covered = dict(zip(map(id, patterns), _pattern_files(patterns)))
    for lock in locks:
        if id(lock) in covered:
            place, key, files, complete = covered[id(lock)]
            most = min(room, FILES_IN_FOLDER)
            files, complete = files[:most] if complete else [], complete and len(files) <= most
        else:
            place, key = lock.file, lock.names[-1] if len(lock.names) > 1 and lock.names[-1] else key_of(lock.file)
            if is_file(place):
                files, complete = [place][:room], room > 0
            else:
                files, complete = _files_at(place, room)
        room -= len(files)
        yield lock, place, key, files, complete


def _files_at(file: str, room: int) -> tuple[list[str], bool]:
    """Return ``(files to watch for a lock on `file`, in order; True if complete)``."""
    place = file
    if glance(file).is_link:
        place = os.path.realpath(file)
        if not os.path.isdir(place):
            return [file, place][:room], room > 1
    if not os.path.isdir(place):
        return [file][:room], room > 0
    if os.path.basename(place) == ".git":
        tops = [os.path.join(place, name) for name in _REPOSITORY]
    else:
        tops = [place]
    found, complete = _files_below(tops)
    found.sort()
    room = min(room, FILES_IN_FOLDER)
    return found[:room], complete and len(found) <= room


def key_of_file(file: str, key: str, path: str) -> str:
    """Return the key of `path`, found by `_files_at` for a lock on `file` with this key."""
    if path == file:
        return key
    if path.startswith(file + os.sep):
        folder = file
    else:
        folder = key
    # no link was followed on the way down: the rest of the path is the rest of the key
    if key.startswith(NO_CASE):
        return key_of(path)
    return key + path[len(folder) :]


def _files_below(tops: list[str]) -> tuple[list[str], bool]:
    """Return ``(files below these folders, True if complete)``, without the insides of repositories."""
    found, pending, seen = [], list(tops), 0
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except NotADirectoryError:
            found.append(folder)
            continue
        except OSError:
            continue  # unreadable, or gone just now
        for entry in entries:
            seen += 1
            if seen > ENTRIES_SEEN:
                return found, False
            if not entry.is_dir(follow_symlinks=False):
                found.append(entry.path)
            elif entry.name != ".git":
                pending.append(entry.path)
    return found, True


def new_files(lock: dict[str, Any], known: set[str]) -> tuple[str, list[str]]:
    """Return ``(place, files)`` that have appeared in a locked folder or under a locked pattern since the note."""
    until, place = lock["until"], lock["file"]
    if until == "":
        return place, []
    if lock.get("pattern"):
        place, _key, paths, _all = _pattern_files([_Remembered(lock)])[0]
        paths = paths[:FILES_IN_FOLDER]
    elif os.path.isdir(place):
        paths, _ = _files_at(place, FILES_IN_FOLDER)
    else:
        return place, []
    return place, [path for path in paths if path not in known and (until is None or path < until)]


def _pattern_files(locks: Sequence[Any]) -> list[tuple[str, str, list[str], bool]]:
    """Return ``[(folder, its key, files, True if complete)]`` for `locks` with ``file``, ``pattern`` and ``base``.

    `folder`: the folder of all files of the pattern, as the lock spells it. Unreadable folders give no files.
    """
    from swarm_hook_core.pattern_match import Cover, covered_below

    covers = [Cover(lock) for lock in locks]
    folders = [_folder_of(cover) for cover in covers]
    starts = [
        (cover, folder, cover.places_at(cover.folder))
        for cover, folder in zip(covers, folders)
        if cover.segments is not None
    ]
    found: dict[int, list[str]] = {id(cover): [] for cover in covers}
    cut = set()
    for path, cover in covered_below(starts, PATTERN_SECONDS):
        if not path:
            cut.add(id(cover))
        elif os.path.islink(path) or not os.path.isdir(path):
            found[id(cover)].append(path)
    return [
        (folder, cover.folder, sorted(found[id(cover)]), id(cover) not in cut) for cover, folder in zip(covers, folders)
    ]


class _Remembered:
    """A lock on a pattern, from a record."""

    __slots__ = ("file", "pattern", "base")

    def __init__(self, facts: dict[str, Any]):
        self.file, self.pattern, self.base = facts["file"], facts["pattern"], facts["base"]


def _folder_of(cover: Cover) -> str:
    from swarm_hook_core.wildmatch import literal_prefix

    pattern, file = cover.held.pattern, cover.held.file
    if not isinstance(pattern, str):
        return cover.folder[cover.folder.find("/") :]
    place = file.removesuffix(pattern.lstrip("/"))
    if place == file:
        return cover.folder[cover.folder.find("/") :]
    return os.path.join(place.rstrip("/") or "/", literal_prefix(pattern)).rstrip("/") or "/"

"""Which files are compared for a lock on a pattern: those there are that it covers, and later those that have come."""

import os

from swarm_hook_core.pattern_match import covered_below
from swarm_hook_core.pattern_match import Cover
from swarm_hook_core.wildmatch import literal_prefix

SECONDS = 0.05  # for all patterns of one call


def files_of(locks):
    """For each of `locks` (with ``file``, ``pattern``, ``base``) ``(folder, its key, files, whether those are all)``.

    `folder`: the one that all files of the pattern are in, as the lock spells it. Nothing for what cannot be read.
    """
    covers = [Cover(lock) for lock in locks]
    folders = [_folder_of(cover) for cover in covers]
    starts = [
        (cover, folder, cover.places_at(cover.folder))
        for cover, folder in zip(covers, folders)
        if cover.segments is not None
    ]
    found: dict = {id(cover): [] for cover in covers}
    cut = set()
    for path, cover in covered_below(starts, seconds=SECONDS):
        if not path:
            cut.add(id(cover))
        elif os.path.islink(path) or not os.path.isdir(path):
            found[id(cover)].append(path)
    return [
        (folder, cover.folder, sorted(found[id(cover)]), id(cover) not in cut) for cover, folder in zip(covers, folders)
    ]


class Remembered:
    """A lock on a pattern as a record of ours has it."""

    __slots__ = ("file", "pattern", "base")

    def __init__(self, facts: dict):
        self.file, self.pattern, self.base = facts["file"], facts["pattern"], facts["base"]


def _folder_of(cover) -> str:
    pattern, file = cover.held.pattern, cover.held.file
    place = file.removesuffix(pattern.lstrip("/")) if isinstance(pattern, str) else file
    if place == file:
        return cover.folder[cover.folder.find("/") :]
    return os.path.join(place.rstrip("/") or "/", literal_prefix(pattern)).rstrip("/") or "/"

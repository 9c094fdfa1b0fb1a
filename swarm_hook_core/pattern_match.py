"""Finds the files on the disk that a locked pattern covers, within bounds of time and number."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from swarm_hook_core import wildcards
from swarm_hook_core.paths import NO_CASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held


ENTRIES = 20_000  # of folders, that are looked at for one question
SECONDS = 0.15


class Cover:
    """The files that the pattern of a Held lock covers.

    `segments` as in ``wildcards.parsed``, None if the pattern is unreadable; `folder`, the key of the folder that
    contains all it covers; `base`, the folder it counts from; `fold`, True if letter case does not count.
    """

    __slots__ = ("held", "segments", "base", "folder", "fold")

    def __init__(self, held: Held) -> None:
        self.held = held
        self.base = ""
        if isinstance(held.base, str):
            self.base = held.base
        self.fold = self.base.startswith(NO_CASE)
        pattern = ""
        if isinstance(held.pattern, str):
            pattern = held.pattern
        try:
            self.segments = None
            if self.base:
                self.segments = wildcards.parsed(pattern, self.fold)
        except wildcards.PatternUnreadable:
            self.segments = None
        prefix = wildcards.literal_prefix(wildcards.folded(pattern) if self.fold else pattern)
        if prefix:
            self.folder = f"{self.base.rstrip('/')}/{prefix}"
        else:
            self.folder = self.base

    def has(self, key: str) -> bool:
        """Return True if it covers the path with this key."""
        start = self.base.rstrip("/") + "/"
        if self.segments is None or not key.startswith(start):
            return False
        return wildcards.covers(self.segments, key[len(start) :])

    def places_at(self, key: str) -> set[int]:
        """Return the places in the pattern reached in the folder with this key (``wildcards.step``); empty if nothing
        below can match.
        """
        if self.segments is None:
            return set()
        start = self.base.rstrip("/") + "/"
        if key != self.base and not key.startswith(start):
            return set()
        rest = key[len(start) :]
        places = wildcards.beginning(self.segments)
        for name in rest.split("/"):
            if name:
                places = wildcards.step(self.segments, places, name)
        return places - {len(self.segments)}

    def leads_to(self, key: str) -> bool:
        """Return True if something below the folder with this key may be covered."""
        if self.segments is None:
            return False
        return self.folder == key or self.folder.startswith(key.rstrip("/") + "/") or bool(self.places_at(key))


def covered_below(starts: Iterable[tuple[Cover, str, set[int]]], seconds: float) -> Iterator[tuple[str, Cover]]:
    """Yield ``(path, cover)`` of each existing file or folder that a pattern covers, in no order.

    `starts`: ``(cover, folder, places)``: a ``Cover``, the folder to begin in, and the places in the pattern there. A
    cover that was not searched to the end is yielded once more, with an empty path. Links are not followed, and the
    contents of ``.git`` are left out.
    """
    end, seen = time.monotonic() + seconds, 0
    together: dict[str, Any] = {}
    for cover, folder, places in starts:
        together.setdefault(folder, []).append((cover, places))
    waiting = list(together.items())
    while waiting:
        folder, there = waiting.pop()
        try:
            entries = os.scandir(folder)
        except (OSError, ValueError):  # gone or unreadable: nothing in it is covered
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > ENTRIES or (seen % 32 == 1 and time.monotonic() > end):
                    left = {id(cover): cover for _, some in [(folder, there), *waiting] for cover, _ in some}
                    yield from (("", cover) for cover in left.values())
                    return
                deeper = []
                for cover, places in there:
                    after = wildcards.step(
                        cover.segments, places, wildcards.folded(entry.name) if cover.fold else entry.name
                    )
                    if after:
                        if len(cover.segments) in after:
                            yield entry.path, cover
                        deeper.append((cover, after))
                if deeper and entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, deeper))


def start_of(cover: Cover, root: str, keys: Iterable[str]) -> tuple[Cover, str, set[int]] | None:
    """Return the start for `covered_below` of the files that `cover` has below the folder `root` with these `keys`.

    None if it has nothing there.
    """
    for key in keys:
        places = cover.places_at(key)
        if places:
            return cover, root, places
        if cover.folder.startswith(key.rstrip("/") + "/"):
            return cover, root + cover.folder[len(key.rstrip("/")) :], cover.places_at(cover.folder)
    return None

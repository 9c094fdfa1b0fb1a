"""The paths that a locked pattern covers: by key, and on the disk, within bounds of time and number."""

import os
import time

from swarm_hook_core import wildmatch
from swarm_hook_core.paths import NO_CASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from swarm_hook_core.lookup import Held

ENTRIES = 20_000  # of folders, that are looked at for one question
SECONDS = 0.15


class Cover:
    """The paths covered by the pattern of a Held lock.

    segments  as ``wildmatch.parsed`` returns them, None if they cannot be read
    folder    the key of the folder that all covered paths are in; `base` the key of the folder it counts from
    fold      True if letter case does not count
    """

    __slots__ = ("held", "segments", "base", "folder", "fold")

    def __init__(self, held: "Held"):
        self.held = held
        if isinstance(held.base, str):
            self.base = held.base
        else:
            self.base = ""
        self.fold = self.base.startswith(NO_CASE)
        if isinstance(held.pattern, str):
            pattern = held.pattern
        else:
            pattern = ""
        self.segments: Any = None
        if self.base:
            try:
                self.segments = wildmatch.parsed(pattern, self.fold)
            except wildmatch.PatternUnreadable:  # another program's pattern
                self.segments = None
        prefix = wildmatch.literal_prefix(wildmatch.folded(pattern) if self.fold else pattern)
        if prefix:
            self.folder = f"{self.base.rstrip('/')}/{prefix}"
        else:
            self.folder = self.base

    def has(self, key: str) -> bool:
        """Return True if it covers the path with this key."""
        start = self.base.rstrip("/") + "/"
        if self.segments is None or not key.startswith(start):
            return False
        return wildmatch.covers(self.segments, key[len(start) :])

    def places_at(self, key: str) -> "Any":
        """Return the places in the pattern that the folder with this key has reached (``wildmatch.step``); may be
        empty.
        """
        if self.segments is None:
            return ()
        start = self.base.rstrip("/") + "/"
        if key != self.base and not key.startswith(start):
            return ()
        rest = key[len(start) :]
        places = wildmatch.beginning(self.segments)
        for name in rest.split("/"):
            if name:
                places = wildmatch.step(self.segments, places, name)
        return places - {len(self.segments)}

    def leads_to(self, key: str) -> bool:
        """Return True if a path below the folder with this key may be covered."""
        if self.segments is None:
            return False
        return self.folder == key or self.folder.startswith(key.rstrip("/") + "/") or bool(self.places_at(key))


def covered_below(starts: "Any", most: int = ENTRIES, seconds: float = SECONDS) -> "Iterator[tuple[str, Any]]":
    """Yield ``(path, cover)`` of each existing file or folder that a pattern covers, in no order.

    `starts` has ``(cover, folder, places)``: a ``Cover``, the folder to begin in, and its places in the pattern. A
    cover that was not searched to the end is named once more, with an empty path. Links are not followed, and
    repositories' own folders are left out.
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
        except (OSError, ValueError):  # gone, or closed to us
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > most or (seen % 32 == 1 and time.monotonic() > end):
                    left = {id(cover): cover for _, some in [(folder, there), *waiting] for cover, _ in some}
                    yield from (("", cover) for cover in left.values())
                    return
                deeper = []
                for cover, places in there:
                    after = wildmatch.step(
                        cover.segments, places, wildmatch.folded(entry.name) if cover.fold else entry.name
                    )
                    if after:
                        if len(cover.segments) in after:
                            yield entry.path, cover
                        deeper.append((cover, after))
                if deeper and entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, deeper))


def start_of(cover: "Any", root: str, keys: "Iterable[str]") -> "Any":
    """Return the start for `covered_below` of the paths that `cover` has below the folder `root` with these `keys`.

    None if it has no path there.
    """
    for key in keys:
        places = cover.places_at(key)
        if places:
            return cover, root, places
        if cover.folder.startswith(key.rstrip("/") + "/"):
            return cover, root + cover.folder[len(key.rstrip("/")) :], cover.places_at(cover.folder)
    return None

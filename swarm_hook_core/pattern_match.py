"""What one locked pattern covers, and what of that is on the disk, found within bounds of time and number."""

import os
import time

from swarm_hook_core import wildmatch
from swarm_hook_core.paths import NO_CASE

ENTRIES = 20_000  # of folders, that are looked at for one question
SECONDS = 0.15


class Cover:
    """What the pattern of a Held lock covers.

    `segments` as ``wildmatch.parsed`` has them, None where they cannot be read; `folder`, the key of the folder that
    all it covers is in; `base`, of the one it counts from; `fold`, whether letter case does not count.
    """

    __slots__ = ("held", "segments", "base", "folder", "fold")

    def __init__(self, held):
        self.held = held
        self.base = held.base if isinstance(held.base, str) else ""
        self.fold = self.base.startswith(NO_CASE)
        pattern = held.pattern if isinstance(held.pattern, str) else ""
        try:
            self.segments = wildmatch.parsed(pattern, self.fold) if self.base else None
        except wildmatch.PatternUnreadable:
            self.segments = None
        prefix = wildmatch.literal_prefix(wildmatch.folded(pattern) if self.fold else pattern)
        self.folder = f"{self.base.rstrip('/')}/{prefix}" if prefix else self.base

    def has(self, key: str) -> bool:
        """Whether it covers the path with this key."""
        start = self.base.rstrip("/") + "/"
        if self.segments is None or not key.startswith(start):
            return False
        return wildmatch.covers(self.segments, key[len(start) :])

    def places_at(self, key: str):
        """Where in the pattern one is in the folder with this key (``wildmatch.step``); empty where none is below."""
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
        """Whether something below the folder with this key may be covered."""
        if self.segments is None:
            return False
        return self.folder == key or self.folder.startswith(key.rstrip("/") + "/") or bool(self.places_at(key))


def covered_below(starts, most: int = ENTRIES, seconds: float = SECONDS):
    """``(path, cover)`` of each file or folder there is that a pattern covers; no order.

    `starts`: ``(cover, folder, places)``, a ``Cover``, where to begin, and where in the pattern one is there.
    A cover that was not looked through to the end is named once more, with an empty path. No link is followed, and
    what repositories keep for themselves is left out.
    """
    end, seen = time.monotonic() + seconds, 0
    together: dict = {}
    for cover, folder, places in starts:
        together.setdefault(folder, []).append((cover, places))
    waiting = list(together.items())
    while waiting:
        folder, there = waiting.pop()
        try:
            entries = os.scandir(folder)
        except (OSError, ValueError):
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


def start_of(cover, root: str, keys):
    """As `covered_below` takes it: where to begin for what `cover` has below the folder `root` with these `keys`.

    None where it has nothing there.
    """
    for key in keys:
        places = cover.places_at(key)
        if places:
            return cover, root, places
        if cover.folder.startswith(key.rstrip("/") + "/"):
            return cover, root + cover.folder[len(key.rstrip("/")) :], cover.places_at(cover.folder)
    return None

"""What is on the disk of what locked patterns cover, found within bounds of time and number."""

import os
import time

from swarm_hook_core.wildmatch import folded, step

ENTRIES = 20_000  # of folders, that are looked at for one question
SECONDS = 0.15


def covered_below(starts, most: int = ENTRIES, seconds: float = SECONDS):
    """``(path, cover)`` of each file or folder there is that a pattern covers; no order.

    `starts`: ``(cover, folder, places)``, a ``cover.Cover``, where to begin, and where in the pattern one is there.
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
                    after = step(cover.segments, places, folded(entry.name) if cover.fold else entry.name)
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

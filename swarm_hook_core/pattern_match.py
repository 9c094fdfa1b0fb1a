"""What one locked pattern covers, for going through folders."""

from swarm_hook_core import wildmatch
from swarm_hook_core.paths import NO_CASE


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

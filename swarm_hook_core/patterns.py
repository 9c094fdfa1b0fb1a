"""Locks on patterns, as a check meets them: found by the folder that all they cover is in, and looked at one by one."""

from swarm_hook_core import wildmatch
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.peers import above
from swarm_hook_core.reader import GLOB

_NOT_LITERAL = "*?[]\\/"


def covered(pattern, base, path_key, keys) -> tuple:
    """Those of `keys` (of paths) that a pattern covers, which counts from the folder with key `base`.

    `path_key` is what the lock is stored under. Empty for what cannot be read.
    """
    if not all(isinstance(part, str) for part in (pattern, base, path_key)):
        return ()
    folder = path_key[len(GLOB) :].rstrip("/") + "/"
    inside = [key for key in keys if key.startswith(folder)]
    if not inside:
        return ()
    fold = base.startswith(NO_CASE)
    text = wildmatch.folded(pattern) if fold else pattern
    # Most paths are sorted out by the plain text that all which the pattern covers begins and ends with.
    start = len(base.rstrip("/")) + 1
    head, tail = _head(text), _tail(text)
    inside = [key for key in inside if key.endswith(tail) and key.startswith(head, start)]
    if not inside:
        return ()
    try:
        segments = wildmatch.parsed(pattern, fold)
    except wildmatch.PatternUnreadable:
        return ()
    return tuple(key for key in inside if wildmatch.covers(segments, key[start:]))


def stored_under(keys) -> list:
    """Under which ``path_key`` a pattern stands that may cover one of the paths with these keys."""
    folders = [*(over for key in keys for over in above(key)), "/", NO_CASE + "/"]
    return [GLOB + folder for folder in dict.fromkeys(folders)]


class Cover:
    """What the pattern of a Held lock covers, for going through folders.

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


def _head(pattern: str) -> str:
    """The text that everything a pattern covers begins with, counted from its base."""
    if "/" not in pattern.rstrip("/") or "//" in pattern or "/." in pattern or pattern.startswith("."):
        return ""
    text = pattern.lstrip("/")
    return text[: min((at for letter in "*?[\\" if (at := text.find(letter)) >= 0), default=0)]


def _tail(pattern: str) -> str:
    """The text that everything a pattern covers ends in."""
    if pattern.endswith("/"):
        return ""
    return pattern[max(pattern.rfind(letter) for letter in _NOT_LITERAL) + 1 :]

"""Locks on patterns, as a check meets them: few, and looked at one by one."""

from swarm_hook_core import wildmatch
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.reader import GLOB


def covered(pattern, base, path_key, keys) -> tuple:
    """Those of `keys` (of paths) that a pattern covers, which counts from the folder with key `base`.

    `path_key` is what the lock is stored under. Empty for what cannot be read.
    """
    if not all(isinstance(part, str) for part in (pattern, base, path_key)):
        return ()
    folder = path_key[len(GLOB) :].rstrip("/") + "/"
    fold = base.startswith(NO_CASE)
    inside = [key for key in keys if key.startswith(folder)]
    if not inside:
        return ()
    tail = _tail(pattern.casefold() if fold else pattern)
    inside = [key for key in inside if key.endswith(tail)]
    if not inside:
        return ()
    try:
        segments = wildmatch.parsed(pattern, fold)
    except wildmatch.PatternUnreadable:
        return ()
    start = len(base.rstrip("/")) + 1
    return tuple(key for key in inside if wildmatch.covers(segments, key[start:]))


def _tail(pattern: str) -> str:
    """The text that everything a pattern covers ends in: most paths are sorted out by it alone."""
    if pattern.endswith("/"):
        return ""
    at = max(pattern.rfind(letter) for letter in "*?[]\\/")
    return pattern[at + 1 :]

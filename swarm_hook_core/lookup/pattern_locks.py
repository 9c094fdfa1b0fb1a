"""Locks on patterns, as a check meets them: found by the folder that all they cover is in, and looked at one by one."""

from collections.abc import Iterable, Sequence
from typing import Any

from swarm_hook_core.lookup import GLOB
from swarm_hook_core.paths import NO_CASE, above
from swarm_hook_core.wildmatch import PatternUnreadable, covers, folded, parsed


def stored_under(keys: "Iterable[str]") -> "list[str]":
    """Return the values of ``path_key`` that a pattern may have if it covers a path with one of these keys."""
    folders = [*(over for key in keys for over in above(key)), "/", NO_CASE + "/"]
    return [GLOB + folder for folder in dict.fromkeys(folders)]


def covering(locks: "Any", keys: "Iterable[str]") -> "dict[Any, tuple[str, ...]]":
    """Return ``{lock: keys (of paths) that it covers}``, without locks that cover no such path.

    `locks` has ``(lock, pattern, key of the folder it counts from, its path_key)``. An unreadable pattern covers
    nothing.
    """
    found: dict[Any, tuple[str, ...]] = {}
    # (base, stored under) -> [(key, the part of it that the pattern is compared with)]
    inside: dict[tuple[Any, Any], list[tuple[str, str]]] = {}
    for lock, pattern, base, path_key in locks:
        place = (base, path_key)
        if place not in inside:
            inside[place] = _inside(base, path_key, keys)
        there = inside[place]
        if not there or pattern.__class__ is not str:
            continue
        fold = base[: len(NO_CASE)] == NO_CASE
        for run in _runs(pattern, fold):
            there = [one for one in there if run in one[1]]
        if not there:
            continue  # nearly all end here, without being taken apart

        try:
            segments = parsed(pattern, fold)
        except PatternUnreadable:  # another program's pattern
            continue
        names = tuple(key for key, rest in there if covers(segments, rest))
        if names:
            found[lock] = names
    return found


def covered(pattern: "Any", base: "Any", path_key: "Any", keys: "Iterable[str]") -> "tuple[str, ...]":
    """Return `covering`, of one lock."""
    return covering([(0, pattern, base, path_key)], keys).get(0, ())


def _inside(base: "Any", path_key: "Any", keys: "Iterable[str]") -> "list[tuple[str, str]]":
    if base.__class__ is not str or path_key.__class__ is not str:
        return []
    folder, start = path_key[len(GLOB) :].rstrip("/") + "/", len(base.rstrip("/")) + 1
    return [(key, key[start:]) for key in keys if key.startswith(folder)]


def _runs(pattern: str, fold: bool) -> "Sequence[str]":
    """Return texts that stand in everything a pattern covers, so far as they can be told at a glance."""
    if fold:
        pattern = folded(pattern)
    if "[" in pattern or "\\" in pattern or "//" in pattern or "/." in pattern or pattern[:1] == ".":
        return ()
    return [part.strip("/") for part in pattern.replace("?", "*").split("*")]

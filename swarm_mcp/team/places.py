"""Paths from the top of a work tree, the same in every clone on every machine.

The object of a lock in one work tree becomes a `Spot`, free of any machine's folders (`spot_of`), and a reach again in
another work tree of the same repository (`reach_at`).
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from swarm_hook_core import repository
from swarm_hook_core.lookup import GLOB, plain, storable
from swarm_hook_core.paths import LONGEST, NO_CASE, key_of
from swarm_mcp.store.lock_request import Reach, reach_in


class Spot(NamedTuple):
    """The object of a lock, as in ``protocol.Want``: a path, or a pattern and the folder that it counts from."""

    place: str
    is_folder: bool = False
    pattern: str = ""
    base: str = ""

    @property
    def shown(self) -> str:
        """Return its text for people."""
        if self.pattern:
            return os.path.join(self.base, self.pattern.lstrip("/"))
        return (self.place or ".") + ("/" if self.is_folder else "")


def spot_in(told: dict[str, Any]) -> Spot:
    """Return the spot of a lock, or of a wanted lock, in the server's form."""
    return Spot(told["place"], bool(told["is_folder"]), told["pattern"] or "", told["base"] or "")


def spot_of(reach: Reach, top: str) -> Spot | None:
    """Return the spot of `reach` in the work tree with this `top`; None if some of it lies outside."""
    if reach.key is None:
        return None
    if reach.pattern:
        text = reach.pattern.lstrip("/")
        folder = reach.file.removesuffix(text).rstrip("/") or "/"  # as it is spelled
        if _is_of_another_tree((reach.key or "").removeprefix(GLOB), top):
            return None
        place = repository.place_of(reach.base, top)
        if place is not None:
            return Spot("", False, reach.pattern, _spelled(place, folder))
        # It counts from a folder over the top: it is of this work tree where all that it covers is.
        base = reach.base.removeprefix(NO_CASE)
        below = repository.place_of(top.casefold() if reach.base.startswith(NO_CASE) else top, base)
        if not below or not text.startswith(top[len(top) - len(below) :] + "/"):
            return None
        return Spot("", False, text[len(below) :], "")
    place = repository.place_of(reach.key, top)
    if place is None or _is_of_another_tree(reach.key, top):
        return None
    return Spot(_spelled(place, plain(reach.file)), bool(reach.base))


def reach_at(spot: Spot, top: str) -> Reach | None:
    """Return the reach of `spot` in the work tree with this `top`; None if it is impossible there. Reads the disk."""
    if spot.pattern:
        place = spot.base
    else:
        place = spot.place
    if place:
        parts = place.split("/")
    else:
        parts = []
    if any(part in ("", ".", "..", ".git") for part in parts) or "\0" in place + spot.pattern:
        return None  # nothing of ours says such a thing
    path = os.path.join(top, *parts)
    if len(path) > LONGEST or not storable(path + spot.pattern):
        return None
    key = key_of(path)
    if spot.pattern:
        file = os.path.join(path, spot.pattern.lstrip("/"))
        return reach_in({"file": file, "path_key": None, "pattern": spot.pattern, "base": key})
    return reach_in({"file": path, "path_key": key, "base": key if spot.is_folder else ""})


def _spelled(place: str, file: str) -> str:
    """Return `place`, a key's path, in the spelling of `file`: keys may have lost the letter case."""
    path = place.removeprefix(NO_CASE)
    if path:
        tail = file[len(file) - len(path) :]
    else:
        tail = ""
    if path != place and tail.casefold() == path:
        return tail
    return path


def _is_of_another_tree(key: str, top: str) -> bool:
    """Return True if the path with this key belongs to a work tree inside of this one."""
    nearest = repository.tree_over(key.removeprefix(NO_CASE))
    return nearest is not None and nearest.top != top and nearest.top.casefold() != top.casefold()

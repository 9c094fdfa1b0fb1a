"""Where plugins are found, and which of several with the same name counts.

Lowest first: built-in packs, then for every ``.harness`` from the home folder's to the nearest: the packs in its
``plugins/``, then the folder itself. Of executables with one name in ``tools/``, ``commands/``, ``providers/`` or
``hooks.d/STAGE/`` the last counts. Looked up anew for each state, so that plugins may come and go during a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

PROVIDER_PACKS = ("anthropic", "openai")


def walk(root: str, home: str, folder: str) -> list[str]:
    """Return every source for a run in `folder`, lowest priority first."""
    found = packs(root)
    places = []
    while True:
        place = os.path.join(folder, ".harness")
        if os.path.isdir(place):
            places.append(place)
        if folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    if home not in places and not any(_same(home, place) for place in places):
        places.append(home)
    for place in reversed(places):
        if os.path.isdir(place):
            found += [*packs(place), place]
    return list(dict.fromkeys(found))


def packs(place: str) -> list[str]:
    """Return the plugin folders in ``plugins/`` of `place`, by name."""
    folder = os.path.join(place, "plugins") if place else ""
    return [path for path in (os.path.join(folder, name) for name in _names(folder)) if os.path.isdir(path)]


def scoped(sources: Iterable[str], active: Iterable[str]) -> list[str]:
    """Return `sources` without packs that bring a provider which is not among the `active` names."""
    wanted = set(active)
    return [
        source
        for source in sources
        if os.path.basename(os.path.dirname(source)) != "plugins"
        or os.path.basename(source) in wanted
        or not os.path.isdir(os.path.join(source, "providers"))
    ]


def executables(sources: Iterable[str], *kind: str) -> dict[str, str]:
    """Return name -> path of the executables in the folder `kind` of all sources (the last of a name), sorted."""
    found: dict[str, str] = {}
    for source in sources:
        folder = os.path.join(source, *kind)
        for name in _names(folder):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                found[name] = path
    return dict(sorted(found.items()))


def nearest(sources: list[str], *parts: str) -> str:
    """Return the file of that name in the source of highest priority; empty where there is none."""
    for source in reversed(sources):
        path = os.path.join(source, *parts)
        if os.path.isfile(path):
            return path
    return ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder)) if folder else []
    except OSError:
        return []


def _same(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return False

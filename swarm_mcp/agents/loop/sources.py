"""The places of plugins, their priority, and the built-in ones as executables.

Lowest first: built-in packs, then for every ``.harness`` from the home folder's to the nearest: the packs in its
``plugins/``, then the folder itself. Of executables with one name in ``tools/``, ``commands/``, ``providers/`` or
``hooks.d/STAGE/`` the last counts. Looked up anew for each state, so that plugins may come and go during a run.

A guard before ``tools/write_file`` hands allowed calls on to the next executable of that name in ``HARNESS_SOURCES``,
and a provider may build on another. So the built-in ones have executables too, in the state folder, which start this
installation. The loop itself needs no executables.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
import zlib
from collections.abc import Iterable

from swarm_hook_core.state import make_private, state_dir
from swarm_mcp import __version__
from swarm_mcp.agents.loop.tools import NAMES
from swarm_mcp.installation import coordinator_command


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
    if place:
        folder = os.path.join(place, "plugins")
    else:
        folder = ""
    return [path for path in (os.path.join(folder, name) for name in _names(folder)) if os.path.isdir(path)]


def scoped(sources: Iterable[str], active: Iterable[str]) -> list[str]:
    """Return `sources` without packs whose provider is not among the `active` names."""
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


def _names(folder: str) -> list[str]:
    try:
        if folder:
            return sorted(os.listdir(folder))
        return []
    except OSError:  # no such folder
        return []


def _same(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:  # one of them is gone, so they differ
        return False


BUILT_IN_PROVIDERS = ("anthropic", "openai")
KEPT_DAYS = 30
ON_PATH = "path"  # the folder in it that is the last on the PATH of everything a run starts
_TOOL, _PROVIDER = "plugins/core/tools/{}", "plugins/{0}/providers/{0}"


def root() -> str:
    """Return the folder with ``plugins/`` and ``bin/harness``, made where it is missing; empty where it cannot be."""
    command = shlex.join(coordinator_command())
    files = {"bin/harness": "loop --", f"{ON_PATH}/swarm-mcp": ""}
    files.update({_TOOL.format(name): f"loop tool {name} --" for name in NAMES})
    files.update({_PROVIDER.format(name): f"loop provider {name} --" for name in BUILT_IN_PROVIDERS})
    mark = zlib.crc32(repr((__version__, command, files)).encode())
    folder = os.path.join(state_dir(), "loop", f"plugins-{mark:08x}")
    if os.path.isdir(folder):
        return folder
    try:
        _write(folder, {name: f'#!/bin/sh\nexec {command} {words} "$@"\n' for name, words in files.items()})
        _forget_old(os.path.dirname(folder), folder)
    except OSError:
        if os.path.isdir(folder):
            return folder
        return ""
    return folder


def _write(folder: str, files: dict[str, str]) -> None:
    """The whole folder at once: another run may be looking."""
    made = f"{folder}.{os.getpid()}.tmp"
    make_private(made)
    try:
        for name, text in files.items():
            path = os.path.join(made, name)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o700)
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(folder):  # another process was faster
            raise


def _forget_old(base: str, mine: str) -> None:
    """Remove the files of installations that are gone."""
    oldest = time.time() - KEPT_DAYS * 86400
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith("plugins-") and path != mine and os.stat(path).st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)

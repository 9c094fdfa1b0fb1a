"""Other repositories with journals of other sessions, and commands that may reach into them.

A command in a place without other sessions is not parsed, as parsing takes longer than the rest of a check. But it may
write in another repository where a session has traces. So its text is searched, with a bias towards yes, for folder
names of those repositories, for variables and other things known only at run time, for ways out of the folder, and for
patterns.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.repository import tree_at, trees_beside
from swarm_hook_core.targets import shell_text
from swarm_hook_core.traces import journal, names_in, others_in, traces_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

MARKS = ("..", "~", "$", "`")  # parts of names that are not literal, or that lead out of the folder
PATTERN = "*?[{"
HARMLESS = "/dev/null"
_NO_FOLDER = ";&|)}<>#\n-0123456789"  # characters after a ``cd`` without operand
_QUOTES = str.maketrans("", "", "\\\"'")
_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-/")


def places_of_others(own_name: str) -> dict[str, list[str]]:
    """Return ``{place: top folders of its work trees}`` of all places with journals of others than `own_name`.

    The list is empty if no journal names a folder.
    """
    found: dict[str, list[str]] = {}
    for name in names_in(traces_dir()):
        place = os.path.join(traces_dir(), name)
        others = others_in(place, own_name)
        if others:
            folder = next(filter(None, map(journal.folder_of, others)), "")
            found[place] = _trees_of(folder) if folder else []
    return found


def could_lead(call: ToolCall, places: dict[str, list[str]]) -> bool:
    """Return True if `call`, which names no files, may reach one of `places`, a result of `places_of_others`."""
    if not places:
        return False
    if call.tool not in SHELL_TOOLS or not all(places.values()):
        return True

    folders = [top for tops in places.values() for top in tops]
    own = {call.folder, os.path.realpath(call.folder)}
    if any(_is_in(top, folder) for top in folders for folder in own):
        return True
    return _names_one(shell_text(call.tool, call.input).translate(_QUOTES).lower(), own, folders)


def places_with(trail: Trail, root: str) -> dict[str, list[str]]:
    """Return ``{place: folders in it}`` at and below absolute `root`, nested repositories included."""
    own, inside = trail.place_of(root), below(trail.places_of_others(), root)
    return {**inside, own: [root, *inside.get(own, ())]}


def below(places: dict[str, list[str]], root: str) -> dict[str, list[str]]:
    """Return those of `places` with folders below absolute `root`, and only these folders."""
    root = os.path.realpath(root)
    inside = {place: [top for top in tops if top != root and _is_in(top, root)] for place, tops in places.items()}
    return {place: tops for place, tops in inside.items() if tops}


def _names_one(text: str, own: Collection[str], folders: list[str]) -> bool:
    """Return True if `text`, in lower case without quotes, may name one of `folders`, seen from `own`."""
    if any(mark in text for mark in MARKS) or _goes_home(text):
        return True
    if any(os.path.basename(folder).lower() in text for folder in folders):
        return True
    rest = f"{text} ".replace(HARMLESS, "")
    for folder in own:
        rest = rest.replace(f"{folder.lower()}/", "").replace(f"{folder.lower()} ", " ")
    if all(part[-1:] in _IN_NAMES for part in rest.split("/")[:-1]):
        return False  # no absolute path
    if any(letter in rest for letter in PATTERN):
        return True
    over = {name for folder in folders for name in folder.lower().split("/")[:-1]}
    return any(_has_ended(rest, f"/{name}") for name in over)


def _goes_home(text: str) -> bool:
    """Return True if `text` has a ``cd`` without operand, or with options."""
    return any((part.lstrip(" \t") or ";")[0] in _NO_FOLDER for part in text.split("cd")[1:])


def _has_ended(text: str, path: str) -> bool:
    """Return True if a path in `text` ends with `path`, with or without a slash."""
    at = text.find(path)
    while at >= 0:
        end = at + len(path)
        behind = text[end : end + 2].removeprefix("/")[:1]
        if not behind or behind not in _IN_NAMES:
            return True
        at = text.find(path, at + 1)
    return False


def _trees_of(folder: str) -> list[str]:
    """Return the tops of all work trees of the clone around `folder`, or the folder itself outside of any."""
    tree = tree_at(folder)
    if tree is not None:
        return trees_beside(tree)
    return [folder]


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(folder.rstrip("/") + "/")

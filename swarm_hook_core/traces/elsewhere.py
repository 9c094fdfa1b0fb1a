"""Other repositories in which other sessions have left something, and whether a command could lead there.

A command that is made where nobody else has left anything is not read: that takes longer than all else in a check. But
it may reach into a place where somebody has. Its text is looked at for that, in a way that rather says yes too often:
for the last name of a folder there, for whatever only a run can tell, for ways out of the folder, and for patterns.
"""

import os

from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.traces import journal, others_in, traces_dir

MARKS = ("..", "~", "$", "`")  # of names that do not stand in the text as they are, or lead out of a folder
PATTERN = "*?[{"
HARMLESS = "/dev/null"
_NO_FOLDER = ";&|)}<>#\n-0123456789"  # what may stand behind a ``cd`` that has no operand
_QUOTES = str.maketrans("", "", "\\\"'")
_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-/")


def places_of_others(own_name: str) -> dict:
    """``{place: the folders that it is about}`` of the places with journals of others than that of this name.

    The tops of all its work trees; empty where no journal says where they are.
    """
    found: dict = {}
    try:
        names = os.listdir(traces_dir())
    except (FileNotFoundError, NotADirectoryError):
        return found
    for name in names:
        place = os.path.join(traces_dir(), name)
        others = others_in(place, own_name)
        if others:
            folder = next(filter(None, map(journal.folder_of, others)), "")
            found[place] = _trees_of(folder) if folder else []
    return found


def could_lead(call, places) -> bool:
    """Whether `call`, which does not say its files, could reach one of `places`, as ``places_of_others`` has them."""
    if not places:
        return False
    if call.tool not in SHELL_TOOLS or not all(places.values()):
        return True
    from swarm_hook_core.targets import shell_text

    folders = [top for tops in places.values() for top in tops]
    own = {call.folder, os.path.realpath(call.folder)}
    if any(_is_in(top, folder) for top in folders for folder in own):
        return True
    return _names_one(shell_text(call.tool, call.input).translate(_QUOTES).lower(), own, folders)


def below(places, root: str) -> dict:
    """Those of `places`, as ``places_of_others`` has them, with folders below absolute `root`, and these alone."""
    root = os.path.realpath(root)
    inside = {place: [top for top in tops if top != root and _is_in(top, root)] for place, tops in places.items()}
    return {place: tops for place, tops in inside.items() if tops}


def _names_one(text: str, own, folders) -> bool:
    """Whether `text`, in small letters and without quotes, could name one of absolute `folders`, seen from `own`."""
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
    """Whether there is a ``cd`` in `text` that does not say where to, or has options."""
    return any((part.lstrip(" \t") or ";")[0] in _NO_FOLDER for part in text.split("cd")[1:])


def _has_ended(text: str, path: str) -> bool:
    """Whether the end of a path in `text` is `path`, with a slash or without."""
    at = text.find(path)
    while at >= 0:
        end = at + len(path)
        behind = text[end : end + 2].removeprefix("/")[:1]
        if not behind or behind not in _IN_NAMES:
            return True
        at = text.find(path, at + 1)
    return False


def _trees_of(folder: str) -> list:
    """The tops of the work trees of the clone that one with this top is of; of a folder that is none itself."""
    from swarm_hook_core.repository import tree_at, trees_beside

    tree = tree_at(folder)
    return trees_beside(tree) if tree is not None else [folder]


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(folder.rstrip("/") + "/")

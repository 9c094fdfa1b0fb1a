"""Write access to this user's folders of swarm: its state, its store and the plugin's folder.

Without the state folder hooks note neither changes nor reads of sessions. A store that can be read, in a folder that is
closed, is a sandbox as a rule, and processes outside of it write the store. So that is a warning, as is a closed plugin
folder.
"""

from __future__ import annotations

import os

from swarm_hook_core.state import open_private, state_dir, store_path, write_all
from swarm_hook_core.traces import traces_dir
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes.base import Finding

PROBE_BYTES = 4096
MOST_NAMED = 3
MEND = (
    "make room on the disk, or give the folder back to this user; or set SWARM_STATE_DIR, SWARM_DB_PATH and"
    " XDG_DATA_HOME to places that can be written"
)


def finding() -> Finding:
    """Find out if the state folder, its journals, and the folders of store and plugin can be written."""
    folder, store, plugin = state_dir(), os.path.dirname(store_path()), str(marketplace_folder())
    wrong = _of_folder(folder) or _of_journals()
    closed = {what: why for what, place in (("store", store), ("plugin", plugin)) if (why := _why_closed(place))}
    details = {"path": folder, "store": store, "plugin": plugin, "wrong": wrong, "closed": closed}
    said = []
    if wrong:
        if len(wrong) > MOST_NAMED:
            more = f" and {len(wrong) - MOST_NAMED} more"
        else:
            more = ""
        said.append(
            f"hooks cannot note changes by sessions: {'; '.join(wrong[:MOST_NAMED])}{more}. Until that is mended,"
            " calls go ahead over uncommitted changes of others; locks hold"
        )
    said += [f"the {what}'s folder cannot be written: {why}" for what, why in closed.items()]
    if said:
        is_broken = wrong or ("store" in closed and not os.path.exists(store_path()))
        return Finding("state", "fail" if is_broken else "warn", "; ".join(said), MEND, details)
    if os.path.isdir(folder):
        return Finding("state", "ok", f"state, store and plugin can be written ({folder})", details=details)
    return Finding("state", "ok", f"{folder} will be made when it is needed", details=details)


def _why_closed(folder: str) -> str:
    """Why nothing can be written into a folder that is there, or could be made; empty where it can."""
    place = folder
    while not os.path.lexists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is no folder"
    if os.access(place, os.W_OK | os.X_OK):
        return ""
    return f"{place} may not be written by this user, or is read-only"


def _of_folder(folder: str) -> list[str]:
    """Return the reason that no file can be made in `folder` (one line), or nothing."""
    if not os.path.lexists(folder):
        why = _why_closed(folder)
        if why:
            return [f"{folder} cannot be made: {why}"]
        return []
    path = os.path.join(folder, f"probe.{os.getpid()}.tmp")
    try:
        handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        return [f"{folder}: {error.strerror}"]
    try:
        write_all(handle, b"\0" * PROBE_BYTES)
        return []
    except OSError as error:
        return [f"{folder}: {error.strerror}"]
    finally:
        os.close(handle)
        os.remove(path)


def _of_journals() -> list[str]:
    """Return the reasons that journals cannot be added to, a line each."""
    wrong: list[str] = []
    base = traces_dir()
    if os.path.lexists(base) and not os.path.isdir(base):
        return [f"{base} is no folder"]
    for place in _listed(base):
        if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
            wrong.append(f"{place}: no journal can be made in it")
            continue
        for path in _listed(place):
            if not os.path.isfile(path) or os.path.islink(path):
                wrong.append(f"{path} is no ordinary file")
            elif not os.access(path, os.W_OK):
                wrong.append(f"{path}: no permission to write")
    return wrong


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:  # no journals yet
        return []

"""Whether hooks can write into the state folder: without that nothing is noted of what sessions change or have seen."""

from __future__ import annotations

import os

from swarm_hook_core.state import open_private, state_dir, write_all
from swarm_hook_core.traces import traces_dir
from swarm_mcp.runtimes.base import Finding

PROBE_BYTES = 4096
MOST_NAMED = 3


def finding() -> Finding:
    """Return whether a file can be made in the state folder, and every journal in it be added to."""
    folder = state_dir()
    wrong = _of_folder(folder) or _of_journals()
    details = {"path": folder, "wrong": wrong}
    if not wrong:
        text = f"{folder} can be written" if os.path.isdir(folder) else f"{folder} will be made when it is needed"
        return Finding("state", "ok", text, details=details)
    more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    text = (
        f"hooks cannot note what sessions change: {'; '.join(wrong[:MOST_NAMED])}{more}. Until that is mended, calls go"
        " ahead over uncommitted changes of others; locks hold"
    )
    return Finding("state", "fail", text, "make room on the disk, or give the folder back to this user", details)


def _of_folder(folder: str) -> list[str]:
    """What keeps a file from being made in `folder`, or the folder itself; one line, or none."""
    if not os.path.lexists(folder):
        above = os.path.dirname(folder)
        while not os.path.lexists(above) and above != os.path.dirname(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            return [f"{above} is no folder"]
        return [] if os.access(above, os.W_OK | os.X_OK) else [f"{above}: no permission to make {folder}"]
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
    """What keeps journals from being added to, a line each."""
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
    except OSError:
        return []

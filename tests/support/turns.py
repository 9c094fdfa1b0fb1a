"""Files that sessions have for their turns, as hooks note them (``swarm_hook_core.traces.turn_files``)."""

import os
import time

from swarm_hook_core.traces import append, entry, first_line, journal_name, place_of, turn_files
from swarm_hook_core.traces.turn_files import TurnFile


def write(session: tuple[str, str], path: str, agent: str = "", ago: float = 0.0, passed: bool = True) -> None:
    """Note that a session, ``(runtime, id)``, writes the file, so many seconds ago, as a hook does before its look.

    `passed`: the hook has let it pass, and has noted that.
    """
    at_ns, folder = time.time_ns() - int(ago * 10**9), os.path.dirname(path)
    file = os.path.join(place_of(folder), journal_name(*session))
    with turn_files._OneAtATime():
        lines = [entry(at_ns, "takes", agent, "Edit", path)]
        if passed:
            lines.append(entry(at_ns + 1, "wrote", agent, "Edit", path, "-"))
        append(file, lines, lambda: first_line(*session, folder))


def take_back(session: tuple[str, str], path: str) -> None:
    """Withdraw the last of these notes, as a hook that denies the write."""
    last = [one for one in held() if (one.runtime, one.session_id, one.key) == (*session, path)][-1]
    line = entry(last.written, "wont", last.agent, "Edit", path, "wrote")
    append(last.journal, [line], lambda: b"")


def held() -> list[TurnFile]:
    """Return all files that sessions have for their turns, void or not."""
    return [one for one in turn_files.noted_since(0) if not one.is_over(time.time_ns())]


def holders(path: str = "") -> list[str]:
    """Return the ids of the sessions that have the file (empty: any) for their turns."""
    return [one.session_id for one in held() if path in ("", one.key)]

"""A hook's memory of one session outside the store.

Only a convenience: a store in a local file knows every session by its id, and losing this folder loses nothing. If the
coordinator keeps its store elsewhere, this holds our instance.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.state import name_of, read_private, state_dir, write_private

LARGEST = 64 * 1024  # bytes of the saved facts
_NAME = "meta.json"
_SERVER = "server"  # of earlier releases
RENEWED = "renewed"  # as old as the last renewal that a hook of the session has started
MAIL = "mail"  # the newest message that the session was told of
_TURN = "turn"


def folder_of(config: RuntimeConfig, session_id: str) -> str:
    """This session's folder."""
    return os.path.join(state_dir(), config.scratch_dir_name, name_of(session_id))


def load(config: RuntimeConfig, session_id: str) -> dict[str, Any]:
    """Return the saved facts about this session; empty if there are no such facts of ours."""
    try:
        saved = loads(read_private(os.path.join(folder_of(config, session_id), _NAME), LARGEST).decode())
    except (OSError, ValueError, RecursionError):  # nothing is saved, or it is torn
        return {}
    if isinstance(saved, dict) and saved.get("session_id") == session_id:
        return saved
    return {}


def save(config: RuntimeConfig, session_id: str, **facts: str) -> None:
    """Replace the saved facts about this session."""
    text = dumps({"session_id": session_id, **facts})
    write_private(os.path.join(folder_of(config, session_id), _NAME), text)


def remember(config: RuntimeConfig, session_id: str, **facts: Any) -> None:
    """Replace the saved facts as `save` does, or record that they cannot be written."""
    try:
        save(config, session_id, **facts)
    except OSError as error:
        state.record(config.runtime_name, "scratch", error)


def clear(config: RuntimeConfig, session_id: str) -> None:
    """Remove the saved facts, and the folder if nothing else is in it."""
    folder = folder_of(config, session_id)
    files = (os.path.join(folder, name) for name in (_NAME, _SERVER, RENEWED, MAIL, _TURN))
    for remove, path in (*((os.remove, file) for file in files), (os.rmdir, folder)):
        try:
            remove(path)
        except OSError:  # not there, or the folder is in use
            continue


def tried_lately(config: RuntimeConfig, session_id: str, seconds: float, now: float) -> bool:
    """Return True if a failed registration is less than `seconds` old, so that writes do not pay for each."""
    failed_at = load(config, session_id).get("failed_at")
    return isinstance(failed_at, (int, float)) and 0 <= now - failed_at < seconds


def begin_turn(config: RuntimeConfig, session_id: str, turn: str) -> bool:
    """Note that the session is in this turn of its client's; return True unless it was noted already."""
    path = os.path.join(folder_of(config, session_id), _TURN)
    if _line_in(path) == turn:
        return False
    write_private(path, turn + "\n")
    return True


def end_turn(config: RuntimeConfig, session_id: str) -> None:
    """Take that word back, and remove the folder if nothing else is in it: not every session's end is told."""
    folder = folder_of(config, session_id)
    try:
        os.remove(os.path.join(folder, _TURN))
        os.rmdir(folder)
    except OSError:  # other facts are in the folder
        return


def _line_in(path: str) -> str:
    """Return the text of a file of one short line; may be empty."""
    try:
        return read_private(path, 512).decode().strip()
    except (OSError, ValueError):  # there is no such file
        return ""

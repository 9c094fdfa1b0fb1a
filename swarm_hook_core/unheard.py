"""Words to a model at an event with an answer that its client drops: kept for the session's next event.

    <state>/unheard/<runtime>.<session>[.<agent>]   the words for the session, or its subagent

The folder exists only while there are such words. A hook that finds no folder has nothing to do.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.state import (
    MOST_ATTEMPTS,
    is_at,
    lock_alone,
    name_of,
    open_in_private,
    open_private,
    read_all,
    state_dir,
    write_all,
)

LONGEST = 20_000  # characters that a session is told at once, the newest
LARGEST = 4 << 20  # bytes that are read for that
DROPPED_SECONDS = 86400  # a session silent for so long will not ask


def keep(config: RuntimeConfig, event: SessionEvent, words: str) -> None:
    """Keep `words` for the session, or the subagent, of an event, behind earlier words. Raises OSError."""
    _prune(_folder(), time.time() - DROPPED_SECONDS)
    path = _path(config, event)
    for _ in range(MOST_ATTEMPTS):
        handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            lock_alone(handle)
            if is_at(path, handle):
                write_all(handle, f"{words}\n".encode("utf-8", "surrogateescape"))
                return
        finally:
            os.close(handle)
    raise OSError(f"{path} was taken all the time")


def take(config: RuntimeConfig, event: SessionEvent) -> str:
    """Return the kept words for the session or subagent of an event, nearly always empty. They count as told."""
    if not os.path.isdir(_folder()):
        return ""
    path, words = _path(config, event), ""
    taken = f"{path}.{os.getpid()}"
    try:
        os.rename(path, taken)  # of two hooks at once one has it
    except OSError:  # nothing is kept
        return ""
    try:
        words = _read(taken)
    except OSError:  # a link or a pipe stands there, and would stay: no hook asks for it under this name again
        pass
    try:
        os.remove(taken)
        os.rmdir(_folder())
    except OSError:
        pass  # others have words there
    return words[-LONGEST:]


def _read(taken: str) -> str:
    """Return the words in a taken file, once no hook that has opened it before adds to it any more."""
    handle = open_private(taken, os.O_RDONLY)
    try:
        try:
            lock_alone(handle)
        except OSError:
            pass  # the other hook was stopped: the words before are read all the same
        return read_all(handle, LARGEST).decode("utf-8", "surrogateescape").strip()
    finally:
        os.close(handle)


def _folder() -> str:
    return os.path.join(state_dir(), "unheard")


def _path(config: RuntimeConfig, event: SessionEvent) -> str:
    whose = f"{config.runtime_name}.{name_of(event.session_id)}"
    return os.path.join(_folder(), f"{whose}.{name_of(event.agent)}" if event.agent else whose)


def _prune(folder: str, before: float) -> None:
    """Remove words that were not fetched since `before`."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:  # no words are kept
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            if os.lstat(path).st_mtime < before:
                os.remove(path)
        except OSError:  # another hook has removed it
            continue

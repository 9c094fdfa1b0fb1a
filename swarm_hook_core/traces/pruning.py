"""Removal of journals: of sessions that have ended, and old ones.

A session's versions outlive it, and its journal with them, in another folder (``versions``).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from swarm_hook_core.state import NotOrdinary, clear_place, ended_mark
from swarm_hook_core.traces import AGENTS, head, journal, journal_name, names_in, others_in, told_ends, traces_dir
from swarm_hook_core.traces.versions.stored import store_ended

UNKNOWN_SECONDS = 600  # time after its last entry at which the journal of an unknown session is removed


def forget(runtime: str, session_id: str) -> None:
    """Remove all journals of a session that has ended, and its notes about HEAD. Never raises."""

    head.forget(runtime, session_id)
    name = journal_name(runtime, session_id)
    for place in _places():
        path = os.path.join(place, name)
        if os.path.exists(path):
            told_ends.note_last_end(path, name)
        _remove(path)
        _close(place)
    told_ends.forget_client(name)


def prune(is_known: Callable[[str, str], bool], now: float) -> int:
    """Remove journals without a new entry for a day, and those of unknown sessions; return their number.

    `is_known(runtime, session id)`: True if the store has that session. `now` in Unix seconds. Raises OSError. Notes
    about HEAD without a change for a day go, too.
    """
    head.prune(now)
    gone = 0
    for place in _places():
        for path in others_in(place, ""):
            age = now - journal.changed_at(path)
            if age > journal.DAY_SECONDS or (
                age > UNKNOWN_SECONDS and not is_known(*journal.owner_of(_entries_of(path)))
            ):
                _remove(path)
                gone += 1
        # The files of agents in `place` without a journal beside them
        try:
            names = set(os.listdir(place))
        except OSError:
            left_agents = []  # removed just now
        else:
            left_agents = [
                os.path.join(place, name)
                for name in names
                if name.endswith(AGENTS) and name[: -len(AGENTS)] not in names
            ]
        for path in left_agents:
            if now - journal.changed_at(path) > UNKNOWN_SECONDS:
                _remove(path)
        _close(place)
    _forget_ends(now)
    return gone


def _forget_ends(now: float) -> None:
    """Remove marks of calls' ends that no session has noted within a day."""
    folder = os.path.dirname(ended_mark())
    for name in names_in(folder):
        path = os.path.join(folder, name)
        if journal.changed_at(path) < now - journal.DAY_SECONDS:
            _remove(path)


def _places() -> list[str]:
    return [os.path.join(traces_dir(), name) for name in names_in(traces_dir())]


def _entries_of(path: str) -> bytes:
    try:
        return journal.read(path)
    except NotOrdinary:
        return b""  # not a journal: it has no owner


def _remove(path: str) -> None:
    for file in (path + AGENTS,) if store_ended(path) else (path, path + ".1", path + AGENTS):
        try:
            clear_place(file)
            os.remove(file)
        except OSError:
            continue  # missing, or removed by another process


def _close(place: str) -> None:
    try:
        os.rmdir(place)
    except OSError:
        return  # it has other journals

"""Finding what a run has left behind: members of its process group, and processes that left the group."""

from __future__ import annotations

import os
import signal
import sys
import time

from swarm_mcp.harness.environment import RUN_ID

PIECE = 32768


def living(group: int, run_id: str = "") -> set[int]:
    """Pids that belong to the run and are no zombies: of its process group, or started with its id (Linux)."""
    if not sys.platform.startswith("linux"):
        return {-group} if _exists(-group) else set()
    mark = f"{RUN_ID}={run_id}".encode()
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        state, its_group = _state_and_group(name)
        if state in ("", "Z", "X"):
            continue
        if its_group == group or (run_id and mark in _environ(name).split(b"\0")):
            found.add(int(name))
    return found


def send(group: int, run_id: str, number: int) -> None:
    """Send a signal to the group and to those that left it."""
    _kill(-group, number)
    if sys.platform.startswith("linux"):
        for pid in living(group, run_id):
            if _group_of(pid) != group:
                _kill(pid, number)


def end(group: int, run_id: str, patience: float, grace: float) -> int:
    """See everything of a run gone: wait `patience` seconds, TERM, wait `grace` seconds, KILL.

    How many had to be told. The child itself has to be reaped already.
    """
    if not _wait(group, run_id, patience):
        return 0
    told = len(living(group, run_id))
    send(group, run_id, signal.SIGTERM)
    if _wait(group, run_id, grace):
        for _ in range(5):  # whoever forks faster than it can be ended is met again
            send(group, run_id, signal.SIGKILL)
            if not _wait(group, run_id, 0.5):
                break
    return told


def _wait(group: int, run_id: str, seconds: float) -> bool:
    """Whether something of the run still lives after at most that long."""
    until, step = time.monotonic() + seconds, 0.01
    while living(group, run_id):
        if time.monotonic() >= until:
            return True
        time.sleep(step)
        step = min(0.1, step * 1.5)
    return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # it has gone meanwhile, or is not ours to end


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _state_and_group(name: str) -> tuple[str, int]:
    stat = _read(f"/proc/{name}/stat")
    fields = stat[stat.rfind(b")") + 2 :].split(None, 3)
    return (fields[0].decode(), int(fields[2])) if len(fields) > 3 else ("", 0)


def _environ(name: str) -> bytes:
    return _read(f"/proc/{name}/environ")


def _read(path: str) -> bytes:
    """All of a file of /proc; empty where it cannot be read. There are hundreds, so in as few steps as can be."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = piece = os.read(handle, PIECE)
        while len(piece) == PIECE:  # such files give what is asked for as long as they have it
            piece = os.read(handle, PIECE)
            found += piece
        return found
    except OSError:
        return b""
    finally:
        os.close(handle)

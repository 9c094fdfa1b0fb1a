"""Finding of a run's leftovers: members of its process group, and processes that left the group.

On Linux these are the descendants of the run's keeper (``keeper``), and processes with the run's id.
"""

from __future__ import annotations

import os
import signal
import sys
import time

RUN_ID = "SWARM_RUN_ID"
# A mark in the environment of processes that are to outlive the run, such as the supervisor of another run.
OUTLIVES = "SWARM_OUTLIVES_RUN"
LOOKS, LOOK_SECONDS = 50, 0.005  # repeated looks at a process during its execve
START_CODE, ENV_END = 26 - 3, 51 - 3  # fields of /proc/PID/stat behind the name, see proc(5)
PIECE = 32768


def living(group: int, run_id: str = "", keeper: int = 0) -> set[int]:
    """Return the pids of the run that are no zombies: of its group, started with its id, or by its keeper."""
    if not sys.platform.startswith("linux"):
        if _exists(-group):
            return {-group}
        return set()
    mark = f"{RUN_ID}={run_id}".encode()
    found: set[int] = set()
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        # State, parent and process group
        stat = _read(f"/proc/{name}/stat")
        fields = stat[stat.rfind(b")") + 2 :].split(None, 3)
        if len(fields) > 3:
            state, parent, its_group = (fields[0].decode(), int(fields[1]), int(fields[2]))
        else:
            state, parent, its_group = ("", 0, 0)
        if state in ("", "Z", "X"):
            continue
        children.setdefault(parent, []).append(int(name))
        if its_group == group or (run_id and mark in _environ(name).split(b"\0")):
            found.add(int(name))
    return found | (_below(keeper, children) if keeper else set())


def with_variable(name: str, value: str) -> set[int]:
    """Return the pids of other processes that were started with this variable; on Linux alone."""
    if not sys.platform.startswith("linux"):
        return set()
    mark, pids = f"{name}={value}".encode(), [pid for pid in os.listdir("/proc") if pid.isdigit()]
    return {int(pid) for pid in pids if mark in _environ(pid).split(b"\0")} - {os.getpid()}


def _below(keeper: int, children: dict[int, list[int]]) -> set[int]:
    """The descendants of `keeper`, without those that are to outlive the run, and theirs."""
    found, rest = set(), [keeper]
    while rest:
        for pid in children.get(rest.pop(), ()):
            if not _outlives(str(pid)):
                found.add(pid)
                rest.append(pid)
    return found


def _outlives(name: str) -> bool:
    """Return True if a process is marked to outlive the run.

    In the middle of execve(2), after the handles that announce a start are closed, its environment looks empty: then it
    is read again.
    """
    for _ in range(LOOKS):
        settled = _has_its_environment(name)  # asked before: it may have it by the time that it is read
        environ = _environ(name)
        if environ or settled:
            return f"{OUTLIVES}=1".encode() in environ.split(b"\0")
        time.sleep(LOOK_SECONDS)
    return False


def _has_its_environment(name: str) -> bool:
    """Return True if execve(2) has set up a process's environment, or if that cannot be seen."""
    stat = _read(f"/proc/{name}/stat")
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) <= ENV_END or fields[0] in (b"Z", b"X"):
        return True
    return fields[ENV_END] != b"0" or fields[START_CODE] == b"1"  # this value means: invisible


def send(group: int, run_id: str, number: int, keeper: int = 0) -> None:
    """Send a signal to the group and to those that left it."""
    _kill(-group, number)
    if sys.platform.startswith("linux"):
        for pid in living(group, run_id, keeper):
            if _group_of(pid) != group:
                _kill(pid, number)


def end(group: int, run_id: str, patience: float, grace: float, keeper: int = 0) -> int:
    """End everything of a run: wait `patience` seconds, TERM, wait `grace` seconds, KILL.

    How many had to be told. The child itself has to be reaped already.
    """
    if not _wait(group, run_id, patience, keeper):
        return 0
    told = len(living(group, run_id, keeper))
    send(group, run_id, signal.SIGTERM, keeper)
    if _wait(group, run_id, grace, keeper):
        for _ in range(5):  # processes that fork faster than they are ended are met again
            send(group, run_id, signal.SIGKILL, keeper)
            if not _wait(group, run_id, 0.5, keeper):
                break
    return told


def _wait(group: int, run_id: str, seconds: float, keeper: int) -> bool:
    """Return True if a process of the run still lives after at most that long."""
    until, step = time.monotonic() + seconds, 0.01
    while living(group, run_id, keeper):
        if time.monotonic() >= until:
            return True
        time.sleep(step)
        step = min(0.1, step * 1.5)
    return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:  # it has ended
        return False
    except OSError:  # it lives, and belongs to another user
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
    except OSError:  # it has ended
        return 0


def _environ(name: str) -> bytes:
    return _read(f"/proc/{name}/environ")


def _read(path: str) -> bytes:
    """All of a file of /proc; empty where it cannot be read. There are hundreds, so in as few steps as can be."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # the process has ended
        return b""
    try:
        found = piece = os.read(handle, PIECE)
        while len(piece) == PIECE:  # such files return as much as was asked for while there is more
            piece = os.read(handle, PIECE)
            found += piece
        return found
    except OSError:  # the process has ended
        return b""
    finally:
        os.close(handle)

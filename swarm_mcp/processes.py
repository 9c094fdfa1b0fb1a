"""Processes that end with the process that started them: a watcher of their groups, and a run's leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any

# A small shell, in a session of its own, knows the process groups of our commands and reads a pipe from this process.
# If the pipe ends without a word, this process was killed, and the shell ends the groups. On Linux the children of runs
# have a ``keeper`` instead: it also finds processes that have left their group.

GRACE_SECONDS = 3
# Starts a child once the reaper knows its group: if this process dies before, the child never begins. Reads one line,
# byte by byte as POSIX has it for pipes: the rest is the child's own standard input.
GATE = 'IFS= read -r go && exec "$@"'
NAME = "swarm-reaper"
_SCRIPT = r"""
trap '' TERM INT HUP QUIT PIPE
groups=
while read -r word group; do
    case $word in
        +) groups="$groups $group" ;;
        -) left=; for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done; groups=$left ;;
        over) groups= ;;
    esac
done
for group in $groups; do kill -s TERM -- "-$group"; done
tenths=$(( $1 * 10 ))
while [ -n "$groups" ] && [ "$tenths" -gt 0 ]; do
    left=
    for group in $groups; do kill -s 0 -- "-$group" && left="$left $group"; done
    groups=$left
    [ -z "$groups" ] || sleep 0.1 || sleep 1
    tenths=$(( tenths - 1 ))
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Reaper:
    """Looks after process groups. Its shell is started with the first group, or by `start`.

    ``with`` it: processes go on after the block; a fault in it ends them, for nobody would look after them.
    """

    def __init__(self, grace: int = GRACE_SECONDS):
        """`grace`: seconds from TERM to KILL."""
        self._grace = grace
        self._shell: subprocess.Popen[Any] | None = None
        self._starting = threading.Lock()

    def start(self) -> Reaper:
        """Start the shell now, before a fork that precedes `watch`."""
        with self._starting:
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT, NAME, str(self._grace)],
                    bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                    env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, start_new_session=True,
                )  # fmt: skip
        return self

    def __enter__(self) -> Reaper:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            self.close()
        else:
            self.release()

    @property
    def pid(self) -> int:
        """The shell's pid, 0 before it is started."""
        if self._shell:
            return self._shell.pid
        return 0

    def watch(self, group: int) -> None:
        """End the group with this process, from now on. Takes no lock once the shell is started."""
        if self._shell is None:
            self.start()
        self._say(f"+ {group}")

    def forget(self, group: int) -> None:
        """Stop watching a group after its command's end, unless one of its processes still runs."""
        if not group_exists(group):
            self._say(f"- {group}")

    def end(self, group: int, child: subprocess.Popen[Any] | None = None) -> None:
        """End a group: TERM, the grace, KILL. `child`, its first process, is waited for where it is given."""
        _signal(group, signal.SIGTERM)
        until = time.monotonic() + self._grace
        while time.monotonic() < until:
            if child:
                child.poll()  # a zombie would keep its group alive
            if not group_exists(group):
                break
            time.sleep(0.02)
        _signal(group, signal.SIGKILL)
        if child:
            child.wait()

    def release(self) -> None:
        """Watch nothing any more; running processes go on. Idempotent."""
        self._say("over")
        self._hang_up()
        if self._shell:
            wait_or_kill(self._shell)

    def close(self) -> None:
        """End all groups that are still watched, and wait for that. May be called again."""
        self._hang_up()
        if self._shell:
            try:
                self._shell.wait(self._grace + 5)
            except subprocess.TimeoutExpired:
                pass  # it goes on without us

    def _hang_up(self) -> None:
        if self._shell and self._shell.stdin:
            self._shell.stdin.close()

    def _say(self, line: str) -> None:
        if self._shell is None or self._shell.stdin is None or self._shell.stdin.closed:
            return
        try:
            self._shell.stdin.write(f"{line}\n".encode())
        except OSError:
            pass  # the shell was ended by another process: the groups go on without it


def wait_or_kill(process: subprocess.Popen[Any]) -> None:
    """Wait for a helper of ours that is about to end; kill it if it was stopped."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def pipes_of(process: subprocess.Popen[Any]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Return the three pipes of a process that was started with three pipes."""
    assert process.stdin and process.stdout and process.stderr
    return process.stdin, process.stdout, process.stderr


def group_exists(group: int) -> bool:
    """Return True if a process group has a member; a zombie counts."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:  # the group is gone
        return False
    except OSError:  # it has members of another user
        return True
    return True


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        pass  # it has gone meanwhile


# Finding of a run's leftovers: members of its process group, and processes that left the group.
#
# On Linux these are the descendants of the run's keeper (``keeper``), and processes with the run's id.

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

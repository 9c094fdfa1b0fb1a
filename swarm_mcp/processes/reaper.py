"""A watcher that ends processes once their supervisor is gone, even if it was killed.

A small shell, in a session of its own, knows the process groups of our commands and reads a pipe from this process. If
the pipe ends without a word, this process was killed, and the shell ends the groups. On Linux the children of runs have
a ``keeper`` instead: it also finds processes that have left their group.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import IO, Any

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

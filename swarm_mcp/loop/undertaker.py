"""No command outlives the loop, however the loop ends.

Commands of tools have process groups of their own, so that one that runs too long can be ended whole. A small shell
knows those groups and holds a pipe from us; when we end, be it by SIGKILL, it ends what is left of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

GRACE_SECONDS = 2.0
_SCRIPT = r"""
trap '' HUP INT TERM
groups=
while read -r word group; do
    case $word in
        +) groups="$groups $group" ;;
        -) left=; for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done; groups=$left ;;
    esac
done
for group in $groups; do kill -TERM "-$group" 2>/dev/null; done
[ -z "$groups" ] || sleep 1
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
"""


class Undertaker:
    """Knows the process groups of this process's commands. The shell is started with the first of them."""

    def __init__(self):
        self._shell: subprocess.Popen | None = None
        self._lock = threading.Lock()
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """A command has begun in `group`."""
        with self._lock:
            self._groups.add(group)
            self._say(f"+ {group}")

    def forget(self, group: int) -> None:
        """The command has ended. Its group stays watched where something of it still runs."""
        if _exists(group):
            return
        with self._lock:
            self._groups.discard(group)
            self._say(f"- {group}")

    def end(self, group: int, child: subprocess.Popen | None = None) -> None:
        """End everything in `group`: TERM, a short grace, KILL. `child`, its first process, is buried where given."""
        _signal(group, signal.SIGTERM)
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end:
            if child:
                child.poll()  # one that nobody has buried would keep its group in being
            if not _exists(group):
                break
            time.sleep(0.02)
        _signal(group, signal.SIGKILL)
        if child:
            child.wait()

    def close(self) -> None:
        """End what is left, and the shell with it."""
        with self._lock:
            groups, self._groups = self._groups, set()
            shell, self._shell = self._shell, None
        for group in groups:
            if _exists(group):
                self.end(group)
        if shell and shell.stdin:
            try:
                shell.stdin.close()
                shell.wait(GRACE_SECONDS + 3)
            except (OSError, subprocess.TimeoutExpired):
                shell.kill()
                shell.wait()

    def _say(self, line: str) -> None:
        if self._shell is None:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
            )  # fmt: skip
        try:
            assert self._shell.stdin
            self._shell.stdin.write(line.encode() + b"\n")
            self._shell.stdin.flush()
        except OSError:
            return  # somebody killed it: then nobody tidies up after a SIGKILL


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return

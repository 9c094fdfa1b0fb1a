"""A watcher that ends a child's process group when its supervisor is gone, where no ``keeper`` is between them.

The watcher is a small shell of its own, in a session of its own. It reads a pipe that only the supervisor holds the
other end of: first the group to look after, then either the word that all is over, or the pipe's end, which means that
the supervisor was killed. The child itself starts behind a gate (``GATE``) that opens only after the watcher has been
told; a supervisor that dies before leaves a child that never began.
"""

from __future__ import annotations

import subprocess

GRACE_SECONDS = 3
# Reads one line, byte by byte as POSIX has it for pipes: what follows it is the child's own standard input.
GATE = 'IFS= read -r go && exec "$@"'
WATCHER = r"""
trap '' TERM INT HUP QUIT PIPE
read -r group || exit 0
read -r over && exit 0
kill -s TERM -- "-$group"
left=$(( $1 * 10 ))
while [ "$left" -gt 0 ] && kill -s 0 -- "-$group"; do
    sleep 0.1 || sleep 1
    left=$(( left - 1 ))
done
kill -s KILL -- "-$group"
"""


class Leash:
    """A watcher that waits to be told what to watch."""

    def __init__(self, grace: int = GRACE_SECONDS):
        self._grace = grace
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, "swarm-leash", str(grace)],
            bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The watcher's own pid."""
        return self._watcher.pid

    def fasten(self, group: int) -> None:
        """From now on the group `group` ends with this process."""
        self._say(f"{group}\n")

    def release(self) -> None:
        """It is over, and nothing is left to be ended. Idempotent."""
        if self._watcher.stdin is None or self._watcher.stdin.closed:
            return
        self._say("over\n")
        self._watcher.stdin.close()
        try:
            self._watcher.wait(5)
        except subprocess.TimeoutExpired:  # stopped by somebody
            self._watcher.kill()
            self._watcher.wait()

    def pull(self) -> None:
        """End the group, if one is fastened, and wait for that: this process cannot look after it any more."""
        self._watcher.stdin.close()
        try:
            self._watcher.wait(self._grace + 5)
        except subprocess.TimeoutExpired:
            pass  # it goes on without us

    def _say(self, line: str) -> None:
        try:
            self._watcher.stdin.write(line.encode())
        except OSError:
            pass  # somebody ended the watcher: the child goes on without

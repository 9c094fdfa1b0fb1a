"""A watcher that ends a child's process group when its supervisor is gone, however it went.

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
# Processes that left the group are known by the run's id in the environment they were started with (Linux). It has to
# be a whole variable: the id may be how another run's begins, and its name may stand in another variable's value. So
# line ends and the ends of variables change places before a line is asked for.
WATCHER = r"""
trap '' TERM INT HUP QUIT PIPE
IFS=' ' read -r group run || exit 0
read -r over && exit 0
end() {
    kill -s "$1" -- "-$group"
    [ -n "$run" ] || return 0
    for found in $(grep -Fals "SWARM_RUN_ID=$run" /proc/[0-9]*/environ); do
        tr '\n\0' '\001\n' < "$found" | grep -Faqx "SWARM_RUN_ID=$run" || continue
        found=${found#/proc/}
        kill -s "$1" "${found%/environ}"
    done
}
end TERM
left=$(( $1 * 10 ))
while [ "$left" -gt 0 ] && kill -s 0 -- "-$group"; do
    sleep 0.1 || sleep 1
    left=$(( left - 1 ))
done
end KILL
"""


class Leash:
    """A watcher that waits to be told what to watch."""

    def __init__(self, grace: int = GRACE_SECONDS):
        # Its own environment has no run's id: it must not find itself.
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, "swarm-leash", str(grace)],
            bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The watcher's own pid."""
        return self._watcher.pid

    def fasten(self, group: int, run_id: str) -> None:
        """From now on the group `group`, and what carries `run_id`, end with this process."""
        self._say(f"{group} {run_id}\n")

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

    def _say(self, line: str) -> None:
        try:
            self._watcher.stdin.write(line.encode())
        except OSError:
            pass  # somebody ended the watcher: the child goes on without

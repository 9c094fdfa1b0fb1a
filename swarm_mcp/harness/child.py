"""One child process: a group of its own, a helper that ends it with us, its prompt on standard input."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping

from swarm_hook_core.process import start_time
from swarm_mcp.harness import leftover_processes
from swarm_mcp.harness.environment import RUN_ID
from swarm_mcp.harness.keeper import Keeper
from swarm_mcp.harness.reaper import GATE, Reaper, pipes_of

PATIENCE_SECONDS = 0.5  # for what closes down by itself once the child is gone: MCP servers, pipes
STRAY_GRACE_SECONDS = 3.0
PIECE = 65536


def found(program: str, environment: Mapping[str, str], cwd: str) -> str | None:
    """Return the whole path of a program as the child would find it; None where there is none that can be run."""
    if os.path.dirname(program):
        path = os.path.join(cwd, os.path.expanduser(program))
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
    return shutil.which(program, path=environment.get("PATH", os.defpath))


class Child:
    """A child that runs. `pid` is also its process group; `started` its start time (``process.start_time``).

    Raises OSError, or ValueError for an environment that no process can have, where it cannot be started.
    """

    def __init__(self, argv: list[str], cwd: str, environment: Mapping[str, str], prompt: str = ""):
        self.run_id = environment.get(RUN_ID, "")
        if "PWD" in environment:
            environment = {**environment, "PWD": cwd}
        self._closed = False
        kept = sys.platform.startswith("linux")
        self._start: Keeper | _WatchedChild = (Keeper if kept else _WatchedChild)(
            argv, cwd, dict(environment), self.run_id
        )
        self._keeper = self._start.pid if kept else 0
        self.pid = self._start.child
        self.started = start_time(self.pid)
        self._unsent = memoryview(self._start.greeting + prompt.encode("utf-8", "replace"))
        self.input, self.output, self.errors = (stream.fileno() for stream in self._start.streams)
        for handle in (self.input, self.output, self.errors):
            os.set_blocking(handle, False)

    # ------------------------------------------------------------------ streams

    def feed(self) -> bool:
        """Give the child as much of its prompt as it takes now; whether there is more. Closes its input at the end."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.input, self._unsent[:PIECE]) :]
        except BlockingIOError:
            return True
        except OSError:
            self._unsent = self._unsent[:0]  # it does not want to read
        self._start.streams[0].close()
        return False

    def read(self, handle: int) -> bytes | None:
        """Return what has come on `handle`: empty at its end, None where nothing has come."""
        try:
            return os.read(handle, PIECE)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    # --------------------------------------------------------------------- end

    def ended(self) -> bool:
        """Return whether the child itself is over (its descendants may not be)."""
        return self._start.poll() is not None

    def end_handle(self) -> int:
        """Return a handle that can be read once the child is over, which the caller closes; -1 where there is none."""
        return self._start.end_handle()

    @property
    def exit_code(self) -> int | None:
        """Exit code, the negative number of the signal that ended it, None while it runs."""
        return self._start.exit_code

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 for none."""
        return max(0, -(self.exit_code or 0))

    def terminate(self) -> None:
        """Ask the group, and what left it, to end."""
        leftover_processes.send(self.pid, self.run_id, signal.SIGTERM, self._keeper)

    def kill(self) -> None:
        """End them."""
        leftover_processes.send(self.pid, self.run_id, signal.SIGKILL, self._keeper)

    def close(self) -> int:
        """End whatever is left, and give everything back. How many were left. Idempotent."""
        if self._closed:
            return 0
        if not self.ended():
            self.kill()
            self._start.wait()
        left = leftover_processes.end(self.pid, self.run_id, PATIENCE_SECONDS, STRAY_GRACE_SECONDS, self._keeper)
        self._closed = True
        self._start.release()
        for stream in self._start.streams:
            stream.close()
        return left


class _WatchedChild:
    """A child of this very process, where there is no keeper: a reaper ends its group alone."""

    def __init__(self, argv: list[str], cwd: str, environment: dict[str, str], _run_id: str):
        # Some shells (dash) lose variables whose names are none to them, such as exported functions of bash. Who has
        # any is started without the gate, and the reaper told a moment later.
        gated = all(name.isascii() and name.isidentifier() for name in environment)
        gate = ["/bin/sh", "-c", GATE, "swarm-gate"] if gated else []
        self.greeting = b"go\n" if gated else b""
        self._reaper = Reaper().start()
        try:
            self._process = subprocess.Popen(
                [*gate, *argv], bufsize=0, cwd=cwd, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._reaper.release()
            raise
        self.child = self.pid = self._process.pid
        self._reaper.watch(self.pid)
        self.streams = pipes_of(self._process)
        self.poll, self.wait, self.release = self._process.poll, self._process.wait, self._reaper.release

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    def end_handle(self) -> int:
        try:
            return os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return -1

"""The checker of this process, as a client that has started a server has one; see tests/unit/conftest.py.

One server and its checker answer for the hooks of all tests of this process. Each private home gets a link to the socket.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.fixtures import time_limit
from swarm_hook_core import __version__
from swarm_hook_core.process import start_time
from swarm_hook_core.state import make_private
from swarm_mcp.checker import BEGUN

RELAY = os.environ.get("SWARM_RELAY", "")  # `make test` names the relay in C
BUSY = 77  # the status of a relay without an answer in time: it is asked once more
# A relay executes this. The hook runs as a process of its own only where a checker has taken the call.
ALONE = f'[ "$SWARM_TRIED_NS" ] || exit {BUSY}; exec "$@"'
TRIES = 50


class Checker:
    """The server of this process, with a home of its own, and the checker that it keeps."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="swarm-checker"))
        home = {"HOME": "", "SWARM_STATE_DIR": "state", "SWARM_DB_PATH": "swarm.db", "XDG_CONFIG_HOME": "config"}
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "XDG_"))}
        environment |= {name: str(self._folder / place) for name, place in home.items()}
        words = [os.path.join(os.path.dirname(sys.executable), "swarm-mcp"), "serve"]
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._server = subprocess.Popen(words, cwd="/", env=environment, **streams)  # type: ignore[call-overload]
        self._name = f"{os.getpid()}-{start_time(os.getpid())}"
        self._socket = self._folder / "state" / "checkers" / self._name
        self.ends: Counter[str] = Counter()  # how calls have ended

    def close(self) -> None:
        """End the server, and with it the checker."""
        self._server.communicate(b"")
        shutil.rmtree(self._folder)

    def answers_in(self, state: str) -> bool:
        """Let the hooks with this state folder find the checker. False where they never do: only Python finds the folder."""
        if not state.startswith("/"):
            return False
        folder = Path(state, "checkers")
        try:
            make_private(str(folder))
            folder.chmod(0o700)
        except OSError:  # a test has put something else there
            return False
        try:
            (folder / self._name).symlink_to(self._socket)
        except FileExistsError:  # from an earlier call, or one at the same time
            pass
        return True

    def _await(self) -> None:
        end = time.monotonic() + time_limit(60)
        while not self._is_ready():
            assert time.monotonic() < end and self._server.poll() is None, "the server has no checker"
            time.sleep(0.01)

    def _is_ready(self) -> bool:
        """Return True if the checker begins a call. Nothing follows: it waits for the next one."""
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(self._socket))
                return asking.recv(1) == BEGUN
            except OSError:  # it has not started, or has just ended
                return False

    def answer(
        self, client: str, event: str, hook: list[str], data: bytes, environment: dict[str, str], folder: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a hook by its relay; `hook`: its command. Where nothing could be compiled, the relay is a part of that."""
        words = hook
        if RELAY:
            words = [RELAY, __version__, client, event, "/bin/sh", "-c", ALONE, "alone", *hook, "alone"]
        for _ in range(TRIES):
            self._await()
            done = subprocess.run(
                words, input=data, capture_output=True, env=environment, cwd=folder, timeout=300, check=False
            )
            self.ends["busy" if done.returncode == BUSY else "ended"] += 1
            if done.returncode != BUSY:
                return done
        raise AssertionError(f"the checker is busy: {dict(self.ends)}")

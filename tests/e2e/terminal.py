"""An interactive session in a tmux of our own: typed at, and read from the screen."""

import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable

from .ground import Ground, Lacking, wait_for


class Terminal:
    """`command` in a detached tmux pane of 160 x 50, on a socket inside the ground's root."""

    def __init__(self, ground: Ground, command: list[str], env: dict[str, str]) -> None:
        if not shutil.which("tmux"):
            raise Lacking("no tmux on PATH: install it (apt-get install tmux, brew install tmux), then `make e2e`")
        # A unix socket's path is limited to about 100 characters: a short name.
        self._socket = str(ground.root / f"t{uuid.uuid4().hex[:4]}")
        self._env = {**ground.env, **env}
        size = ("-x", "160", "-y", "50")
        subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", "new-session", "-d", *size, *command],
            cwd=ground.checkout,
            env=self._env,
            check=True,
            capture_output=True,
            timeout=60,
        )

    def _tmux(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(argv, env=self._env, capture_output=True, text=True, timeout=60)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p").stdout

    def wait_for(self, pattern: str, seconds: float = 20.0) -> str:
        """The screen once `pattern` is on it."""
        seen = wait_for(lambda: self._match(pattern), seconds, 0.15)
        assert seen, f"{pattern!r} did not appear within {seconds} s; the screen:\n{self.screen()}"
        return seen

    def wait_until_gone(self, pattern: str, seconds: float = 20.0) -> None:
        gone = wait_for(lambda: not self._match(pattern), seconds, 0.15)
        assert gone, f"{pattern!r} is still there after {seconds} s; the screen:\n{self.screen()}"

    def _match(self, pattern: str) -> str:
        screen = self.screen()
        return screen if re.search(pattern, screen) else ""

    def enter(self, line: str) -> None:
        """Type a line. Return comes apart from it: as one burst both clients take it for a paste."""
        self._tmux("send-keys", "-l", line)
        self.wait_for(re.escape(line[:60]))
        time.sleep(0.4)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press one key, by its name in tmux."""
        self._tmux("send-keys", key)

    def press_until(self, key: str, probe: Callable[[], bool]) -> bool:
        """Press a key until `probe` is true, for up to 40 s; return its last value.

        A question that has just appeared takes no key for a moment, so that nothing is answered by mistake.
        """
        for _attempt in range(10):
            self.press(key)
            if wait_for(probe, 4):
                return True
        return probe()

    def wait_ended(self, seconds: float = 15.0) -> None:
        """Until the client, and with it the only pane, is gone."""
        ended = wait_for(lambda: self._tmux("has-session").returncode != 0, seconds, 0.1)
        assert ended, f"the client did not leave; the screen:\n{self.screen()}"

    def close(self) -> None:
        self._tmux("kill-server")

"""The price of a look at a shell command for a person's work, and for HEAD: ``--part glances``.

The whole PreToolUse hook of Claude Code, in turns at the levels `off` and `keep`, in a repository of git's own: a
command that can destroy nothing, and a commit. A session is alone, or beside a peer that has looked at HEAD. The added
milliseconds contain all that `keep` does, with the session's own journal.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import stores
from .plugin import Plugin, check_silence, payload
from .processes import run
from .versions import lower_decile

COMMANDS = {"a harmless command": "ls -la src | head -20", "a commit": "git commit -qm more"}
LEVELS = ("off", "keep")
RUNS = 100


class Glances:
    """The measurements. They have no limits, so that `missed` stays empty."""

    def __init__(self, plugin: Plugin, root: Path, env: dict[str, str]):
        self.plugin = plugin
        self.root = root
        self.env = env
        self.missed: list[str] = []
        self.checkout = root / "glances"
        self.checkout.mkdir()
        (self.checkout / "src").mkdir()
        (self.checkout / "src" / "a.py").write_text("a line\n")
        names = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
            subprocess.run(["git", *names, *words], cwd=self.checkout, env=env, check=True)

    def measure(self) -> None:
        """Measure everything and print it."""
        print(f"{'the whole hook':38} {'off':>8} {'keep':>8} {'added':>8}  ms, lower deciles of {RUNS}")
        for peers in (0, 1):
            for what, command in COMMANDS.items():
                off, keep = self._hook(command, peers)
                where = "beside a peer" if peers else "alone"
                print(f"{f'{what}, {where}':38} {off:8.2f} {keep:8.2f} {keep - off:+8.2f}")

    def _hook(self, command: str, peers: int) -> tuple[float, float]:
        """Return the times of the hook at both levels, in milliseconds."""
        name = f"glances-{peers}-{len(command)}"
        store = str(self.root / f"{name}.db")
        env = {**self.env, "SWARM_DB_PATH": store, "SWARM_STATE_DIR": str(self.root / name)}
        stores.fill(store, str(self.checkout), 0, "")
        stores.join(store, str(self.checkout), "claude-code", "me")
        for number in range(peers):
            stores.join(store, str(self.checkout), "claude-code", f"peer-{number}")
            self._call(f"peer-{number}", "git status", env)
        samples: dict[str, list[float]] = {level: [] for level in LEVELS}
        for number in range(-1, RUNS):
            for level in LEVELS:
                seconds = self._call("me", command, {**env, "SWARM_PROTECT": level})
                if number >= 0:
                    samples[level].append(1000 * seconds)
        off, keep = (lower_decile(samples[level]) for level in LEVELS)
        return off, keep

    def _call(self, session: str, command: str, env: dict[str, str]) -> float:
        called = {"tool_name": "Bash", "tool_input": {"command": command}}
        sent = payload("PreToolUse", session, str(self.checkout), **called)
        ran = run(self.plugin.command("claude-code", "PreToolUse"), sent, env, str(self.checkout))
        check_silence(ran.output)
        return ran.seconds

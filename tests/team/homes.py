"""Two machines as people have them: private homes, a clone of one repository in each, the commands and hooks as installed.

Each home has its own state, store and team agent; the server is shared.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAME = "example.org/app"
LIMIT = 60.0


class Home:
    """A machine: a private home with a clone in it that has joined `server`."""

    def __init__(self, root: Path, name: str):
        self.root, self.name, self.clone = root / name, name, root / name / "clone"
        self.clone.mkdir(parents=True)
        for words in (
            ["init", "-q", "-b", "main"],
            ["remote", "add", "origin", f"https://{NAME}.git"],
            ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "first"],
        ):
            subprocess.run(["git", "-C", str(self.clone), *words], check=True, capture_output=True)
        (self.clone / "src").mkdir()
        for file in ("src/a.py", "src/b.py", "notes"):
            (self.clone / file).write_text(file)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "CLAUDE", "XDG_"))}
        places = {
            "SWARM_STATE_DIR": "state",
            "SWARM_DB_PATH": "store/swarm.db",
            "SWARM_CONFIG_DIR": "config",
            "HOME": "",
        }
        given = {name: str(self.root / place) for name, place in places.items()}
        return {**kept, **given, "SWARM_UVX": "off", "SWARM_TEAM_MACHINE": self.name, "SWARM_MCP_ALLOW_SPAWN": "1"}

    def run(self, *words: str, code: int | None = 0, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "swarm_mcp", *words],
            input=stdin, capture_output=True, text=True, cwd=self.clone, timeout=LIMIT, env={**self.environment, **env},
        )  # fmt: skip
        assert code is None or done.returncode == code, (self.name, words, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *words: str, code: int | None = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code).stdout)

    def hook(self, event: str, session: str, **payload: object) -> str:
        told = {"session_id": session, "cwd": str(self.clone), **payload}
        return self.run("hook", event, "--runtime", "claude-code", stdin=json.dumps(told)).stdout

    def begin(self, session: str) -> str:
        """Begin a session of Claude Code that lives as long as this test. Returns its instance."""
        self.run(
            "register", "--runtime", "claude-code", "--session-id", session, "--client-pid", str(os.getpid()),
            code=None,
        )  # fmt: skip
        self.hook("session-start", session, hook_event_name="SessionStart", source="startup")
        return session

    def write(self, session: str, file: str, **env: str) -> str:
        """Return the hook's text about a write; empty if it passes."""
        return self.check(session, file, **env).stdout

    def check(self, session: str, file: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the hook before an edit."""
        told = {"session_id": session, "cwd": str(self.clone), "hook_event_name": "PreToolUse", "tool_name": "Edit",
                "tool_input": {"file_path": str(self.clone / file), "old_string": "a", "new_string": "b"}}  # fmt: skip
        return self.run("hook", "pre-tool-use", "--runtime", "claude-code", stdin=json.dumps(told), **env)

    def agent(self) -> dict:
        """Return its team agent's status."""
        found = self.json("team", "status", code=None)["agent"]
        assert isinstance(found, dict)
        return found

    def lock(self, *files: str, **options: str) -> dict:
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return self.json("lock", *files, "--detach", "--ttl", "300", *words)

    def end(self) -> None:
        self.run("team", "leave", code=None)
        self.run("team", "agent", "--stop", code=None)


def wait_for(condition, seconds: float = LIMIT):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "in vain"
        time.sleep(0.1)
    return found

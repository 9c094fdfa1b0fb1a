"""A peer that is played through the hooks: a client's payloads, without the client. It asks for permission to write."""

import json
import subprocess
import uuid
from typing import Any

from .coordinator import PATIENCE
from .ground import Ground

RUNTIME = "claude-code"


class PlayedPeer:
    """A session of Claude Code, as its hooks see one."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.session = ground, str(uuid.uuid4())
        self._hook("session-start", "SessionStart", source="startup")

    def denied(self, file: str) -> str:
        """Why an edit of `file` is denied; empty where it may be made. It takes a turn for it, and keeps nothing."""
        self._hook("turn", "UserPromptSubmit", prompt="edit it")
        why = self._asked(file, "a", "b")
        self._hook("turn", "Stop")
        return why

    def edits(self, file: str, old: str, new: str) -> None:
        """Change some text of `file`, as a call of its own that is let pass."""
        why = self._asked(file, old, new)
        assert not why, why
        path = self.ground.checkout / file
        path.write_text(path.read_text().replace(old, new))

    def creates(self, file: str, text: str) -> None:
        """Write a new file, as a call of its own that is let pass."""
        path = self.ground.checkout / file
        why = self._asked_about("Write", {"file_path": str(path), "content": text})
        assert not why, why
        path.write_text(text)

    def _asked(self, file: str, old: str, new: str) -> str:
        path = str(self.ground.checkout / file)
        return self._asked_about("Edit", {"file_path": path, "old_string": old, "new_string": new})

    def _asked_about(self, tool: str, given: dict[str, str]) -> str:
        answer = self._hook("pre-tool-use", "PreToolUse", tool_name=tool, tool_use_id="call", tool_input=given)
        decided = json.loads(answer or "{}").get("hookSpecificOutput", {})
        return str(decided.get("permissionDecisionReason", ""))

    def _hook(self, name: str, event: str, **fields: Any) -> str:
        payload = {"session_id": self.session, "cwd": str(self.ground.checkout), "hook_event_name": event, **fields}
        done = subprocess.run(
            [str(self.ground.bin / "swarm-mcp"), "hook", name, "--runtime", RUNTIME],
            input=json.dumps(payload),
            cwd=self.ground.checkout,
            env=self.ground.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"hook {name}: {done.stderr}"
        return done.stdout

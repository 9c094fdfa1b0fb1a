"""An agent session of the demo: a process that stands for the client, and runs the plugin's real hook commands.

The process starts each hook as the client would, with the client's payload. A file is written, and a command run, only
if the hook lets it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from swarm_mcp.domain.session import Session
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import ROOT_VARIABLES
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    order = json.loads(line)
    done = subprocess.run(["/bin/sh", "-c", order["command"]], input=json.dumps(order["payload"]),
                          capture_output=True, text=True)
    print(json.dumps({"out": done.stdout, "err": done.stderr}), flush=True)
"""


class PlayedSession:
    """One agent session: its client process and the hooks that process runs. `checks`: seconds of each check."""

    def __init__(self, name: str, session_id: str, folder: Path, plugin: Path, environment: dict[str, str]):
        self.runtime, self.session_id, self.folder = name, session_id, folder
        self._environment, self.checks = environment, list[float]()
        tree = json.loads((plugin / f"integrations/{name}/hooks.json").read_text(encoding="utf-8"))
        self._commands = {event: groups[0]["hooks"][0]["command"] for event, groups in tree["hooks"].items()}
        self._client = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**environment, **dict.fromkeys(ROOT_VARIABLES, str(plugin))},
        )  # fmt: skip
        assert self._client.stdin and self._client.stdout
        self._orders, self._answers = self._client.stdin, self._client.stdout

    def start(self) -> str:
        """Tell the hooks that the session begins. Returns the text for the model."""
        told = {"session_id": self.session_id, "cwd": str(self.folder), "source": "startup"}
        return str(self._hook({**told, "hook_event_name": "SessionStart"}).get("additionalContext", ""))

    def edit(self, name: str, old: str, new: str) -> str:
        """Replace text of a file as the session's tool would. Returns the reason of a refusal, or an empty text."""
        path = self.folder / name
        payload = runtime(self.runtime).write_payload(self.session_id, str(self.folder), str(path))
        if self.runtime == "codex":
            removed, added = (
                "\n".join(sign + line for line in text.splitlines()) for sign, text in (("-", old), ("+", new))
            )
            body = f"*** Begin Patch\n*** Update File: {path}\n@@\n{removed}\n{added}\n*** End Patch\n"
            payload["tool_input"] = {"command": body}
        else:
            payload["tool_name"] = "Edit"
            payload["tool_input"] = {"file_path": str(path), "old_string": old, "new_string": new}
        reason = self._ask(payload)
        if not reason and path.exists():
            path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return reason

    def shell(self, command: str) -> str:
        """Run a command as the session's shell tool would. Returns the reason of a refusal, or an empty text."""
        reason = self._ask(runtime(self.runtime).shell_payload(self.session_id, str(self.folder), command))
        if not reason:
            argv = ["/bin/sh", "-c", command]
            subprocess.run(argv, cwd=self.folder, env=self._environment, check=False, capture_output=True)
        return reason

    def row(self, store: Store) -> Session:
        """Return this session as the store knows it."""
        found = store.instances.of_session(self.runtime, self.session_id)
        assert found, f"{self.runtime} has not been registered"
        return found

    def kill(self) -> None:
        """End the client as a crash would, without a hook."""
        self._client.kill()
        self._client.wait()
        for pipe in (self._orders, self._answers):
            pipe.close()

    def _ask(self, payload: dict[str, Any]) -> str:
        """Return the check's reason to refuse the call in `payload`. It is empty if the call may go ahead."""
        begun = time.monotonic()
        answer = self._hook(payload)
        self.checks.append(time.monotonic() - begun)
        return str(answer.get("permissionDecisionReason", ""))

    def _hook(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Run the hook of the payload's event. Returns its answer to the client, or an empty dict."""
        order = {"command": self._commands[payload["hook_event_name"]], "payload": payload}
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        answer = json.loads(self._answers.readline())
        if answer["out"].strip():
            return dict(json.loads(answer["out"])["hookSpecificOutput"])
        return {}

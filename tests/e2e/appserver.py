"""Codex's app-server, used for the terminal's "trust these hooks".

JSON-RPC on stdin and stdout, one message a line, without the "jsonrpc" member (`codex app-server generate-json-schema`
prints the shapes).
"""

import json
import subprocess
from typing import Any

from .ground import Ground


class AppServer:
    def __init__(self, ground: Ground) -> None:
        self._process = subprocess.Popen(
            ["codex", "app-server"],
            cwd=ground.checkout,
            env=ground.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._asked = 0
        client = {"name": "swarm-e2e", "version": "0"}
        self.call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized", "params": {}})

    def __enter__(self) -> "AppServer":
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result of one request; notifications that come in between are dropped."""
        assert self._process.stdout
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
        raise AssertionError(f"codex app-server ended before it answered {method}")


def hooks(server: AppServer, ground: Ground) -> list[dict[str, Any]]:
    """Every hook that Codex has loaded: `key`, `currentHash`, `trustStatus`, ..."""
    answer = server.call("hooks/list", {"cwds": [str(ground.checkout)]})
    troubles = [t for entry in answer["data"] for t in (*entry.get("warnings", ()), *entry.get("errors", ()))]
    assert not troubles, f"Codex complains about hooks: {troubles}"
    return [hook for entry in answer["data"] for hook in entry["hooks"]]


def trust_hooks(ground: Ground) -> list[str]:
    """Trust the untrusted hooks, and return their keys."""
    with AppServer(ground) as server:
        found = hooks(server, ground)
        assert found, "Codex found no hook in the installed plugin"
        doubtful = [hook for hook in found if hook["trustStatus"] != "trusted"]
        if doubtful:
            state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in doubtful}
            edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        still = [hook["key"] for hook in hooks(server, ground) if hook["trustStatus"] != "trusted"]
        assert not still, f"still not trusted: {still}"
        return [hook["key"] for hook in doubtful]

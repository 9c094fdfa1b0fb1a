"""Codex's app-server: the supported way to list and trust hooks without a terminal.

Line-delimited JSON-RPC on standard input and output (``codex app-server``).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time

from swarm_mcp.errors import ClientFailed

ANSWER_SECONDS = 30


class AppServer:
    """One running app-server, ended on exit of the ``with`` block."""

    def __init__(
        self,
        program: str,
        *words: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ):
        """`words` follow the command's name; `seconds` is how long one answer may take."""
        self._seconds = seconds
        try:
            self._process = subprocess.Popen(
                [program, "app-server", *words], env=env, cwd=cwd,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                encoding="utf-8", errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ClientFailed(f"`codex app-server` could not be run: {error}") from error
        self._answers: queue.Queue = queue.Queue()
        self._count = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> AppServer:
        about = {"clientInfo": {"name": "swarm-mcp", "version": "0"}, "capabilities": {"experimentalApi": True}}
        try:
            self.call("initialize", about)
            self._send({"method": "initialized", "params": {}})
        except ClientFailed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception) -> None:
        process = self._process
        if process.stdin:
            with contextlib.suppress(OSError):  # what could not be written will not be
                process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with whatever a launcher has started
            process.wait()
        if process.stdout:
            process.stdout.close()

    def hooks(self, plugin_id: str) -> tuple[list[dict], list[str]]:
        """The hooks of one plugin, and what the client has to say against any."""
        data = self.call("hooks/list", {}).get("data", [])
        hooks = {hook["key"]: hook for entry in data for hook in entry.get("hooks", [])}
        complaints = [str(text) for entry in data for text in [*entry.get("warnings", []), *entry.get("errors", [])]]
        return [hook for hook in hooks.values() if hook.get("pluginId") == plugin_id], complaints

    def trusted(self) -> list[str]:
        """The keys of all hooks that the user's configuration has a word on, there or not."""
        config = self.call("config/read", {}).get("config") or {}
        return list((config.get("hooks") or {}).get("state") or {})

    def edit(self, *edits: tuple[str, object, str]) -> None:
        """Change the user's configuration: ``(key path, value, upsert or replace)`` each."""
        changes = [{"keyPath": path, "value": value, "mergeStrategy": how} for path, value, how in edits]
        self.call("config/batchWrite", {"edits": changes, "reloadUserConfig": True})

    def call(self, method: str, params: dict) -> dict:
        """One request and its result. Raises ClientFailed."""
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            try:
                answer = self._answers.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                break
            if answer is None:
                raise ClientFailed(f"codex app-server ended before answering {method}")
            if answer.get("id") == number and "method" not in answer:
                if "error" in answer:
                    raise ClientFailed(f"codex app-server refused {method}: {answer['error'].get('message')}")
                return answer.get("result") or {}
        raise ClientFailed(f"codex app-server did not answer {method}")

    def _send(self, message: dict) -> None:
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise ClientFailed(f"codex app-server ended: {error}") from error

    def _listen(self) -> None:
        for line in self._process.stdout:
            try:
                self._answers.put(json.loads(line))
            except (ValueError, RecursionError):
                continue
        self._answers.put(None)

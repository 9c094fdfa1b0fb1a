"""A child process that speaks JSON-RPC, a message a line, on its standard streams: MCP servers, Codex's app-server."""

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

ANSWER_SECONDS = 30.0
END_SECONDS = 5.0  # to end by itself, once its standard input is closed


class RpcChild:
    """One running child, for the time of a ``with`` block; `name` is what complaints call it."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ):
        """Start it. `seconds`: how long one answer may take. Raises ClientFailed."""
        self._name, self._seconds = name, seconds
        try:
            self._process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                encoding="utf-8", errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ClientFailed(f"{name} could not be started: {error}") from error
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._count = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> RpcChild:
        return self

    def __exit__(self, *_exception: object) -> None:
        process = self._process
        if process.stdin:
            with contextlib.suppress(OSError):  # what could not be written will not be
                process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with whatever a launcher has started
            process.wait()
        if process.stdout:
            process.stdout.close()

    def call(self, method: str, params: dict) -> dict:
        """Return the result of one request. Raises ClientFailed."""
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        end = time.monotonic() + self._seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise ClientFailed(f"{self._name} did not answer {method}") from None
            if line is None:
                raise ClientFailed(f"{self._name} ended before it answered {method}")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue  # not of the protocol
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise ClientFailed(f"{self._name} refused {method}: {message['error'].get('message')}")
                return message.get("result") or {}

    def tell(self, method: str, params: dict) -> None:
        """Send a notification. Raises ClientFailed."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict) -> None:
        try:
            assert self._process.stdin
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{self._name} has ended: {error}") from error

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

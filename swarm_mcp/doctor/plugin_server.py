"""The canary's question put to the plugin's MCP server, started and asked as the client would."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time

from swarm_mcp.runtimes.base import HookTool

ANSWER_SECONDS = 15
PROTOCOL = "2025-06-18"


class Unanswered(Exception):
    """The server gave no usable answer; the message says why."""


class Server:
    """The server that `tool` belongs to, for the time of a ``with`` block."""

    def __init__(self, tool: HookTool, environment: dict[str, str], cwd: str):
        self._tool = tool
        self._count = 0
        self._lines: queue.Queue[str | None] = queue.Queue()
        try:
            self._process = subprocess.Popen(
                tool.server, cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise Unanswered(f"the server could not be started: {error}") from error
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Server:
        try:
            about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "doctor", "version": "0"}}
            self._ask("initialize", about)
            self._send({"method": "notifications/initialized"})
        except Unanswered:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass  # what could not be written any more

    def check(self, payload: dict) -> tuple[str, float]:
        """What the hook gets to read for this payload, and the seconds it took. Raises Unanswered."""
        begun = time.monotonic()
        arguments = {name: _filled(value, payload) for name, value in self._tool.input.items()}
        result = self._ask("tools/call", {"name": self._tool.tool, "arguments": arguments})
        took = time.monotonic() - begun
        if result.get("isError"):
            raise Unanswered(f"the server refused: {result.get('content')}")
        return "\n".join(str(block.get("text", "")) for block in result.get("content", [])), took

    def _ask(self, method: str, params: dict) -> dict:
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        end = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Unanswered(f"no answer to {method} within {ANSWER_SECONDS} s") from None
            if line is None:
                raise Unanswered(f"the server ended before it answered {method}")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise Unanswered(f"{method} was refused: {message['error'].get('message')}")
                return message.get("result") or {}

    def _send(self, message: dict) -> None:
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Unanswered(f"the server has ended: {error}") from error

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def _filled(value: object, payload: dict) -> object:
    """`value` of the hook's input with a payload's field in the place of ``${field}``, as Codex has it.

    Nothing, as Claude Code has it, where the payload has no such field: which of its agents calls, outside of any.
    """
    if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
        return payload.get(value[2:-1], "")
    return value

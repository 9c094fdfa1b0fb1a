"""The Model Context Protocol, as far as a client of tools needs it (revision 2025-06-18), and servers on stdio."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
from abc import ABC, abstractmethod

VERSION = "2025-06-18"
START_SECONDS, CALL_SECONDS = 15.0, 600.0
MOST_PAGES = 50


class ServerFailed(Exception):
    """A server is not there, or did not do what was asked; the message says why."""


class Connection(ABC):
    """One server. Calls may be made from several threads."""

    def __init__(self):
        self._ids = itertools.count(1)

    @abstractmethod
    def ask(self, message: dict, seconds: float) -> dict:
        """Send a request; its response. Raises ServerFailed."""

    @abstractmethod
    def tell(self, message: dict) -> None:
        """Send a notification."""

    @abstractmethod
    def close(self) -> None:
        """End it."""

    def open(self) -> list[dict]:
        """Shake hands and return the server's tools."""
        from swarm_mcp import __version__

        about = {"name": "swarm-loop", "version": __version__}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        self._request("initialize", hello, START_SECONDS)
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools: list[dict] = []
        cursor = None
        for _ in range(MOST_PAGES):
            page = self._request("tools/list", {"cursor": cursor} if cursor else {}, START_SECONDS)
            tools += [tool for tool in page.get("tools") or [] if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return tools

    def use(self, name: str, arguments: dict) -> tuple[str, bool]:
        """Call a tool; return ``(result, is_error)``."""
        result = self._request("tools/call", {"name": name, "arguments": arguments}, CALL_SECONDS)
        parts = [_text(part) for part in result.get("content") or [] if isinstance(part, dict)]
        if not any(parts) and result.get("structuredContent") is not None:
            parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        return "\n".join(part for part in parts if part), result.get("isError") is True

    def _request(self, method: str, params: dict, seconds: float) -> dict:
        number = next(self._ids)
        response = self.ask({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, seconds)
        error = response.get("error")
        if error:
            said = error.get("message") if isinstance(error, dict) else error
            raise ServerFailed(f"{method}: {str(said)[:300]}")
        result = response.get("result")
        return result if isinstance(result, dict) else {}


def _text(part: dict) -> str:
    if part.get("type") == "text":
        return str(part.get("text") or "")
    resource = part.get("resource")
    if isinstance(resource, dict) and resource.get("text"):
        return str(resource["text"])
    return f"[{part.get('type') or 'something'} that cannot be shown]"


END_SECONDS = 2.0


class StdioConnection(Connection):
    """A server that we start; it ends with its standard input."""

    def __init__(self, server: dict, loop):
        super().__init__()
        self._waiting: dict[int, tuple[threading.Event, list[dict]]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        env = {**os.environ, **{str(k): str(v) for k, v in (server.get("env") or {}).items()}}
        argv = [str(server.get("command") or ""), *(str(word) for word in server.get("args") or ())]
        try:
            self._child = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
                cwd=str(server.get("cwd") or loop.cwd),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ServerFailed(f"{argv[0]}: {getattr(error, 'strerror', None) or error}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, message: dict, seconds: float) -> dict:
        arrived = threading.Event()
        answer: list[dict] = []
        with self._lock:
            self._waiting[message["id"]] = (arrived, answer)
        try:
            self.tell(message)
            if not arrived.wait(seconds):
                params = {"requestId": message["id"]}
                self.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
                raise ServerFailed(f"no answer within {seconds:.0f} s")
        finally:
            with self._lock:
                self._waiting.pop(message["id"], None)
        if not answer:
            raise ServerFailed("the server has ended")
        return answer[0]

    def tell(self, message: dict) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            with self._writing:
                assert self._child.stdin
                self._child.stdin.write(line)
                self._child.stdin.flush()
        except (OSError, ValueError):
            raise ServerFailed("the server has ended") from None

    def close(self) -> None:
        try:
            with self._writing:
                assert self._child.stdin
                self._child.stdin.close()
        except OSError:
            pass  # it has ended already
        for end in (lambda: None, self._child.terminate, self._child.kill):
            end()
            try:
                self._child.wait(END_SECONDS)
                break
            except subprocess.TimeoutExpired:
                continue
        self._reader.join(END_SECONDS)

    def _read(self) -> None:
        assert self._child.stdout
        with self._child.stdout as lines:
            for line in lines:
                self._take(line)
        with self._lock:
            for arrived, _ in self._waiting.values():
                arrived.set()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        if "method" in message:
            if "id" in message:  # whatever a server asks of us we cannot do
                error = {"code": -32601, "message": "not supported"}
                try:
                    self.tell({"jsonrpc": "2.0", "id": message["id"], "error": error})
                except ServerFailed:
                    return
            return
        with self._lock:
            waiting = self._waiting.get(message.get("id"))  # type: ignore[arg-type]
        if waiting:
            waiting[1].append(message)
            waiting[0].set()

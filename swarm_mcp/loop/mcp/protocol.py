"""The Model Context Protocol, as far as a client of tools needs it (revision 2025-06-18)."""

from __future__ import annotations

import itertools
import json
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
        """Shake hands; the server's tools."""
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
        """Call a tool: ``(result, is_error)``."""
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

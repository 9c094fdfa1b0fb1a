"""The connection to an MCP server that a run has: one that we start, or one behind HTTP (a POST for each message)."""

from __future__ import annotations

import itertools
import json
import os

from swarm_mcp.errors import ClientFailed
from swarm_mcp.harness.events import native_object
from swarm_mcp.runtimes.rpc_child import RpcChild, result_of

VERSION = "2025-06-18"
START_SECONDS, CALL_SECONDS, TELL_SECONDS = 15.0, 600.0, 10.0
MOST_PAGES = 50


class Connection:
    """One server. Calls may be made from several threads. Raises ClientFailed, as all methods do but `close`."""

    def __init__(self, server: dict, loop):
        self._server = HttpServer(server) if server.get("url") else _started(server, loop)
        self.close = self._server.close

    def open(self) -> list[dict]:
        """Shake hands and return the server's tools."""
        from swarm_mcp import __version__

        about = {"name": "swarm-loop", "version": __version__}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        self._server.call("initialize", hello, START_SECONDS)
        self._server.tell("notifications/initialized", {})
        tools: list[dict] = []
        cursor = None
        for _ in range(MOST_PAGES):
            page = self._server.call("tools/list", {"cursor": cursor} if cursor else {}, START_SECONDS)
            tools += [tool for tool in page.get("tools") or [] if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return tools

    def use(self, name: str, arguments: dict) -> tuple[str, bool]:
        """Call a tool; return ``(result, is_error)``."""
        result = self._server.call("tools/call", {"name": name, "arguments": arguments}, CALL_SECONDS)
        parts = [_text(part) for part in result.get("content") or [] if isinstance(part, dict)]
        if not any(parts) and result.get("structuredContent") is not None:
            parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        return "\n".join(part for part in parts if part), result.get("isError") is True


def _text(part: dict) -> str:
    if part.get("type") == "text":
        return str(part.get("text") or "")
    resource = part.get("resource")
    if isinstance(resource, dict) and resource.get("text"):
        return str(resource["text"])
    return f"[{part.get('type') or 'something'} that cannot be shown]"


def _started(server: dict, loop) -> RpcChild:
    """A server of our own, which ends with its standard input."""
    env = {**os.environ, **{str(k): str(v) for k, v in (server.get("env") or {}).items()}}
    argv = [str(server.get("command") or ""), *(str(word) for word in server.get("args") or ())]
    return RpcChild(argv[0], argv, env, str(server.get("cwd") or loop.cwd), own_group=False)


class HttpServer:
    """A server that somebody else runs, as `RpcChild` has one."""

    def __init__(self, server: dict):
        self._url = str(server["url"])
        self._headers = {str(name): str(value) for name, value in (server.get("headers") or {}).items()}
        self._numbers = itertools.count(1)
        self._session = ""
        self._greeted = False

    def call(self, method: str, params: dict, seconds: float) -> dict:
        number = next(self._numbers)
        with self._post({"id": number, "method": method, "params": params}, seconds) as response:
            self._session = response.headers.get("mcp-session-id") or self._session
            self._greeted = True
            if "event-stream" not in (response.headers.get("content-type") or ""):
                found = [native_object(response.read())]
            else:
                found = _events(response)
            for answer in found:
                if answer and answer.get("id") == number and "method" not in answer:
                    return result_of(answer, "the server", method)
        raise ClientFailed(f"the server gave no answer to {method}")

    def tell(self, method: str, params: dict) -> None:
        with self._post({"method": method, "params": params}, TELL_SECONDS) as response:
            response.read()

    def close(self) -> None:
        if not self._session:
            return
        import urllib.error
        import urllib.request

        try:
            request = urllib.request.Request(self._url, headers=self._all_headers(), method="DELETE")
            with urllib.request.urlopen(request, timeout=1.0) as response:
                response.read()
        except (OSError, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()

    def _all_headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self._greeted:
            headers["mcp-protocol-version"] = VERSION
        if self._session:
            headers["mcp-session-id"] = self._session
        return {**headers, **self._headers}

    def _post(self, message: dict, seconds: float):
        import http.client  # most runs need none of these, and they take a while to load
        import urllib.error
        import urllib.request

        if not self._url.startswith(("http://", "https://")):
            raise ClientFailed("its address is none")
        data = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")
        try:
            request = urllib.request.Request(self._url, data, self._all_headers(), method="POST")
            return urllib.request.urlopen(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(2000).decode("utf-8", "replace")
            raise ClientFailed(f"HTTP {error.code}: {said[:200]}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ClientFailed(str(getattr(error, "reason", error))) from None


def _events(response):
    data: list[str] = []
    for raw in response:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].lstrip())
        elif not line and data:
            yield native_object("\n".join(data))
            data = []
    if data:
        yield native_object("\n".join(data))

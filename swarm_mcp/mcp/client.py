"""A client of MCP servers: a child on standard streams, or a server behind HTTP (one POST for each message)."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.rpc_child import RpcChild, result_of

VERSION = "2025-06-18"
START_SECONDS, CALL_SECONDS, NOTIFY_SECONDS, END_SECONDS = 15.0, 600.0, 10.0, 1.0
MOST_PAGES = 50  # of a list of tools


class Transport(Protocol):
    """A way to one server. The methods raise ClientFailed, except `close`."""

    def call(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the result of a request."""

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""

    def close(self) -> None:
        """End the connection."""


class Client:
    """A connection to one server. Calls may be made from several threads. Methods raise ClientFailed."""

    def __init__(self, server: dict[str, Any], cwd: str, name: str):
        """Start `server`: ``command``, ``args``, ``env``, ``cwd``, or ``url``, ``headers``.

        `cwd` is the default folder of a command, `name` this client's name in the handshake.
        """
        self._name = name
        self._transport: Transport
        if server.get("url"):
            self._transport = HttpTransport(str(server["url"]), server.get("headers") or {})
        else:
            env = {**os.environ, **{str(name): str(value) for name, value in (server.get("env") or {}).items()}}
            argv = [str(server.get("command") or ""), *(str(word) for word in server.get("args") or ())]
            self._transport = RpcChild(argv[0], argv, env, str(server.get("cwd") or cwd), own_group=False)

    def open(self) -> list[dict[str, Any]]:
        """Shake hands, and return the server's tools."""
        about = {"name": self._name, "version": __version__}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        self._transport.call("initialize", hello, START_SECONDS)
        self._transport.tell("notifications/initialized", {})
        tools: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = self._transport.call("tools/list", params, START_SECONDS)
            tools += [tool for tool in page.get("tools") or [] if isinstance(tool, dict)]
            params = {"cursor": page.get("nextCursor")}
            if not params["cursor"]:
                break
        return tools

    def use(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Call a tool. Return ``(text, is_error)``."""
        result = self._transport.call("tools/call", {"name": name, "arguments": arguments}, CALL_SECONDS)
        parts = [_text(part) for part in result.get("content") or [] if isinstance(part, dict)]
        if not any(parts) and result.get("structuredContent") is not None:
            parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        return "\n".join(part for part in parts if part), result.get("isError") is True

    def close(self) -> None:
        """End the connection, and the server if this client has started it."""
        self._transport.close()


def _text(part: dict[str, Any]) -> str:
    """Return a block of a result as text."""
    if part.get("type") == "text":
        return str(part.get("text") or "")
    resource = part.get("resource")
    if isinstance(resource, dict) and resource.get("text"):
        return str(resource["text"])
    return f"[{part.get('type') or 'something'} that cannot be shown]"


class HttpTransport:
    """*Streamable HTTP* (2025-06-18): answers come as JSON, or as a stream of events."""

    def __init__(self, url: str, headers: dict[str, Any]):
        self._url = url
        self._headers = {str(name): str(value) for name, value in headers.items()}
        self._numbers = itertools.count(1)
        self._session = ""
        self._has_greeted = False

    def call(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the result of a request. Raises ClientFailed."""
        number = next(self._numbers)
        with self._post({"id": number, "method": method, "params": params}, seconds) as response:
            self._session = response.headers.get("mcp-session-id") or self._session
            self._has_greeted = True
            found: Iterable[dict[str, Any] | None] = _events(response)
            if "event-stream" not in (response.headers.get("content-type") or ""):
                found = [_object_in(response.read())]
            for answer in found:
                if answer and answer.get("id") == number and "method" not in answer:
                    return result_of(answer, "the server", method)
        raise ClientFailed(f"the server gave no answer to {method}")

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification. Raises ClientFailed."""
        with self._post({"method": method, "params": params}, NOTIFY_SECONDS) as response:
            response.read()

    def close(self) -> None:
        """End the session, if the server keeps one."""
        if not self._session:
            return
        try:
            request = urllib.request.Request(self._url, headers=self._all_headers(), method="DELETE")
            with urllib.request.urlopen(request, timeout=END_SECONDS) as response:
                response.read()
        except urllib.error.HTTPError as error:
            error.close()
        except (OSError, ValueError):
            return  # the server has gone, and its session with it

    def _all_headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self._has_greeted:
            headers["mcp-protocol-version"] = VERSION
        if self._session:
            headers["mcp-session-id"] = self._session
        return {**headers, **self._headers}

    def _post(self, message: dict[str, Any], seconds: float) -> Any:
        if not self._url.startswith(("http://", "https://")):
            raise ClientFailed("its address is none")
        data = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")
        try:
            request = urllib.request.Request(self._url, data, self._all_headers(), method="POST")
            return urllib.request.urlopen(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(2000).decode("utf-8", "replace")
            raise ClientFailed(f"HTTP {error.code}: {text[:200]}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ClientFailed(str(getattr(error, "reason", error))) from None


def _object_in(text: str | bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None  # not of the protocol
    return value if isinstance(value, dict) else None


def _events(response: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield the data of each event in a stream of *server-sent events*."""
    data: list[str] = []
    for raw in response:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].lstrip())
        elif not line and data:
            yield _object_in("\n".join(data))
            data = []
    if data:
        yield _object_in("\n".join(data))

"""An MCP server behind HTTP: a POST for each message, answered by JSON or by a stream of events."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request

from swarm_mcp.loop.mcp.connection import VERSION, Connection, ServerFailed

TELL_SECONDS = 10.0


class HttpConnection(Connection):
    """A server that somebody else runs."""

    def __init__(self, server: dict):
        super().__init__()
        self._url = str(server["url"])
        self._headers = {str(name): str(value) for name, value in (server.get("headers") or {}).items()}
        self._session = ""
        self._greeted = False

    def ask(self, message: dict, seconds: float) -> dict:
        with self._post(message, seconds) as response:
            self._session = response.headers.get("mcp-session-id") or self._session
            self._greeted = True
            if "event-stream" not in (response.headers.get("content-type") or ""):
                found = [_object(response.read())]
            else:
                found = _events(response)
            for answer in found:
                if answer and answer.get("id") == message["id"] and "method" not in answer:
                    return answer
        raise ServerFailed("no answer")

    def tell(self, message: dict) -> None:
        with self._post(message, TELL_SECONDS) as response:
            response.read()

    def close(self) -> None:
        if not self._session:
            return
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
        if not self._url.startswith(("http://", "https://")):
            raise ServerFailed("its address is none")
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        try:
            request = urllib.request.Request(self._url, data, self._all_headers(), method="POST")
            return urllib.request.urlopen(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(2000).decode("utf-8", "replace")
            raise ServerFailed(f"HTTP {error.code}: {said[:200]}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ServerFailed(str(getattr(error, "reason", error))) from None


def _events(response):
    data: list[str] = []
    for raw in response:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].lstrip())
        elif not line and data:
            yield _object("\n".join(data))
            data = []
    if data:
        yield _object("\n".join(data))


def _object(text) -> dict | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

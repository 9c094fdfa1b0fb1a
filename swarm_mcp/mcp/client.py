"""Clients of JSON-RPC servers, of MCP above all: a child on standard streams, or behind HTTP, one POST a message."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from swarm_mcp import __version__
from swarm_mcp.errors import ClientFailed

ANSWER_SECONDS = 30.0
CLOSE_SECONDS = 2.5  # to end by itself, once its standard input is closed; and again, once it has been told
_UNKNOWN_METHOD = {"code": -32601, "message": "not supported"}


class RpcChild:
    """One running child, until `close` or for the time of a ``with`` block. Errors call it `name`.

    Calls may come from several threads.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
        own_group: bool = True,
    ):
        """Start it. `seconds`: how long one answer may take. `own_group`: with all it starts, it is a process group.

        Raises ClientFailed.
        """
        self._name, self._seconds, self._own_group = name, seconds, own_group
        try:
            self._process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                encoding="utf-8", errors="replace", start_new_session=own_group,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{name} could not be started: {getattr(error, 'strerror', None) or error}") from error
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}  # None: the child has ended
        self._ended = False
        self._writing = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> RpcChild:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, and wait for that."""
        process = self._process
        # A child that does not read holds a writer up.
        if process.stdin and self._writing.acquire(timeout=CLOSE_SECONDS):
            with contextlib.suppress(OSError):  # the rest cannot be written any more
                process.stdin.close()
            self._writing.release()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(OSError):  # it has just gone by itself
                if number and self._own_group:
                    os.killpg(process.pid, number)  # with the children of a launcher
                elif number:
                    process.send_signal(number)
            try:
                process.wait(CLOSE_SECONDS)
                break
            except subprocess.TimeoutExpired:  # the next signal is harder
                continue
        self._listener.join(CLOSE_SECONDS)

    def call(self, method: str, params: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
        """Return the result of one request. Raises ClientFailed. `seconds` 0: as for every answer."""
        seconds = seconds or self._seconds
        number = next(self._numbers)
        answer: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._lock:
            self._waiting[number] = answer
            if self._ended:
                answer.put(None)
        try:
            self._send({"id": number, "method": method, "params": params})
            message = answer.get(timeout=seconds)
        except queue.Empty:
            self.tell("notifications/cancelled", {"requestId": number})
            raise ClientFailed(f"{self._name} did not answer {method} within {seconds:g} s") from None
        finally:
            with self._lock:
                del self._waiting[number]
        if message is None:
            raise ClientFailed(f"{self._name} ended before it answered {method}")
        return result_of(message, self._name, method)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification. Raises ClientFailed."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            with self._writing:
                assert self._process.stdin
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{self._name} has ended: {error}") from error

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._take(line)
        with self._lock:
            self._ended = True
            for answer in self._waiting.values():
                answer.put(None)

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return  # not of the protocol
        if not isinstance(message, dict):
            return
        if "method" in message:
            if "id" in message:  # requests of the server cannot be carried out here
                with contextlib.suppress(ClientFailed):
                    self._send({"id": message["id"], "error": _UNKNOWN_METHOD})
            return
        with self._lock:
            answer = self._waiting.get(message.get("id"))  # type: ignore[arg-type]  # of another type it is no key
        if answer:
            answer.put(message)


def result_of(message: dict[str, Any], name: str, method: str) -> dict[str, Any]:
    """Return the result in the answer that `name` gave to a request. Raises ClientFailed for an error in it."""
    error = message.get("error")
    if error:
        if isinstance(error, dict):
            said = error.get("message")
        else:
            said = error
        raise ClientFailed(f"{name} refused {method}: {str(said)[:300]}")
    result = message.get("result")
    if not isinstance(result, dict):
        return {}
    return result


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

"""MCP servers of a run, those of the swarm among them: connections to them, and their tools.

A server is one that we start, or one behind HTTP (a POST for each message). They are started beside the run's first
steps; one that does not come up is left out and said to be. A tool's name for the model is ``mcp__SERVER__TOOL``, as
hooks know tools of servers.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading

from swarm_mcp.errors import ClientFailed
from swarm_mcp.harness.query import parse_object
from swarm_mcp.loop.session import ModelCall
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
                found = [parse_object(response.read())]
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
            yield parse_object("\n".join(data))
            data = []
    if data:
        yield parse_object("\n".join(data))


OURS = "swarm"
DISPATCH = f"mcp__{OURS}__dispatch"
LONGEST_NAME = 64


class Servers:
    """The servers of one run and their tools."""

    def __init__(self):
        self._starting: list[threading.Thread] = []
        self._connections: dict[str, Connection] = {}
        self._tools: dict[str, tuple[Connection, dict]] = {}
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def start(self, loop) -> None:
        """Start every server, without waiting for them."""
        for name, server in _wanted(loop).items():
            thread = threading.Thread(target=self._open, args=(name, server, loop), daemon=True)
            thread.start()
            self._starting.append(thread)

    def schemas(self, loop) -> list[dict]:
        """Return every tool's schema for the model. The first call waits for the servers."""
        self._wait(loop)
        return [
            {
                "name": name,
                "description": str(tool.get("description") or ""),
                "input_schema": tool.get("inputSchema") or {"type": "object", "properties": {}},
            }
            for name, (_, tool) in sorted(self._tools.items())
            if self.may_use(loop, name)
        ]

    def may_use(self, loop, name: str) -> bool:
        """Return whether a run in this mode may call a tool: a read-only one none that writes or starts a writer."""
        from swarm_hook_core.mcp_writers import is_writer

        return not (loop.settings.read_only and (is_writer(name) or name == DISPATCH))

    def call(self, made: ModelCall) -> tuple[str, bool]:
        """Carry out a call of one of them: ``(result, is_error)``."""
        connection, tool = self._tools[made.name]
        try:
            return connection.use(str(tool["name"]), made.input)
        except ClientFailed as error:
            return f"error: {made.name}: {error}", True

    def close(self) -> None:
        """End them all."""
        with self._lock:
            self._closed = True
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _wait(self, loop) -> None:
        for thread in self._starting:
            thread.join(START_SECONDS)
        if self._starting:
            self._starting = []
            for name, why in sorted(self._failed.items()):
                loop.report.custom("mcp_failed", {"server": name, "why": why})

    def _open(self, name: str, server: dict, loop) -> None:
        try:
            connection = Connection(server, loop)
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._connections[name] = connection
            tools = connection.open()
        except (ClientFailed, OSError, ValueError) as error:
            self._failed[name] = str(error)[:300]
            return
        for tool in tools:
            if isinstance(tool.get("name"), str):
                self._tools[_name(name, tool["name"])] = (connection, tool)


def _wanted(loop) -> dict[str, dict]:
    """name -> server (``command``, ``args``, ``env``, ``cwd`` or ``url``, ``headers``)."""
    given = loop.settings.config.get("mcp_servers")
    if isinstance(given, dict):
        found = {str(name): dict(server) for name, server in given.items() if isinstance(server, dict)}
    else:
        from swarm_mcp.installation import coordinator_command

        command, *args = [*coordinator_command(), "serve"]
        found = {OURS: {"command": command, "args": args}}
    if loop.settings.depth:
        # An agent below the one that these were written for is somebody else in the swarm.
        for server in found.values():
            env = server.get("env")
            server["env"] = {k: v for k, v in env.items() if k not in _PARENTS_OWN} if isinstance(env, dict) else {}
    return found


_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_RUN_ID")


def _name(server: str, tool: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    import zlib

    return f"{name[: LONGEST_NAME - 9]}_{zlib.crc32(name.encode()):08x}"

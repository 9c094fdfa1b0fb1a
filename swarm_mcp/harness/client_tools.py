"""Python functions of this process as tools of a child, served over MCP on a loopback port.

The transport is MCP's *streamable HTTP* (specification 2025-06-18, section Transports) without sessions and without
a stream of the server's own: each POST is answered by one JSON document, a GET by 405. Every request must carry the
bearer token that was drawn for this server; who else is on this machine gets 401.
"""

from __future__ import annotations

import enum
import hmac
import inspect
import json
import re
import secrets
import threading
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from swarm_mcp.errors import Refused
from swarm_mcp.harness.query import McpServer

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ABOUT = re.compile(r"\s*(?::param\s+)?(\w+)\s*(?:\([^)]*\))?\s*:\s+(\S.*)")


class ClientTool(NamedTuple):
    """A function as a tool: `schema` describes an object with its arguments, `call` takes those by name."""

    name: str
    description: str
    schema: dict
    call: Callable

    def listed(self) -> dict:
        """Return the tool as MCP's ``tools/list`` shows it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def tool_of(function: Callable) -> ClientTool:
    """Return the tool that `function` is. Raises Refused without a plain name, or with unnamed arguments."""
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise Refused(f"{name[:40] or function!r} cannot be the name of a tool; define it with def")
    try:
        hints = get_type_hints(function)
    except Exception:
        hints = {}
    text = inspect.getdoc(function) or ""
    about = {match.group(1): match.group(2) for match in map(_ABOUT.fullmatch, text.splitlines()) if match}
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as error:  # some of C, `print` before Python 3.11
        raise Refused(f"{name} cannot be a tool: Python does not say what its arguments are") from error
    properties, required = {}, []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise Refused(f"{name} cannot be a tool: its argument {parameter.name} cannot be given by name")
        described = schema_of(hints.get(parameter.name, Any))
        if parameter.name in about:
            described["description"] = about[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            described["default"] = parameter.default
        properties[parameter.name] = described
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return ClientTool(name, text or name, schema, function)


def schema_of(kind: Any) -> dict:
    """Return the JSON schema of an annotation; an empty one (anything) where it says nothing that JSON could."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [one.value for one in kind]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inner]}
    base = origin or kind
    if isinstance(base, type) and issubclass(base, Mapping):
        values = schema_of(inner[1]) if len(inner) == 2 else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(base, type) and issubclass(base, Collection) and base not in (bytes, bytearray):
        items = schema_of(inner[0]) if inner else {}
        return {"type": "array", **({"items": items} if items else {})}
    return {}


def complaint_about(arguments: Mapping[str, Any], schema: dict) -> str:
    """Return what is wrong with the arguments of a call, in one line; empty where they can be given to the function."""
    properties = schema["properties"]
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"missing argument: {', '.join(missing)}"
    unknown = [name for name in arguments if name not in properties]
    if unknown:
        return f"unknown argument: {', '.join(unknown)}; there are {', '.join(properties) or 'none'}"
    for name, value in arguments.items():
        if not _fits(value, properties[name]):
            return f"{name} does not fit {_shown(properties[name])}"
    return ""


def _fits(value: Any, schema: dict) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return isinstance(value, list) and all(_fits(one, schema.get("items", {})) for one in value)
    if kind == "object":
        values = schema.get("additionalProperties", {})
        return isinstance(value, dict) and all(_fits(one, values) for one in value.values())
    if kind in ("integer", "number"):
        return not isinstance(value, bool) and isinstance(value, (int, float) if kind == "number" else int)
    wanted = {"string": str, "boolean": bool, "null": type(None)}.get(str(kind))
    return wanted is None or isinstance(value, wanted)


def _shown(schema: dict) -> str:
    return str({name: value for name, value in schema.items() if name not in ("description", "default")})


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


NAME = "client_tools"
PATH = "/mcp"
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05", "2025-11-25")  # the first where a client asks for another
LARGEST_REQUEST = 16 << 20
IDLE_SECONDS = 120.0  # a connection that says nothing for so long is given up; clients open another
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


class ToolServer:
    """The tools of one run. ``with ToolServer(functions) as tools: tools.server`` is what the child is given."""

    def __init__(self, functions: Iterable[Callable]):
        """Raises Refused where one of the functions cannot be a tool, or two have one name."""
        self.tools: dict[str, ClientTool] = {}
        for tool in map(tool_of, functions):
            if tool.name in self.tools:
                raise Refused(f"two client tools are called {tool.name!r}")
            self.tools[tool.name] = tool
        self._token = secrets.token_urlsafe(32)
        self._http: _Http | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> ToolServer:
        """Listen on a free port of 127.0.0.1."""
        self._http = http = _Http(("127.0.0.1", 0), _Handler)
        http.tools, http.token = self.tools, self._token
        self._thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and drop open connections; a call that is running goes on unheard. May be called often."""
        http, self._http = self._http, None
        if http is None:
            return
        http.shutdown()
        http.server_close()
        http.drop_connections()
        if self._thread:
            self._thread.join()

    def __enter__(self) -> ToolServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> McpServer:
        """How a child reaches it; the token is a header, which adapters hand over by the environment."""
        if self._http is None:
            raise RuntimeError("the tool server is not running")
        url = f"http://127.0.0.1:{self._http.server_address[1]}{PATH}"
        return McpServer(url=url, headers={"Authorization": f"Bearer {self._token}"})


def with_tools(servers: Mapping[str, McpServer], tools: ToolServer) -> dict[str, McpServer]:
    """Return the servers of a child with the tool server among them; another of that name gives way."""
    return {**servers, NAME: tools.server}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a call may take long; whoever stops us does not want to wait for it
    tools: dict[str, ClientTool] = {}
    token = ""

    def __init__(self, *args: Any):
        self._open: set = set()
        self._guard = threading.Lock()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        """Close what clients keep open, so that their threads end."""
        with self._guard:
            left = list(self._open)
        for request in left:
            try:
                request.shutdown(2)
            except OSError:
                pass  # it has just gone by itself

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a client that was killed leaves broken connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "swarm-mcp", ""
    timeout = IDLE_SECONDS
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: standard error belongs to the supervisor."""

    def do_POST(self) -> None:
        """Answer one JSON-RPC message, or several (protocol versions before 2025-06-18 may batch them)."""
        body = self._body()
        if body is None or not self._is_allowed():
            return
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            return self._send(400, _failure(None, PARSE_ERROR, "this is not JSON"))
        if isinstance(told, list):
            answers = [answer for answer in map(self._answer, told) if answer is not None]
            return self._send(200, answers) if answers else self._send(202)
        answer = self._answer(told)
        return self._send(202) if answer is None else self._send(200, answer)

    def do_GET(self) -> None:
        """Refuse: this server has nothing to say of its own accord."""
        if self._is_allowed():
            self._send(405, headers={"Allow": "POST, DELETE"})

    def do_DELETE(self) -> None:
        """Accept: a client that is through says so, and there is no session to forget."""
        if self._is_allowed():
            self._send(200)

    # ---------------------------------------------------------------- who asks

    def _is_allowed(self) -> bool:
        """Whether the request is for us and carries the token; else the refusal has been sent."""
        if self.path.partition("?")[0] != PATH:
            self._send(404)
            return False
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        given = (self.headers.get("Authorization") or "").encode("utf-8", "replace")
        # A web page that resolves its own name to 127.0.0.1 comes with that name.
        if host not in ("127.0.0.1", "localhost") or self.headers.get("Origin"):
            self._send(403)
            return False
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            self._send(401, headers={"WWW-Authenticate": "Bearer"})
            return False
        return True

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length") or ""
        if not length.isdigit() or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            self._send(413 if length.isdigit() else 411)
            return None
        return self.rfile.read(int(length))

    # ---------------------------------------------------------------- what it asks

    def _answer(self, told: object) -> dict | None:
        """The answer to one message; None where it wants none."""
        if not isinstance(told, dict) or not isinstance(told.get("method"), str):
            answers_us = isinstance(told, dict) and ("result" in told or "error" in told)
            return None if answers_us else _failure(None, INVALID_REQUEST, "this is no request")
        if "id" not in told:
            return None
        params = told.get("params")
        params = params if isinstance(params, dict) else {}
        method, number = told["method"], told["id"]
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in VERSIONS else VERSIONS[0]
            info = {"name": NAME, "version": "1"}
            return _success(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        if method == "ping":
            return _success(number, {})
        if method == "tools/list":
            return _success(number, {"tools": [tool.listed() for tool in self.server.tools.values()]})
        if method == "tools/call":
            tool = self.server.tools.get(str(params.get("name")))
            if tool is None:
                return _failure(number, INVALID_PARAMS, f"there is no tool {str(params.get('name'))[:60]!r}")
            return _success(number, outcome_of(tool, params.get("arguments") or {}))
        return _failure(number, NO_METHOD, f"{method[:60]!r} is not offered here")

    def _send(self, status: int, answer: object = None, headers: Mapping[str, str] = {}) -> None:
        data = b"" if answer is None else json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def outcome_of(tool: ClientTool, arguments: object) -> dict:
    """Return the result of a call, as MCP has it. What the function raises is an error that the model reads."""
    if not isinstance(arguments, dict):
        return _content("the arguments must be an object", True)
    complaint = complaint_about(arguments, tool.schema)
    if complaint:
        return _content(complaint, True)
    try:
        value = tool.call(**arguments)
        if inspect.iscoroutine(value):
            import asyncio

            value = asyncio.run(value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except Exception as error:
        return _content(f"{type(error).__name__}: {error}", True)
    return _content(text, False)


def _content(text: str, is_error: bool) -> dict:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _success(number: object, result: dict) -> dict:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _failure(number: object, code: int, text: str) -> dict:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}

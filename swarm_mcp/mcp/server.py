"""An MCP server: a message in, an answer out, over any transport or on a loopback port.

A `Server` is an identity and a table of methods; a `Connection` is one client's state. Nothing here waits or reads: a
method returns its result, or a coroutine for the transport to wait for.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from swarm_mcp.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    ENVELOPE_VERSIONS,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    ProtocolError,
    Refusal,
    Request,
    fits,
    messages_in,
)

Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
Work = Coroutine[Any, Any, "Reply"]
Method = Callable[["Call"], "dict[str, Any] | Work"]

HANDSHAKE, ENVELOPE = "handshake", "envelope"  # the eras of the protocol; a connection's first request decides
DEFAULT_VERSION = HANDSHAKE_VERSIONS[-1]  # for a client that asks for an unknown version

_TEXT = {"type": "string"}
_ABOUT = {"type": "object", "required": ["name", "version"], "properties": {"name": _TEXT, "version": _TEXT}}
_META = {"type": "object", "properties": {"progressToken": {"type": ["string", "integer"]}}}
_ENVELOPE = {"properties": {CAPABILITIES_KEY: {"type": "object"}, CLIENT_KEY: _ABOUT}}


def _shape(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"required": list(required), "properties": {"_meta": _META, **properties}}


_LIST = _shape(cursor=_TEXT)
_URI = _shape("uri", uri=_TEXT)
SHAPES: dict[str, dict[str, Any]] = {
    "initialize": _shape(
        "protocolVersion", "capabilities", "clientInfo",
        protocolVersion=_TEXT, capabilities={"type": "object"}, clientInfo=_ABOUT,
    ),
    "ping": _shape(),
    "server/discover": _shape(),
    "tools/list": _LIST,
    "resources/list": _LIST,
    "resources/templates/list": _LIST,
    "prompts/list": _LIST,
    "tools/call": _shape("name", name=_TEXT, arguments={"type": ["object", "null"]}),
    "prompts/get": _shape("name", name=_TEXT, arguments={"type": ["object", "null"]}),
    "resources/read": _URI,
    "resources/subscribe": _URI,
    "resources/unsubscribe": _URI,
    "subscriptions/listen": _shape(
        "notifications",
        notifications={
            "type": "object",
            "properties": {"resourceSubscriptions": {"type": ["array", "null"], "items": _TEXT}},
        },
    ),
}  # fmt: skip
"""The parameters of each method, as a JSON schema."""

HANDSHAKE_ONLY = {"initialize", "ping", "resources/subscribe", "resources/unsubscribe"}
ENVELOPE_ONLY = {"server/discover", "subscriptions/listen"}
# Since 2026-07-28 these results say for how long they may be kept: for no time.
_CACHEABLE = {
    "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
}  # fmt: skip


class Reply:
    """The result of a method that a transport waits for. Exactly one of `sent` and `lost` is called in the end."""

    def __init__(
        self,
        result: dict[str, Any],
        sent: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
    ):
        """Take the `result`; `sent` for the moment it was handed to the client, `lost` for a cancelled request."""
        self.result, self.sent, self.lost = result, sent, lost


class Call:
    """A request as its method sees it. `notify(method, params)` sends a notification to the client."""

    def __init__(self, request: Request, notify: Notify | None = None):
        self.request, self.params, self.meta = request, request.params, request.meta
        self._notify = notify

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, if the transport has a way to the client."""
        if self._notify is not None:
            await self._notify(method, params)


class Server:
    """A server: `info` (name, version), its capabilities, its instructions for models, and its methods.

    `methods` has the methods beside ``initialize``, ``ping`` and ``server/discover``. A method gets a `Call`. It may
    raise ProtocolError. An ``async`` method returns a `Reply`, another one its result.
    """

    def __init__(
        self,
        info: dict[str, str],
        capabilities: dict[str, Any],
        methods: Mapping[str, Method],
        instructions: str = "",
        default_version: str = DEFAULT_VERSION,
    ):
        self.info, self.capabilities, self.default_version = info, capabilities, default_version
        self._about: dict[str, Any] = {"capabilities": capabilities}
        if instructions:
            self._about["instructions"] = instructions
        own: dict[str, Method] = {
            "initialize": self._initialize, "ping": lambda call: {}, "server/discover": self._discover,
        }  # fmt: skip
        self.methods = {**own, **methods}

    def negotiated(self, wanted: str) -> str:
        """Return the protocol version for a client that asks for `wanted` in its handshake."""
        if wanted in HANDSHAKE_VERSIONS:
            return wanted
        return self.default_version

    def _initialize(self, call: Call) -> dict[str, Any]:
        version = self.negotiated(call.params["protocolVersion"])
        return {"protocolVersion": version, "serverInfo": self.info, **self._about}

    def _discover(self, _call: Call) -> dict[str, Any]:
        return {"supportedVersions": list(ENVELOPE_VERSIONS), **self._about}

    def method(self, request: Request, absent: Collection[str] = ENVELOPE_ONLY) -> Method:
        """Return the method of a request. The methods `absent` do not exist in the era of its connection.

        Raises ProtocolError for an unknown method, and for malformed parameters.
        """
        if request.method in absent:
            raise no_method(request.method)
        shape = SHAPES.get(request.method)
        if shape is not None and not fits(request.params, shape):
            raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")
        method = self.methods.get(request.method)
        if method is None:
            raise no_method(request.method)
        return method


def no_method(name: str) -> ProtocolError:
    """Return the error for a method that the server does not have."""
    return ProtocolError(METHOD_NOT_FOUND, "Method not found", name)


class Connection:
    """One client's state: its era, and a finished handshake."""

    def __init__(self, server: Server):
        self.server = server
        self._era = ""
        self._greeted = False

    def begin(self, request: Request, notify: Notify | None = None) -> dict[str, Any] | Work:
        """Return the result of a request, or a coroutine for it. Raises ProtocolError.

        Requests have to be begun in the order of their arrival.
        """
        is_enveloped = request.method != "initialize" and VERSION_KEY in request.meta
        if not self._era:
            if is_enveloped:
                self._era = ENVELOPE
            else:
                self._era = HANDSHAKE
        if self._era == ENVELOPE:
            _check_envelope(request)
            method = self.server.method(request, HANDSHAKE_ONLY)
        else:
            if is_enveloped:
                raise ProtocolError(
                    INVALID_REQUEST,
                    "this connection serves the handshake protocol era; requests carrying the 2026-07-28 envelope are"
                    " not accepted on it",
                )
            method = self.server.method(request)
            if request.method == "initialize":
                self._greeted = True
            elif not self._greeted and request.method != "ping":
                raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")
        result = method(Call(request, notify))
        if isinstance(result, dict):
            return self.shaped(request, result)
        return result

    def shaped(self, request: Request, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with the fields of the connection's era."""
        if self._era != ENVELOPE:
            return result
        meta = {SERVER_KEY: self.server.info, **result.get("_meta", {})}
        shaped = {**result, "resultType": "complete", "_meta": meta}
        if request.method in _CACHEABLE:
            shaped.update(ttlMs=0, cacheScope="private")
        return shaped


def _check_envelope(request: Request) -> None:
    """Raise ProtocolError unless a request has the envelope of a version that is served."""
    meta = request.params.get("_meta")
    if request.method == "initialize":
        data: dict[str, Any] = {"supported": list(ENVELOPE_VERSIONS)}
        if isinstance(request.params.get("protocolVersion"), str):
            data["requested"] = request.params["protocolVersion"]
        text = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"
        raise ProtocolError(UNSUPPORTED_VERSION, text, data)
    if not isinstance(meta, dict):
        text = (
            f"params._meta must be an object carrying the required {VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope"
            " keys"
        )
        raise ProtocolError(INVALID_PARAMS, text)
    missing = [name for name in (VERSION_KEY, CAPABILITIES_KEY) if name not in meta]
    if missing:
        names = ", ".join(missing)
        raise ProtocolError(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {names}")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in ENVELOPE_VERSIONS:
        data = {"supported": list(ENVELOPE_VERSIONS), "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not fits(meta, _ENVELOPE):
        raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")


# An MCP server on a loopback port: *streamable HTTP* (2025-06-18, section Transports) without sessions and streams.
#
# Each POST is answered by one JSON document, a GET by 405. Every request must carry the bearer token of the server:
# other users of the machine get 401.

HOST, PATH = "127.0.0.1", "/mcp"
LARGEST_REQUEST = 16 << 20
IDLE_SECONDS = 120.0  # until a silent connection is closed; clients open another


class HttpServer:
    """A listening `server` with synchronous methods only. Each request has a thread of its own."""

    def __init__(self, server: Server):
        self._server = server
        self._token = secrets.token_urlsafe(32)
        self._http: _Http | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen on a free port."""
        self._http = http = _Http((HOST, 0), _Handler)
        http.mcp, http.token = self._server, self._token
        self._thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and drop open connections. A call that is running goes on. May be called often."""
        http, self._http = self._http, None
        if http is None:
            return
        http.shutdown()
        http.server_close()
        http.drop_connections()
        if self._thread:
            self._thread.join()

    @property
    def url(self) -> str:
        """The address. Raises RuntimeError if the server is not running."""
        if self._http is None:
            raise RuntimeError("the tool server is not running")
        return f"http://{HOST}:{self._http.server_address[1]}{PATH}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every request needs."""
        return {"Authorization": f"Bearer {self._token}"}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a running call may take long, and `stop` does not wait for it
    mcp: Server
    token = ""

    def __init__(self, *args: Any):
        self._open: set[Any] = set()
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
        """Close the connections that clients keep open, so that their threads end."""
        with self._guard:
            left = list(self._open)
        for request in left:
            try:
                request.shutdown(2)
            except OSError:
                pass  # the client has just closed it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a killed client leaves broken connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "swarm-mcp", ""
    timeout = IDLE_SECONDS
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: standard error belongs to the supervisor."""

    def do_POST(self) -> None:
        """Answer one message, or a batch (protocol versions before 2025-06-18)."""
        body = self._body()
        if body is None or not self._is_allowed():
            return
        text = body.decode("utf-8", "surrogateescape")
        answers = [self._answer(message) for message in messages_in(text) if isinstance(message, (Request, Refusal))]
        if not answers:
            return self._send(202)
        if text.lstrip().startswith("["):
            return self._send(200, answers)
        is_unreadable = answers[0].get("error", {}).get("code") == PARSE_ERROR
        return self._send(400 if is_unreadable else 200, answers[0])

    def do_GET(self) -> None:
        """Refuse: this server sends nothing of its own accord."""
        if self._is_allowed():
            self._send(405, headers={"Allow": "POST, DELETE"})

    def do_DELETE(self) -> None:
        """Accept the end of a session. This server keeps no sessions."""
        if self._is_allowed():
            self._send(200)

    def _is_allowed(self) -> bool:
        """Return True if the request is for this server and has its token; otherwise send the refusal."""
        if self.path.partition("?")[0] != PATH:
            self._send(404)
            return False
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        given = (self.headers.get("Authorization") or "").encode("utf-8", "replace")
        # A web page can make its own name resolve to 127.0.0.1; its requests name that host.
        if host not in (HOST, "localhost") or self.headers.get("Origin"):
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

    def _answer(self, message: Request | Refusal) -> dict[str, Any]:
        if isinstance(message, Refusal):
            return message.answer
        try:
            result = self.server.mcp.method(message)(Call(message))
        except ProtocolError as error:
            return error.answer(message.number)
        assert isinstance(result, dict)
        return message.answer(result)

    def _send(self, status: int, answer: object = None, headers: Mapping[str, str] = {}) -> None:
        data = b""
        if answer is not None:
            data = json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

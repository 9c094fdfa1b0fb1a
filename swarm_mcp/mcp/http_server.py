"""An MCP server on a loopback port: *streamable HTTP* (2025-06-18, section Transports) without sessions and streams.

Each POST is answered by one JSON document, a GET by 405. Every request must carry the bearer token of the server:
other users of the machine get 401.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from swarm_mcp.mcp.protocol import PARSE_ERROR, ProtocolError, Refusal, Request, messages_in
from swarm_mcp.mcp.server import Call, Server

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

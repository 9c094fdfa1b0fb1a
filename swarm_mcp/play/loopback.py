"""The base of small web servers: on a free port of loopback, silent, in a thread of its own."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer:
    """A server with a handler that knows this object as its `owner`, until it is closed. `port`: its own."""

    def __init__(self, handler: "type[QuietHandler]") -> None:
        self._http = _Http(("127.0.0.1", 0), handler)
        self._http.owner = self  # type: ignore[attr-defined]
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """Its URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that keeps connections open and logs nothing."""

    disable_nagle_algorithm = True  # headers and body are two packets: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> Any:
        """The LoopbackServer that it answers for."""
        return self.server.owner  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections of killed clients; raise all other errors."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

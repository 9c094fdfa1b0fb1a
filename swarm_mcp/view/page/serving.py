"""The process: its socket on loopback, the browser that it opens, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.view.page.app import TOKEN, Keys, application

# A web server as a process: its socket, and its end by SIGINT or SIGTERM.

LOOPBACK = "127.0.0.1"
_WAITING = 100  # connections that may wait to be taken
CLIENT_SECONDS = 20.0  # for a request, from the connection or the answer before, and for the next piece of its body


class _Patient(AutoHTTPProtocol):  # type: ignore[valid-type,misc]  # h11's or httptools', whichever is installed
    """A connection that is closed if its client stays silent, or takes nothing. uvicorn itself would wait for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._silent_since = self.loop.time()  # no request is complete, or nothing more of its body has come
        self._last: object = None
        self._unsent = 0  # bytes of an answer that the client had not taken at the last look
        self._look = self.loop.call_later(CLIENT_SECONDS, self._close_half_open)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        has_news = self.cycle is not None and self.cycle.more_body
        if has_news or self.cycle is not self._last:
            self._last, self._silent_since = self.cycle, self.loop.time()

    def _close_half_open(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if 0 < self._unsent <= unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._silent_since = now
        elif now - self._silent_since >= CLIENT_SECONDS:
            self.transport.close()
            return
        self._look = self.loop.call_later(max(0.01, self._silent_since + CLIENT_SECONDS - now), self._close_half_open)


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve_until_ended`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(port: int, host: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens on this port (0: any that is free). Raises SwarmError where it cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family)
    except (OSError, UnicodeError) as error:
        raise SwarmError(f"no server can listen on {host[:80]}: {error}") from None
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address[0], port))
        found.listen(_WAITING)  # the caller prints the address before it serves; an early client waits
    except (OSError, OverflowError) as error:
        found.close()
        raise SwarmError(f"port {port} cannot be had: {error}") from None
    return found


async def serve_until_ended(
    app: Any, listens: socket.socket, tell: Callable[[], object], at_end: Callable[[], object] = lambda: None
) -> None:
    """Serve `app` until SIGINT or SIGTERM. Then call `at_end`, and give open requests another second.

    `tell` is called once the signals end the server and nothing else.
    """
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1,
        http=_Patient,
    )  # fmt: skip
    server = _Server(config)

    def end() -> None:
        server.should_exit = True
        at_end()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):  # the event loop cannot handle signals on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    tell()  # only now: a reader of the address may end the server at once
    await server.serve(sockets=[listens])


def serve(
    port: int, opens: bool, say: Callable[[str, int], object], viewer: str, own_id: str, is_persons: bool
) -> None:
    """Serve the page on this port (0: any) until SIGINT or SIGTERM, and `say` its address and port.

    The last three arguments: as of ``application``.
    """
    listens = listening(port)
    port = listens.getsockname()[1]
    keys = Keys(port)
    begin = f"http://{LOOPBACK}:{port}/?{TOKEN}="
    app = application(lambda: Store(read_only=True), keys, viewer, own_id, is_persons)

    def tell() -> None:
        say(begin + keys.shown, port)
        if opens and has_browser():
            # Some browsers come back only when they are closed.
            threading.Thread(target=webbrowser.open, args=(begin + keys.once,), daemon=True).start()

    def end() -> None:
        if app.live is not None:
            app.live.close()

    asyncio.run(serve_until_ended(app, listens, tell, end))


def has_browser() -> bool:
    """Return True if there is a desktop to open a browser on, or a browser in the environment."""
    named = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in named)

"""A web server as a process: its socket, and its end by SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from swarm_mcp.errors import SwarmError

LOOPBACK = "127.0.0.1"
_WAITING = 100  # connections that may wait to be taken


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
        found.listen(_WAITING)  # its address is said before it serves: who comes early waits
    except (OSError, OverflowError) as error:
        found.close()
        raise SwarmError(f"port {port} cannot be had: {error}") from None
    return found


async def serve_until_ended(
    app, listens: socket.socket, tell: Callable[[], object], at_end: Callable[[], object] = lambda: None
) -> None:
    """Serve `app` until SIGINT or SIGTERM: then `at_end` is called, and what is under way may take another second.

    `tell` is called once these signals end the server and nothing else.
    """
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1
    )
    server = _Server(config)

    def end() -> None:
        server.should_exit = True
        at_end()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):  # not by the loop, which cannot on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    tell()  # only now: whoever reads it may end it at once
    await server.serve(sockets=[listens])

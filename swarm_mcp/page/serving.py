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

import uvicorn

from swarm_mcp.errors import SwarmError
from swarm_mcp.page.access import TOKEN, Keys
from swarm_mcp.page.app import application
from swarm_mcp.store import Store

HOST = "127.0.0.1"


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(port: int, opens: bool, say: Callable[[str, int], object], viewer: str, own_id: str) -> None:
    """Serve the page on this port (0: any) until SIGINT or SIGTERM, and `say` its address and port."""
    listening = _listening(port)
    port = listening.getsockname()[1]
    keys = Keys(port)
    begin = f"http://{HOST}:{port}/?{TOKEN}="
    app = application(lambda: Store(read_only=True, adopts=False), keys, viewer, own_id)

    def tell() -> None:
        say(begin + keys.shown, port)
        if opens and has_browser():
            # Some browsers come back only when they are closed.
            threading.Thread(target=webbrowser.open, args=(begin + keys.once,), daemon=True).start()

    asyncio.run(_serve(app, listening, tell))


def has_browser() -> bool:
    """Whether there is a desktop to open a browser on, or one that somebody has chosen."""
    named = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in named)


def _listening(port: int) -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        found.listen(100)  # its address is said before it serves: who comes early waits
    except (OSError, OverflowError) as error:
        found.close()
        raise SwarmError(f"port {port} cannot be had: {error}") from None
    return found


async def _serve(app, listening: socket.socket, tell: Callable[[], object]) -> None:
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1
    )
    server = _Server(config)

    def end() -> None:
        server.should_exit = True
        app.live.close()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):  # not by the loop, which cannot on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    tell()  # only now: whoever reads it may end it at once
    await server.serve(sockets=[listening])

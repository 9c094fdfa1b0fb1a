"""The process: its socket on loopback, the browser that it opens, and its end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Callable

from swarm_mcp.store import Store
from swarm_mcp.view.page.access import TOKEN, Keys
from swarm_mcp.view.page.app import application
from swarm_mcp.view.page.http_process import LOOPBACK, listening, serve_until_ended


def serve(port: int, opens: bool, say: Callable[[str, int], object], viewer: str, own_id: str) -> None:
    """Serve the page on this port (0: any) until SIGINT or SIGTERM, and `say` its address and port."""
    listens = listening(port)
    port = listens.getsockname()[1]
    keys = Keys(port)
    begin = f"http://{LOOPBACK}:{port}/?{TOKEN}="
    app = application(lambda: Store(read_only=True), keys, viewer, own_id)

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

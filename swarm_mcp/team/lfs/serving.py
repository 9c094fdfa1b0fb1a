"""The process that answers git-lfs. It keeps nothing: ended and started anew, it says what it said before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from swarm_mcp.http_process import listening, serve_until_ended
from swarm_mcp.team.lfs.app import application
from swarm_mcp.team.lfs.names import FileNames
from swarm_mcp.team.lfs.people import People


def serve(
    server: str, host: str, port: int, clones: dict[str, str], objects: str, say: Callable[[str, int], object]
) -> None:
    """Answer git-lfs on this port of `host` (0: any) until SIGINT or SIGTERM, and `say` address and port.

    server   where the team's server is, as libpq takes it
    clones   of repositories that have a work tree here, its top; who names no repository means the first
    objects  URL of the LFS server that keeps objects, empty for none
    """
    listens = listening(port, host)
    port = listens.getsockname()[1]
    people = People(server, {repository: FileNames(top) for repository, top in clones.items()})
    app = application(people, next(iter(clones), ""), objects)
    if ":" in host:
        shown = f"[{host}]"
    else:
        shown = host
    asyncio.run(serve_until_ended(app, listens, lambda: say(f"http://{shown}:{port}", port)))

"""The overview in a browser."""

from __future__ import annotations

from swarm_hook_core.json_text import dumps
from swarm_mcp.cli.arguments import JSON, SCREENS, Arguments, Option, Usage, verb
from swarm_mcp.cli.extras import extra_command
from swarm_mcp.cli.output import flush, say
from swarm_mcp.errors import SwarmError
from swarm_mcp.sessions.acting import onlooker_identity, surrounding_session
from swarm_mcp.store import Store

NEEDED = ("jinja2", "markupsafe", "starlette", "uvicorn")


@verb(
    Usage(
        Option("--port N", "serve on this port (default: any that is free)"),
        Option("--no-open", "only print the address"),
        JSON,
    ),
    group=SCREENS,
)
def page(args: Arguments) -> int:
    """page: sessions, locks, queues and changes in a browser

    Prints the address of a page on this machine, opens it if there is a browser, and serves it until Ctrl-C. The page
    only reads, and updates by itself. Its address contains a random token, so that other users cannot open it. With
    --json the address is a line {"url", "port"}. It needs the packages of the extra `page`; exit 1 without them.

    example: swarm-mcp page --no-open
    """
    try:
        from swarm_mcp.view.page.serving import serve
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise SwarmError(f"it needs the missing package {error.name}: {extra_command('page')}") from None

    with Store(read_only=True) as store:
        me, viewer = surrounding_session(store), onlooker_identity(store)

    def tell(address: str, port: int) -> None:
        line = address
        if args.json:
            line = dumps({"url": address, "port": port})
        say(line)
        flush()

    own_id = ""
    if me:
        own_id = me.id
    serve(args.number("--port", 0), not args.given("--no-open"), tell, viewer, own_id)
    return 0

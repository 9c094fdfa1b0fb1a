"""The full screen that follows the store."""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import AS, SCOPE, TOGETHER, Arguments, Option, Usage, verb
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope


@verb(
    Usage(Option("--all", "all checkouts of this machine, not only this one (the key a changes that)"), AS, SCOPE),
    group=TOGETHER,
)
def top(args: Arguments) -> int:
    """top: a full screen of who holds and waits for what, as it happens

    Four tables, brought up to date when something happens: sessions with what they hold, wait for and are doing; locks,
    and below each the line of those who wait for it; the last writes that were denied, and why; tasks and workers with
    what they cost. Of each at most 100 rows, and how many there are. It only looks, and never keeps anybody waiting. In
    a clone that has joined a team a line says how fresh what is known of other machines is, and which are silent.

    Keys: Tab or 1 to 4 chooses a table, arrows a row; Enter shows more of it (why a file can or cannot be written, a
    worker's transcript as it grows, a task, all rows with a session's name); w why and l log of its file, f why of a
    file whose path is typed; t what has happened here; u gives back a lock of your own and x ends a worker or calls a
    task off, both after a question; / shows only rows with some words, of at most 2,000 locks; a all checkouts; z one
    table alone; ? all keys; q or Ctrl-C ends it, as SIGTERM does, with exit code 0; Ctrl-Z leaves it for a while.

    It needs the package Textual, which comes with the extra `top`, and a terminal that can place its cursor. Exit 1
    where one of them is missing: `swarm-mcp status` and `swarm-mcp watch` show the same anywhere. No colours with
    NO_COLOR, or where the terminal has none.

    example: swarm-mcp top --all
    """
    from swarm_mcp.top.terminal import has_colours, obstacle

    why_not = obstacle()
    if why_not:
        raise SwarmError(f"{why_not}: swarm-mcp status shows the same as lines")
    try:
        import textual  # noqa: F401
    except ImportError:
        from swarm_mcp.installation import extra_command

        advice = f"{extra_command('top')}; swarm-mcp status shows the same as lines"
        raise SwarmError(f"it needs Textual, which is not installed: {advice}") from None
    if not has_colours():
        os.environ["NO_COLOR"] = "1"
    from swarm_mcp.top.app import Top
    from swarm_mcp.top.picture import Wish
    from swarm_mcp.top.reading import Reader
    from swarm_mcp.top.tables import ALL

    reader = Reader(current_scope(args.value("--scope")), args)
    acting = ["--as", args.value("--as")] if args.value("--as") else []
    here = ["--scope", args.value("--scope")] if args.value("--scope") else []
    app = Top(ALL, reader.read, acting, here, Wish(everywhere=args.given("--all")))
    app.run()
    if app.failure:
        raise app.failure
    return 0

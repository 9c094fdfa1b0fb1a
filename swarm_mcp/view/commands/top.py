"""The full screen that follows the store."""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import AS, SCOPE, SCREENS, Arguments, Option, Usage, verb
from swarm_mcp.cli.extras import extra_command
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.view.top.picture import Wish
from swarm_mcp.view.top.reading import Reader
from swarm_mcp.view.top.tables import ALL
from swarm_mcp.view.top.terminal import has_colours, obstacle


@verb(
    Usage(Option("--all", "all checkouts of this machine, not only this one (the key a changes that)"), AS, SCOPE),
    group=SCREENS,
)
def top(args: Arguments) -> int:
    """top: a full screen of sessions, locks, queues and tasks

    Six tables: sessions with their locks, waits and activity; locks, each with its queue below; the last refusals and
    notices with their reasons; tasks and workers with their cost; files that sessions have changed and not committed;
    unread messages. Each has at most 100 rows, and its total. top only reads, and never delays a session. In a clone
    that has joined a team a line shows the age of the data about other machines, and the silent ones.

    Keys: Tab or 1 to 6 chooses a table, arrows a row; Enter shows more of it (why a file can or cannot be written, a
    worker's transcript as it grows, a task, all rows with a session's name); w why and l log of its file, f why of a
    file that you type; t the log of this checkout; u unlocks a file of your own and x ends a worker or cancels a task,
    both after a question; / filters the rows, of at most 2,000 locks; a all checkouts; z one table alone; ? all keys; q
    or Ctrl-C ends it, as SIGTERM does, with exit code 0; Ctrl-Z suspends it.

    It needs the package Textual, which comes with the extra `top`, and a terminal that can place its cursor. Exit 1
    without them: `swarm-mcp status` and `swarm-mcp watch` show the same anywhere. No colours with NO_COLOR, or on a
    terminal without colours.

    example: swarm-mcp top --all
    """
    why_not = obstacle()
    if why_not:
        raise SwarmError(f"{why_not}: swarm-mcp status shows the same as lines")
    try:
        import textual  # noqa: F401
    except ImportError:
        advice = f"{extra_command('top')}; swarm-mcp status shows the same as lines"
        raise SwarmError(f"it needs the missing package Textual: {advice}") from None
    if not has_colours():
        os.environ["NO_COLOR"] = "1"
    from swarm_mcp.view.top.app import Top

    reader = Reader(current_scope(args.value("--scope")), args)
    acting, here = ([flag, args.value(flag)] * bool(args.value(flag)) for flag in ("--as", "--scope"))
    app = Top(ALL, reader.read, acting, here, Wish(everywhere=args.given("--all")))
    app.run()
    if app.failure:
        raise app.failure
    return 0

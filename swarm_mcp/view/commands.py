"""The verbs that show a checkout: on a full screen, on a page in the browser, in an editor."""

from __future__ import annotations

import os

from swarm_hook_core.json_text import dumps
from swarm_mcp.cli.arguments import AS, JSON, MORE_SETUP, SCOPE, SCREENS, Arguments, Option, Usage, verb
from swarm_mcp.cli.extras import extra_command
from swarm_mcp.cli.output import flush, say
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import is_person, onlooker_identity, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.view.top.picture import Wish
from swarm_mcp.view.top.reading import ALL, Reader, has_colours, obstacle

# The language server for editors.

LSP_NEEDED = ("pygls", "lsprotocol", "attrs", "cattrs")


@verb(
    Usage(Option("--stdio", "as editors add it: standard input and output are the only way", hidden=True)),
    group=MORE_SETUP,
)
def lsp(_args: Arguments) -> int:
    """lsp: a language server: an editor shows the holder and the changes of a file

    Editors start this for each checkout (docs/daily-use.md). A hint stands at the top of a locked file ("held
    by codex 5f0c2f6e: renumbering migrations") and at the lines that a session has changed and not committed; it comes
    and goes while the file is open. Two code lenses, and the commands `swarm.why` and `swarm.blame` of the server, show
    the output of `swarm-mcp why FILE` and `swarm-mcp blame FILE --uncommitted`. Before a save of a file that another
    session holds, or has changed since the editor read it, a warning is shown, once for each reason; nothing is held up
    or edited. A save is noted as the person's own at once. The store is only read.

    It needs the package pygls (the extra `lsp`). Exit 1 without it.

    example: swarm-mcp lsp
    """
    try:
        from swarm_mcp.view.lsp import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LSP_NEEDED:
            raise
        raise SwarmError(f"it needs the missing package {error.name}: {extra_command('lsp')}") from None
    with Store(read_only=True) as store:
        viewer = onlooker_identity(store)
    return serve(viewer)


# The overview in a browser.

PAGE_NEEDED = ("jinja2", "markupsafe", "starlette", "uvicorn")


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
    updates by itself. A person can undo a session's last turn there, restore a kept content, release a lock or ask for
    it, and answer a worker: each command is shown with its effect before it runs. The address contains a random token,
    so that other users cannot open it. With --json the address is a line {"url", "port"}. It needs the packages of the
    extra `page`; exit 1 without them.

    example: swarm-mcp page --no-open
    """
    try:
        from swarm_mcp.view.page.app import serve
    except ModuleNotFoundError as error:
        if error.name not in PAGE_NEEDED:
            raise
        raise SwarmError(f"it needs the missing package {error.name}: {extra_command('page')}") from None

    with Store(read_only=True) as store:
        me, viewer, is_persons = surrounding_session(store), onlooker_identity(store), is_person(store)

    def tell(address: str, port: int) -> None:
        line = address
        if args.json:
            line = dumps({"url": address, "port": port})
        say(line)
        flush()

    own_id = ""
    if me:
        own_id = me.id
    serve(args.number("--port", 0), not args.given("--no-open"), tell, viewer, own_id, is_persons)
    return 0


# The full screen that follows the store.


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

"""The language server for editors."""

from __future__ import annotations

from swarm_mcp.cli.arguments import MORE_SETUP, Arguments, Option, Usage, verb
from swarm_mcp.cli.extras import extra_command
from swarm_mcp.errors import SwarmError
from swarm_mcp.sessions.acting import onlooker_identity
from swarm_mcp.store import Store

NEEDED = ("pygls", "lsprotocol", "attrs", "cattrs")


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
        from swarm_mcp.view.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        raise SwarmError(f"it needs the missing package {error.name}: {extra_command('lsp')}") from None
    with Store(read_only=True) as store:
        viewer = onlooker_identity(store)
    return serve(viewer)

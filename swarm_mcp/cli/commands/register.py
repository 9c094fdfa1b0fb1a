"""register: make a session known, or renew it

example: swarm-mcp register . --label "identity:work role:reviewer" --lease-seconds 3600
"""

from __future__ import annotations

import os

from swarm_hook_core.process import runs_app_server
from swarm_mcp.cli.arguments import FOLDERS, INSTANCES, JSON, PATIENCE, PLACE, Arguments, Option, Usage, Word
from swarm_mcp.cli.commands.alive import telling
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.scope import here
from swarm_mcp.session_summary import scope_summary
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration
from swarm_mcp.store.user_interface import pane_in
from swarm_mcp.views import registration

USAGES = (
    Usage(
        Word(
            "DIRECTORY",
            "where the session works (or SWARM_MCP_DIRECTORY; default: here)",
            optional=True,
            source=FOLDERS,
        ),
        *PLACE,
        Option("--scope DIR", "whom it coordinates with (default: the git root of DIRECTORY)", source=FOLDERS),
        Option("--lease-seconds N", "keep it for N seconds without a sign of life; without it, 60 seconds"),
        Option("--adopt-instance-id ID", "take over this instance", source=INSTANCES),
        JSON,
        Option("--runtime NAME", "the session's client, with --session-id: one instance for each", hidden=True),
        Option("--session-id ID", "the session's id there", hidden=True),
        Option("--state STATE", "working or idle", hidden=True),
        Option("--client PID:START", "the process whose end ends the session", hidden=True),
        Option("--source NAME", "of a session's start", hidden=True),
        Option("--pane ID", "the terminal pane it is in", hidden=True),
        Option("--tell", "say what the session is to be told of its locks", hidden=True),
        PATIENCE,
    ),
)


def run(args: Arguments) -> int:
    """Register; print the row."""
    request = asked_for(
        args,
        lease_seconds=max(0, args.number("--lease-seconds")),
        adopt_id=args.value("--adopt-instance-id"),
        preassigned_id=os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip(),
        runtime=args.value("--runtime"),
        session_id=args.value("--session-id"),
        state=args.value("--state"),
        client=args.process("--client"),
        pane=_pane(args),
    )
    if bool(request.runtime) != bool(request.session_id):
        raise UsageError("--runtime and --session-id go together")
    with Store(busy_seconds=args.patience) as store:
        if request.runtime:
            _find_terminal(store, request, anew=bool(args.value("--source")))
        row = store.instances.register(request)
        shown = registration(row)
        if row.lease_until is not None:
            shown["heartbeat"] = row.heartbeat
        if args.value("--source"):
            shown["summary"] = scope_summary(store, row)
        with telling(store, row if args.given("--tell") else None) as notices:
            if notices:
                shown["notices"] = notices
            if args.json:
                show(shown)
            else:
                say(f"registered {row.id}")
                for notice in notices:
                    say(notice)
    return 0


def asked_for(args, **more) -> Registration:
    """The registration that flags and environment describe: directory, label, scope and file root; and `more`."""
    return Registration(
        args.value("--directory")
        or (args.words[0] if args.words else "")
        or os.environ.get("SWARM_MCP_DIRECTORY", "").strip()
        or here(),
        label=args.value("--label") or os.environ.get("SWARM_MCP_LABEL", ""),
        scope=args.value("--scope") or os.environ.get("SWARM_MCP_SCOPE", ""),
        file_root=args.value("--file-root") or os.environ.get("SWARM_MCP_FILE_ROOT", ""),
        **more,
    )


def _pane(args) -> dict[str, str]:
    """The pane to publish: the one that hooks name, or a session's own that registers for good.

    A lease is taken on behalf of others as well, and the pane here is then the wrong one.
    """
    if args.value("--pane"):
        return pane_in({**os.environ, "HERDR_PANE_ID": args.value("--pane")})
    return {} if args.value("--runtime") or args.given("--lease-seconds") else pane_in(os.environ)


def _find_terminal(store: Store, request: Registration, anew: bool) -> None:
    """In a client's background server the environment is the first terminal's: ask which one this session is in."""
    pid = request.client[0]
    if not pid or not runs_app_server(pid):
        return
    request.pane = {}
    request.terminal = (0, "") if anew else store.instances.terminal_of(request.runtime, request.session_id)
    if request.terminal[0]:
        return
    from swarm_mcp.runtimes import NAMES, runtime  # not every session's start is to pay for it

    known = request.runtime in NAMES
    terminal = runtime(request.runtime).terminal_of(request.session_id) if known else None
    if terminal:
        request.terminal, request.pane = (terminal.pid, terminal.started), terminal.pane

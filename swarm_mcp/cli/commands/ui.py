"""Orders to external user interfaces, and the session of a terminal pane."""

from __future__ import annotations

from swarm_hook_core.json_text import dumps
from swarm_hook_core.naming import holder_name
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    DOING,
    FOLDERS,
    INTERNAL,
    LARGEST,
    ROLES,
    Arguments,
    Option,
    Usage,
    Word,
    choice,
    verb,
)
from swarm_mcp.cli.output import answer, listing, refused, say, show
from swarm_mcp.cli.words import AFTER, Reader, clause, printed_page, say_page
from swarm_mcp.domain import UiCommand
from swarm_mcp.errors import UnknownInstance, UsageError
from swarm_mcp.folders import clean, current_scope
from swarm_mcp.panes import resolve
from swarm_mcp.sessions.acting import find_acting_session, may_dispatch, viewer_identity
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of

WAIT_SECONDS = 5.0
WAIT = Option("--wait S", f"seconds to wait for the outcome (default {WAIT_SECONDS:g})")
TARGET = Option("--target T", "the node, by the name that the interface has for it", required=True)


@verb(
    Usage(
        choice("list", "commands", optional=True),
        Option("--status STATUS", "pending, running, done or failed", source=("pending", "running", "done", "failed")),
        Option("--limit N", "the newest N (default 20; -1 for all)"),
        AFTER,
        ABSOLUTE,
        *ACTING,
    ),
    Usage(choice("get"), Word("ID", "the id", source=()), *ACTING),
    Usage(
        choice("spawn"),
        Word("DIR", "the folder", source=FOLDERS),
        Option("--harness NAME", "the harness to start there"),
        Option("--role ROLE", "its role", source=ROLES),
        Option("--label TEXT", "more words for its label"),
        WAIT,
        *DOING,
    ),
    Usage(
        choice("prompt"),
        Word("TEXT", "the text", repeated=True),
        TARGET,
        Option("--no-enter", "type it without pressing Enter"),
        WAIT,
        *DOING,
    ),
    Usage(
        choice("move"),
        TARGET,
        Option("--x N", "where to", required=True),
        Option("--y N", required=True),
        WAIT,
        *DOING,
    ),
    Usage(choice("organize"), Option("--kind KIND", "how (grid)", source=("grid",)), WAIT, *DOING),
    group=INTERNAL,
)
def ui(args: Arguments) -> int:
    """ui: orders to a user interface that shows the swarm

    An order waits in a queue until an interface on the same store carries it out. Exit 1 if it failed; 0 also while the
    order waits. Only gateways may `spawn`: a session with mode:gateway in its label, or any session with
    SWARM_MCP_ALLOW_SPAWN=1.

    example: swarm-mcp ui spawn ~/src/shop --harness codex --role reviewer
    """
    actions = {
        "": _list, "list": _list, "commands": _list, "get": _get,
        "spawn": _spawn, "prompt": _prompt, "move": _move, "organize": _organize,
    }  # fmt: skip
    return actions["".join(args.words[:1])](args)


def _list(args: Arguments) -> int:
    with Store(read_only=True) as store:
        scope = current_scope(args.value("--scope"))
        status = args.value("--status")
        found = printed_page(
            args, lambda after: store.ui_commands.walk(scope, status, after), lambda row: row,
            lambda: store.ui_commands.count(scope, status), default=20,
        )  # fmt: skip
        reader = Reader(args, store)
    rows = [UiCommand(row) for row in found.rows]

    def table() -> None:
        cells = [(f"#{row.id}", row.status, row.kind, reader.when(row.created_at), row.scope) for row in rows]
        plain = [line for row in rows for line in _lines(row)]
        details = [_lines(row)[1:] for row in rows]
        listing(("id", "status", "kind", "when", "scope"), cells, plain, empty="(no ui commands)", details=details)

    return say_page(args, found, table)


def _get(args: Arguments) -> int:
    text = args.words[1].strip().removeprefix("#")
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST):
        raise UsageError(f"a ui command's id is a number, not {text[:40]!r}")
    with Store(read_only=True) as store:
        row = store.ui_commands.get(int(text))
    if args.json:
        show(row)
        return 0
    if row is None:
        return 1
    for line in _lines(row):
        say(line)
    return 0


def _spawn(args: Arguments) -> int:
    folder = args.words[1]
    payload: dict[str, object] = {"cwd": clean(folder)}
    for name in ("harness", "role", "label"):
        if args.value(f"--{name}"):
            payload[name] = args.value(f"--{name}")
    return _order(args, "spawn_shell", payload, gateway_only=True)


def _prompt(args: Arguments) -> int:
    payload = {
        "target": args.value("--target"),
        "text": " ".join(args.words[1:]),
        "enter": not args.given("--no-enter"),
    }
    return _order(args, "send_prompt", payload)


def _move(args: Arguments) -> int:
    return _order(
        args, "move_node", {"target": args.value("--target"), "x": _place(args, "--x"), "y": _place(args, "--y")}
    )


def _organize(args: Arguments) -> int:
    return _order(args, "organize_nodes", {"kind": args.value("--kind") or "grid"})


def _order(args: Arguments, kind: str, payload: dict[str, object], gateway_only: bool = False) -> int:
    """Queue one command and wait for its outcome."""
    seconds = args.seconds("--wait", WAIT_SECONDS)
    with Store() as store:
        try:
            by = find_acting_session(store, args)
        except UnknownInstance:
            if args.value("--as"):
                raise
            by = None  # a person at a shell, outside of any session
        if gateway_only and by and not may_dispatch(by):
            reason = f"only a session with mode:gateway in its label may spawn; {name_of(by)} lacks it"
            return refused(args, "ui spawn", {"error": f"{reason}; SWARM_MCP_ALLOW_SPAWN=1 lets any"})
        scope, requester = current_scope(args.value("--scope")), None
        if by:
            requester = by.id
        if by and not args.value("--scope"):
            scope = by.scope
        row = store.ui_commands.enqueue(scope, requester, kind, payload)
        if seconds:
            row = store.ui_commands.outcome(row.id, seconds)
    answer(args, row, *_lines(row))
    return int(row.status == "failed")


def _place(args: Arguments, flag: str) -> int | float:
    text = args.value(flag).strip()
    try:
        number = float(text)
    except ValueError:
        number = float("nan")  # refused below
    if not abs(number) <= LARGEST:
        raise UsageError(f"{flag} wants a number, not {text[:40]!r}")
    if number.is_integer():
        return int(number)
    return number


def _lines(row: UiCommand) -> list[str]:
    lines = [f"#{row.id}  [{row.status}]  {row.kind}  scope={row.scope}"]
    if isinstance(row.result, str):
        lines.append(f"  result: {row.result}")
    elif row.result is not None:
        lines.append(f"  result: {dumps(row.result)}")
    if row.error:
        lines.append(f"  error: {row.error}")
    return lines


@verb(
    Usage(
        Word("HANDLE", "the handle", source=()),
        Option("--backend NAME", "the program that has the pane (herdr)", source=("herdr",)),
        Option("--kind KIND", "the kind of handle (pane)", source=("pane",)),
        *ACTING,
    ),
    group=INTERNAL,
)
def resolve_workspace_handle(args: Arguments) -> int:
    """resolve-workspace-handle: the session in a terminal pane

    Asks the workspace for the pane's present name and occupant, and compares them with the published panes of sessions.
    Exit 0 also without a match.

    example: swarm-mcp resolve-workspace-handle w1:p2
    """
    handle = args.words[0]
    with Store() as store:
        viewer = viewer_identity(store, args)
        found = resolve(
            store, current_scope(args.value("--scope")), clause("identity:{}", viewer) or None,
            handle, args.value("--backend") or "herdr", args.value("--kind") or "pane",
        )  # fmt: skip
    if args.json:
        show(found)
        return 0
    name = f"{found['backend']}:{found['handle']}"
    trouble = clause(" ({})", found.get("probe_error"))
    if found["instance_id"]:
        (match,) = found["matches"]
        who = holder_name(match["label"], match["instance_id"])
        say(f"{name} is {found['instance_id']}  {who}  pane={found['canonical_handle']}{trouble}")
    elif found["ambiguous"]:
        say(f"{len(found['matches'])} sessions have published {name}{trouble}:")
        for match in found["matches"]:
            say(f"  {match['instance_id']}  {holder_name(match['label'], match['instance_id'])}")
    else:
        say(f"{name} is no session's pane{trouble}")
    return 0

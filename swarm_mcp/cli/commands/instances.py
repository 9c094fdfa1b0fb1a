"""The sessions of a scope, and the session of the caller."""

from __future__ import annotations

from swarm_mcp.answers.views import name_of, public_instance, registration, short, veiled
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, SESSIONS, Arguments, Usage, verb
from swarm_mcp.cli.output import answer, listing, presence, state_of
from swarm_mcp.cli.pages import PAGES, printed_page, say_page
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import clause
from swarm_mcp.domain.session import Session
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@verb(
    Usage(*PAGES, ABSOLUTE, *ACTING),
    group=SESSIONS,
)
def instances(args: Arguments) -> int:
    """instances: the sessions of this scope

    example: swarm-mcp instances --scope ~/src/shop
    """
    scope = current_scope(args.value("--scope"))
    rows: list[Session] = []
    with Store(read_only=True) as store:
        viewer = viewer_identity(store, args)
        reader = Reader(args, store, viewer)

        def shown(row: Session) -> dict[str, Any]:
            rows.extend(veiled([row], viewer))
            return store.panes.with_session(public_instance(rows[-1]))

        found = printed_page(
            args, lambda after: store.instances.walk(scope, after), shown, lambda: store.instances.count(scope)
        )

    def table() -> None:
        cells, plain = [], []
        for row, public in zip(rows, found.rows):
            pane, folder = public.get("pane_id") or "", reader.path(row.directory)
            name, seen = reader.session(row), reader.when(row.last_seen or row.heartbeat)
            cells.append((name, short(row.id), state_of(row, reader.now), seen, row.pid, pane, folder))
            line = f"  {short(row.id)}  {name}  pid={row.pid}  {presence(row, reader.now)}  {folder}"
            plain.append(line + clause("  pane={}", pane))
        listing(
            ("session", "id", "state", "seen", "pid", "pane", "directory"), cells, plain,
            title=f"scope: {scope}", empty=f"(no instances in scope {scope})",
        )  # fmt: skip

    return say_page(args, found, table)


@verb(
    Usage(*ACTING),
    group=SESSIONS,
)
def whoami(args: Arguments) -> int:
    """whoami: the session this command would act as

    The session is WHO, if given; else SWARM_MCP_INSTANCE_ID; else the session around this shell; else the only session
    of the scope.

    example: swarm-mcp whoami --json
    """
    with Store(read_only=True) as store:
        row = find_acting_session(store, args, reads=True)
    return answer(args, registration(row), f"{row.id}  {name_of(row)}  scope={row.scope}")

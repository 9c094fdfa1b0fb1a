"""The list of locks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from swarm_mcp.cli import locking
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, MORE_LOCKS, Arguments, Option, Usage, verb
from swarm_mcp.cli.locking import counted
from swarm_mcp.cli.output import listing, say, show_list
from swarm_mcp.cli.words import Reader, clause
from swarm_mcp.domain import Lock, nobody_in
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import current_scope, here
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
from swarm_mcp.store import Store

AT_ONCE = 500  # rows of a table
NO_LOCKS = "(no locks)"


@verb(
    Usage(
        Option("--file FILE", "only the locks on this file, from every scope", repeatable=True),
        ABSOLUTE,
        *ACTING,
    ),
    group=MORE_LOCKS,
)
def locks(args: Arguments) -> int:
    """locks: the locks of this scope, with their holders and notes

    A lock counts on the whole machine; the list has the locks that were taken in this scope. --file lists the locks on
    those files alone, from every scope; a relative FILE belongs to this folder and to the session's own. The name and
    note of a holder with another identity are left out. A lock that differs from the ordinary one (exclusive, without a
    lease, of a whole session) is marked with its mode, pattern, agent, the time left or expected, and the length of its
    queue. `swarm-mcp why FILE` has all facts about one file.

    The order is that of the first grants. Rows are printed as they are read, so a reader may stop early. After an error
    the list stays open, and the command fails. --json adds keys where they apply: mode, agent, pattern, repository,
    fence, ttl, lapses_in, expected_end, waiting; in a team team_fence, and the machine of locks from another one.

    example: swarm-mcp locks --file src/schema.sql --json
    """
    with Store(read_only=True) as store:
        scope = current_scope(args.value("--scope"))
        if not store.exists() and not args.given("--file"):
            # to ask an empty stand-in would take longer than to ask a store
            if args.json:
                show_list(())
            else:
                say(NO_LOCKS)
            return 0
        viewer = viewer_identity(store, args)
        if args.given("--file"):
            rows = _on_files(store, args, viewer)
        else:
            rows = store.locks.held(scope, viewer)
        rows = counted(store, rows)
        if store.has_values():  # panes are shared values, and few machines have any
            rows = store.panes.with_locks(rows)
        if args.json:
            show_list(rows)
        else:
            _print(rows, Reader(args, store, viewer))
    return 0


def _print(rows: Iterator[dict[str, Any]], reader: Reader) -> None:
    """Print rows as they are read. At a terminal they form one table for every AT_ONCE rows."""
    part = list(islice(rows, AT_ONCE))
    while True:
        cells, plain = [], []
        for row in part:
            file, who, pane = reader.path(row["file"]), reader.holder(row), row.get("pane_id") or ""
            more = locking.cells(row, reader.now)
            cells.append((file, who, pane, reader.when(row["created_at"]), *more, row["content"]))
            line = f"  {who}{clause(' (pane {})', pane)}  {file}  — {row['content'] or ''}"
            plain.append(line + locking.suffix(row, reader.now))
        listing(("file", "who", "pane", "since", *locking.HEADERS, "note"), cells, plain, empty=NO_LOCKS)
        part = list(islice(rows, AT_ONCE))
        if not part:
            return


def _on_files(store: Store, args: Arguments, viewer: str) -> Iterator[dict[str, Any]]:
    """Yield the locks on the files of --file, each lock once."""
    places = [nobody_in(here())]
    try:
        places.append(find_acting_session(store, args, reads=True))
    except UnknownInstance:
        pass  # a person outside of any session may ask as well
    found: dict[str, Lock] = {}
    for name in args.all("--file"):
        for path in {store.locks.path_of(place, name) for place in places}:
            found.update((row.id, row) for row in store.locks.on(path))
    return (store.locks.listed(row, viewer) for row in found.values())

"""Sessions removed and ended."""

from __future__ import annotations

import time

from swarm_hook_core.liveness import living
from swarm_mcp.errors import Refused
from swarm_mcp.store import reactions, session_table
from swarm_mcp.store.session_table import clients_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.database import Database, Transaction


def remove(db: Database, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
    """Remove an instance with all that it holds; return True if it was there. `by` is named to its peers as the
    remover.
    """
    with db.writing() as tx:
        row = session_table.get(tx, instance_id)
        if row and session_table.is_remote(tx, instance_id):
            raise Refused(f"session {instance_id} is one of another machine, and is removed there")
        if row:
            reactions.session_gone(tx, row, reason)
            if by:
                from swarm_mcp.store import messages

                messages.announce_removal(tx, row, by)
    return row is not None


def end_session(db: Database, row: Session, client: tuple[int, str] = (0, "")) -> bool:
    """Note that the session of instance `row` has ended in `client`, or everywhere; return True if it has gone.

    It stays if another client has the session open, and if it is a run's.
    """
    with db.writing() as tx:
        session = tx.row(
            "SELECT host, client_pid, client_start, other_clients FROM swarm_sessions WHERE instance_id = ?",
            (row.id,),
        )
        if session:
            clients = session_table.clients_of(session)
        else:
            clients = []
        # Hooks end every session here; few are of runs, and need the module of runs.
        of_run = tx.has("swarm_runs WHERE instance_id = ? AND state <> 'ended'", row.id)
        if session and client[0] and (client in clients or not of_run):
            left = living(session.host, [other for other in clients if other != client], tx.here)
            if left:
                _leave_to(tx, row.id, left)
                return False
        if not of_run:
            found = session_table.get(tx, row.id)
            if found:
                reactions.session_gone(tx, found, "deregistered")
            return True
    with db.writing() as tx:
        reactions.turn_ended(tx, row, time.time_ns())
    from swarm_mcp.store import runs

    return not runs.take_back(db, row.id) and remove(db, row.id)


def _leave_to(tx: Transaction, instance_id: str, clients: list[Any]) -> None:
    """These are the clients of a session from now on."""
    (pid, started), *others = clients
    # The terminal belonged to the client that spoke last.
    tx.change(
        "UPDATE swarm_sessions SET other_clients = ?, terminal_pid = CASE WHEN client_pid = ? AND client_start = ?"
        " THEN terminal_pid ELSE 0 END, client_pid = ?, client_start = ? WHERE instance_id = ?",
        (clients_text(others), pid, started, pid, started, instance_id),
    )
    tx.change("UPDATE instances SET pid = ? WHERE id = ?", (pid, instance_id))

"""Claims of hooks become locks before locks are looked at: the check that costs nothing where there are no claims."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database, Transaction


def adopt(db: Database) -> bool:
    """Make locks of hooks' claims, in the present transaction or one of its own; return True if there were any."""
    if not db.adopts or not db.has_claims():
        return False
    from swarm_mcp.store import automatic_locks

    if db.connection.in_transaction:
        return automatic_locks.adopt_in(db)
    return automatic_locks.adopt(db)


def adopt_in(tx: Transaction) -> bool:
    """Do as `adopt`, inside a transaction."""
    if not tx.adopts or not tx.has_claims():
        return False
    from swarm_mcp.store import automatic_locks

    return automatic_locks.adopt_in(tx)

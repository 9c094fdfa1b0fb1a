"""When the next pass of ``cleanup`` is due: asked at each session's start and turn, which need no more of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database

PAUSE_SECONDS = 30  # between two passes, of whatever process


def is_due(db: Database) -> bool:
    """Tell whether the last pass was long enough ago."""
    row = db.row("SELECT done_at FROM swarm_upkeep WHERE what = 'pass'")
    return row is None or not 0 <= db.now() - row.done_at < PAUSE_SECONDS

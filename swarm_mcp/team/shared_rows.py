"""Changes to this machine's rows that its team agent has to know of at once.

The agent posts locks, queue places, tasks, values and messages. It names the living sessions with each of its beats, so
a change to a session is no news for it. But a session needs an agent: where the copy of the team's locks is no longer
fresh, the agent may have been killed, and a session's next sign of life starts another.
"""

from __future__ import annotations

from swarm_mcp.team import agent_client, store_rows
from swarm_mcp.team.freshness import is_fresh
from swarm_mcp.team.memberships import memberships

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database

UNKNOWN = ""  # the name of a table that the store could not tell from its statement
POSTED = frozenset(
    ("context", "kv", "kv_scope_updates", "swarm_team_documents", "swarm_team_trees", "swarm_waiters", "tasks", UNKNOWN)
)
SESSIONS = frozenset(("instances", "swarm_sessions"))


def tell_agent(db: Database, tables: set[str]) -> None:
    """Tell the agent of a commit that has changed rows of `tables`, if it has to know; start a missing one."""
    if not POSTED.isdisjoint(tables) or (not SESSIONS.isdisjoint(tables) and _is_missed(db)):
        agent_client.poke()


def _is_missed(db: Database) -> bool:
    """Return True if a session works in a joined work tree, and the copy of the team's locks there is not fresh."""
    known, copies = store_rows.trees(db), store_rows.repositories(db)
    if known and all(name in copies and is_fresh(copies[name]) for name in known.values()):
        return False
    # Not of `known`: the agent writes these rows, and may not have come to it.
    return bool(store_rows.living_in(db, [top for one in memberships() if one.is_there for top in one.tops]))

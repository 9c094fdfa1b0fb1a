"""The store: one SQLite file that several implementations of the contract may share. Start at ``store.Store``.

``Store`` is loaded when its name is first used: hooks of a session's life call functions of a ``Database``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import BUSY_SECONDS
    from swarm_mcp.store.store import Store

__all__ = ["BUSY_SECONDS", "Store"]


def __getattr__(name: str) -> object:
    """Return ``Store``, or the time that it waits for a busy file."""
    if name not in __all__:
        raise AttributeError(name)
    from swarm_mcp.store import store

    found = globals()[name] = getattr(store, name)
    return found

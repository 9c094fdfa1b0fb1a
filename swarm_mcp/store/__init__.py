"""The embedded store: one SQLite file that several implementations of the contract may share.

Methods that ``api`` declares are documented there, and only there.
"""

from __future__ import annotations

from swarm_mcp.store.database import BUSY_SECONDS
from swarm_mcp.store.store import Store

__all__ = ["BUSY_SECONDS", "Store"]

"""The store: one SQLite file that several implementations of the contract may share. Start at ``store.Store``."""

from __future__ import annotations

from swarm_mcp.store.database import BUSY_SECONDS
from swarm_mcp.store.store import Store

__all__ = ["BUSY_SECONDS", "Store"]

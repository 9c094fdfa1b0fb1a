"""The embedded store: one SQLite file that several implementations of the contract may share."""

from __future__ import annotations

from swarm_mcp.store.connection import BUSY_SECONDS, Store

__all__ = ["BUSY_SECONDS", "Store"]

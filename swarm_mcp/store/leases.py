"""Locks that lapse: renewed by any sign of life of their session, warned about, and let go."""

from __future__ import annotations

from swarm_hook_core import clock


class Leases:
    """The embedded store's leases. Being written."""

    def __init__(self, store):
        self.store = store

    def renew(self, instance_id: str) -> None:
        """Inside a transaction: a sign of life of this session, which keeps its locks."""
        leased = "instance_id = ? AND type = 'lock' AND ttl IS NOT NULL"
        if self.store.row(f"SELECT 1 FROM context WHERE {leased} LIMIT 1", (instance_id,)):
            self.store.locks.rows.reaped(self.store.locks.rows.select("AND c.instance_id = ?", (instance_id,)))
            self.store.change(
                f"UPDATE context SET renewed = ?, booted = ?, wall_until = ? + ttl, warned = NULL WHERE {leased}",
                (clock.now(), clock.boot(self.store.here), self.store.now(), instance_id),
            )

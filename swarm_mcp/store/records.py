"""Messages and tasks as an onlooker sees them; nothing here marks or changes anything."""

from __future__ import annotations


class Records:
    """Reading what sessions have written to each other."""

    def __init__(self, store):
        self.store = store

    def messages(self, scope: str, limit: int = 20) -> list[dict]:
        """The newest `limit` messages of a scope, oldest first."""
        rows = self.store.rows(
            "SELECT id, sender, recipient, content, created_at, read FROM messages WHERE scope = ?"
            " ORDER BY id DESC LIMIT ?",
            (scope, limit),
        )
        return rows[::-1]

    def tasks(self, scope: str) -> list[dict]:
        """All tasks of a scope: what has not ended first, then in order of creation."""
        return self.store.rows(
            "SELECT id, type, title, status, assignee, requester FROM tasks WHERE scope = ?"
            " ORDER BY status IN ('done', 'failed', 'cancelled'), created_at, rowid",
            (scope,),
        )

    def task_counts(self, scope: str) -> dict[str, int]:
        """Number of tasks by status."""
        rows = self.store.rows("SELECT status, count(*) AS n FROM tasks WHERE scope = ? GROUP BY status", (scope,))
        return {row["status"]: row["n"] for row in rows}

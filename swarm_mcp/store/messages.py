"""Mail between sessions."""

from __future__ import annotations


class Messages:
    """The embedded store's messages."""

    def __init__(self, store):
        self.store = store

    def unread(self, instance: dict, limit: int = 50, mark: bool = True) -> list[dict]:
        """``{id, sender, content, created_at}`` of mail not read yet, oldest first.

        With `mark`, taken and marked in one transaction: no message is handed out twice.
        """
        sql = (
            "SELECT id, sender, content, created_at FROM messages WHERE scope = ? AND recipient = ? AND read = 0"
            " ORDER BY id LIMIT ?"
        )
        values = (instance["scope"], instance["id"], limit)
        if not mark:
            return self.store.rows(sql, values)
        with self.store.writing():
            rows = self.store.rows(sql, values)
            for row in rows:
                self.store.change("UPDATE messages SET read = 1 WHERE id = ?", (row["id"],))
        return rows

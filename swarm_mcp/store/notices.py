"""What a session's next hook tells its model: messages about its locks that should not wait for its next poll.

Each is an ordinary message as well. Whoever is first, a poll or a hook, delivers it; the other finds it read.
"""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.untrusted_text import label
from swarm_mcp.store.messages import SYSTEM

AT_ONCE = 10  # notices in one hook's words


class Notices:
    """The embedded store's notices."""

    def __init__(self, store):
        self.store = store

    def post(self, instance: dict, content: str, file: str = "", sender: str = SYSTEM) -> int:
        """Inside a transaction: a message to `instance`, which its next hook is to tell; the message's id.

        With absolute `file`, whoever holds that when the hook tells it is named besides.
        """
        message_id = self.store.messages.post(instance["scope"], sender, instance["id"], content)
        self.store.change(
            "INSERT INTO swarm_notices (message_id, instance_id, file) VALUES (?, ?, ?)",
            (message_id, instance["id"], file or None),
        )
        return message_id

    def unread(self, instance: dict, sender: str, file: str) -> bool:
        """Whether a notice of this sender about this file still waits for `instance`."""
        sql = (
            "SELECT 1 FROM swarm_notices n JOIN messages m ON m.id = n.message_id"
            " WHERE n.instance_id = ? AND n.file = ? AND m.sender = ? AND m.read = 0"
        )
        return self.store.row(sql, (instance["id"], file, sender)) is not None

    def take(self, instance: dict) -> list[dict]:
        """Claim what there is to tell, oldest first: ``{id, text}``; `Messages.acknowledge` once it has been told.

        Nobody else is given these messages meanwhile, as with `Messages.take`.
        """
        if not self.store.row("SELECT 1 FROM swarm_notices WHERE instance_id = ? LIMIT 1", (instance["id"],)):
            return []
        with self.store.writing():
            about = {
                row["message_id"]: row["file"]
                for row in self.store.rows(
                    "SELECT message_id, file FROM swarm_notices WHERE instance_id = ? ORDER BY message_id",
                    (instance["id"],),
                )
            }
            claimed = self.store.messages.claim(instance, list(about)[:AT_ONCE])
            gone = [name for name in list(about)[:AT_ONCE] if name not in {row["id"] for row in claimed}]
            for message_id in gone:  # read by a poll, deleted, or just on its way to one
                if not self._still_unread(message_id):
                    self.store.change("DELETE FROM swarm_notices WHERE message_id = ?", (message_id,))
        return [{"id": row["id"], "text": row["content"] + self._now(instance, about[row["id"]])} for row in claimed]

    def forget_old(self, limit: int) -> None:
        """Inside a transaction: drop those whose message has been read or deleted."""
        self.store.change(
            "DELETE FROM swarm_notices WHERE message_id IN (SELECT n.message_id FROM swarm_notices n"
            " LEFT JOIN messages m ON m.id = n.message_id WHERE coalesce(m.read, 1) = 1 LIMIT ?)",
            (limit,),
        )

    # -------------------------------------------------------------- innards

    def _still_unread(self, message_id: int) -> bool:
        return self.store.row("SELECT 1 FROM messages WHERE id = ? AND read = 0", (message_id,)) is not None

    def _now(self, instance: dict, file: str | None) -> str:
        if not file:
            return ""
        locks = [lock for lock in self.store.locks.on(file) if lock["instance_id"] != instance["id"]]
        if not locks:
            return "" if self.store.locks.on(file) else " Nobody holds it now."
        mine, theirs = (token(one or "", "identity") for one in (instance["label"], locks[0]["owner_label"]))
        name = label(locks[0]["owner_label"]) if locks[0]["owner_label"] else f"instance {locks[0]['instance_id']}"
        return f" It is held by {name if same_circle(mine, theirs) else 'a session of another identity'} now."

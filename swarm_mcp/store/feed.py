"""The events of a scope as an onlooker may see them, one after the other."""

from __future__ import annotations

from swarm_mcp.domain.lock import MUTEX_PREFIX
from swarm_mcp.domain.session import onlooker
from swarm_mcp.store.acquaintance import Acquaintance, payload_of
from swarm_mcp.store.task_rows import Sight, find

AT_ONCE = 500
# Group of events -> the name that ``wait_for_activity`` has for a change of that kind.
CHANGES = {
    "message": "new_messages",
    "task": "task_updates",
    "instance": "instance_changes",
    "kv": "kv_updates",
    "context": "lock_updates",
}
# What of a lock's event says who holds the file, and why.
_OF_THE_HOLDER = ("content", "note", "holder", "holder_label")


class Feed:
    """Events of `scope` after the one with id `last`, for a viewer of `identity` (empty for none)."""

    def __init__(self, scope: str, identity: str, last: int):
        self.scope = scope
        self.last = last
        self._viewer = onlooker(identity, scope)
        self._known = Acquaintance(self._viewer["label"])

    @staticmethod
    def newest(store, scope: str) -> int:
        """Id of the newest event, 0 where there is none."""
        row = store.row("SELECT max(id) AS id FROM events WHERE scope = ?", (scope,))
        return (row and row["id"]) or 0

    def read(self, store) -> list[dict]:
        """The next events, oldest first, at most `AT_ONCE`; an empty list when there are none yet.

        ``{id, at, change, type, actor, actor_label, subject, payload}``; what the viewer may not know is
        null or missing, and what is none of its business is an event with only its id.
        """
        if self.newest(store, self.scope) < self.last:
            self.last = 0  # another store has taken the place of the one before
        rows = store.rows(
            "SELECT id, type, actor, subject, payload, created_at FROM events WHERE scope = ? AND id > ?"
            " ORDER BY id LIMIT ?",
            (self.scope, self.last, AT_ONCE),
        )
        self._known.learn(rows)
        if rows:
            self.last = rows[-1]["id"]
        return [self._seen(store, row) for row in rows]

    def _seen(self, store, row: dict) -> dict:
        group, payload = row["type"].partition(".")[0], payload_of(row)
        doer = row["subject"] if group == "instance" else row["actor"]
        open_to_viewer = self._known.may_meet(store, doer)
        if group == "message":
            shown = open_to_viewer and self._known.may_meet(store, row["subject"])
        elif group == "task":
            tasks = find(store, "id = ?", (row["subject"],))
            shown = Sight(store, self._viewer).sees(tasks[0]) if tasks else open_to_viewer
        elif group == "context":
            shown = not (row["subject"] or "").startswith(MUTEX_PREFIX)
            if not (open_to_viewer and self._known.may_meet(store, payload.get("holder"))):
                payload = {name: value for name, value in payload.items() if name not in _OF_THE_HOLDER}
        else:
            shown = open_to_viewer or group == "instance"
        if not shown:
            return {"id": row["id"]}
        actor = row["actor"] if open_to_viewer or group == "instance" else None
        if group == "instance" and not open_to_viewer:
            payload = {"label": None}
        label = self._known.label_of(store, actor) if actor and open_to_viewer else None
        facts = {"actor": actor, "actor_label": label, "subject": row["subject"], "payload": payload}
        return {"id": row["id"], "at": row["created_at"], "change": CHANGES.get(group), "type": row["type"], **facts}

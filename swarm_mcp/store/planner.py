"""Which planner owns a scope's plan: one session at a time, known to all under ``owner/planner``."""

from __future__ import annotations

from swarm_hook_core.json_text import loads, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.store.database import Database
    from swarm_mcp.store.session_table import SessionTable
    from swarm_mcp.store.values import KeyValues

KEY = "owner/planner"
WORD = "role:planner"


def plans(label: str | None) -> bool:
    """Whether a label says that its session is a planner."""
    return WORD in (label or "").split()


class Planner:
    """The embedded store's planner ownership.

    The value is ``{instance_id, label, assigned_at}``, the time in milliseconds. It belongs to no
    identity, so that every session of the scope can read who plans.
    """

    def __init__(self, db: Database, sessions: SessionTable, values: KeyValues):
        self._db = db
        self._sessions = sessions
        self._values = values

    def owner(self, scope: str) -> dict | None:
        """The value, None where nobody owns the plan, or only a session that has gone or plans no more."""
        value = self._recorded(scope)
        row = self._sessions.live(value["instance_id"]) if value else None
        return value if row and row["scope"] == scope and plans(row["label"]) else None

    def settle(self, row: dict, before: dict | None = None) -> None:
        """Inside a transaction: a session joined or was renewed as `row`; `before` is its row until then.

        A planner takes a plan that nobody owns. One that has stopped planning here leaves it to the next.
        """
        if before and plans(before["label"]) and (before["scope"] != row["scope"] or not plans(row["label"])):
            self.leave(before)
        if plans(row["label"]) and not self.owner(row["scope"]):
            self._assign(row)

    def leave(self, row: dict) -> None:
        """Inside a transaction: session `row` has left its scope; where it owned the plan, the eldest planner does now.

        With no planner left, the key goes.
        """
        scope = row["scope"]
        value = self._recorded(scope)
        if not value or value["instance_id"] != row["id"]:
            return
        others = [peer for peer in self._sessions.in_scope(scope) if peer["id"] != row["id"]]
        planners = [peer for peer in others if plans(peer["label"])]
        if planners:
            self._assign(min(planners, key=lambda peer: (peer["registered_at"], peer["id"])))
        else:
            self._values.withdraw(scope, KEY)

    def _assign(self, row: dict) -> None:
        who = f'"instance_id":{quote(row["id"])},"label":{quote(row["label"])}'
        self._values.declare(row["scope"], KEY, f'{{{who},"assigned_at":{self._db.now_ms()}}}')

    def _recorded(self, scope: str) -> dict | None:
        row = self._db.row("SELECT value FROM kv WHERE scope = ? AND key = ?", (scope, KEY))
        try:
            value = loads(row["value"]) if row else None
        except (ValueError, TypeError, RecursionError):
            return None
        return value if isinstance(value, dict) and isinstance(value.get("instance_id"), str) else None

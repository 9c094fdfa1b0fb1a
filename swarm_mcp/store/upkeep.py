"""What falls due with time: gone sessions, old mail, finished tasks, old events, orphaned values."""

from __future__ import annotations

from swarm_mcp.store import events
from swarm_mcp.store.locks import MUTEX_PREFIX

MESSAGE_SECONDS = 3600
TASK_SECONDS = 86400
EVENT_SECONDS = 86400
ORPHAN_VALUE_SECONDS = 3600
TERMINAL = "('done', 'failed', 'cancelled')"


class Upkeep:
    """The embedded store's cleaning."""

    def __init__(self, store):
        self.store = store

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        """Remove what is due in `scope` (None: everywhere); counts in the contract's shape.

        A dry run does the same in a transaction that is rolled back, so that it cannot disagree.
        """
        report: dict = {"dry_run": dry_run, "mode": "manual", "scope": scope, "at": self.store.now()}
        try:
            with self.store.writing():
                report.update(self._clean(scope))
                if dry_run:
                    raise _RollBack
        except _RollBack:
            pass
        return report

    def _clean(self, scope: str | None) -> dict:
        now = self.store.now()
        before = self._counts()
        gone = [row for row in self.store.instances.gone() if scope in (None, row["scope"])]
        reopened = cleared = identities = 0
        from swarm_mcp.store import removal

        for row in gone:
            reopened += self._count("tasks", "assignee = ? AND status IN ('claimed', 'in_progress')", (row["id"],))
            cleared += self._count(
                "tasks", "assignee = ? AND status IN ('blocked', 'approval_required')", (row["id"],)
            )
            identities += self._count(
                "kv", "key IN (?, ?)", (f"identity/workspace/herdr/{row['id']}", f"identity/herdr/{row['id']}")
            )
            removal.remove(self.store, row, "reclaimed")
        orphaned = "type = 'lock' AND instance_id NOT IN (SELECT id FROM instances)"
        self._delete("context", orphaned, (), scope, "orphan_locks")
        spent = (
            f"type = 'lock' AND substr(file, 1, {len(MUTEX_PREFIX)}) = '{MUTEX_PREFIX}'"
            f" AND task_id IN (SELECT id FROM tasks WHERE status IN {TERMINAL})"
        )
        mutexes = self._delete("context", spent, (), scope, "terminal_spawn_locks")
        messages = self._delete("messages", "created_at < ?", (now - MESSAGE_SECONDS,), scope, "messages")
        tasks = self._delete(
            "tasks", f"status IN {TERMINAL} AND updated_at < ?", (now - TASK_SECONDS,), scope, "terminal_tasks"
        )
        legacy = self._delete("context", "type <> 'lock'", (), scope, "non_lock_context_rows")
        old_events = self._delete("events", "created_at < ?", (now - EVENT_SECONDS,), scope, "events")
        keys = self._orphan_values(now, scope)
        return {
            "instances_reclaimed": len(gone),
            "tasks_reopened": reopened,
            "task_assignees_cleared": cleared,
            "locks_deleted": before - self._counts() - mutexes,
            "terminal_spawn_locks_deleted": mutexes,
            "messages_deleted": messages,
            "terminal_tasks_deleted": tasks,
            "non_lock_context_rows_deleted": legacy,
            "events_deleted": old_events,
            "kv_deleted": len(keys),
            "kv_keys_deleted": keys,
            "identity_rows_deleted": identities,
        }

    def _counts(self) -> int:
        return self._count("context", "type = 'lock'", ())

    def _count(self, table: str, condition: str, values: tuple) -> int:
        row = self.store.row(f"SELECT count(*) AS n FROM {table} WHERE {condition}", values)
        return row["n"] if row else 0

    def _delete(self, table: str, condition: str, values: tuple, scope: str | None, what: str) -> int:
        if scope is not None:
            condition, values = f"scope = ? AND {condition}", (scope, *values)
        counts = self.store.rows(f"SELECT scope, count(*) AS n FROM {table} WHERE {condition} GROUP BY scope", values)
        if not counts:
            return 0
        deleted = self.store.change(f"DELETE FROM {table} WHERE {condition}", values)
        for row in counts:
            payload = {"count": row["n"], "mode": "manual"}
            events.add(self.store, row["scope"], f"cleanup.{what}_deleted", "system", None, payload)
        return deleted

    def _orphan_values(self, now: int, scope: str | None) -> list[str]:
        """Values published by or about a session that is no longer registered in that scope."""
        removed: dict[str, list[str]] = {}
        condition, values = ("AND kv.scope = ?", (scope,)) if scope is not None else ("", ())
        for prefix in ("progress/", "plan/", "identity/workspace/herdr/", "identity/herdr/"):
            rows = self.store.rows(
                "SELECT kv.scope, kv.key FROM kv"
                f" WHERE substr(key, 1, ?) = ? AND key <> 'plan/latest' AND updated_at < ? {condition} AND NOT EXISTS"
                " (SELECT 1 FROM instances i WHERE i.scope = kv.scope AND i.id = substr(kv.key, ?))",
                (len(prefix), prefix, now - ORPHAN_VALUE_SECONDS, *values, len(prefix) + 1),
            )
            for row in rows:
                self.store.change("DELETE FROM kv WHERE scope = ? AND key = ?", (row["scope"], row["key"]))
                self.store.kv.touch(row["scope"])
                removed.setdefault(row["scope"], []).append(row["key"])
        for place, keys in removed.items():
            payload = {"count": len(keys), "mode": "manual", "keys": keys}
            events.add(self.store, place, "cleanup.kv_deleted", "system", None, payload)
        return [f"{place}:{key}" for place, keys in removed.items() for key in keys]


class _RollBack(Exception):
    pass
